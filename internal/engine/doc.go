// Package engine is the one place that touches proto.actor's plug-in points: mailbox, dispatcher, guardian, spawn. Everything
// above it says tell, ask, watch, spawn and stop.
//
// Its actors are ordinary actors of an actor system: they have PIDs, and a user's own actors may send to them, watch them, stop
// them and be answered by them. What proto.actor leaves open or does wrong is closed here, and what is closed stays closed by a
// test named after it (hazard_test.go):
//
//   - Serial: an actor handles one message at a time, Started before any other, and none after Stopping but Stopped.
//   - Lossless: a message is handled, or becomes a dead letter and is told so ([Undeliverable]). Not one disappears at a stop.
//   - Exact: a failure names the message that failed. Those before it are done, those behind it wait in order for the next
//     instance, which is given the message again if the [Supervisor] says so.
//   - Isolated: a panic or runtime.Goexit in one actor's code, in a supervisor, or in what is told of a dead letter touches no
//     other actor and leaves none stuck.
//   - Fair: an actor gives its worker back after a number of messages; no actor starves the others.
//   - Bounded: at most [Config.Workers] goroutines run, and none when nothing is to do. A mailbox itself has no bound: whoever
//     feeds one from outside bounds what it has under way.
//   - Lean: an idle actor costs about 450 B, most of them proto.actor's, and a mailbox keeps no memory after a burst.
//
// # How it works
//
// A cell (cell.go) is an actor's mailbox and all else that is kept of it. Posting a message puts it into the cell's queue and
// the cell, if it is idle, into the pool's (pool.go). A worker gives the cell a turn (turn.go): it takes what was posted and
// hands it to the actor in batches, each through one call of proto.actor's context. When the actor's code panics, the deferred
// end of the turn notes in which phase that was and puts the cell back into the pool; the next turn, on a clean stack, goes on
// from that phase: it asks the supervisor, or goes on with a stop or a restart that was interrupted (life.go). That is also
// why runtime.Goexit, which no one can stop from ending the goroutine, ends nothing else.
package engine
