// Package memory keeps the ledger in the memory of one process. It is the default: it needs no file and no server, and
// nothing of it survives the process.
//
// Use it where the work may be forgotten at a crash (caches to warm, views to refresh), in tests, and to try things out.
// Replicas know nothing of each other: three processes with the same triggers fire three times. Where a slot must be
// done once, however often the process dies, use package sqlite.
//
// What it keeps is bounded: of each trigger the newest terminal records and the newest ranges ([History], 1,000 of
// each); unfinished records are always kept. A key whose verdict has been forgotten would be new again, which a trigger
// does not ask for. Free keys (Do, Submit) are kept for ever, because nobody can say when they are asked for again: about
// 500 bytes each.
//
// Closing the store keeps what is in it. Opening it again begins a new session, as a restart of the process would: what
// an earlier session had claimed can be claimed at once.
package memory
