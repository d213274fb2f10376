package quarterjack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Outcome is how the work of a key stands after Do, Submit or FireNow.
type Outcome struct {
	// First: this call did the work (Do), or made it known (Submit, FireNow). Not First: an earlier one had.
	First   bool
	Verdict string // done, dead, skipped; pending or claimed where it has not ended yet
	Reason  string // why it is dead, skipped or pending
	Result  []byte // what the handler left in Run.Result
	Attempt int
	Fence   uint64
}

func outcome(r *claim.Record, first bool) Outcome {
	return Outcome{First: first, Verdict: r.State.String(), Reason: r.Reason, Result: r.Result, Attempt: int(r.Attempt), Fence: r.Fence}
}

// Do runs fn once for the key: in this process or another, now or after a crash. Whoever comes second gets the first
// one's result (Outcome.First is false), or ErrInFlight while fn still runs. If fn fails, or the process dies in it,
// the key can be claimed again by the next Do, under a higher fence; nobody retries it by itself (Submit does).
//
// fn runs on the caller's goroutine. A panic in it is recorded as a failure and goes on to the caller. The key is free
// text within the runtime's namespace, which it shares with Submit, and is kept for ever. A key that was given up (Drop)
// is ErrDead. It costs two commits of the store. It works before Start too.
func (rt *Runtime) Do(ctx context.Context, key string, fn Handler) (Outcome, error) {
	if !rt.calls.TryAcquire() { // before the runtime is looked at: Close waits for who holds one
		return Outcome{}, fmt.Errorf("%w: more than %d calls of Do at once", ErrUnavailable, rt.calls.Size())
	}
	defer rt.calls.Release()
	if err := rt.ready(ctx); err != nil {
		return Outcome{}, err
	}
	k := claim.Free(rt.cfg.Namespace, key)
	if _, twice := rt.doing.LoadOrStore(k, true); twice {
		return Outcome{}, fmt.Errorf("%w: %s is being done in this process", ErrInFlight, k)
	}
	run, out, err := rt.take(k)
	if run == nil {
		rt.doing.Delete(k)
		return out, err
	}
	return rt.do(ctx, run, fn)
}

// take claims the key. Without a run, somebody else has it or had it.
func (rt *Runtime) take(k claim.Key) (*Run, Outcome, error) {
	now := rt.clock.Now()
	o := commit(rt.ledger, claim.Request{Ops: []claim.Op{{Action: claim.Claim, Key: k, Slot: now, Lease: DefaultLease}}})
	if o.Err != nil {
		return nil, Outcome{}, rt.mapped(o.Err)
	}
	res := o.Results[0]
	if res.Answer == claim.Already && res.Record.State == claim.Dead {
		return nil, outcome(&res.Record, false), fmt.Errorf("%w: %s: %s", ErrDead, k, res.Record.Reason)
	}
	if res.Answer == claim.Already {
		return nil, outcome(&res.Record, false), nil
	}
	if res.Answer == claim.InFlight {
		return nil, outcome(&res.Record, false), fmt.Errorf("%w: %s is claimed under fence %d since %s", ErrInFlight, k, res.Record.Fence,
			res.Record.FiredAt.Format(time.RFC3339Nano))
	}
	return newRun(res.Record, 0, rt.ledger), Outcome{}, nil
}

func (rt *Runtime) do(ctx context.Context, run *Run, fn Handler) (Outcome, error) {
	ended := false
	defer func() {
		if !ended { // a panic or Goexit in fn, or in its error: say so, and let it go on
			rt.record(run, run.ended(rt.runs.ctx, Keyed, errors.New("the function panicked or ended its goroutine")))
		}
	}()
	fnErr := fn(inside(context.WithValue(ctx, runKey{}, run)), run)
	e := run.ended(rt.runs.ctx, Keyed, fnErr)
	ended = true
	if e.Committed {
		rt.doing.Delete(run.in.key)
		return Outcome{First: true, Verdict: claim.Done.String(), Result: run.Result, Attempt: run.Attempt, Fence: run.Fence}, nil
	}
	o := rt.record(run, e)
	if o.Err != nil {
		return Outcome{}, errors.Join(fnErr, rt.mapped(o.Err))
	}
	return outcome(&o.Results[0].Record, true), fnErr
}

// record commits the end of a Do. Where the store cannot, it is tried again in the background, until it can or the
// runtime is closed; until then the key is in flight here.
func (rt *Runtime) record(run *Run, e firing.Ended) claim.Outcome {
	op := claim.Op{Action: claim.Complete, Key: run.in.key, Fence: run.Fence, Result: e.Result, Reason: e.Reason}
	switch {
	case e.Interrupted:
		op.Action = claim.Release
	case e.Failed:
		op.Action, op.Final, op.Due = claim.Fail, e.Drop, e.At
	}
	req := claim.Request{Ops: []claim.Op{op}}
	o := commit(rt.ledger, req)
	if o.Err == nil || claim.Refusal(o.Err) || errors.Is(o.Err, claim.ErrClosed) {
		rt.doing.Delete(run.in.key)
		return o
	}
	rt.log.Error("the end of a Do could not be recorded; it is tried again", "key", run.Key, "error", o.Err)
	go func() {
		defer rt.doing.Delete(run.in.key)
		for attempt := 1; ; attempt++ {
			wait, cancel := context.WithTimeout(rt.runs.ctx, recordAgain.Delay(attempt, backoff.Hash(run.Key, attempt)))
			<-wait.Done()
			cancel()
			err := commit(rt.ledger, req).Err
			if err == nil || claim.Refusal(err) || rt.runs.ctx.Err() != nil { // the last: Close does not wait longer
				return
			}
		}
	}()
	return o
}

// recordAgain is how a store that is unavailable is asked again to record the end of a Do.
var recordAgain = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Submit hands work to the runtime: the job's handler runs it under the key, once, and the runtime retries it by
// itself until it is done or its attempts are used up. It returns when the work is safe in the ledger; work that was
// submitted before Start, or whose job nobody has registered yet, waits. Submitting the same key again with the same
// data changes nothing and tells how it stands; with other data, or for another job, it is ErrKeyConflict.
func (rt *Runtime) Submit(ctx context.Context, job, key string, data []byte) (Outcome, error) {
	if err := checkID("job", job); err != nil {
		return Outcome{}, err
	}
	if len(data) > MaxData {
		return Outcome{}, fmt.Errorf("%w: data of %q has %d bytes: want at most %d", ErrConfig, key, len(data), MaxData)
	}
	if err := rt.ready(ctx); err != nil {
		return Outcome{}, err
	}
	k := claim.Free(rt.cfg.Namespace, key)
	if err := k.Validate(); err != nil {
		return Outcome{}, err
	}
	queue, err := rt.queue(job)
	if err != nil {
		return Outcome{}, err
	}
	if queue == nil { // not started: Start will find it
		now := rt.clock.Now()
		o := commit(rt.ledger, claim.Request{Ops: []claim.Op{{Action: claim.Decide, Key: k, Slot: now, Due: now, Job: job, Payload: data}}})
		if o.Err != nil {
			return Outcome{}, rt.mapped(o.Err)
		}
		if queue, err = rt.queue(job); err == nil && queue != nil { // it has been started meanwhile, and may not have seen it
			queue.Tell(trigger.Reload{})
		}
		return outcome(&o.Results[0].Record, o.Results[0].Answer == claim.Recorded), nil
	}
	q := engine.NewQuestion[trigger.Fired]()
	queue.Tell(&trigger.Fire{Question: q, Ask: firing.Ask{Key: k, Payload: data}})
	f, err := q.Wait(ctx)
	if err != nil {
		return Outcome{}, rt.mapped(err)
	}
	return outcome(&f.Record, f.First), nil
}
