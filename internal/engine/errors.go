package engine

import "errors"

// Errors of Spawn.
var (
	// ErrNameTaken says that an actor of that name is still alive in the actor system.
	ErrNameTaken = errors.New("engine: name is taken")
	// ErrStopped says that the engine has been told to stop and starts nothing more.
	ErrStopped = errors.New("engine: stopped")
)

// Errors that a sender is told through Undeliverable.
var (
	// ErrGone says that the actor has stopped.
	ErrGone = errors.New("engine: actor is gone")
	// ErrFailed says that the actor failed on the message and is not given it again.
	ErrFailed = errors.New("engine: actor failed on the message")
)

// ErrGoexit is the reason of a failure in which an actor's code ended its goroutine, as testify's require and
// testing.T.FailNow do.
var ErrGoexit = errors.New("engine: runtime.Goexit in an actor")
