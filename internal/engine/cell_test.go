package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// counting counts the calls of proto.actor's context.
type counting struct {
	protoContext
	calls *int
}

// InvokeUserMessage counts a call.
func (c counting) InvokeUserMessage(msg any) {
	*c.calls++
	c.protoContext.InvokeUserMessage(msg)
}

type deaf struct{}

func (deaf) Receive(*Context, any) {}

func bubble(t *testing.T, body func(t *testing.T, e *Engine)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Config{Logger: slog.New(slog.DiscardHandler), Throughput: 100})
		require.NoError(t, err)
		body(t, e)
		require.NoError(t, e.Stop(t.Context()))
		time.Sleep(time.Second) // for the goroutine that proto.actor starts for a dead letter
	})
}

func TestOneCallDeliversABatch(t *testing.T) {
	bubble(t, func(t *testing.T, e *Engine) {
		r, err := e.Spawn("a", func() Actor { return deaf{} })
		require.NoError(t, err)
		synctest.Wait()
		calls := 0
		r.cell().context = counting{r.cell().context, &calls}
		r.Tell(1)
		synctest.Wait()
		require.Equal(t, 1, calls)

		r.cell().mu.Lock() // the worker cannot take any before all are there
		for range 250 {
			r.cell().in.push(&e.pool.depot, 1)
		}
		require.True(t, r.cell().wake())
		r.cell().mu.Unlock()
		require.Equal(t, 250, r.cell().UserMessageCount())
		e.pool.add(r.cell())
		synctest.Wait()
		require.Equal(t, 4, calls, "250 messages are 3 turns of at most 100")
		require.Zero(t, r.cell().UserMessageCount())
	})
}

func TestIdleCellKeepsNothing(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(cell{}), uintptr(144))
	bubble(t, func(t *testing.T, e *Engine) {
		r, err := e.Spawn("a", func() Actor { return deaf{} })
		require.NoError(t, err)
		for i := range 1000 {
			r.Tell(i)
		}
		synctest.Wait()
		c := r.cell()
		require.Equal(t, queue{}, c.in)
		require.Equal(t, queue{}, c.work)
		require.Nil(t, c.extras)
		require.Nil(t, c.trouble)
		r.Stop()
		<-r.Done()
		synctest.Wait()
		require.Nil(t, c.actor)
		require.Nil(t, c.produce)
	})
}

func TestIdleEngineOwnsNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, e *Engine) {
		for i := range 1000 {
			r, err := e.Spawn(fmt.Sprint(i), func() Actor { return deaf{} })
			require.NoError(t, err)
			r.Tell(i)
		}
		synctest.Wait()
		require.Zero(t, e.pool.running)
		require.Equal(t, queue{}, e.pool.queue)
	})
}

// What comes before Start waits, and comes after Started.
func TestNothingRunsBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T, e *Engine) {
		var got []any
		c := &cell{engine: e, incarnation: 1, produce: func() Actor { return hears{&got} }}
		c.PostUserMessage("early")
		c.PostSystemMessage(&actor.Stop{})
		require.False(t, c.scheduled)
		e.mu.Lock()
		e.nursery, e.newest, e.live = c, c, 1
		_, err := e.root.SpawnNamed(e.props, e.prefix+"a")
		e.mu.Unlock()
		require.NoError(t, err)
		<-c.done()
		synctest.Wait()
		require.Equal(t, []any{Started{}, Stopping{}, Stopped{}}, got)
	})
}

// hears is an actor that writes down what it receives.
type hears struct{ got *[]any }

// Receive writes it down.
func (h hears) Receive(_ *Context, msg any) { *h.got = append(*h.got, msg) }

// Messages do not wake one that waits for its restart: it could only go to sleep again.
func TestMessagesDoNotWakeWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *Engine) {
		e.supervisor = &verdicts{left: []Verdict{{Restart: true, After: time.Hour}}}
		r, err := e.Spawn("a", func() Actor { return fails{} })
		require.NoError(t, err)
		r.Tell("fail")
		synctest.Wait()
		c := r.cell()
		require.Equal(t, phaseWaiting, c.phase)
		r.Tell(1)
		require.False(t, c.scheduled)
		require.Equal(t, 1, c.UserMessageCount())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, c.UserMessageCount())
	})
}

// fails is an actor that fails on text.
type fails struct{}

// Receive fails on text.
func (fails) Receive(_ *Context, msg any) {
	if text, ok := msg.(string); ok {
		panic(text)
	}
}

// forbidden is a proto.actor supervisor that must not be asked for anything.
type forbidden struct{ t *testing.T }

func (f forbidden) Children() []*actor.PID   { f.t.Error("Children: a guardian panics"); return nil }
func (f forbidden) EscalateFailure(any, any) { f.t.Error("EscalateFailure: a guardian panics") }
func (f forbidden) RestartChildren(...*actor.PID) {
	f.t.Error("RestartChildren: a PID may be somebody else's by now")
}
func (f forbidden) StopChildren(...*actor.PID) {
	f.t.Error("StopChildren: a PID may be somebody else's by now")
}
func (f forbidden) ResumeChildren(...*actor.PID) {
	f.t.Error("ResumeChildren: what failed does not go on")
}

// verdicts gives one after the other.
type verdicts struct{ left []Verdict }

// Failed gives the next, and panics after the last.
func (v *verdicts) Failed(Failure) Verdict {
	next := v.left[0]
	v.left = v.left[1:]
	return next
}

// A10: a guardian whose strategy escalates ends the process; so does one that asks for its children.
func TestHazardA10GuardianNeverEscalates(t *testing.T) {
	bubble(t, func(t *testing.T, e *Engine) {
		e.supervisor = &verdicts{left: []Verdict{{Restart: true}, {Restart: true, After: 1}, {}}}
		for _, name := range []string{"restart", "later", "park"} {
			r, err := e.Spawn(name, func() Actor { return deaf{} })
			require.NoError(t, err)
			synctest.Wait()
			c := r.cell()
			c.mu.Lock()
			require.True(t, c.wake(), "the turn is this goroutine's")
			c.mu.Unlock()
			c.fail("reason", nil, nil, nil)
			c.phase = phaseJudging
			guardian{}.HandleFailure(e.system, forbidden{t}, c.pid(), nil, "reason", c.trouble.fault)
			require.Equal(t, phaseWaiting, c.phase)
			e.pool.add(c)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Equal(t, name == "park", c.gone)
		}
		guardian{}.HandleFailure(e.system, forbidden{t}, nil, nil, "reason", "the failure of somebody else's actor")
	})
}
