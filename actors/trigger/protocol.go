package trigger

import (
	"errors"
	"log/slog"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/clock"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/workers"
)

// RowKind is the kind under which triggers rest in the ledger's store.
const RowKind = "trigger"

// Errors that answer a message.
var (
	// ErrParked says that the trigger is parked and takes no such message. The message says why it is parked.
	ErrParked = errors.New("the trigger is parked")
	// ErrRetired says that the trigger's owner no longer declares it.
	ErrRetired = errors.New("the trigger is retired")
)

// Deps are what every trigger of a runtime shares.
type Deps struct {
	Ledger  *engine.Ref
	Clock   *clock.Clock
	Permits *workers.Pool
	Runner  Runner
	Session uint64
	Logger  *slog.Logger
}

// Runner calls the handlers of jobs.
type Runner interface {
	// Has says whether the job is registered.
	Has(job string) bool
	// Run calls the handler on a goroutine of its own, with the permit that the caller hands over with the call.
	// done is called exactly once, also where the handler panics; it does not block.
	Run(w Work, done func(firing.Ended))
}

// Work is one run to be started.
type Work struct {
	Record  claim.Record
	Missed  int64         // further slots that it stands for
	Timeout time.Duration // bound of the run
}

// Pause stops the schedule, with a note that Status shows. Answered when it is committed.
type Pause struct {
	*engine.Question[struct{}]
	Note string
}

// Resume goes on. Answered when it is committed, with the verdicts of what came due meanwhile.
type Resume struct{ *engine.Question[struct{}] }

// Fire asks for a run beside the schedule. Answered when it is committed, with the key's record: claimed, pending
// where it has to wait, skipped by the overlap policy, or whatever an earlier request under the same key came to.
type Fire struct {
	*engine.Question[Fired]
	Ask firing.Ask
}

// Fired answers a Fire.
type Fired struct {
	Record claim.Record
	First  bool // this request made the key known; an earlier one had not
}

// Describe asks how the trigger stands. Answered at once.
type Describe struct{ *engine.Question[Status] }

// Reload says that the trigger's row was changed by somebody else.
type Reload struct{}

// Freeze asks for no step until Reload: somebody is about to edit the row. Answered when no commit is outstanding.
type Freeze struct{ *engine.Question[struct{}] }

// Drain says that the runtime closes: nothing is started or decided any more, what ends is still recorded. Answered
// when nothing runs and every end is recorded.
type Drain struct{ *engine.Question[struct{}] }

// JobRegistered says that a job may have a handler now.
type JobRegistered struct{}

// Status is how a trigger stands.
type Status struct {
	Definition       firing.Definition
	State            firing.State
	Owner            string
	Timeout          time.Duration
	Running, Waiting int
	Parked           string        // why nothing of it is started; empty: it is not parked
	LastDrift        time.Duration // of the last run that was started by the schedule: fired-at minus slot
	Fired            int64         // runs started since this process did
	Failed, Dead     int64         // attempts that failed, and keys that were given up, since this process started
	StaleTicks       int64         // timer messages of an older incarnation or generation, dropped
	Restarts         uint64        // of its actor
}

// Messages that only the actor itself and its helpers send.
type (
	tick      struct{ token uint64 }
	permit    struct{ p *place }
	retry     struct{ incarnation uint64 }
	committed struct {
		serial  uint64
		outcome claim.Outcome
	}
	loaded struct {
		incarnation uint64
		row         *claim.Row
		unfinished  []claim.Record
		err         error
	}
	ended struct {
		p *place
		e firing.Ended
	}
)

// Urgent lets the answer to a reload through the gate.
func (*loaded) Urgent() {}

// Urgent lets the answer to a commit through the gate, that a reload waits for.
func (committed) Urgent() {}

// Urgent lets the next try of a reload through the gate.
func (retry) Urgent() {}

// Urgent lets the question through the gate: a trigger that cannot be loaded says so.
func (*Describe) Urgent() {}

// Urgent lets Close through the gate.
func (*Drain) Urgent() {}

// Urgent lets an edit through the gate.
func (*Freeze) Urgent() {}

// Undelivered gives the permit back.
func (m permit) Undelivered(error) { m.p.deps.Permits.Release() }

// Undelivered records the end of a run whose trigger is gone: the verdict must not be lost with it.
func (m ended) Undelivered(error) {
	e := m.e
	op := claim.Op{Key: e.Key, Fence: e.Fence, Result: e.Result, Reason: e.Reason, Due: e.At, Final: e.Drop, Alone: true}
	switch {
	case e.Committed:
		return
	case e.Interrupted:
		op.Action = claim.Release
	case e.Failed:
		op.Action = claim.Fail
		if e.RetryAfter != nil {
			op.Due = e.At.Add(*e.RetryAfter)
		}
	default:
		op.Action = claim.Complete
	}
	log := m.p.deps.Logger
	m.p.deps.Ledger.Tell(&claim.Commit{Request: claim.Request{Ops: []claim.Op{op}}, Reply: func(o claim.Outcome) {
		if o.Err != nil {
			log.Error("the end of a run could not be recorded; it runs again when its lease is over", "key", e.Key.String(), "error", o.Err)
		}
	}})
}
