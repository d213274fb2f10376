package jobs

import (
	"context"
	"log/slog"
)

// maxLogData is how much of a run's data a log line shows, in bytes.
const maxLogData = 1 << 10

// Log writes a line at level info, with the run's fields. It never fails.
type Log struct {
	Message string
	Logger  *slog.Logger // nil: slog.Default at the time of the run
}

// String shows the message.
func (l *Log) String() string { return "log " + Quote(l.Message) }

// Do writes the line. There is no output.
func (l *Log) Do(ctx context.Context, w Work) ([]byte, error) {
	logger := l.Logger
	if logger == nil {
		logger = slog.Default()
	}
	attrs := make([]slog.Attr, 0, 8)
	if w.Trigger != "" {
		attrs = append(attrs, slog.String("trigger", w.Trigger))
	}
	if w.Group != "" {
		attrs = append(attrs, slog.String("group", w.Group))
	}
	if !w.Slot.IsZero() {
		attrs = append(attrs, slog.Time("slot", w.Slot))
	}
	attrs = append(attrs, slog.String("key", w.Key))
	if w.Group == "" {
		attrs = append(attrs, slog.Uint64("fence", w.Fence))
	}
	attrs = append(attrs, slog.Int("attempt", w.Attempt))
	if n := len(w.Data); n > 0 {
		attrs = append(attrs, slog.String("data", string(w.Data[:min(n, maxLogData)])))
		if n > maxLogData {
			attrs = append(attrs, slog.Int("data_bytes", n))
		}
	}
	logger.LogAttrs(ctx, slog.LevelInfo, l.Message, attrs...)
	return nil, nil
}
