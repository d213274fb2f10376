// Package engine is the one place that touches proto.actor's plug-in points.
package engine

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// Config of one runtime's engine. The zero value is usable.
type Config struct {
	System     *actor.ActorSystem // joined when given; nil: the engine makes its own, quiet one
	Prefix     string             // stands before all actor names, so that several engines may share a system; "": one of its own
	Logger     *slog.Logger       // nil: slog.Default()
	Workers    int                // goroutines that run actors at once; 0: GOMAXPROCS, at least 2
	Throughput int                // messages that an actor handles before others have their turn; 0: 256
	Supervisor Supervisor         // asked what to do about each failure; nil: restart at once without bound, for tests
}

// Engine runs actors.
type Engine struct{}

// New returns an engine.
func New(cfg Config) (*Engine, error) { return &Engine{}, nil }

// Spawn starts an actor.
func (e *Engine) Spawn(name string, produce func() Actor) (*Ref, error) { panic("engine: coming") }

// Stop stops every actor.
func (e *Engine) Stop(ctx context.Context) error { panic("engine: coming") }

// System returns the actor system.
func (e *Engine) System() *actor.ActorSystem { panic("engine: coming") }

// Len returns the number of live actors.
func (e *Engine) Len() int { panic("engine: coming") }
