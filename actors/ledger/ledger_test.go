package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a store in memory of which tests see, and spoil, what is applied.
type store struct {
	*memory.Store
	mu     sync.Mutex
	sizes  []int                            // of the transactions that were asked for
	before func(reqs []claim.Request) error // runs before each
}

func (s *store) Apply(ctx context.Context, now claim.Hand, reqs []claim.Request) ([]claim.Outcome, error) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(reqs))
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(reqs); err != nil {
			return nil, err
		}
	}
	return s.Store.Apply(ctx, now, reqs)
}

// spoil has fn run before each transaction from now on.
func (s *store) spoil(fn func(reqs []claim.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = fn
}

// applied gives the sizes of the transactions since it was last asked.
func (s *store) applied() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := s.sizes
	s.sizes = nil
	return sizes
}

// bubble runs body in virtual time with a ledger over a store in memory.
func bubble(t *testing.T, change func(*Config), body func(t *testing.T, l *Ledger, s *store)) {
	t.Helper()
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		s := &store{Store: memory.New()}
		session, err := s.Open(t.Context())
		require.NoError(t, err)
		cfg := Config{Store: s, Session: session, Logger: actortest.Logger(t)}
		if change != nil {
			change(&cfg)
		}
		l, err := Spawn(e, cfg)
		require.NoError(t, err)
		body(t, l, s)
		require.NoError(t, l.Close(t.Context()))
		require.NoError(t, s.Close())
	})
}

func key(i int) claim.Key { return claim.Free("n", fmt.Sprintf("%04d", i)) }

func claimReq(k claim.Key, lease time.Duration) claim.Request {
	return claim.Request{Ops: []claim.Op{{Action: claim.Claim, Key: k, Lease: lease}}}
}

// endReq ends the first claim of a key.
func endReq(a claim.Action, k claim.Key) claim.Request {
	return claim.Request{Ops: []claim.Op{{Action: a, Key: k, Fence: 1}}}
}

// tell sends requests and gives where their outcomes will be, one after the other.
func tell(l *Ledger, n int, req func(i int) claim.Request) *answers {
	a := &answers{got: make([][]claim.Outcome, n)}
	for i := range n {
		l.Ref().Tell(&claim.Commit{Request: req(i), Reply: func(o claim.Outcome) { a.put(i, o) }})
	}
	return a
}

// together is tell for requests that all wait when the transaction before them ends, and so share the next one.
func together(l *Ledger, s *store, n int, req func(i int) claim.Request) *answers {
	before := make(chan struct{})
	l.Ref().Tell(&claim.Read{Do: func(context.Context, claim.Reader) error { <-before; return nil }, Reply: func(error) {}})
	synctest.Wait()
	a := tell(l, n, req)
	synctest.Wait()
	s.applied()
	close(before)
	return a
}

type answers struct {
	mu  sync.Mutex
	got [][]claim.Outcome
}

func (a *answers) put(i int, o claim.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got[i] = append(a.got[i], o)
}

// errs gives each request's error, once all are answered, exactly once each.
func (a *answers) errs(t *testing.T) []error {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	errs := make([]error, len(a.got))
	for i, os := range a.got {
		require.Len(t, os, 1, "request %d is answered once", i)
		errs[i] = os[0].Err
	}
	return errs
}

func (a *answers) all(t *testing.T, want error) {
	t.Helper()
	for i, err := range a.errs(t) {
		require.ErrorIs(t, err, want, "request %d", i)
	}
}

func TestRequestsThatWaitShareATransaction(t *testing.T) {
	bubble(t, func(cfg *Config) { cfg.MaxBatch = 40 }, func(t *testing.T, l *Ledger, s *store) {
		inFlight := make(chan struct{})
		s.spoil(func([]claim.Request) error { <-inFlight; return nil })
		first := tell(l, 1, func(i int) claim.Request { return claimReq(key(i), time.Minute) })
		synctest.Wait()
		rest := tell(l, 100, func(i int) claim.Request { return claimReq(key(i+1), time.Minute) })
		synctest.Wait()
		assert.Equal(t, []int{1}, s.applied())
		assert.Equal(t, 101, l.Len())
		close(inFlight)
		first.all(t, nil)
		rest.all(t, nil)
		assert.Equal(t, []int{40, 40, 20}, s.applied())
		assert.Equal(t, Stats{Commits: 4, Requests: 101, Largest: 40, Held: 101}, l.Stats())
		assert.InDelta(t, 25.25, l.Stats().Mean(), 0.001)
	})
}

func TestAReadSeesWhatWasSentBefore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		s.spoil(func([]claim.Request) error { time.Sleep(time.Second); return nil })
		sent := tell(l, 3, func(i int) claim.Request { return claimReq(key(i), time.Minute) })
		seen := 0
		require.NoError(t, l.Read(t.Context(), func(ctx context.Context, r claim.Reader) error {
			got, err := r.Records(ctx, claim.Query{})
			seen = len(got)
			return err
		}))
		assert.Equal(t, 3, seen)
		sent.all(t, nil)

		own := errors.New("not today")
		require.ErrorIs(t, l.Read(t.Context(), func(context.Context, claim.Reader) error { return own }), own)
		require.ErrorContains(t, l.Read(t.Context(), func(context.Context, claim.Reader) error { panic("boom") }), "boom")
		require.ErrorIs(t, l.Read(t.Context(), func(context.Context, claim.Reader) error { runtime.Goexit(); return nil }), errGoexit)
	})
}

func TestOneBadRequestFailsAlone(t *testing.T) {
	poison := errors.New("poison")
	for name, spoil := range map[string]func() error{
		"error":  func() error { return poison },
		"panic":  func() error { panic("poison") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
				s.spoil(func(reqs []claim.Request) error {
					for _, r := range reqs {
						if r.Ops[0].Key == key(37) {
							return spoil()
						}
					}
					return nil
				})
				for i, err := range together(l, s, 100, func(i int) claim.Request { return claimReq(key(i), time.Minute) }).errs(t) {
					if i == 37 {
						require.Error(t, err)
						continue
					}
					require.NoError(t, err, "request %d", i)
				}
				assert.EqualValues(t, 99, l.Stats().Held)
				assert.NotZero(t, l.Stats().Splits)
				assert.LessOrEqual(t, len(s.applied()), 15)
			})
		})
	}
}

func TestAStoreThatIsAwayFailsAllAtOnce(t *testing.T) {
	for _, want := range []error{claim.ErrUnavailable, claim.ErrClosed, claim.ErrCorrupt} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
				s.spoil(func([]claim.Request) error { return fmt.Errorf("disk: %w", want) })
				together(l, s, 100, func(i int) claim.Request { return claimReq(key(i), time.Minute) }).all(t, want)
				assert.Len(t, s.applied(), 1)
				s.spoil(nil)
				tell(l, 100, func(i int) claim.Request { return claimReq(key(i), time.Minute) }).all(t, nil)
			})
		})
	}
}

// broken is a store that does not keep its contract.
type broken struct {
	*memory.Store
	out []claim.Outcome
}

func (b broken) Apply(context.Context, claim.Hand, []claim.Request) ([]claim.Outcome, error) {
	return b.out, nil
}

func TestABrokenStoreIsAnError(t *testing.T) {
	for name, out := range map[string][]claim.Outcome{"no outcomes": nil, "an outcome without results": {{}}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(cfg *Config) { cfg.Store = broken{memory.New(), out} }, func(t *testing.T, l *Ledger, _ *store) {
				require.ErrorIs(t, l.Apply(t.Context(), claimReq(key(1), time.Minute)).Err, errBroken)
			})
		})
	}
}

func TestAReplyThatFailsHarmsNobody(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, _ *store) {
		l.Ref().Tell(&claim.Commit{Request: claimReq(key(0), time.Minute), Reply: func(claim.Outcome) { panic("boom") }})
		l.Ref().Tell(&claim.Commit{Request: claimReq(key(1), time.Minute), Reply: func(claim.Outcome) { runtime.Goexit() }})
		l.Ref().Tell(&claim.Read{Do: func(context.Context, claim.Reader) error { return nil }, Reply: func(error) { panic("boom") }})
		tell(l, 10, func(i int) claim.Request { return claimReq(key(i+2), time.Minute) }).all(t, nil)
	})
}

func TestWhatIsAcceptedIsAnswered(t *testing.T) {
	for name, stop := range map[string]func(l *Ledger){
		"closed":               func(l *Ledger) { go func() { _ = l.Close(context.Background()) }() },
		"its actor is stopped": func(l *Ledger) { l.Ref().Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
				s.spoil(func([]claim.Request) error { time.Sleep(time.Second); return nil })
				first := tell(l, 1, func(i int) claim.Request { return claimReq(key(i), time.Minute) })
				synctest.Wait()
				gathered := tell(l, 10, func(i int) claim.Request { return claimReq(key(i+1), time.Minute) })
				synctest.Wait()
				stop(l)
				synctest.Wait()
				late := tell(l, 5, func(i int) claim.Request { return claimReq(key(i+100), time.Minute) })
				late.all(t, claim.ErrClosed)
				require.ErrorIs(t, l.Read(t.Context(), nil), claim.ErrClosed)
				require.NoError(t, l.Close(t.Context()))
				first.all(t, nil)
				gathered.all(t, nil)
				got, err := s.Records(t.Context(), claim.Query{})
				require.NoError(t, err)
				assert.Len(t, got, 11)
			})
		})
	}
}

// faulty is the ledger's actor with a fault.
type faulty struct{ front }

func (f faulty) Receive(c *engine.Context, msg any) {
	if msg == "fail" {
		panic("boom")
	}
	f.front.Receive(c, msg)
}

func TestARestartLosesNothing(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		s := &store{Store: memory.New()}
		session, err := s.Open(t.Context())
		require.NoError(t, err)
		l, err := spawn(e, Config{Store: s, Session: session}, func(l *line) engine.Actor { return faulty{front{l}} })
		require.NoError(t, err)
		before := tell(l, 10, func(i int) claim.Request { return claimReq(key(i), time.Minute) })
		l.Ref().Tell("fail")
		after := tell(l, 10, func(i int) claim.Request { return claimReq(key(i+10), time.Minute) })
		before.all(t, nil)
		after.all(t, nil)
		require.NoError(t, l.Close(t.Context()))
	})
}

func TestCloseSaysWhatWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		inFlight := make(chan struct{})
		s.spoil(func([]claim.Request) error { <-inFlight; return nil })
		sent := tell(l, 3, func(i int) claim.Request { return claimReq(key(i), time.Minute) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "3 requests wait")
		require.ErrorIs(t, l.Apply(t.Context(), claimReq(key(9), time.Minute)).Err, claim.ErrClosed)
		close(inFlight)
		sent.all(t, nil)
	})
}

func TestAskersMayGiveUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, l *Ledger, s *store) {
		s.spoil(func([]claim.Request) error { time.Sleep(time.Minute); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.Apply(ctx, claimReq(key(1), time.Hour)).Err, context.DeadlineExceeded)
		require.ErrorIs(t, l.Read(ctx, nil), context.DeadlineExceeded)
		require.ErrorIs(t, l.Apply(claim.EnterTx(t.Context()), claim.Request{}).Err, claim.ErrInTx)
		require.ErrorIs(t, l.Read(claim.EnterTx(t.Context()), nil), claim.ErrInTx)
		time.Sleep(2 * time.Minute)
		assert.EqualValues(t, 1, l.Stats().Held, "the request was decided all the same")
	})
}

func TestConfigIsChecked(t *testing.T) {
	e, err := engine.New(engine.Config{})
	require.NoError(t, err)
	session := claim.Session{ID: 1}
	for says, cfg := range map[string]Config{
		"Store is nil":             {Session: session},
		"Session has number 0":     {Store: memory.New()},
		"MaxBatch is -1, must be ": {Store: memory.New(), Session: session, MaxBatch: -1},
	} {
		_, err := Spawn(e, cfg)
		require.ErrorContains(t, err, says)
	}
}

func TestTwoLedgersOfOneNameAreRefused(t *testing.T) {
	actortest.Bubble(t, func(t *testing.T, e *engine.Engine) {
		cfg := Config{Store: memory.New(), Session: claim.Session{ID: 1}, Name: "twin"}
		_, err := Spawn(e, cfg)
		require.NoError(t, err)
		_, err = Spawn(e, cfg)
		require.ErrorIs(t, err, engine.ErrNameTaken)
	})
}
