package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/internal/actortest"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// The words that tests send. A message that is a func is called by the actor.
type (
	do      func(c *engine.Context)
	urgent  string
	closing struct{ *engine.Question[string] }
)

func (urgent) Urgent() {}

// recorder is an actor that writes down what it receives and does what it is told. All instances of one actor write to one log.
type recorder struct {
	log      *log
	onStart  do // called in Started
	onEnd    do // called in Stopping
	onStop   do // called in Stopped
	onReborn do // called in Restarting
}

// log is what an actor received, in order.
type log struct {
	mu      sync.Mutex
	entries []any
}

func (l *log) add(entry any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry)
}

// all returns the entries and forgets them.
func (l *log) all() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.entries
	l.entries = nil
	return entries
}

// Receive writes a message down, and does it if it can be done.
func (r *recorder) Receive(c *engine.Context, msg any) {
	switch msg := msg.(type) {
	case do:
		msg(c)
		return
	default:
		r.log.add(msg)
	}
	var then do
	switch msg.(type) {
	case engine.Started:
		then = r.onStart
	case engine.Stopping:
		then = r.onEnd
	case engine.Stopped:
		then = r.onStop
	case engine.Restarting:
		then = r.onReborn
	}
	if then != nil {
		then(c)
	}
}

// batches is a recorder that writes down the ends of batches too.
type batches struct{ recorder }

type endOfBatch struct{}

// EndBatch writes it down.
func (b *batches) EndBatch(*engine.Context) { b.log.add(endOfBatch{}) }

// spawn starts a recorder and returns its address and log.
func spawn(t *testing.T, e *engine.Engine, name string, as ...recorder) (*engine.Ref, *log) {
	t.Helper()
	var like recorder
	if len(as) > 0 {
		like = as[0]
	}
	like.log = &log{}
	ref, err := e.Spawn(name, func() engine.Actor { r := like; return &r })
	require.NoError(t, err)
	return ref, like.log
}

// supervisor is a Supervisor made of a function. It writes down the failures.
type supervisor struct {
	decide func(engine.Failure) engine.Verdict

	mu       sync.Mutex
	failures []engine.Failure
	forgot   []*engine.Ref
}

// Failed writes a failure down and decides.
func (s *supervisor) Failed(f engine.Failure) engine.Verdict {
	s.mu.Lock()
	s.failures = append(s.failures, f)
	s.mu.Unlock()
	return s.decide(f)
}

// Forget writes it down.
func (s *supervisor) Forget(r *engine.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = append(s.forgot, r)
}

func (s *supervisor) seen() []engine.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

func always(v engine.Verdict) *supervisor {
	return &supervisor{decide: func(engine.Failure) engine.Verdict { return v }}
}

// supervised runs body in a bubble with an engine under s.
func supervised(t *testing.T, s *supervisor, body func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	actortest.With(t, engine.Config{Supervisor: s}, body)
}

// deadLetters writes down the messages that become dead letters of e's system.
func deadLetters(t *testing.T, e *engine.Engine) *log {
	l := &log{}
	stream := e.System().EventStream
	sub := stream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok {
			l.add(letter.Message)
		}
	})
	t.Cleanup(func() { stream.Unsubscribe(sub) })
	return l
}

// within returns a context that is over after d.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// list is a slice of anything, for tests to read well.
func list(entries ...any) []any { return entries }

// numbers returns from, from+1 … to-1.
func numbers(from, to int) []any {
	var n []any
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}
