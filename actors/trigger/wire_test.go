package trigger

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/messages"
)

func stored() Stored {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 123456789, time.UTC)
	return Stored{
		Definition: firing.Definition{Job: "job", Payload: []byte{0, 1}, Misfire: firing.NextExisting, Threshold: time.Second,
			Schedule: schedule.Every(90 * time.Second).From(noon).Until(noon.AddDate(300, 0, 0)).Times(math.MaxInt64),
			Overlap:  firing.Allow, Limit: 7, Attempts: 3, Backoff: backoff.Policy{Initial: 1, Max: time.Hour, Factor: 1.5, Jitter: backoff.NoJitter}},
		State: firing.State{Incarnation: 3, Version: 2, Epoch: 1, Paused: true, Note: "why", Awaiting: true,
			Simple: firing.Simple{Start: noon, End: noon.AddDate(300, 0, 0), Next: noon.Add(time.Minute), Interval: 90 * time.Second,
				Repeat: math.MaxInt64 - 1, Triggered: 1 << 40}},
		Timeout: time.Minute,
	}
}

func TestARecordComesBackAsItWas(t *testing.T) {
	for name, s := range map[string]schedule.Schedule{
		"fixed rate":  stored().Definition.Schedule,
		"none":        {},
		"one-shot":    schedule.Once(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)),
		"fixed delay": schedule.Delay(time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			want := stored()
			want.Definition.Schedule = s
			blob, err := want.Encode()
			require.NoError(t, err)
			got, err := Decode(blob)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestARecordThatNobodyWroteIsRefused(t *testing.T) {
	for want, change := range map[string]func(*messages.TriggerRecord){
		"misfire is -1":     func(m *messages.TriggerRecord) { m.Definition.Misfire = -1 },
		"misfire is 0":      func(m *messages.TriggerRecord) { m.Definition.Misfire = messages.Misfire_MISFIRE_UNSPECIFIED },
		"overlap is 99":     func(m *messages.TriggerRecord) { m.Definition.Overlap = 99 },
		"limit is -1":       func(m *messages.TriggerRecord) { m.Definition.Limit = -1 },
		"incarnation is 0":  func(m *messages.TriggerRecord) { m.State.Incarnation = 0 },
		"next is":           func(m *messages.TriggerRecord) { m.State.Next.Nanos = -1 },
		"schedule.kind is":  func(m *messages.TriggerRecord) { m.Definition.Schedule = nil },
		"bad schedule":      func(m *messages.TriggerRecord) { m.Definition.Schedule.Period = nil },
		"cron schedules":    func(m *messages.TriggerRecord) { m.Definition.Schedule.Kind = messages.ScheduleKind_SCHEDULE_KIND_CRON },
		"backoff.max is":    func(m *messages.TriggerRecord) { m.Definition.Backoff.Max.Nanos = math.MaxInt32 },
		"interval is -1m30": func(m *messages.TriggerRecord) { m.State.Interval.Seconds = -90 },
	} {
		t.Run(want, func(t *testing.T) {
			blob, err := stored().Encode()
			require.NoError(t, err)
			var m messages.TriggerRecord
			require.NoError(t, proto.Unmarshal(blob, &m))
			change(&m)
			blob, err = proto.Marshal(&m)
			require.NoError(t, err)
			_, err = Decode(blob)
			require.ErrorContains(t, err, want)
		})
	}
}

func FuzzDecode(f *testing.F) {
	blob, err := stored().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(blob)
	f.Fuzz(func(t *testing.T, blob []byte) {
		s, err := Decode(blob)
		if err != nil {
			return
		}
		if _, err := s.Encode(); err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
	})
}
