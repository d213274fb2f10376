package quarterjack

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/verdict"
	"github.com/quarterjack/quarterjack/internal/workers"
)

// Handler does the work of a job. nil means done; Retry and Drop say what is to happen instead; any other error is
// tried again by the trigger's policy. ctx ends with the run's timeout and when the runtime's Close runs out of time.
// A panic is an error with its stack, and touches nobody else.
type Handler func(ctx context.Context, r *Run) error

// Mode says how a job's effect and its completion belong together.
type Mode uint8

// The modes of a job.
const (
	// Keyed, the default: at least once. After a crash between the effect and its completion the run is repeated;
	// the callee tells repetitions by Key and Fence.
	Keyed Mode = iota
	// Tx: exactly once. The handler ends with Commit of the store that holds the ledger (sqlite.Commit,
	// memory.Commit): effect and completion are one transaction. Returning nil without it is ErrNotCommitted.
	Tx
)

// String gives the mode's name.
func (m Mode) String() string {
	if m == Tx {
		return "tx"
	}
	return "keyed"
}

// MarshalText gives String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Run is one attempt at one piece of work.
type Run struct {
	Trigger string        // id of the trigger; empty for Do and Submit
	Job     string        // empty for Do
	Kind    string        // slot, ordinal, manual or free
	Key     string        // names the work: the same for every attempt at it. Give it to whoever can tell repetitions
	Fence   uint64        // grows with every attempt: whoever has seen a higher one refuses this
	Attempt int           // starts so far, this one included, without those that a crash or shutdown interrupted
	Slot    time.Time     // when it should have been fired; the oldest, where the run stands for several missed slots
	FiredAt time.Time     // when this attempt was claimed
	Drift   time.Duration // FiredAt minus Slot
	Missed  int64         // further slots that it stands for, whose verdict is skipped(misfire); 0 after a restart
	Data    []byte        // of the trigger, the Submit or the FireNow
	// Result is kept with the completion if the handler sets it: what a second Do gets, and what the history shows.
	// At most MaxData bytes.
	Result []byte

	in *inner // nil in a Run that no runtime made
}

// inner is what a Run is to its runtime. A copy of the Run shares it.
type inner struct {
	key       claim.Key
	ledger    *engine.Ref
	inTx      atomic.Bool // a Commit closure of it is under way
	committed atomic.Bool // its completion is committed, with its effect
}

func newRun(rec claim.Record, missed int64, ledger *engine.Ref) *Run {
	return &Run{Trigger: rec.Key.Trigger, Job: rec.Job, Kind: rec.Key.Kind.String(), Key: rec.Key.String(), Fence: rec.Fence,
		Attempt: int(rec.Attempt), Slot: rec.Slot, FiredAt: rec.FiredAt, Drift: rec.FiredAt.Sub(rec.Slot), Missed: missed,
		Data: rec.Payload, in: &inner{key: rec.Key, ledger: ledger}}
}

// CommitTx is what the Commit function of a store calls; call that one (sqlite.Commit, memory.Commit).
func (r *Run) CommitTx(ctx context.Context, fn func(ctx context.Context, tx any) error) error {
	if r.in == nil {
		return fmt.Errorf("%w: Commit of a Run that no runtime made", ErrConfig)
	}
	if err := outsideTx(ctx); err != nil {
		return err
	}
	if !r.in.inTx.CompareAndSwap(false, true) {
		return ErrInTx
	}
	defer r.in.inTx.Store(false)
	if r.in.committed.Load() {
		return fmt.Errorf("%w: the run is committed already", claim.ErrIllegal)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err := commit(r.in.ledger, claim.Request{
		Ops: []claim.Op{{Action: claim.Complete, Key: r.in.key, Fence: r.Fence, Result: r.Result}},
		Tx: func(ctx context.Context, tx any) error {
			return verdict.Guard(fn(ctx, tx)) // the store looks at it, and it is a stranger's
		},
	}).Err
	if err == nil {
		r.in.committed.Store(true)
	}
	return err
}

// runKey is where the context of a handler has its run; insideKey marks the context of any function of the user's that
// the runtime waits for when it closes.
type (
	runKey    struct{}
	insideKey struct{}
)

// inside marks the context of a function that Close waits for: a Close from within it must not.
func inside(ctx context.Context) context.Context { return context.WithValue(ctx, insideKey{}, true) }

// outsideTx refuses a call of the ledger from inside a Commit closure, whose writer would wait for itself.
func outsideTx(ctx context.Context) error {
	if err := claim.InTx(ctx); err != nil {
		return err
	}
	if r, ok := ctx.Value(runKey{}).(*Run); ok && r.in.inTx.Load() {
		return ErrInTx
	}
	return nil
}

// commit sends a request to the ledger and waits for its outcome: the ledger always answers.
func commit(ledger *engine.Ref, req claim.Request) claim.Outcome {
	done := make(chan claim.Outcome, 1)
	ledger.Tell(&claim.Commit{Request: req, Reply: func(o claim.Outcome) { done <- o }})
	return <-done
}

// job is a registered handler.
type job struct {
	handler Handler
	mode    Mode
}

// runner calls handlers for triggers and queues.
type runner struct {
	permits *workers.Pool
	ledger  *engine.Ref
	ctx     context.Context // ends when Close runs out of time
	cancel  context.CancelCauseFunc

	mu   sync.RWMutex
	jobs map[string]job
}

var _ trigger.Runner = (*runner)(nil)

// errShutdown is the cause with which runs are cancelled that Close cannot wait for.
var errShutdown = errors.New("the runtime is closing")

func (r *runner) Has(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.jobs[name]
	return ok
}

func (r *runner) get(name string) (job, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	j, ok := r.jobs[name]
	return j, ok
}

// Run calls the handler on a goroutine of its own.
func (r *runner) Run(w trigger.Work, done func(firing.Ended)) {
	j, ok := r.get(w.Record.Job)
	if !ok { // jobs are never taken back; a record that names an unknown one is of another program
		r.permits.Release()
		e := newRun(w.Record, 0, r.ledger).ended(r.ctx, Keyed, nil)
		e.Failed, e.Reason = true, "no job is registered as "+w.Record.Job
		done(e)
		return
	}
	r.permits.Go(func() {
		run := newRun(w.Record, w.Missed, r.ledger)
		ctx, cancel := context.WithTimeoutCause(inside(context.WithValue(r.ctx, runKey{}, run)), w.Timeout, timeoutError(w.Timeout))
		defer cancel()
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			done(run.ended(r.ctx, j.mode, err))
		}()
		err = j.handler(ctx, run)
	})
}

// ended is how the run ended, when its handler has left with err.
func (r *Run) ended(runtime context.Context, mode Mode, err error) firing.Ended {
	e := firing.Ended{Key: r.in.key, Job: r.Job, Slot: r.Slot, Fence: r.Fence, Attempt: r.Attempt, At: time.Now().Round(0).UTC(), Result: r.Result}
	if len(e.Result) > MaxData {
		e.Result = nil
		if err == nil {
			err = Drop(fmt.Errorf("%w: Result has %d bytes: want at most %d", ErrConfig, len(r.Result), MaxData))
		}
	}
	if err == nil && mode == Tx {
		err = ErrNotCommitted
	}
	switch {
	case r.in.committed.Load():
		e.Committed = true // whatever else the handler said: its effect and its completion stand
	case err != nil:
		fail(runtime, &e, err)
	}
	return e
}

func panicked(p any) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) }

type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("the run's timeout of %v is over", time.Duration(e))
}

// Is makes it a context.DeadlineExceeded, as any other timeout.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// fail notes what a handler's error asks for.
func fail(runtime context.Context, e *firing.Ended, err error) {
	v := verdict.Of(err)
	e.Failed, e.Reason, e.Drop, e.RetryAfter = true, v.Reason, v.Drop, v.RetryAfter
	if !v.Drop && runtime.Err() != nil {
		e.Interrupted, e.Reason = true, "shutdown: "+v.Reason
	}
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit")
