// Package ledger is the actor that decides and remembers which piece of work is whose: the one door to a
// [claim.Store].
//
// Other actors tell it [claim.Commit] and [claim.Read] and are answered by a call of Reply; goroutines outside actors
// use [Ledger.Apply] and [Ledger.Read]. It never blocks a mailbox: while one transaction is in flight, on a goroutine of
// its own, requests gather, and all of them are the next transaction. So a lone caller waits for one commit, and a
// thousand callers share one.
//
//   - Each request has its own outcome: a refused one refuses nobody else. A transaction that fails as a whole is split
//     until the request that breaks it fails alone; where the store is unavailable, all of it fails at once.
//   - Every request that is accepted is answered, exactly once, also when the ledger is closed or its actor restarted.
//   - A read runs after every commit that was sent before it, on the same goroutine: a slow one delays what comes after.
//   - The ledger extends the leases that it granted, three times a lease and all of them together, until the key is given
//     back or its Hold is over (see [claim.Op]).
package ledger
