// Package keygroup gathers small items by key and hands each key's merged batch to a handler.
//
// What is not promised, first: nothing here is on disk. A crash of the process loses what was accepted and not yet
// handled, unless the caller can read its source again. And a handler that fails after a part of its work is called
// again with all of the batch: its work is to be idempotent, or to end in [Batch.CommitTx].
//
// The promises:
//
//   - Serial: for one key at most one handler call is under way, whatever times out, fails or is flushed meanwhile. A
//     call that overstays its timeout has its context cancelled and is waited for.
//   - Ordered: items that one goroutine adds to one key are merged in the order of its calls. A batch that failed is
//     merged back in front of what came after it, so a later attempt sees the same order. Keys have no order among each
//     other, nor have goroutines.
//   - Isolated: a handler that is slow, fails, panics or ends its goroutine costs one worker and one key. Other keys keep
//     their delay as long as a worker is free, and get one in the order in which they became due. Merge runs in the
//     key's actor and holds up that key, and one of the engine's goroutines, only.
//   - Bounded: at most [Config.MaxItems] items are admitted and unhandled, at most [Config.Workers] handlers run, a batch
//     is tried at most [Config.Attempts] times and is then a dead letter. An idle key owns no timer and no goroutine, and
//     is forgotten after [Config.IdleAfter].
//
// An Add that returned nil was admitted: while the process lives its item is in exactly one successful handler call, one
// dead letter, or in what [Group.Close] returns.
//
// Each key is an actor. What it knows is the kernel in package batch; this package gives it a mailbox, a timer and the
// workers.
package keygroup
