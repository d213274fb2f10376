package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/engine"
)

// letter is one of many messages; each must be handled or become a dead letter, once, in its producer's order.
type letter struct {
	producer, number int
	failures         int // how often it makes its actor fail before it lets itself be handled
	goexit           bool
}

// opening is what the actor tells itself to open its gate.
type opening struct{ incarnation uint64 }

func (opening) Urgent() {}

// clerk handles letters in all ways that an actor may.
type clerk struct {
	mu       *sync.Mutex
	failed   map[*letter]int
	handled  *[]*letter
	gateShut bool
}

// Receive handles one message.
func (k *clerk) Receive(c *engine.Context, msg any) {
	switch msg := msg.(type) {
	case engine.Started:
		c.CloseGate()
		k.gateShut = true
		c.Self().Tell(opening{c.Incarnation()})
	case opening:
		if msg.incarnation == c.Incarnation() {
			c.OpenGate()
			k.gateShut = false
		}
	case *letter:
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.gateShut {
			panic("a letter came through a closed gate")
		}
		if k.failed[msg] < msg.failures {
			k.failed[msg]++
			if msg.goexit {
				runtime.Goexit()
			}
			panic("not this one")
		}
		*k.handled = append(*k.handled, msg)
	}
}

// Producers, failures, restarts with and without redelivery and delay, a gate and a stop, all at once.
func TestEveryMessageIsHandledOrDeadOnceAndInOrder(t *testing.T) {
	const actors, producers, each = 8, 4, 2000
	s := &supervisor{decide: func(f engine.Failure) engine.Verdict {
		return engine.Verdict{
			Restart:   f.Reason != "a letter came through a closed gate",
			After:     time.Duration(rand.IntN(2)) * time.Microsecond * 50,
			Redeliver: f.Deliveries < 3,
		}
	}}
	e, err := engine.New(engine.Config{Supervisor: s, Logger: slog.New(slog.DiscardHandler), Throughput: 16, Workers: 3})
	require.NoError(t, err)
	dead := deadLetters(t, e)

	var sending sync.WaitGroup
	handled := make([][]*letter, actors)
	refs := make([]*engine.Ref, actors)
	for a := range actors {
		mu, failed := new(sync.Mutex), map[*letter]int{}
		refs[a], err = e.Spawn(fmt.Sprint(a), func() engine.Actor { return &clerk{mu: mu, failed: failed, handled: &handled[a]} })
		require.NoError(t, err)
		for p := range producers {
			sending.Go(func() {
				for n := range each {
					l := &letter{producer: p, number: n}
					if rand.IntN(50) == 0 {
						l.failures, l.goexit = 1+rand.IntN(4), rand.IntN(2) == 0
					}
					var msg any = l
					if rand.IntN(3) == 0 {
						msg = &actor.MessageEnvelope{Message: l}
					}
					refs[a].Tell(msg)
					if n == each/2 && p == 0 && a%2 == 0 {
						refs[a].Stop()
					}
				}
			})
		}
	}
	sending.Wait()
	require.NoError(t, e.Stop(t.Context()))

	count := map[*letter]int{}
	for a := range actors {
		var last [producers]int
		for _, l := range handled[a] {
			count[l]++
			require.GreaterOrEqual(t, l.number, last[l.producer], "in order")
			last[l.producer] = l.number + 1
		}
	}
	for _, msg := range dead.all() {
		if l, ok := msg.(*letter); ok {
			count[l]++
		}
	}
	require.Len(t, count, actors*producers*each, "none is lost")
	for l, n := range count {
		require.Equal(t, 1, n, "none is both or twice: %+v", l)
	}
}

// A stop that comes while actors fail finds each of them, whether it waits for its restart already or will.
func TestStopMeetsFailures(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	host, err := engine.New(engine.Config{Logger: logger}) // making a system takes most of the time
	require.NoError(t, err)
	for range 300 {
		e, err := engine.New(engine.Config{System: host.System(), Supervisor: always(engine.Verdict{Restart: true, After: time.Hour}), Logger: logger})
		require.NoError(t, err)
		for i := range 4 {
			ref, _ := spawn(t, e, fmt.Sprint(i))
			ref.Tell(do(func(*engine.Context) { panic("restart me in an hour") }))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, e.Stop(ctx))
		cancel()
	}
}
