package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

const driftOwner = "demo-drift"

// starts is how many starts of each trigger act 1 shows.
const starts = 6

// drift plays act 1: three triggers, six starts each, and how far each start is from its ideal time.
func (s *show) drift(ctx context.Context) error {
	rt, err := s.open(ctx, s.namespace)
	if err != nil {
		return err
	}
	begin := time.Now().Add(200 * time.Millisecond).Truncate(time.Millisecond)
	plays := []*drifting{
		{id: "rate-200ms-work-80ms", period: 200 * time.Millisecond, work: 80 * time.Millisecond, schedule: qj.Every(200 * time.Millisecond)},
		{id: "delay-200ms-work-80ms", period: 200 * time.Millisecond, work: 80 * time.Millisecond, schedule: qj.Delay(200 * time.Millisecond)},
		{id: "rate-100ms-work-300ms", period: 100 * time.Millisecond, work: 300 * time.Millisecond, schedule: qj.Every(100 * time.Millisecond)},
	}
	triggers := make([]qj.Trigger, len(plays))
	for i, p := range plays {
		p.all.Add(starts)
		if err := rt.Handle(p.id, p.run); err != nil {
			return err
		}
		triggers[i] = qj.Trigger{ID: p.id, Job: p.id, Schedule: p.schedule.From(begin).Times(starts), Overlap: qj.BufferAll}
	}
	if err := rt.Declare(ctx, driftOwner, triggers...); err != nil {
		return err
	}
	if err := rt.Start(ctx); err != nil {
		return err
	}
	for _, p := range plays {
		p.all.Wait()
	}
	if err := rt.Close(ctx); err != nil {
		return err
	}
	rows := [][]string{{"trigger", "start", "ideal", "drift", "gap"}}
	for _, p := range plays {
		for k, at := range p.at {
			ideal := begin.Add(time.Duration(k) * p.period)
			gap := "-"
			if k > 0 {
				gap = millis(at.Sub(p.at[k-1]))
			}
			id := ""
			if k == 0 {
				id = p.id
			}
			rows = append(rows, []string{id, fmt.Sprint(k), millis(ideal.Sub(begin)), millis(at.Sub(ideal)), gap})
			err := s.line(struct {
				Act     string  `json:"act"`
				Trigger string  `json:"trigger"`
				Start   int     `json:"start"`
				Ideal   float64 `json:"ideal_ms"`
				Drift   float64 `json:"drift_ms"`
			}{"drift", p.id, k, ms(ideal.Sub(begin)), ms(at.Sub(ideal))})
			if err != nil {
				return err
			}
		}
	}
	s.table(rows)
	return nil
}

// drifting is one trigger of act 1.
type drifting struct {
	id           string
	period, work time.Duration
	schedule     qj.Schedule

	mu  sync.Mutex
	at  []time.Time
	all sync.WaitGroup
}

func (d *drifting) run(ctx context.Context, _ *qj.Run) error {
	d.mu.Lock()
	d.at = append(d.at, time.Now())
	d.mu.Unlock()
	defer d.all.Done()
	return pause(ctx, d.work)
}

func ms(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", ms(d)) }
