package trigger

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/messages"
)

// Stored is what rests of a trigger in its row.
type Stored struct {
	Definition firing.Definition
	State      firing.State
	Timeout    time.Duration
}

// Encode writes the blob of a trigger's row.
func (s Stored) Encode() ([]byte, error) {
	d, st := &s.Definition, &s.State
	return proto.MarshalOptions{Deterministic: true}.Marshal(&messages.TriggerRecord{
		Definition: &messages.TriggerDefinition{
			Job: d.Job, Payload: d.Payload,
			Schedule:  encodeSchedule(d.Schedule),
			Misfire:   messages.Misfire(d.Misfire) + 1,
			Threshold: durationpb.New(d.Threshold),
			Overlap:   messages.Overlap(d.Overlap) + 1,
			Limit:     int64(d.Limit), Attempts: int64(d.Attempts),
			Backoff: &messages.Backoff{Initial: durationpb.New(d.Backoff.Initial), Max: durationpb.New(d.Backoff.Max),
				Factor: d.Backoff.Factor, Jitter: d.Backoff.Jitter},
			Timeout: durationpb.New(s.Timeout),
		},
		State: &messages.TriggerState{
			Incarnation: st.Incarnation, Version: st.Version, Epoch: st.Epoch,
			Start: encodeTime(st.Start), End: encodeTime(st.End), Interval: durationpb.New(st.Interval),
			Repeat: st.Repeat, Triggered: st.Triggered, Next: encodeTime(st.Next), Previous: encodeTime(st.Prev),
			Awaiting: st.Awaiting, Paused: st.Paused, Note: st.Note, Retired: st.Retired,
		},
	})
}

// Decode reads the blob of a trigger's row. What Encode did not write is an error that names the field. Namespace, id
// and lease are not in it: they are the row's and the runtime's.
func Decode(blob []byte) (Stored, error) {
	var m messages.TriggerRecord
	if err := proto.Unmarshal(blob, &m); err != nil {
		return Stored{}, fmt.Errorf("trigger record: %w", err)
	}
	d, st := m.GetDefinition(), m.GetState()
	var e decodeError
	s := Stored{
		Definition: firing.Definition{
			Job: d.GetJob(), Payload: d.GetPayload(), Schedule: e.schedule(d.GetSchedule()),
			Misfire:   firing.Misfire(e.enum("misfire", int32(d.GetMisfire()), len(firing.Instructions))),
			Overlap:   firing.Overlap(e.enum("overlap", int32(d.GetOverlap()), int(firing.Allow)+1)),
			Threshold: e.duration("threshold", d.GetThreshold()),
			Limit:     e.count("limit", d.GetLimit()), Attempts: e.count("attempts", d.GetAttempts()),
			Backoff: backoff.Policy{Initial: e.duration("backoff.initial", d.GetBackoff().GetInitial()), Max: e.duration("backoff.max", d.GetBackoff().GetMax()),
				Factor: d.GetBackoff().GetFactor(), Jitter: d.GetBackoff().GetJitter()},
		},
		Timeout: e.duration("timeout", d.GetTimeout()),
		State: firing.State{
			Incarnation: st.GetIncarnation(), Version: st.GetVersion(), Epoch: st.GetEpoch(),
			Simple: firing.Simple{Start: e.time("start", st.GetStart()), End: e.time("end", st.GetEnd()),
				Next: e.time("next", st.GetNext()), Prev: e.time("previous", st.GetPrevious()),
				Interval: e.duration("interval", st.GetInterval()), Repeat: st.GetRepeat(), Triggered: st.GetTriggered()},
			Awaiting: st.GetAwaiting(), Paused: st.GetPaused(), Note: st.GetNote(), Retired: st.GetRetired(),
		},
	}
	if st.GetIncarnation() == 0 {
		e.note("incarnation", 0, "want at least 1")
	}
	if e.err == nil && s.State.Interval < 0 {
		e.note("interval", s.State.Interval, "want at least 0")
	}
	return s, e.err
}

func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func encodeSchedule(s schedule.Schedule) *messages.Schedule {
	expr, zone := s.CronText()
	return &messages.Schedule{Kind: messages.ScheduleKind(s.Kind()) + 1, Start: encodeTime(s.Start()), End: encodeTime(s.End()),
		Period: durationpb.New(s.Period()), Count: s.Count(), Expression: expr, Zone: zone}
}

// decodeError keeps the first thing that was wrong.
type decodeError struct{ err error }

func (e *decodeError) note(field string, got any, want string) {
	if e.err == nil {
		e.err = fmt.Errorf("trigger record: %s is %v: %s", field, got, want)
	}
}

// enum reads a number that is one above ours, so that 0 means that nobody wrote it.
func (e *decodeError) enum(field string, v int32, n int) int {
	if v < 1 || int(v) > n {
		e.note(field, v, fmt.Sprintf("want 1 to %d", n))
		return 0
	}
	return int(v) - 1
}

func (e *decodeError) time(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		e.note(field, t.String(), err.Error())
	}
	return t.AsTime()
}

func (e *decodeError) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		e.note(field, d.String(), err.Error())
	}
	return d.AsDuration()
}

func (e *decodeError) count(field string, n int64) int {
	if n < 0 || n > math.MaxInt32 {
		e.note(field, n, "want 0 to 2147483647")
		return 0
	}
	return int(n)
}

func (e *decodeError) schedule(m *messages.Schedule) schedule.Schedule {
	kind := schedule.Kind(e.enum("schedule.kind", int32(m.GetKind()), int(schedule.CronKind)+1))
	start, end := e.time("schedule.start", m.GetStart()), e.time("schedule.end", m.GetEnd())
	period := e.duration("schedule.period", m.GetPeriod())
	var s schedule.Schedule
	switch kind {
	case schedule.None:
		return s
	case schedule.OneShot:
		s = schedule.Once(start)
	case schedule.FixedRate:
		s = schedule.Every(period)
	case schedule.FixedDelay:
		s = schedule.Delay(period)
	case schedule.CronKind:
		s = schedule.Cron(m.GetExpression(), m.GetZone())
	}
	if !start.IsZero() {
		s = s.From(start)
	}
	if !end.IsZero() {
		s = s.Until(end)
	}
	if kind != schedule.OneShot && m.GetCount() != schedule.Forever {
		s = s.Times(m.GetCount())
	}
	if err := s.Validate(); err != nil && e.err == nil {
		e.err = fmt.Errorf("trigger record: %w", err)
	}
	return s
}
