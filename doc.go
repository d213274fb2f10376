// Package quarterjack is an embeddable actor runtime for three jobs that services otherwise glue together by hand:
// firing work at its time, merging items by key, and doing each piece of work once.
//
//   - Triggers fire jobs at their slots, and know what to do about slots that were missed (Quartz's misfire rules).
//   - Key groups collect small items by key and hand each key's merged batch to a handler, never two for one key at once.
//   - The ledger records each piece of work under a key: claimed, done, pending a retry, skipped or dead. A crash
//     between claim and work loses nothing: the work is claimed again, under a higher fence.
//
// A runtime is opened on a store, prepared, started and closed:
//
//	rt, err := quarterjack.Open(ctx, quarterjack.Config{Store: sqlite.New(sqlite.Config{Path: "data/quarterjack.db"})})
//	if err != nil { return err }
//	err = rt.Handle("invoice", func(ctx context.Context, r *quarterjack.Run) error {
//		return sqlite.Commit(ctx, r, func(ctx context.Context, tx sqlite.Tx) error { // with its completion, or not at all
//			_, err := tx.ExecContext(ctx, "INSERT INTO invoices (day) VALUES (?)", r.Slot.Format(time.DateOnly))
//			return err
//		})
//	}, quarterjack.Tx)
//	if err != nil { return err }
//	err = rt.Declare(ctx, "billing", quarterjack.Trigger{ID: "nightly", Job: "invoice", Schedule: quarterjack.Every(24 * time.Hour),
//		Misfire: quarterjack.Ignore}) // a night that was missed is made up for, and the grid stays
//	if err != nil { return err }
//	if err := rt.Start(ctx); err != nil { return err } // recovers what an earlier process left, then fires
//	defer rt.Close(stopCtx)                            // drains, then gives its claims back
//
// # Which piece to use
//
//   - Work at a time, with a history of every slot: Handle and Declare.
//   - Many small items of one key that can be merged: NewSum, NewLast, NewList, or NewGroup with an accumulator of your own.
//   - A request that may come twice and must be done once, while its caller waits: Do.
//   - Work that must not be lost and that nobody waits for: Submit.
//
// # What is promised
//
// For each slot and key at most one completion is committed. The effect happens exactly once if it is in the ledger's
// transaction (a job in mode Tx that ends with Commit of its store) or if the callee honours Run.Key or Run.Fence;
// otherwise at least once. Every slot ends with a verdict: done, skipped with a reason, or dead; until then it is pending.
//
// Groups: nothing that an Add accepted is lost while the process lives. A crash loses what was accepted and not yet
// handled, unless its source can be read again.
//
// Memory and SQLite are for one process: three replicas with a store each fire three times. SQLite refuses a second
// process (ErrLocked).
//
// # Defaults
//
// What a zero value means. A test holds this table against the code.
//
//	Config.Store           memory: everything is forgotten with the process
//	Config.Namespace       default
//	Config.Logger          slog.Default()
//	Config.Workers         16 handlers of triggers and Submit at once
//	Trigger.Schedule       never by itself, only by FireNow; instants are UTC, never the host's zone
//	Trigger.Misfire        smart
//	Trigger.Threshold      1m0s
//	Trigger.Overlap        skip
//	Trigger.Limit          100 waiting slots (BufferAll), 16 runs (Allow)
//	Trigger.Timeout        1h0m0s
//	Trigger.Attempts       5
//	Trigger.Backoff        1s to 5m0s, doubled each time, a fifth random
//	lease of a claim       30s, extended while its run lives
//	GroupConfig.Delay      1s
//	GroupConfig.BatchItems 10000
//	GroupConfig.MaxItems   1000000
//	GroupConfig.OnFull     block
//	GroupConfig.Workers    16
//	GroupConfig.Timeout    1m0s
//	GroupConfig.Attempts   5
//	GroupConfig.IdleAfter  1m0s
//	Run.Result, Data       at most 1048576 bytes
package quarterjack
