package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
)

func TestAnEditedTrigger(t *testing.T) {
	edit := func(old, edited schedule.Schedule) State {
		was := Definition{Schedule: old, Threshold: time.Minute}
		p := start(t, was, day)
		p.until(at("10:25:00"))
		return BeginVersion(Definition{Schedule: edited, Threshold: time.Minute}, p.m.Definition(), at("10:30:00"), p.state)
	}
	t.Run("with another schedule begins now", func(t *testing.T) {
		st := edit(every(10*time.Minute), every(7*time.Minute))
		require.EqualValues(t, 2, st.Version)
		require.EqualValues(t, 1, st.Incarnation)
		require.Equal(t, at("10:35:00"), st.Next)
	})
	t.Run("with the same schedule goes on as it was", func(t *testing.T) {
		st := edit(every(10*time.Minute).Times(5), every(10*time.Minute).Times(5))
		require.EqualValues(t, 2, st.Version)
		require.EqualValues(t, 3, st.Triggered)
		require.Equal(t, at("10:30:00"), st.Next)
	})
	t.Run("a one-shot that has fired does not fire again", func(t *testing.T) {
		require.Zero(t, edit(schedule.Once(day), schedule.Once(day)).Next)
		require.Zero(t, edit(schedule.Once(day), schedule.Once(day.Add(time.Second))).Next)
		require.Equal(t, at("11:00:00"), edit(schedule.Once(day), schedule.Once(at("11:00:00"))).Next)
	})
	t.Run("a fixed delay from the past begins now", func(t *testing.T) {
		require.Equal(t, at("10:30:00"), edit(every(time.Minute), schedule.Delay(time.Minute).From(day)).Next)
	})
}

func TestACrashInARunLeavesTheDowntimeToTheMisfireRule(t *testing.T) {
	for _, c := range []struct {
		m       Misfire
		runs    []string
		skipped []string
	}{
		{Smart, []string{"10:00:00 at 10:20:30", "10:01:00 at 10:20:35 for 19 more", "10:21:30"}, []string{"10:02:00..10:20:00 x19 misfire"}},
		{NextExisting, []string{"10:00:00 at 10:20:30", "10:21:00"}, []string{"10:01:00..10:20:00 x20 misfire"}},
		{Ignore, []string{"10:00:00 at 10:20:30", "10:01:00 at 10:20:35", "10:02:00 at 10:20:40"}, nil},
	} {
		t.Run(c.m.String(), func(t *testing.T) {
			p := start(t, Definition{Schedule: every(time.Minute).Times(40), Misfire: c.m}, day)
			p.takes = always(time.Hour)
			p.until(at("10:00:30"))
			p.takes, p.runs = always(5*time.Second), nil
			p.restart(at("10:20:30"))
			p.until(at("10:21:34"))
			require.Equal(t, c.runs, p.did()[:len(c.runs)])
			require.Equal(t, c.skipped, p.skipped())
		})
	}
}

func TestWorkOfAJobThatIsGoneWaitsAndHoldsNothingUp(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day)
	p.ends = func(_ run, e *Ended) { e.Failed = len(p.runs) == 1 }
	p.until(day)
	require.Equal(t, map[string]int{"pending": 1}, p.states())
	p.m.def.Job = "renamed"
	p.missing = map[string]bool{"job": true}
	p.restart(at("10:00:05"))
	p.until(at("10:00:35"))
	require.Equal(t, map[string]int{"pending": 1, "done": 3}, p.states())
	p.missing = nil
	p.step()
	p.until(at("10:00:45"))
	require.Equal(t, map[string]int{"done": 5}, p.states())
}

func TestTheSameRequestAgainChangesNothing(t *testing.T) {
	ask := func(id uint64, name string) Ask {
		return Ask{ID: id, Key: claim.Key{Namespace: "test", Trigger: "it", Incarnation: 1, Kind: claim.KindManual, ID: name}}
	}
	t.Run("while it waits for a permit", func(t *testing.T) {
		p := start(t, Definition{}, day)
		p.permits = 0
		for id := range uint64(3) {
			p.m.Ask(ask(id, "r"))
			p.step()
		}
		p.m.Ask(ask(4, "r"))
		p.m.Ask(ask(5, "r"))
		p.step()
		require.Len(t, p.answers, 5)
		for i, a := range p.answers {
			require.Equal(t, i == 0, a.Answer == claim.Recorded, "only the first is first")
		}
		require.Equal(t, map[string]int{"pending": 1}, p.states())
		p.permits = 5
		p.step()
		p.until(day)
		require.Len(t, p.runs, 1)
	})
	t.Run("while it waits for its retry", func(t *testing.T) {
		p := start(t, Definition{Overlap: Allow, Limit: 4}, day)
		hour := time.Hour
		p.ends = func(_ run, e *Ended) { e.Failed, e.RetryAfter = len(p.runs) == 1, &hour }
		p.m.Ask(ask(1, "r"))
		p.until(at("10:01:00"))
		p.m.Ask(ask(2, "r"))
		p.step()
		p.until(at("10:30:00"))
		require.Len(t, p.runs, 1)
		p.until(at("11:30:00"))
		require.Len(t, p.runs, 2)
	})
}

func TestFixedDelayNeverStalls(t *testing.T) {
	t.Run("beside other unfinished work", func(t *testing.T) {
		p := start(t, Definition{Schedule: schedule.Delay(10 * time.Second)}, day)
		p.until(day)
		p.state.Awaiting, p.state.Next = true, time.Time{} // its run committed itself, and the crash came before the pause was written
		k := claim.Key{Namespace: "test", Trigger: "it", Incarnation: 1, Kind: claim.KindManual, ID: "r"}
		p.records[k] = claim.Record{Key: k, State: claim.Pending, Attempt: 1, Fence: 1, Job: "job", Slot: day, Due: at("12:00:00"), Fingerprint: claim.Fingerprint("job", nil)}
		p.restart(at("10:01:00"))
		p.until(at("10:01:15"))
		require.Equal(t, []string{"10:00:00", "10:01:10"}, p.did())
	})
	t.Run("when its key is done already", func(t *testing.T) {
		p := start(t, Definition{Schedule: schedule.Delay(10 * time.Second)}, day)
		k := claim.Key{Namespace: "test", Trigger: "it", Incarnation: 1, Version: 1, Kind: claim.KindOrdinal, Ordinal: 1}
		p.records[k] = claim.Record{Key: k, State: claim.Done, Fence: 1, Attempt: 1, Slot: day, EndedAt: day, Fingerprint: claim.Fingerprint("job", nil)}
		p.until(at("10:00:15"))
		require.Equal(t, []string{"10:00:10"}, p.did())
	})
}

func TestWhatThisProcessRunsIsKnownToTheNewMachine(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day)
	p.takes = always(time.Hour)
	p.until(at("10:00:05"))
	r := p.runs[0].rec
	t.Run("also when it has committed its completion itself", func(t *testing.T) {
		m := New(p.m.Definition(), p.state, nil, p.session, map[claim.Key]*Ended{r.Key: nil}, p.now)
		for _, e := range m.Step(at("10:00:10"), 5, p.has) {
			_, emitted := e.(Emit)
			require.False(t, emitted, "never two at once")
		}
	})
	t.Run("an end that is recorded already is not recorded again", func(t *testing.T) {
		failed := &Ended{Key: r.Key, Job: r.Job, Slot: r.Slot, Fence: r.Fence, Attempt: 1, At: p.now, Failed: true}
		pending := r
		pending.State, pending.Session, pending.Lease, pending.Due = claim.Pending, 0, 0, at("11:00:00")
		m := New(p.m.Definition(), p.state, []claim.Record{pending}, p.session, map[claim.Key]*Ended{r.Key: failed}, p.now)
		require.Equal(t, 1, m.Waiting())
		require.False(t, m.Holds(r.Key))
	})
}

func TestAllowWaitsForPermitsInPlace(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second), Overlap: Allow, Limit: 4}, day)
	p.permits = 0
	p.until(at("10:00:35"))
	require.Empty(t, p.ranges)
	p.permits = 4
	p.step()
	p.until(at("10:00:39"))
	require.Equal(t, []string{"10:00:00 at 10:00:35", "10:00:10 at 10:00:35", "10:00:20 at 10:00:35", "10:00:30 at 10:00:35"}, p.did())
}
