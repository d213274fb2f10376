package firing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/deptest"
)

func TestFixedRateKeepsItsGrid(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day)
	p.takes = always(7 * time.Second)
	p.until(at("10:00:35"))
	require.Equal(t, []string{"10:00:00", "10:00:10", "10:00:20", "10:00:30"}, p.did())
	p.restart(at("10:00:38"))
	p.until(at("10:00:50"))
	require.Equal(t, []string{"10:00:30 at 10:00:38", "10:00:50"}, p.did()[4:6], "the run that the crash cut short goes first")
	require.Equal(t, []string{"10:00:40..10:00:40 x1 overlap"}, p.skipped())
	require.EqualValues(t, 2, p.runs[4].rec.Fence)
	require.EqualValues(t, 1, p.runs[4].rec.Attempt, "an interruption spends no attempt")
}

func TestFixedDelayCountsFromTheEnd(t *testing.T) {
	p := start(t, Definition{Schedule: schedule.Delay(10 * time.Second).Times(3)}, day)
	p.takes = always(4 * time.Second)
	p.until(at("10:05:00"))
	require.Equal(t, []string{"10:00:00", "10:00:14", "10:00:28"}, p.did())
	require.Empty(t, p.ranges)
	for i, r := range p.runs {
		require.Equal(t, claim.KindOrdinal, r.rec.Key.Kind)
		require.EqualValues(t, i+1, r.rec.Key.Ordinal)
	}
}

func TestFixedDelayWaitsForItsRetry(t *testing.T) {
	p := start(t, Definition{Schedule: schedule.Delay(10 * time.Second)}, day)
	after := 5 * time.Second
	p.ends = func(r run, e *Ended) {
		if e.Failed = r.rec.Attempt == 1 && len(p.runs) == 1; e.Failed {
			e.RetryAfter = &after
		}
	}
	p.until(at("10:00:20"))
	require.Equal(t, []string{"10:00:00", "10:00:00 at 10:00:05", "10:00:15"}, p.did())
}

func TestFixedDelayGoesOnAfterACrash(t *testing.T) {
	p := start(t, Definition{Schedule: schedule.Delay(10 * time.Second)}, day)
	p.takes = always(4 * time.Second)
	p.until(at("10:00:02"))
	p.restart(at("10:01:00"))
	p.until(at("10:01:20"))
	require.Equal(t, []string{"10:00:00", "10:00:00 at 10:01:00", "10:01:14"}, p.did())
}

func TestOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		def     Definition
		runs    []string
		skipped []string
	}{
		"skip": {Definition{Overlap: Skip},
			[]string{"10:00:00", "10:00:12", "10:00:24"},
			[]string{"10:00:03..10:00:09 x3 overlap", "10:00:15..10:00:21 x3 overlap", "10:00:27..10:00:33 x3 overlap"}},
		"buffer all": {Definition{Overlap: BufferAll, Limit: 100},
			[]string{"10:00:00", "10:00:03 at 10:00:10", "10:00:06 at 10:00:20"}, nil},
		"buffer all, bounded": {Definition{Overlap: BufferAll, Limit: 2},
			[]string{"10:00:00", "10:00:03 at 10:00:10", "10:00:06 at 10:00:20"},
			[]string{"10:00:09..10:00:09 x1 overlap_full", "10:00:15..10:00:15 x1 overlap_full", "10:00:18..10:00:18 x1 overlap_full",
				"10:00:24..10:00:24 x1 overlap_full", "10:00:27..10:00:27 x1 overlap_full"}},
		"allow": {Definition{Overlap: Allow, Limit: 16},
			[]string{"10:00:00", "10:00:03", "10:00:06", "10:00:09", "10:00:12", "10:00:15", "10:00:18", "10:00:21", "10:00:24", "10:00:27"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.def.Schedule = every(3 * time.Second)
			p := start(t, c.def, day)
			p.takes = always(10 * time.Second)
			p.until(at("10:00:29"))
			require.Equal(t, c.runs, p.did())
			if name == "skip" {
				p.until(at("10:00:34"))
			}
			require.Equal(t, c.skipped, p.skipped())
		})
	}
}

func TestAllowSkipsBeyondItsCap(t *testing.T) {
	p := start(t, Definition{Schedule: every(3 * time.Second), Overlap: Allow, Limit: 2}, day)
	p.takes = always(10 * time.Second)
	p.until(at("10:00:14"))
	require.Equal(t, []string{"10:00:00", "10:00:03", "10:00:06 at 10:00:10", "10:00:12 at 10:00:13"}, p.did())
	require.Equal(t, []string{"10:00:09..10:00:09 x1 overlap"}, p.skipped())
}

// Missed slots under each instruction: every 10 minutes, down from 10:25 to 11:12:30.
func TestDowntimeUnderEachInstruction(t *testing.T) {
	for _, c := range []struct {
		m       Misfire
		times   int64
		runs    []string // from the restart on
		skipped []string
	}{
		{Smart, schedule.Forever, []string{"11:20:00", "11:30:00"}, []string{"10:30:00..11:10:00 x5 misfire"}},
		{Smart, 5, []string{"10:30:00 at 11:12:30 for 1 more", "11:22:30"}, []string{"10:40:00..10:40:00 x1 misfire"}},
		{Ignore, schedule.Forever, []string{"10:30:00 at 11:12:30", "10:40:00 at 11:12:30", "10:50:00 at 11:12:30", "11:00:00 at 11:12:30",
			"11:10:00 at 11:12:30", "11:20:00", "11:30:00"}, nil},
		{FireNow, schedule.Forever, []string{"10:30:00 at 11:12:30 for 4 more", "11:22:30", "11:32:30"}, []string{"10:40:00..11:10:00 x4 misfire"}},
		{NowExisting, schedule.Forever, []string{"10:30:00 at 11:12:30 for 4 more", "11:22:30", "11:32:30"}, []string{"10:40:00..11:10:00 x4 misfire"}},
		{NowExisting, 10, []string{"10:30:00 at 11:12:30 for 4 more", "11:22:30", "11:32:30"}, []string{"10:40:00..11:10:00 x4 misfire"}},
		{NowRemaining, 10, []string{"10:30:00 at 11:12:30 for 4 more", "11:22:30", "11:32:30"}, []string{"10:40:00..11:10:00 x4 misfire"}},
		{NextExisting, 10, []string{"11:20:00", "11:30:00"}, []string{"10:30:00..11:10:00 x5 misfire"}},
		{NextRemaining, 10, []string{"11:20:00", "11:30:00"}, []string{"10:30:00..11:10:00 x5 misfire"}},
	} {
		t.Run(c.m.String(), func(t *testing.T) {
			s := every(10 * time.Minute)
			if c.times != schedule.Forever {
				s = s.Times(c.times)
			}
			p := start(t, Definition{Schedule: s, Misfire: c.m}, day)
			p.until(at("10:25:00"))
			require.Len(t, p.runs, 3)
			p.runs = nil
			p.restart(at("11:12:30"))
			p.until(at("11:35:00"))
			require.Equal(t, c.runs, p.did())
			require.Equal(t, c.skipped, p.skipped())
		})
	}
}

func TestTheThresholdIsExact(t *testing.T) {
	for _, c := range []struct {
		late time.Duration
		runs int
	}{{59*time.Second + 999*time.Millisecond, 1}, {time.Minute, 0}} {
		p := start(t, Definition{Schedule: every(time.Hour), Misfire: NextExisting}, day.Add(-time.Hour))
		p.restart(day.Add(c.late))
		require.Len(t, p.runs, c.runs, "late by %v", c.late)
	}
}

func TestALateOneShotIsNeverLost(t *testing.T) {
	once := schedule.Once(at("11:00:00"))
	p := start(t, Definition{Schedule: once}, day)
	p.restart(at("11:10:00"))
	require.Equal(t, []string{"11:00:00 at 11:10:00"}, p.did())
	p.until(at("23:00:00"))
	require.Len(t, p.runs, 1)

	p = start(t, Definition{Schedule: once, Misfire: NextRemaining}, day)
	p.restart(at("11:10:00"))
	require.Empty(t, p.runs)
	require.Equal(t, []string{"11:00:00..11:00:00 x1 misfire"}, p.skipped())
}

func TestPause(t *testing.T) {
	t.Run("resumed before its time", func(t *testing.T) {
		p := start(t, Definition{Schedule: schedule.Once(at("11:00:00"))}, day)
		p.m.Pause("maintenance")
		p.step()
		p.until(at("10:30:00"))
		p.m.Resume()
		p.step()
		p.until(at("12:00:00"))
		require.Equal(t, []string{"11:00:00"}, p.did())
	})
	t.Run("resumed after its time", func(t *testing.T) {
		p := start(t, Definition{Schedule: schedule.Once(at("11:00:00"))}, day)
		p.m.Pause("maintenance")
		p.step()
		p.until(at("11:30:00"))
		require.Empty(t, p.runs)
		p.m.Resume()
		p.step()
		require.Equal(t, []string{"11:00:00 at 11:30:00"}, p.did())
	})
	t.Run("five slots left out", func(t *testing.T) {
		p := start(t, Definition{Schedule: every(10 * time.Minute), Misfire: NextExisting}, day).until(at("10:05:00"))
		p.m.Pause("maintenance")
		p.step()
		p.until(at("10:55:00"))
		p.restart(at("10:56:00"))
		require.Len(t, p.runs, 1, "still paused")
		p.m.Resume()
		p.step()
		require.Len(t, p.runs, 1)
		require.Equal(t, []string{"10:10:00..10:50:00 x5 paused"}, p.skipped())
	})
}

func TestCounts(t *testing.T) {
	t.Run("Quartz's repeat 3 is 4 runs, over a restart", func(t *testing.T) {
		p := start(t, Definition{Schedule: every(10 * time.Second).Times(4)}, day)
		p.until(at("10:00:15"))
		require.Len(t, p.runs, 2)
		p.restart(at("10:00:16"))
		p.until(at("11:00:00"))
		require.Equal(t, []string{"10:00:00", "10:00:10", "10:00:20", "10:00:30"}, p.did())
	})
	t.Run("1 ms missed for 26 days", func(t *testing.T) {
		p := start(t, Definition{Schedule: every(time.Millisecond)}, day)
		p.restart(day.AddDate(0, 0, 26))
		require.Len(t, p.ranges, 1)
		require.EqualValues(t, 26*24*3600*1000+1, p.ranges[0].Count)
		require.Positive(t, p.state.Triggered)
	})
}

func TestRetriesAndDeath(t *testing.T) {
	p := start(t, Definition{Schedule: schedule.Once(day), Attempts: 3}, day)
	p.ends = func(_ run, e *Ended) { e.Failed, e.Reason = true, "no" }
	p.until(at("10:05:00"))
	require.Len(t, p.runs, 3)
	require.Equal(t, map[string]int{"dead": 1}, p.states())
	require.Greater(t, p.runs[2].fired.Sub(p.runs[1].fired), p.runs[1].fired.Sub(p.runs[0].fired), "the wait grows")
	for i, r := range p.runs {
		require.EqualValues(t, i+1, r.rec.Attempt)
		require.EqualValues(t, i+1, r.rec.Fence)
	}
}

func TestOlderWorkGoesFirst(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day)
	after := 10 * time.Second
	p.takes = always(time.Second)
	p.ends = func(r run, e *Ended) {
		if e.Failed = r.slot.Equal(day) && r.rec.Attempt == 1; e.Failed {
			e.RetryAfter = &after
		}
	}
	p.until(at("10:00:15"))
	require.Equal(t, []string{"10:00:00", "10:00:10", "10:00:00 at 10:00:11"}, p.did())
	require.Empty(t, p.ranges)
}

func TestAPoisonSlotHoldsNothingUp(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second), Attempts: 4}, day)
	p.ends = func(r run, e *Ended) { e.Failed = r.slot.Equal(day) }
	p.until(at("10:00:55"))
	require.Equal(t, map[string]int{"dead": 1, "done": 5}, p.states())
}

func TestWithoutAPermitASlotWaits(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day.Add(-time.Second))
	p.permits = 0
	p.until(at("10:00:35"))
	require.True(t, p.starved)
	require.Empty(t, p.runs)
	require.Equal(t, map[string]int{"pending": 1}, p.states(), "it holds no lease while it queues")
	p.permits = 1
	p.step()
	require.Equal(t, []string{"10:00:00 at 10:00:35"}, p.did())
	require.EqualValues(t, 1, p.runs[0].rec.Attempt)
	require.Equal(t, []string{"10:00:10..10:00:30 x3 overlap"}, p.skipped())
}

func TestWithoutAJobSlotsWait(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second), Misfire: NextExisting, Threshold: 5 * time.Second}, day.Add(-time.Second))
	p.missing = map[string]bool{"job": true}
	p.until(at("10:00:35"))
	require.False(t, p.starved)
	require.Equal(t, map[string]int{"pending": 1}, p.states())
	require.Zero(t, p.wake.At)
	p.missing = nil
	p.step()
	p.until(at("10:00:45"))
	require.Equal(t, []string{"10:00:00 at 10:00:35", "10:00:40"}, p.did())
}

func TestAskedByHand(t *testing.T) {
	def := Definition{Schedule: every(time.Minute)}
	ask := Ask{Key: claim.Key{Namespace: "test", Trigger: "it", Incarnation: 1, Kind: claim.KindManual, ID: "r1"}}
	p := start(t, def, day.Add(-30*time.Second))
	p.m.Pause("")
	p.m.Ask(ask)
	p.step()
	p.until(at("09:59:35"))
	require.Len(t, p.runs, 1, "also while paused")
	p.m.Ask(ask)
	p.step()
	p.until(at("09:59:40"))
	require.Len(t, p.runs, 1, "the same request again changes nothing")
	p.m.Resume()
	p.step()
	p.takes = always(30 * time.Second)
	p.until(at("10:00:10"))
	require.Equal(t, []string{"09:59:30", "10:00:00"}, p.did())
	ask.Key.ID = "r2"
	p.m.Ask(ask)
	p.step()
	require.Equal(t, claim.Skipped, p.records[ask.Key].State, "it obeys the overlap policy")
	require.EqualValues(t, 1, p.state.Triggered, "and moves no count")
}

func TestRetired(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day)
	p.ends = func(_ run, e *Ended) { e.Failed = true }
	p.until(at("10:00:00"))
	require.Equal(t, map[string]int{"pending": 1}, p.states())
	p.state.Retired = true
	p.restart(at("10:00:05"))
	p.until(at("10:10:00"))
	require.Equal(t, map[string]int{"skipped": 1}, p.states(), "what waits gets its verdict")
	require.Len(t, p.runs, 1)
}

func TestARefusedPersistIsAsIfItNeverWas(t *testing.T) {
	p := start(t, Definition{Schedule: every(10 * time.Second)}, day.Add(-time.Second))
	before := p.m.State()
	p.m.Step(at("10:00:00"), 1, p.has)
	p.m.Pause("meanwhile")
	p.m.Refused()
	after := p.m.State()
	require.Equal(t, before.Next, after.Next)
	require.Zero(t, p.m.Running())
	require.True(t, after.Paused, "what was noted meanwhile stays")
	p.m.Resume()
	p.now = at("10:00:01")
	p.step()
	require.Equal(t, []string{"10:00:00 at 10:00:01"}, p.did())
}

func TestKernelIsPure(t *testing.T) {
	for _, pkg := range []string{".", "../schedule"} {
		deptest.Deps(t, pkg, map[string]string{
			"github.com/asynkron/protoactor-go":                  "kernels know no actor",
			"google.golang.org/protobuf":                         "kernels know no wire",
			"database/sql":                                       "kernels do no I/O",
			"github.com/quarterjack/quarterjack/internal/engine": "kernels know no actor",
		})
	}
}
