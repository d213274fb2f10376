package batch

import (
	"fmt"
	"time"
)

// Trigger says why a batch runs.
type Trigger uint8

// The triggers.
const (
	Size   Trigger = iota + 1 // as much is gathered as a batch may hold
	Time                      // the delay is over since the batch's first item
	Flush                     // somebody asked for it
	Close                     // the group closes
	Retry                     // the attempt before it failed
	Follow                    // it was gathered while the batch before it ran
)

var triggerNames = [...]string{Size: "size", Time: "time", Flush: "flush", Close: "close", Retry: "retry", Follow: "follow"}

// String gives the trigger's name.
func (t Trigger) String() string {
	if int(t) < len(triggerNames) && triggerNames[t] != "" {
		return triggerNames[t]
	}
	return fmt.Sprintf("trigger(%d)", uint8(t))
}

// Effect is what the owner of a [State] has to do: one of [Arm], [Ready], [*Run], [*DeadLetter], [*Left], [Idle], [Late],
// [Stale]. Effects are performed in the order in which they are returned.
type Effect interface{ effect() }

// Arm asks for Tick(Generation) at Deadline. It replaces every Arm before it: a tick of an older one is stale.
type Arm struct {
	Deadline   time.Time
	Generation uint64
}

// Ready asks for Start(Generation) as soon as the owner can run a batch. Until then items go on merging, so a key that
// waits for a worker waits with one batch.
type Ready struct {
	Generation uint64
}

// Run is a batch for the handler: run it, then call Finished(Generation, …) exactly once. The state keeps no part of
// Value that it would change; it merges Value back if the handler fails.
type Run[A any] struct {
	Value       A
	Items       int       // merged into Value; an estimate where the accumulator's weight does not count items
	First, Last time.Time // arrivals; of a batch that was cut, of all it was cut from
	Attempt     int       // from 1
	Generation  uint64
	Trigger     Trigger
	Started     time.Time
}

// DeadLetter is a batch that is given up, with the error of its last attempt.
type DeadLetter[A any] struct {
	Batch *Run[A]
	Err   error
}

// Left is what no handler took, and is the caller's again. It answers each Surrender and Abandon, perhaps with nothing
// (Items 0), and comes once per state.
type Left[A any] struct {
	Value A
	Items int
}

// Idle says that nothing is gathered, running or awaited.
type Idle struct{}

// Late says that a result came after its timeout, or for a generation that is over. In the latter case it changed nothing.
type Late struct{}

// Stale says that a tick or a permit of another generation was ignored.
type Stale struct{}

func (Arm) effect()            {}
func (Ready) effect()          {}
func (*Run[A]) effect()        {}
func (*DeadLetter[A]) effect() {}
func (*Left[A]) effect()       {}
func (Idle) effect()           {}
func (Late) effect()           {}
func (Stale) effect()          {}
