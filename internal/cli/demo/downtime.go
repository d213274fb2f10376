package demo

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
)

// Act 3's times: a slot each half second; up for two of them, down for five, up again for two.
const (
	downtimeOwner = "demo-downtime"

	period = 500 * time.Millisecond
	down   = 2250 * time.Millisecond
)

// downtime plays act 3: the same missed slots under every misfire instruction.
func (s *show) downtime(ctx context.Context) error {
	begin := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond)
	var log runLog
	up := func(until time.Time) (list []qj.Info, err error) {
		err = s.with(ctx, s.namespace, func(rt *qj.Runtime) error {
			if err := rt.Handle("note", log.note); err != nil {
				return err
			}
			if err := rt.Declare(ctx, downtimeOwner, downtimeTriggers(begin)...); err != nil {
				return err
			}
			if err := rt.Start(ctx); err != nil {
				return err
			}
			if err := pause(ctx, time.Until(until)); err != nil {
				return err
			}
			var err error
			list, err = rt.List(ctx)
			return err
		})
		return list, err
	}
	if _, err := up(begin.Add(period + period/2)); err != nil {
		return err
	}
	if err := pause(ctx, down); err != nil {
		return err
	}
	opened := time.Now()
	list, err := up(opened.Add(period))
	if err != nil {
		return err
	}
	return s.reportDowntime(ctx, begin, opened, &log, list)
}

// downtimeTriggers has one trigger for each instruction, and a one-shot whose instant falls into the downtime.
func downtimeTriggers(begin time.Time) []qj.Trigger {
	var list []qj.Trigger
	for _, m := range firing.Instructions {
		list = append(list, qj.Trigger{ID: "every-" + m.String(), Job: "note", Misfire: m, Threshold: period / 2,
			Schedule: qj.Every(period).From(begin).Times(20)})
	}
	return append(list, qj.Trigger{ID: "once-smart", Job: "note", Threshold: period / 2, Schedule: qj.Once(begin.Add(2 * period))})
}

// runLog notes what ran.
type runLog struct {
	mu   sync.Mutex
	runs []ranAt
}

type ranAt struct {
	trigger  string
	slot, at time.Time
	missed   int64
}

func (l *runLog) note(_ context.Context, r *qj.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, ranAt{r.Trigger, r.Slot, r.FiredAt, r.Missed})
	return nil
}

func (s *show) reportDowntime(ctx context.Context, begin, opened time.Time, log *runLog, list []qj.Info) error {
	skipped := map[string][]string{}
	err := s.ranges(ctx, claim.Query{Namespace: s.namespace}, func(r *claim.Range) error {
		skipped[r.Trigger] = append(skipped[r.Trigger], fmt.Sprintf("%s..%s (%d, %s)", after(begin, r.First), after(begin, r.Last), r.Count, r.Reason))
		return nil
	})
	if err != nil {
		return err
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	sort.Slice(log.runs, func(i, j int) bool { return log.runs[i].slot.Before(log.runs[j].slot) })
	s.say("  slots every %v from 0; down until %s\n\n", period, after(begin, opened))
	rows := [][]string{{"trigger", "ran after the downtime, slot (late)", "skipped", "next"}}
	for _, t := range list {
		if t.Owner != downtimeOwner {
			continue
		}
		var ran []string
		for _, r := range log.runs {
			if r.trigger != t.ID || r.at.Before(opened) {
				continue
			}
			text := after(begin, r.slot)
			if late := r.at.Sub(r.slot); late > 100*time.Millisecond {
				text += fmt.Sprintf(" (%.2f s)", late.Seconds())
			}
			if r.missed > 0 {
				text += fmt.Sprintf(" for %d more", r.missed)
			}
			ran = append(ran, text)
		}
		next := "never"
		if !t.Next.IsZero() {
			next = after(begin, t.Next)
		}
		rows = append(rows, []string{t.ID, or(strings.Join(ran, ", "), "-"), or(strings.Join(skipped[t.ID], ", "), "-"), next})
		err := s.line(struct {
			Act     string   `json:"act"`
			Trigger string   `json:"trigger"`
			Ran     []string `json:"ran_after"`
			Skipped []string `json:"skipped"`
			Next    string   `json:"next"`
		}{"downtime", t.ID, ran, skipped[t.ID], next})
		if err != nil {
			return err
		}
	}
	s.table(rows)
	return nil
}

func after(begin, t time.Time) string { return fmt.Sprintf("%.2f s", t.Sub(begin).Seconds()) }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
