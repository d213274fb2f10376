package quarterjack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Info is how a trigger stands: what its user wrote, and where it is now.
type Info struct {
	Trigger               // the definition, with defaults filled in
	Owner          string // who declared it; empty: Schedule did
	Incarnation    uint32 // raised when the id is declared anew after it was retired
	Version        uint32 // raised when its definition is changed
	Next, Previous time.Time
	Triggered      int64 // slots of this version so far, as Quartz counts them
	Running        int   // runs in flight
	Waiting        int   // keys that wait for an attempt, a permit or their turn
	Paused         bool
	Note           string        // of whoever paused it
	Parked         string        // why nothing of it is started; empty: it is not parked
	LastDrift      time.Duration // of the last run that the schedule started since the process did
	Fired          int64         // runs started since the process did
	Failed, Dead   int64         // attempts that failed, and keys that were given up, since the process started
	Mode           Mode          // of its job, where that is registered
}

// Pause stops a trigger's schedule, with a note that Describe shows. Runs in flight go on; FireNow still works. Slots
// that come due meanwhile are dealt with at Resume. It returns when that is committed; pausing twice changes nothing.
func (rt *Runtime) Pause(ctx context.Context, id, note string) error {
	q := engine.NewQuestion[struct{}]()
	return rt.tell(ctx, id, &trigger.Pause{Question: q, Note: note}, q)
}

// Resume goes on, also with a trigger whose actor was parked. A slot that came due during the pause and is late by the
// threshold or more is a missed slot: the misfire instruction decides. One that is late by less still runs, as in
// Quartz. What is left out gets the verdict skipped(paused). It returns when that is committed.
func (rt *Runtime) Resume(ctx context.Context, id string) error {
	q := engine.NewQuestion[struct{}]()
	err := rt.tell(ctx, id, &trigger.Resume{Question: q}, q)
	if !errors.Is(err, trigger.ErrParked) {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case rt.phase == closing:
		return ErrClosed
	case gone(rt.triggers[id]):
		return rt.spawn(id)
	default: // unreadable: reading it again may find it mended
		rt.triggers[id].Tell(trigger.Reload{})
		return nil
	}
}

func (rt *Runtime) tell(ctx context.Context, id string, msg any, q *engine.Question[struct{}]) error {
	ref, err := rt.trigger(ctx, id)
	if err != nil {
		return err
	}
	ref.Tell(msg)
	_, err = q.Wait(ctx)
	return rt.answered(id, err)
}

// FireNow runs a trigger's job once beside its schedule, under a key made from the caller's request id: the same
// request again changes nothing and tells how it stands. It moves no slot and no count, and obeys the overlap policy:
// under Skip, and with a run in flight, the request's verdict is skipped(overlap). It needs a runtime that is started.
// data nil: the trigger's own. It returns when the run is safe in the ledger, not when it has ended.
func (rt *Runtime) FireNow(ctx context.Context, id, request string, data []byte) (Outcome, error) {
	if err := checkID("request", request); err != nil {
		return Outcome{}, err
	}
	if len(data) > MaxData {
		return Outcome{}, fmt.Errorf("%w: data has %d bytes: want at most %d", ErrConfig, len(data), MaxData)
	}
	ref, err := rt.trigger(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	q := engine.NewQuestion[trigger.Fired]()
	key := claim.Key{Namespace: rt.cfg.Namespace, Trigger: id, Kind: claim.KindManual, ID: request}
	ref.Tell(&trigger.Fire{Question: q, Ask: firing.Ask{Key: key, Payload: data}})
	f, err := q.Wait(ctx)
	if err != nil {
		return Outcome{}, rt.answered(id, err)
	}
	return outcome(&f.Record, f.First), nil
}

// Describe tells how a trigger stands. It works before Start too.
func (rt *Runtime) Describe(ctx context.Context, id string) (Info, error) {
	list, err := rt.list(ctx, id)
	if err != nil {
		return Info{}, err
	}
	if len(list) == 0 {
		return Info{}, fmt.Errorf("%w: trigger %q", ErrNotFound, id)
	}
	return list[0], nil
}

// List tells how all triggers stand that are not retired, by id.
func (rt *Runtime) List(ctx context.Context) ([]Info, error) { return rt.list(ctx, "") }

// list reads the rows and asks the actors about what only they know.
func (rt *Runtime) list(ctx context.Context, id string) ([]Info, error) {
	if err := rt.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := rt.rows(ctx, claim.RowQuery{Kind: trigger.RowKind, Namespace: rt.cfg.Namespace, ID: id})
	if err != nil {
		return nil, err
	}
	asked := make([]*engine.Question[trigger.Status], len(rows))
	for i := range rows {
		if ref := rt.ref(rows[i].ID); ref != nil {
			asked[i] = engine.NewQuestion[trigger.Status]()
			ref.Tell(&trigger.Describe{Question: asked[i]})
		}
	}
	var out []Info
	for i := range rows {
		info, retired, err := rt.info(ctx, &rows[i], asked[i])
		if err != nil {
			return nil, err
		}
		if !retired {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// info puts together what the row and the actor say.
func (rt *Runtime) info(ctx context.Context, row *claim.Row, asked *engine.Question[trigger.Status]) (i Info, retired bool, err error) {
	s, bad := trigger.Decode(row.Blob)
	status := trigger.Status{Definition: s.Definition, State: s.State, Timeout: s.Timeout}
	if bad != nil {
		status.Parked = bad.Error()
	}
	if asked != nil {
		live, err := asked.Wait(ctx)
		switch {
		case errors.Is(err, engine.ErrGone):
			if status.Parked == "" && !s.State.Retired {
				status.Parked = rt.whyParked("trigger/" + row.ID)
			}
		case err != nil:
			return Info{}, false, rt.mapped(err)
		case live.Definition.Trigger == "": // parked as unreadable, or not loaded yet
			status.Parked = or(live.Parked, status.Parked)
		default:
			status = live
		}
	}
	d, st := status.Definition, status.State
	i = Info{
		Trigger: Trigger{ID: row.ID, Job: d.Job, Schedule: d.Schedule, Misfire: d.Misfire, Threshold: d.Threshold, Overlap: d.Overlap,
			Limit: d.Limit, Timeout: status.Timeout, Attempts: d.Attempts, Backoff: d.Backoff, Data: d.Payload},
		Owner: row.Owner, Incarnation: st.Incarnation, Version: st.Version, Next: st.Next, Previous: st.Prev, Triggered: st.Triggered,
		Running: status.Running, Waiting: status.Waiting, Paused: st.Paused, Note: st.Note, Parked: status.Parked,
		LastDrift: status.LastDrift, Fired: status.Fired, Failed: status.Failed, Dead: status.Dead,
	}
	if j, ok := rt.runs.get(d.Job); ok {
		i.Mode = j.mode
	}
	return i, st.Retired, nil
}

// ref gives the actor of a trigger, or nil.
func (rt *Runtime) ref(id string) *engine.Ref {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.triggers[id]
}

// trigger gives the actor that a control message is for.
func (rt *Runtime) trigger(ctx context.Context, id string) (*engine.Ref, error) {
	if err := rt.ready(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase == opened {
		return nil, ErrNotStarted
	}
	if ref := rt.triggers[id]; ref != nil {
		return ref, nil
	}
	return nil, fmt.Errorf("%w: trigger %q", ErrNotFound, id)
}

// answered gives the error of a control message the name that callers know.
func (rt *Runtime) answered(id string, err error) error {
	if errors.Is(err, engine.ErrGone) {
		rt.mu.Lock()
		closed := rt.phase == closing
		rt.mu.Unlock()
		if closed {
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
		if why := rt.whyParked("trigger/" + id); why != "" {
			return fmt.Errorf("%w: %s", trigger.ErrParked, why)
		}
		return fmt.Errorf("%w: trigger %q", ErrNotFound, id)
	}
	return rt.mapped(err)
}

// whyParked tells why the supervisor has given up an actor; empty: it has not.
func (rt *Runtime) whyParked(name string) string {
	for _, p := range rt.parked.Parked() {
		if p.Name == name {
			return fmt.Sprintf("%s: %v", p.Why, p.Reason)
		}
	}
	return ""
}
