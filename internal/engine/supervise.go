package engine

import "time"

// Failure is a panic or a Goexit in an actor's code.
type Failure struct {
	Ref         *Ref
	Incarnation uint64
	Reason      any    // what was given to panic, or ErrGoexit
	Stack       []byte // of the failing goroutine
	Message     any    // being handled: Started when the start failed, nil when EndBatch did
	Deliveries  int    // how often Message has been delivered, this time included; 0 for Started and nil
	At          time.Time
}

// Verdict is what becomes of an actor that has failed.
type Verdict struct {
	Restart   bool          // false: park, which is to stop the actor for good; its mailbox goes to dead letters
	After     time.Duration // how long to wait before the restart; messages queue meanwhile
	Redeliver bool          // give the failing message to the new instance first; otherwise it goes to dead letters
}

// Supervisor decides about failures.
//
// Failed is called on the failing actor's worker, for many actors at once, and must not block. If it panics itself the actor
// is parked.
type Supervisor interface {
	Failed(Failure) Verdict
}

// Forgetter is implemented by a Supervisor that keeps something per actor. Forget is called once for each actor that has
// ever failed, when it has stopped for good.
type Forgetter interface {
	Forget(*Ref)
}
