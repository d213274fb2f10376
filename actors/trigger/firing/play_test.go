package firing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
)

// day is when the plays begin.
var day = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// at reads a time of that day.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-03-02 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// play drives a machine through time without a goroutine or a clock: a dumb shell over a dumb ledger, which lets the
// claim kernel decide.
type play struct {
	t       *testing.T
	m       *Machine
	now     time.Time
	session uint64
	permits int
	takes   func(r run) time.Duration // how long a run takes; default none
	ends    func(r run, e *Ended)     // how it ends; default well

	records map[claim.Key]claim.Record
	ranges  []claim.Range
	state   State
	runs    []run
	flight  []run
	wake    Wake
	starved bool
	again   bool
	answers []claim.Result  // to what was asked by hand
	missing map[string]bool // jobs that nobody has registered
}

func (p *play) has(job string) bool { return !p.missing[job] }

type run struct {
	slot, fired time.Time
	rec         claim.Record
	missed      int64
	due         time.Time // of its end
}

func (p *play) Record(k claim.Key) (*claim.Record, error) {
	if r, ok := p.records[k]; ok {
		return &r, nil
	}
	return nil, nil
}
func (p *play) Row(claim.RowKey) (*claim.Row, error) { return nil, nil }

func (p *play) hand() claim.Hand {
	return claim.Hand{Wall: p.now, Mono: p.now.Sub(day) + time.Second, Session: p.session, Sole: true}
}

// start makes a trigger at now.
func start(t *testing.T, def Definition, now time.Time) *play {
	t.Helper()
	def.Namespace, def.Trigger, def.Job, def.Lease = "test", "it", "job", 24*time.Hour
	if def.Threshold == 0 {
		def.Threshold = time.Minute
	}
	if def.Attempts == 0 {
		def.Attempts = 3
	}
	require.NoError(t, def.Schedule.Validate())
	p := &play{t: t, now: now, session: 1, permits: 100, records: map[claim.Key]claim.Record{}}
	p.state = Begin(def, now, 1, 1)
	p.m = New(def, p.state, nil, p.session, nil, now)
	return p
}

// restart is a crash and a start at a later time: what is not in the ledger is gone.
func (p *play) restart(now time.Time) {
	p.session++
	p.now, p.flight, p.wake = now, nil, Wake{}
	var unfinished []claim.Record
	for _, r := range p.records {
		if !r.State.Terminal() {
			unfinished = append(unfinished, r)
		}
	}
	slices.SortFunc(unfinished, func(a, b claim.Record) int { return a.Slot.Compare(b.Slot) })
	p.m = New(p.m.Definition(), p.state, unfinished, p.session, nil, now)
	p.step()
}

// step performs one step of the machine.
func (p *play) step() {
	p.t.Helper()
	var results []claim.Result
	for _, e := range p.m.Step(p.now, p.permits, p.has) {
		switch e := e.(type) {
		case Persist:
			plan, err := claim.Plan(p, claim.Request{Ops: e.Ops, Ranges: e.Ranges}, p.hand())
			require.NoError(p.t, err)
			for _, r := range plan.Records {
				require.NoError(p.t, r.Valid())
				p.records[r.Key] = r
			}
			p.ranges = append(p.ranges, plan.Ranges...)
			if e.State != nil {
				p.state = *e.State
			}
			results = plan.Results
			p.again = p.m.Persisted(results)
			for _, a := range e.Asked {
				p.answers = append(p.answers, results[a.Op])
			}
		case Emit:
			if results[e.Op].Answer != claim.Recorded {
				continue
			}
			p.permits--
			r := run{slot: results[e.Op].Record.Slot, fired: p.now, rec: results[e.Op].Record, missed: e.Missed, due: p.now}
			if p.takes != nil {
				r.due = r.due.Add(p.takes(r))
			}
			p.runs = append(p.runs, r)
			p.flight = append(p.flight, r)
		case Permit:
			p.starved = true
		case Wake:
			require.Greater(p.t, e.Generation, p.wake.Generation)
			p.wake = e
		}
	}
	if p.again {
		p.again = false
		p.step()
	}
}

// until lets time pass: wakes and ends of runs come in their order.
func (p *play) until(end time.Time) *play {
	p.t.Helper()
	if p.wake.Generation == 0 {
		p.step()
	}
	for i := 0; ; i++ {
		require.Less(p.t, i, 100_000, "the machine spins")
		next := p.wake.At
		first := -1
		for i := range p.flight {
			if next.IsZero() || !p.flight[i].due.After(next) {
				next, first = p.flight[i].due, i
			}
		}
		if next.IsZero() || next.After(end) {
			p.now = end
			p.check()
			return p
		}
		if next.After(p.now) {
			p.now = next
		}
		if first >= 0 {
			r := p.flight[first]
			p.flight = slices.Delete(p.flight, first, first+1)
			p.permits++
			e := Ended{Key: r.rec.Key, Job: r.rec.Job, Slot: r.rec.Slot, Fence: r.rec.Fence, Attempt: int(r.rec.Attempt), At: p.now}
			if p.ends != nil {
				p.ends(r, &e)
			}
			p.m.Ended(e)
		}
		p.step()
	}
}

// check holds the invariants: no slot has two verdicts, and ranges hold no keyed slot and do not overlap.
func (p *play) check() {
	p.t.Helper()
	for i, a := range p.ranges {
		for _, b := range p.ranges[i+1:] {
			require.True(p.t, a.Last.Before(b.First) || b.Last.Before(a.First), "ranges overlap: %v and %v", a, b)
		}
		for k := range p.records {
			if k.Kind == claim.KindSlot && k.Version == a.Version {
				require.False(p.t, !k.Slot.Before(a.First) && !k.Slot.After(a.Last), "range %v holds the keyed slot %v", a, k.Slot)
			}
		}
	}
}

// did lists the runs as "slot fired", times of the day to the second.
func (p *play) did() (out []string) {
	for _, r := range p.runs {
		s := r.slot.Format("15:04:05")
		if !r.fired.Equal(r.slot) {
			s += " at " + r.fired.Format("15:04:05")
		}
		if r.missed > 0 {
			s += fmt.Sprintf(" for %d more", r.missed)
		}
		out = append(out, s)
	}
	return out
}

// skipped lists the ranges as "first..last xN reason".
func (p *play) skipped() (out []string) {
	for _, r := range p.ranges {
		out = append(out, fmt.Sprintf("%s..%s x%d %s", r.First.Format("15:04:05"), r.Last.Format("15:04:05"), r.Count, r.Reason))
	}
	return out
}

// states counts the records by state.
func (p *play) states() map[string]int {
	out := map[string]int{}
	for _, r := range p.records {
		out[r.State.String()]++
	}
	return out
}

func always(d time.Duration) func(run) time.Duration { return func(run) time.Duration { return d } }

func every(d time.Duration) schedule.Schedule { return schedule.Every(d).From(day) }
