package quarterjack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Declare says which triggers an owner has, all of them: those that are new are created, those that are as they were
// stay untouched, those that are changed become a new version (whose first slot is not before now), and those of this
// owner that are missing are retired, their history kept. It is one commit: all of it or nothing. A trigger that
// another owner has is ErrExists. Call it at each start of the program, before Start or after it.
func (rt *Runtime) Declare(ctx context.Context, owner string, triggers ...Trigger) error {
	if err := checkID("owner", owner); err != nil {
		return err
	}
	return rt.declare(ctx, declaration{owner: owner, triggers: triggers, whole: true})
}

// Schedule creates one trigger that no owner declares. If it exists with an equal definition nothing changes; with
// another one it is ErrExists: use Declare for triggers whose definition is the program's to change.
func (rt *Runtime) Schedule(ctx context.Context, t Trigger) error {
	return rt.declare(ctx, declaration{triggers: []Trigger{t}})
}

// declaration is one call of Declare or Schedule.
type declaration struct {
	owner    string
	triggers []Trigger
	whole    bool // what is missing is retired, what differs is replaced
}

func (rt *Runtime) declare(ctx context.Context, d declaration) error {
	want := map[string]trigger.Stored{}
	for _, t := range d.triggers {
		s, err := t.stored(rt.cfg.Namespace)
		if err != nil {
			return err
		}
		if _, twice := want[t.ID]; twice {
			return fmt.Errorf("%w: trigger %q is given twice", ErrConfig, t.ID)
		}
		want[t.ID] = s
	}
	if err := rt.ready(ctx); err != nil {
		return err
	}
	changed, err := rt.redeclare(ctx, d, want)
	if errors.Is(err, claim.ErrStale) {
		// A running trigger wrote its row between our reading and our writing it. Have them hold still, and do it again.
		var frozen []*engine.Ref
		if frozen, err = rt.freeze(ctx, d, want); err == nil {
			changed, err = rt.redeclare(ctx, d, want)
		}
		for _, ref := range frozen {
			ref.Tell(trigger.Reload{})
		}
	}
	if err != nil {
		return rt.mapped(err)
	}
	return rt.mapped(rt.reload(want, changed))
}

// freeze has every trigger that d is about take no step until it is told to reload.
func (rt *Runtime) freeze(ctx context.Context, d declaration, want map[string]trigger.Stored) ([]*engine.Ref, error) {
	rows, _, err := rt.present(ctx, d, want)
	if err != nil {
		return nil, err
	}
	var frozen []*engine.Ref
	var asked []*engine.Question[struct{}]
	for id := range rows {
		if ref := rt.ref(id); ref != nil {
			q := engine.NewQuestion[struct{}]()
			ref.Tell(&trigger.Freeze{Question: q})
			frozen, asked = append(frozen, ref), append(asked, q)
		}
	}
	for _, q := range asked {
		if _, err := q.Wait(ctx); err != nil && !errors.Is(err, engine.ErrGone) {
			return frozen, err
		}
	}
	return frozen, nil
}

// redeclare compares what is stored with what is wanted and commits the difference. It returns the ids that changed.
func (rt *Runtime) redeclare(ctx context.Context, d declaration, want map[string]trigger.Stored) ([]string, error) {
	rows, unfinished, err := rt.present(ctx, d, want)
	if err != nil {
		return nil, err
	}
	now := rt.clock.Now()
	var req claim.Request
	var changed []string
	for _, t := range d.triggers {
		s := want[t.ID]
		row := claim.Row{Kind: trigger.RowKind, Namespace: rt.cfg.Namespace, ID: t.ID, Owner: d.owner}
		if old, ok := rows[t.ID]; ok {
			row.Revision = old.Revision
			equal, err := d.replace(&s, old, now)
			if err != nil {
				return nil, err
			}
			if equal {
				continue
			}
		} else {
			s.State = firing.Begin(s.Definition, now, 1, 1)
		}
		if row.Blob, err = s.Encode(); err != nil {
			return nil, err
		}
		row.Due = s.State.Next
		req.Rows = append(req.Rows, row)
		changed = append(changed, t.ID)
	}
	for id, row := range rows {
		if _, wanted := want[id]; wanted || !d.whole || row.Owner != d.owner {
			continue
		}
		s, err := trigger.Decode(row.Blob)
		if err != nil || s.State.Retired {
			continue // what cannot be read is parked, and stays for people to look at
		}
		s.State.Retired, s.State.Next = true, time.Time{}
		if row.Blob, err = s.Encode(); err != nil {
			return nil, err
		}
		row.Due = time.Time{}
		req.Rows = append(req.Rows, row)
		changed = append(changed, id)
		for _, k := range unfinished[id] { // those that run now end by themselves
			req.Ops = append(req.Ops, claim.Op{Action: claim.Skip, Key: k, Reason: firing.ReasonRetired, Alone: true})
		}
	}
	if len(req.Rows) == 0 {
		return nil, nil
	}
	return changed, commit(rt.ledger, req).Err
}

// present reads what is stored of the triggers that d is about, and their unfinished keys.
func (rt *Runtime) present(ctx context.Context, d declaration, want map[string]trigger.Stored) (map[string]claim.Row, map[string][]claim.Key, error) {
	rows, unfinished := map[string]claim.Row{}, map[string][]claim.Key{}
	err := rt.read(ctx, func(ctx context.Context, r claim.Reader) error {
		clear(rows)
		clear(unfinished)
		note := func(row *claim.Row) error {
			rows[row.ID] = *row
			return nil
		}
		if d.whole {
			q := claim.RowQuery{Kind: trigger.RowKind, Namespace: rt.cfg.Namespace, Owner: d.owner, OfOwner: true}
			if err := claim.EachRow(ctx, r, q, note); err != nil {
				return err
			}
		}
		for id := range want {
			if _, ok := rows[id]; ok {
				continue
			}
			q := claim.RowQuery{Kind: trigger.RowKind, Namespace: rt.cfg.Namespace, ID: id}
			if err := claim.EachRow(ctx, r, q, note); err != nil {
				return err
			}
		}
		for id := range rows {
			if _, ok := want[id]; ok {
				continue
			}
			q := claim.Query{Namespace: rt.cfg.Namespace, Trigger: id, States: []claim.State{claim.Pending, claim.Claimed}}
			err := claim.EachRecord(ctx, r, q, func(rec *claim.Record) error {
				unfinished[id] = append(unfinished[id], rec.Key)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return rows, unfinished, err
}

// replace decides what becomes of a stored trigger that is wanted as s: equal means that nothing changes.
func (d *declaration) replace(s *trigger.Stored, row claim.Row, now time.Time) (equal bool, err error) {
	old, err := trigger.Decode(row.Blob)
	if err != nil {
		if !d.whole {
			return false, fmt.Errorf("%w: trigger %q, which is stored but cannot be read: %w", ErrExists, row.ID, err)
		}
		// What its keys were made of is not known: a row has been written at least once for each incarnation that it had.
		s.State = firing.Begin(s.Definition, now, uint32(min(row.Revision, math.MaxUint32-1))+1, 1)
		return false, nil
	}
	if old.State.Retired {
		s.State = firing.Begin(s.Definition, now, old.State.Incarnation+1, 1)
		return false, nil
	}
	if row.Owner != d.owner {
		return false, fmt.Errorf("%w: trigger %q belongs to owner %q, not %q", ErrExists, row.ID, row.Owner, d.owner)
	}
	was, err := trigger.Stored{Definition: old.Definition, Timeout: old.Timeout}.Encode()
	if err != nil {
		return false, err
	}
	is, err := trigger.Stored{Definition: s.Definition, Timeout: s.Timeout}.Encode()
	if err != nil {
		return false, err
	}
	switch {
	case bytes.Equal(was, is):
		return true, nil
	case !d.whole:
		return false, fmt.Errorf("%w: trigger %q, with another definition", ErrExists, row.ID)
	}
	s.State = firing.BeginVersion(s.Definition, old.Definition, now, old.State)
	return false, nil
}

// reload tells the actors of changed triggers to read their rows, and makes those that are missing.
func (rt *Runtime) reload(want map[string]trigger.Stored, changed []string) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.phase != started {
		return nil
	}
	for _, id := range changed {
		if ref := rt.triggers[id]; ref != nil && !gone(ref) {
			ref.Tell(trigger.Reload{})
		} else if err := rt.spawn(id); err != nil {
			return err
		}
	}
	for id := range want {
		if rt.triggers[id] == nil {
			if err := rt.spawn(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone says whether the actor has stopped for good.
func gone(ref *engine.Ref) bool {
	select {
	case <-ref.Done():
		return true
	default:
		return false
	}
}
