// Package actortest runs tests of actors in virtual time.
package actortest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quarterjack/quarterjack/internal/engine"
)

// settle is what lets goroutines of proto.actor end that sleep after a dead letter: its throttle's interval, 1 s by default.
const settle = 2 * time.Second

// stopTimeout, in virtual time, is what a test's actors may take to stop.
const stopTimeout = time.Minute

// Bubble runs body in a testing/synctest bubble with an engine of its own: time is virtual, time.Sleep returns when every actor
// is idle, and synctest.Wait waits for that. When body returns, fails or panics, the engine is stopped, and the test fails if
// an actor does not stop.
//
// Body must not touch what lives outside: sockets, files that block, channels made before. The engine logs to the test's log.
func Bubble(t *testing.T, body func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	With(t, engine.Config{}, body)
}

// With is Bubble for an engine that is made, in the bubble, of cfg. Its Logger, if nil, is the test's log.
func With(t *testing.T, cfg engine.Config, body func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if cfg.Logger == nil {
			cfg.Logger = Logger(t)
		}
		e, err := engine.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(settle)
		defer stop(t, e)
		body(t, e)
	})
}

func stop(t *testing.T, e *engine.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := e.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// Logger returns a logger to the test's log, which go test shows if the test fails or with -v.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
