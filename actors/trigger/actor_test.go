package trigger

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestSlotsBecomeRunsOnTime(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = time.Second
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(35 * time.Second)
		require.Equal(t, seconds(0, 10, 20, 30), s.ran())
		require.Equal(t, map[string]int{"done": 4}, s.states())
		st := s.status(ref)
		require.Zero(t, st.LastDrift)
		require.EqualValues(t, 4, st.Fired)
		require.Zero(t, s.deps.Permits.InUse())
	})
}

func TestPersistComesBeforeEmit(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.change(func() { s.delay = 3 * time.Second })
		s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(5 * time.Second) // loaded after 3 s; the claim is with the ledger
		require.Empty(t, s.ran())
		time.Sleep(2 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Len(t, s.runs, 1)
		require.Equal(t, claim.Claim, s.commits[0].Ops[0].Action)
	})
}

func TestOnePersistIsOutstanding(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(1), Overlap: firing.BufferAll, Limit: 100})
		synctest.Wait()
		s.change(func() { s.delay, s.commits = 10*time.Second, nil })
		time.Sleep(9500 * time.Millisecond)
		s.change(func() { require.Empty(t, s.commits) })
		s.change(func() { s.delay = 0 })
		time.Sleep(5 * time.Second)
		require.Zero(t, s.status(ref).Waiting)
		require.Equal(t, map[string]int{"done": 15}, s.states(), "what came due meanwhile was one step")
	})
}

func TestAStoreThatIsDown(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.trigger("a", firing.Definition{Schedule: everySecond(10), Misfire: firing.NextExisting, Threshold: 5 * time.Second})
		time.Sleep(15 * time.Second)
		s.change(func() { s.down = true })
		time.Sleep(2 * time.Minute)
		require.Equal(t, seconds(0, 10), s.ran(), "while it is down nothing fires")
		s.change(func() { s.down = false })
		time.Sleep(24 * time.Second)
		ran := s.ran()
		require.Equal(t, seconds(0, 10, 140, 150), ran)
		require.Len(t, s.ranges(), 1)
		require.EqualValues(t, 12, s.ranges()[0].Count)
		require.Zero(t, s.deps.Permits.InUse(), "no permit is lost")
	})
}

func TestARunThatEndsWhileTheStoreIsDown(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = 5 * time.Second
		s.trigger("a", firing.Definition{Schedule: everySecond(60)})
		time.Sleep(time.Second)
		s.change(func() { s.down = true })
		time.Sleep(20 * time.Second)
		require.Equal(t, map[string]int{"claimed": 1}, s.states())
		s.change(func() { s.down = false })
		time.Sleep(20 * time.Second)
		require.Equal(t, map[string]int{"done": 1}, s.states())
		require.Len(t, s.ran(), 1)
	})
}

func TestAJobThatNobodyRegistered(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		delete(s.jobs, "job")
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10), Misfire: firing.NextExisting, Threshold: 5 * time.Second})
		time.Sleep(35 * time.Second)
		require.Empty(t, s.ran())
		require.Contains(t, s.status(ref).Parked, "job")
		require.Equal(t, map[string]int{"pending": 1}, s.states())
		s.change(func() { s.jobs["job"] = true })
		ref.Tell(JobRegistered{})
		synctest.Wait()
		require.Equal(t, seconds(35), s.ran())
		require.Empty(t, s.status(ref).Parked)
	})
}

func TestAnUnreadableRowParksItsTriggerAlone(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.putBlob("bad", []byte("no record"), 0)
		bad := s.spawn("bad")
		s.trigger("good", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(15 * time.Second)
		require.Len(t, s.ran(), 2)
		require.NotEmpty(t, s.status(bad).Parked)
		q := engine.NewQuestion[struct{}]()
		_, err := ask(t, q, bad, &Pause{Question: q})
		require.ErrorIs(t, err, ErrParked)
	})
}

func TestPauseAndResume(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10), Misfire: firing.NextExisting, Threshold: 5 * time.Second})
		time.Sleep(15 * time.Second)
		for range 2 { // twice changes nothing
			q := engine.NewQuestion[struct{}]()
			_, err := ask(t, q, ref, &Pause{Question: q, Note: "maintenance"})
			require.NoError(t, err)
		}
		time.Sleep(60 * time.Second)
		st := s.status(ref)
		require.True(t, st.State.Paused)
		require.Equal(t, "maintenance", st.State.Note)
		q := engine.NewQuestion[struct{}]()
		_, err := ask(t, q, ref, &Resume{q})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Equal(t, seconds(0, 10, 80), s.ran())
		require.Equal(t, firing.ReasonPaused, s.ranges()[0].Reason)
		require.EqualValues(t, 6, s.ranges()[0].Count)
	})
}

func TestFire(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = time.Second
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(60), Payload: []byte("its own")})
		time.Sleep(10 * time.Second)
		fire := func(id string) Fired {
			q := engine.NewQuestion[Fired]()
			f, err := ask(t, q, ref, &Fire{Question: q, Ask: firing.Ask{Key: claim.Key{Namespace: "test", Trigger: "a", Kind: claim.KindManual, ID: id}}})
			require.NoError(t, err)
			return f
		}
		f := fire("r1")
		require.True(t, f.First)
		require.Equal(t, claim.Claimed, f.Record.State)
		require.Equal(t, "its own", string(f.Record.Payload))
		time.Sleep(10 * time.Second)
		f = fire("r1")
		require.False(t, f.First)
		require.Equal(t, claim.Done, f.Record.State)
		require.Equal(t, seconds(0, 10), s.ran())
	})
}

func TestHazardStaleTimerMessages(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(5 * time.Second)
		for range 100 { // ticks of an older incarnation and of older generations
			ref.Tell(tick{token: 7 << 40})
			ref.Tell(tick{token: 1<<40 | 1})
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, seconds(0, 10, 20, 30), s.ran(), "one run a period")
		require.EqualValues(t, 200, s.status(ref).StaleTicks)
	})
}

func TestARestartLosesNothingAndRunsNothingTwice(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = 25 * time.Second
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(5 * time.Second)
		for i := range 50 { // each panics in the step that its message brings
			once := true
			s.change(func() {
				s.onHas = func() {
					if once {
						once = false
						panic(errTest)
					}
				}
			})
			ref.Tell(JobRegistered{})
			synctest.Wait()
			require.EqualValues(t, i+1, s.status(ref).Restarts)
		}
		s.change(func() { s.onHas = nil })
		time.Sleep(60 * time.Second)
		require.Equal(t, seconds(0, 30, 60), s.ran(), "the run in flight is not started again, and its end is not lost")
		for _, r := range s.records() {
			require.EqualValues(t, 1, r.Fence)
		}
	})
}

func TestAnEditIsSeenByTheRunningTrigger(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(5 * time.Second)
		// The row has been written once by the trigger itself (revision 2 by now); somebody edits it and says nothing.
		s.put("a", firing.Definition{Schedule: everySecond(20)}, 2)
		time.Sleep(6 * time.Second) // at 10 the trigger's own write is stale
		require.EqualValues(t, 3, s.status(ref).State.Version)
		time.Sleep(40 * time.Second)
		require.Equal(t, seconds(0, 10, 25, 45), s.ran(), "the edit is found late, and its first slot, at 5, is late")
		require.Equal(t, map[string]int{"done": 4}, s.states())
	})
}

func TestTheEndOfARunOutlivesItsTrigger(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = 10 * time.Second
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(60)})
		time.Sleep(time.Second)
		ref.Stop()
		<-ref.Done()
		time.Sleep(20 * time.Second)
		require.Equal(t, map[string]int{"done": 1}, s.states())
	})
}

func TestPermitsAreShared(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = 10 * time.Second
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			s.trigger(id, firing.Definition{Schedule: everySecond(3600)})
		}
		time.Sleep(5 * time.Second)
		require.Len(t, s.ran(), 4, "no more than there are permits")
		require.Equal(t, map[string]int{"claimed": 4, "pending": 4}, s.states(), "nothing holds a lease while it queues")
		time.Sleep(30 * time.Second)
		require.Equal(t, seconds(0, 0, 0, 0, 10, 10, 10, 10), sorted(s.ran()))
		for _, r := range s.records() {
			require.EqualValues(t, 1, r.Attempt)
		}
		require.Zero(t, s.deps.Permits.InUse())
	})
}

func TestRetriesUntilDead(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.ends = func(_ Work, e *firing.Ended) { e.Failed, e.Reason = true, "no" }
		s.trigger("a", firing.Definition{Schedule: everySecond(3600), Attempts: 3})
		time.Sleep(time.Minute)
		require.Len(t, s.ran(), 3)
		require.Equal(t, map[string]int{"dead": 1}, s.states())
		require.Equal(t, "no", s.records()[0].Reason)
	})
}

func TestDrainRecordsEndsAndStartsNothing(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		s.takes = 5 * time.Second
		ref := s.trigger("a", firing.Definition{Schedule: everySecond(10)})
		time.Sleep(time.Second)
		q := engine.NewQuestion[struct{}]()
		ref.Tell(&Drain{q})
		_, err := q.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(s.begun), "it says when all is recorded")
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"done": 1}, s.states())
		require.Len(t, s.ran(), 1)
	})
}

func TestAQueueRunsWhatIsSubmitted(t *testing.T) {
	perform(t, func(t *testing.T, s *stage) {
		ref, err := SpawnQueue(s.engine, s.deps, firing.Definition{Namespace: "test", Job: "job", Overlap: firing.Allow, Limit: 4,
			Attempts: 3, Lease: Lease}, time.Minute)
		require.NoError(t, err)
		for _, key := range []string{"k1", "k2", "k1"} {
			q := engine.NewQuestion[Fired]()
			_, err := ask(t, q, ref, &Fire{Question: q, Ask: firing.Ask{Key: claim.Free("test", key), Payload: []byte(key)}})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		require.Equal(t, map[string]int{"done": 2}, s.states())
		q := engine.NewQuestion[Fired]()
		_, err = ask(t, q, ref, &Fire{Question: q, Ask: firing.Ask{Key: claim.Free("test", "k1"), Payload: []byte("other")}})
		require.ErrorIs(t, err, claim.ErrKeyConflict)
	})
}
