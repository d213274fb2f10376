package quarterjack

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Health is how a runtime is. A service shows it on its readiness page.
type Health struct {
	Started   bool
	Triggers  int
	Parked    map[string]string // triggers and other actors that are parked, and why
	Running   int               // handlers of triggers and Submit that run now
	Starved   int               // triggers that wait for a free worker
	Groups    int
	Keys      int           // live keys of all groups
	Pending   int           // items of all groups that are not handled yet
	Overdue   time.Duration // how late the most overdue trigger is that is neither paused nor parked nor busy; 0: none is
	WallJumps int64         // steps of the wall clock that were noticed
	Dead      int64         // keys of triggers that were given up since the process started
	Store     string        // why the store cannot be used now; empty: it can
}

// OK says whether the store answers and nothing is parked.
func (h Health) OK() bool { return h.Store == "" && len(h.Parked) == 0 }

// Health asks the store and every trigger how they are. It costs a read of the store.
func (rt *Runtime) Health(ctx context.Context) (Health, error) {
	if err := rt.ready(ctx); err != nil {
		return Health{}, err
	}
	h := Health{Parked: map[string]string{}, Running: rt.runs.permits.InUse(), Starved: rt.runs.permits.Waiting(), WallJumps: rt.clock.Jumps()}
	rt.mu.Lock()
	h.Started, h.Groups = rt.phase == started, len(rt.groups)
	groups := make([]group, 0, len(rt.groups))
	for _, g := range rt.groups {
		groups = append(groups, g)
	}
	rt.mu.Unlock()
	for _, g := range groups {
		h.Keys += g.keys()
		h.Pending += g.pending()
	}
	for _, p := range rt.parked.Parked() {
		h.Parked[p.Name] = p.Why
	}
	err := rt.read(ctx, func(ctx context.Context, r claim.Reader) error {
		_, err := r.Rows(ctx, claim.RowQuery{Limit: 1})
		return err
	})
	if err != nil {
		h.Store = err.Error()
		return h, nil //nolint:nilerr // it is part of the answer
	}
	if err := rt.queuesHealth(ctx, &h); err != nil {
		return h, err
	}
	list, err := rt.List(ctx)
	if err != nil {
		return h, err
	}
	now := rt.clock.Now()
	h.Triggers = len(list)
	for _, t := range list {
		h.Dead += t.Dead
		if t.Parked != "" {
			h.Parked["trigger/"+t.ID] = t.Parked
		} else if h.Started && !t.Paused && t.Running == 0 && t.Waiting == 0 && !t.Next.IsZero() {
			h.Overdue = max(h.Overdue, now.Sub(t.Next))
		}
	}
	return h, nil
}

// queuesHealth asks the queues of submitted work.
func (rt *Runtime) queuesHealth(ctx context.Context, h *Health) error {
	rt.mu.Lock()
	queues := maps.Clone(rt.queues)
	rt.mu.Unlock()
	for job, ref := range queues {
		q := engine.NewQuestion[trigger.Status]()
		ref.Tell(&trigger.Describe{Question: q})
		s, err := q.Wait(ctx)
		if err != nil && !errors.Is(err, engine.ErrGone) {
			return rt.mapped(err)
		}
		if h.Dead += s.Dead; s.Parked != "" {
			h.Parked["queue/"+job] = s.Parked
		}
	}
	return nil
}
