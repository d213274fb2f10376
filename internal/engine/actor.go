package engine

// Actor is what an engine runs: code that is given one message at a time.
//
// Receive is never called twice at once for one actor, and must not block: it runs on one of the engine's few workers. A
// panic or a runtime.Goexit in it is a [Failure] of this actor and of no other.
//
// Besides what others send, an actor receives [Started] first, [Restarting] on an instance that is about to be replaced,
// [Stopping] and [Stopped] at its end, and [Terminated] for each actor that it watches.
type Actor interface {
	Receive(c *Context, msg any)
}

// BatchEnder is implemented by an actor that wants to know when nothing more is waiting for it, for example to commit
// what it gathered.
//
// EndBatch is called after the last message of each delivered batch: when the mailbox is empty, when the actor has used up
// its [Config.Throughput], or when it has been told to stop or restart. It follows Started too. It does not follow a message
// that failed: that instance receives Restarting or Stopping instead. A panic in EndBatch is a failure without a message.
type BatchEnder interface {
	EndBatch(c *Context)
}

// Urgent is implemented by a message that passes a closed gate (see [Context.CloseGate]), in order among its like.
type Urgent interface {
	Urgent()
}

// Undeliverable is implemented by a message whose sender wants to know that it could not be delivered, because the actor
// stopped with it in its mailbox, is already gone, or failed on it and was not given it again.
//
// Undelivered is called at most once per delivery, from any goroutine, and must not block. Its error wraps [ErrGone] or
// [ErrFailed]. A message sent by bare PID to an actor that is already gone is proto.actor's own dead letter, of which
// nobody but the sender named in its envelope is told.
type Undeliverable interface {
	Undelivered(err error)
}

// Started is the first message of every incarnation; everything else waits until it has been handled.
type Started struct{}

// Stopping tells an actor that it is about to stop. What is still in its mailbox goes to dead letters.
type Stopping struct{}

// Stopped is the last message of an actor. When it has been handled the name is free, watchers are told and Done is closed.
type Stopped struct{}

// Restarting is the last message of an instance that has failed and is about to be replaced.
type Restarting struct{}

// Terminated tells a watcher that Ref has stopped for good. It comes after everything that Ref told the watcher, and passes a
// closed gate.
type Terminated struct {
	Ref *Ref
}

// Urgent lets Terminated pass a closed gate.
func (Terminated) Urgent() {}
