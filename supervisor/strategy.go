// Package supervisor performs what supervisor/restart decides.
package supervisor

import (
	"log/slog"
	"time"

	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/supervisor/restart"
)

// Config of a Strategy.
type Config struct {
	Policy    restart.Policy
	Logger    *slog.Logger
	Now       func() time.Time
	Rand      func() uint64
	OnParked  func(Parked)
	OnRestart func(Restarted)
}

// Parked is an actor that has been given up.
type Parked struct {
	Name        string
	Incarnation uint64
	Reason      any
	Stack       []byte
	Since       time.Time
	Restarts    int
}

// Restarted is a restart that has been decided.
type Restarted struct {
	Name        string
	Incarnation uint64
	Reason      any
	At          time.Time
	After       time.Duration
	Redeliver   bool
	Why         string
}

// Strategy implements engine.Supervisor.
type Strategy struct{}

// New returns a strategy.
func New(cfg Config) (*Strategy, error)                    { return &Strategy{}, nil }
func (s *Strategy) Failed(f engine.Failure) engine.Verdict { panic("supervisor: coming") }
func (s *Strategy) Parked() []Parked                       { panic("supervisor: coming") }
func (s *Strategy) Unpark(name string) bool                { panic("supervisor: coming") }
