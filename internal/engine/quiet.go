package engine

import (
	"context"
	"log/slog"
)

// quiet is a handler that says at Debug what it is told at Info.
type quiet struct {
	slog.Handler
}

// Enabled says whether the level, or what becomes of it, is wanted.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, hush(level))
}

// Handle passes the record on.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = hush(r.Level)
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps it quiet.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps it quiet.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func hush(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}
