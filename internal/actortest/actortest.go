// Package actortest runs tests of actors in virtual time.
package actortest

import (
	"testing"

	"github.com/quarterjack/quarterjack/internal/engine"
)

// Bubble runs body in a synctest bubble with an engine of its own.
func Bubble(t *testing.T, body func(t *testing.T, e *engine.Engine)) { With(t, engine.Config{}, body) }

// With is Bubble with an engine made of cfg.
func With(t *testing.T, cfg engine.Config, body func(t *testing.T, e *engine.Engine)) {
	panic("actortest: coming")
}
