package jobs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogWritesOneLineWithTheRun(t *testing.T) {
	var b bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	l := &Log{Message: "it strikes", Logger: logger}
	for want, w := range map[string]Work{
		"trigger=nightly slot=2026-01-02T03:04:05.000Z key=k fence=7 attempt=2 data=hello": {
			Trigger: "nightly", Slot: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Key: "k", Fence: 7, Attempt: 2, Data: []byte("hello")},
		"group=counts key=k attempt=1": {Group: "counts", Key: "k", Attempt: 1},
		"trigger=t key=k fence=0 attempt=0 data=" + strings.Repeat("x", 1024) + " data_bytes=2000": {
			Trigger: "t", Key: "k", Data: bytes.Repeat([]byte("x"), 2000)},
	} {
		b.Reset()
		out, err := l.Do(t.Context(), w)
		require.NoError(t, err)
		require.Empty(t, out)
		require.Equal(t, `level=INFO msg="it strikes" `+want+"\n", b.String())
	}
	require.Equal(t, `log "it strikes"`, l.String())

	b.Reset()
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	_, err := (&Log{Message: "m"}).Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Contains(t, b.String(), "msg=m")
}
