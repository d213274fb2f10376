package firing

import (
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Effect is something that the shell does for the machine. Effects are performed in the order of their list.
type Effect interface{ effect() }

// Persist is committed before any later effect of the same list is performed, all of it or nothing. After a crash
// before the commit nothing has happened; after a crash behind it, every claim in Ops runs again when its lease is
// over. The shell answers with Machine.Persisted or Machine.Refused.
type Persist struct {
	// State is to be stored under the next revision; nil: it has not changed.
	State  *State
	Ops    []claim.Op
	Ranges []claim.Range
	Asked  []Asked // which op answers which Ask
}

// Asked says that Ops[Op] is what an Ask has come to.
type Asked struct {
	ID uint64
	Op int
}

// Emit starts a run, if Ops[Op] of the Persist before it came to Recorded: the record says fence, attempt and payload.
// Any other answer means that the key needs no run of ours.
type Emit struct {
	Op     int
	Missed int64 // further slots that this run stands for; they are skipped(misfire)
}

// Wake asks for a step at this instant, under this generation. An older wake is void; a zero At means that nothing is
// due by itself.
type Wake struct {
	At         time.Time
	Generation uint64
}

// Permit asks the shell for a run permit, and for a step when it is there: something is due that could not be started
// without.
type Permit struct{}

func (Persist) effect() {}
func (Emit) effect()    {}
func (Wake) effect()    {}
func (Permit) effect()  {}

// Ended says how a run ended. The zero values of Failed, Drop and Committed mean that its handler returned nil.
type Ended struct {
	Key     claim.Key
	Job     string
	Slot    time.Time
	Fence   uint64
	Attempt int
	At      time.Time
	Result  []byte

	// Committed: the run wrote its own completion, with its effects, in one transaction.
	Committed bool

	Failed     bool
	Reason     string
	Drop       bool           // no further attempt
	RetryAfter *time.Duration // the handler's own wish; nil: the back-off policy
	// Interrupted: the run was cut short by a shutdown; it spends no attempt.
	Interrupted bool
}

// Ask is a run that is wanted by hand, beside the schedule. It moves no grid and no count. A key that is known already
// stays as it is: the answer tells how it stands.
type Ask struct {
	ID      uint64    // names the ask in Persist.Asked
	Key     claim.Key // KindManual with the caller's request id, or KindFree
	Payload []byte
	Due     time.Time // zero: now
}
