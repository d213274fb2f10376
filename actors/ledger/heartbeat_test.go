package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// lease gives how long the key's lease still is; below 0: it is over.
func lease(t *testing.T, l *Ledger, s *store, k claim.Key) time.Duration {
	t.Helper()
	got, err := s.Records(t.Context(), claim.Query{Namespace: k.Namespace})
	require.NoError(t, err)
	for _, r := range got {
		if r.Key == k {
			return r.Lease - l.mono()
		}
	}
	t.Fatalf("%s has no record", k)
	return 0
}

func do(t *testing.T, l *Ledger, req claim.Request) claim.Result {
	t.Helper()
	o := l.Apply(t.Context(), req)
	require.NoError(t, o.Err)
	return o.Results[0]
}

func TestLeasesAreExtendedUntilTheKeyIsGivenBack(t *testing.T) {
	for name, end := range map[string]claim.Request{
		"completed": endReq(claim.Complete, key(0)),
		"failed":    endReq(claim.Fail, key(0)),
		"released":  endReq(claim.Release, key(0)),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
				do(t, l, claimReq(key(0), 30*time.Second))
				for range 100 {
					time.Sleep(7 * time.Second)
					require.Greater(t, lease(t, l, s, key(0)), 15*time.Second)
				}
				beats := len(s.applied())
				assert.InDelta(t, 70, beats, 3, "three times a lease")
				time.Sleep(time.Second) // not at the instant of a beat
				do(t, l, end)
				s.applied()
				time.Sleep(time.Hour)
				assert.Empty(t, s.applied(), "nothing is extended when nothing is held")
				assert.Zero(t, l.Stats().Held)
			})
		})
	}
}

func TestLeasesAreExtendedTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		for i := range 100 { // one after the other, over three seconds
			do(t, l, claimReq(key(i), 30*time.Second))
			time.Sleep(30 * time.Millisecond)
		}
		s.applied()
		time.Sleep(30 * time.Second)
		sizes := s.applied()
		assert.LessOrEqual(t, len(sizes), 4, "of 100 keys each: %v", sizes)
	})
}

func TestALongLeaseDoesNotWaitForTheShortOnes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		do(t, l, claimReq(key(0), time.Hour))
		do(t, l, claimReq(key(1), 3*time.Second))
		for range 200 {
			time.Sleep(time.Second)
			require.Positive(t, lease(t, l, s, key(1)))
		}
		do(t, l, endReq(claim.Complete, key(1)))
		time.Sleep(10 * time.Hour)
		require.Positive(t, lease(t, l, s, key(0)))
	})
}

func TestWhatIsHeldForTooLongIsExtendedNoMore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		req := claimReq(key(0), 30*time.Second)
		req.Ops[0].Hold = 5 * time.Minute
		do(t, l, req)
		time.Sleep(5 * time.Minute)
		assert.Positive(t, lease(t, l, s, key(0)), "for as long as it may be held")
		time.Sleep(time.Minute)
		assert.Negative(t, lease(t, l, s, key(0)))
		assert.EqualValues(t, 1, l.Stats().Held)
		assert.EqualValues(t, 1, l.Stats().Stuck)

		r := do(t, l, claimReq(key(0), 30*time.Second))
		assert.Equal(t, claim.Recorded, r.Answer, "another may have it")
		assert.Equal(t, uint64(2), r.Record.Fence)
		assert.Equal(t, Stats{Held: 1}, Stats{Held: l.Stats().Held, Stuck: l.Stats().Stuck})
		require.ErrorIs(t, l.Apply(t.Context(), endReq(claim.Complete, key(0))).Err, claim.ErrFenced)
		time.Sleep(time.Hour)
		assert.Positive(t, lease(t, l, s, key(0)), "and holds it")
	})
}

func TestABeatThatFailsIsTriedAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		do(t, l, claimReq(key(0), 30*time.Second))
		for range 20 {
			away := time.Now().Add(15 * time.Second)
			s.spoil(func([]claim.Request) error {
				if time.Now().Before(away) {
					return fmt.Errorf("disk full: %w", claim.ErrUnavailable)
				}
				return nil
			})
			for range 60 {
				time.Sleep(time.Second)
				require.Positive(t, lease(t, l, s, key(0)), "half a lease without the store is bearable")
			}
		}
	})
}

func TestALeaseThatWasLostIsNotExtended(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		do(t, l, claimReq(key(0), 30*time.Second))
		// Another holder, of whom this ledger does not know, when the lease was over.
		_, err := s.Store.Apply(t.Context(), claim.Hand{Wall: time.Now(), Mono: time.Hour, Session: 1, Sole: true}, []claim.Request{claimReq(key(0), time.Hour)})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Zero(t, l.Stats().Held)
		s.applied()
		time.Sleep(time.Hour)
		assert.Empty(t, s.applied())
	})
}

func TestAStepOfTheWallClockEndsNoLease(t *testing.T) {
	step := time.Duration(0)
	bubble(t, func(cfg *Config) { cfg.Now = func() time.Time { return time.Now().Add(step) } }, func(t *testing.T, l *Ledger, _ *store) {
		do(t, l, claimReq(key(0), 30*time.Second))
		step = 48 * time.Hour
		assert.Equal(t, claim.InFlight, do(t, l, claimReq(key(0), 30*time.Second)).Answer)
		step = -48 * time.Hour
		assert.Equal(t, claim.InFlight, do(t, l, claimReq(key(0), 30*time.Second)).Answer)
		r := do(t, l, claimReq(key(1), 30*time.Second))
		assert.Equal(t, time.Now().Add(step).UTC().Truncate(claim.Resolution), r.Record.FiredAt)
	})
}

func TestTheHeartbeatStopsLast(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		do(t, l, claimReq(key(0), 30*time.Second))
		slow := make(chan struct{})
		s.spoil(func(reqs []claim.Request) error {
			if reqs[0].Ops[0].Key == key(1) {
				<-slow
			}
			return nil
		})
		last := tell(l, 1, func(int) claim.Request { return claimReq(key(1), 30*time.Second) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		require.Error(t, l.Close(ctx), "the last transaction is under way")
		close(slow)
		last.all(t, nil)
		require.NoError(t, l.Close(t.Context()))
		assert.Greater(t, lease(t, l, s, key(0)), 29*time.Second, "the beat that fell due meanwhile was still made")
		s.applied()
		time.Sleep(time.Hour)
		assert.Empty(t, s.applied(), "and none after it")
	})
}

func TestWhatIsNoClaimIsNotHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, _ *store) {
		do(t, l, claim.Request{Ops: []claim.Op{{Action: claim.Decide, Key: key(0)}}})
		do(t, l, claim.Request{Ops: []claim.Op{{Action: claim.Skip, Key: key(1), Reason: "paused"}}})
		o := l.Apply(t.Context(), claim.Request{
			Ops: []claim.Op{{Action: claim.Claim, Key: key(2), Lease: time.Minute}},
			Tx:  func(context.Context, any) error { return errors.New("no") },
		})
		require.Error(t, o.Err)
		assert.Zero(t, l.Stats().Held)
		do(t, l, claimReq(key(3), time.Minute))
		assert.Equal(t, claim.InFlight, do(t, l, claimReq(key(3), time.Minute)).Answer)
		o = l.Apply(t.Context(), claim.Request{Ops: []claim.Op{{Action: claim.Extend, Key: key(3), Fence: 9, Lease: time.Minute, Alone: true}}})
		require.NoError(t, o.Err)
		assert.EqualValues(t, 1, l.Stats().Held, "what strangers try changes nothing")
	})
}
