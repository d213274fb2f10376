package quarterjack

import (
	"fmt"
	"slices"
	"time"

	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/backoff"
)

// Schedule says when a trigger is due: Once, Every, Delay or Cron. It is a value; From, Until and Times narrow it.
type Schedule = schedule.Schedule

// Once is due one time, at the given instant.
func Once(at time.Time) Schedule { return schedule.Once(at) }

// Every is due on a grid: at its start and each period after it, whatever the runs take. The grid is kept over
// restarts. It starts when the trigger is first declared unless From says otherwise.
func Every(period time.Duration) Schedule { return schedule.Every(period) }

// Delay is due a pause after the end of the run before. It has no grid: its drift grows by what the runs take.
func Delay(pause time.Duration) Schedule { return schedule.Delay(pause) }

// Cron is due as a Quartz cron expression says in a time zone of the IANA database. This release answers that cron
// comes with the next one.
func Cron(expr, zone string) Schedule { return schedule.Cron(expr, zone) }

// Misfire is Quartz's instruction for slots that could not be fired within the threshold.
type Misfire = firing.Misfire

// The misfire instructions, with Quartz's meaning. See package firing for each.
const (
	Smart         = firing.Smart
	Ignore        = firing.Ignore
	FireOnceNow   = firing.FireNow
	NowExisting   = firing.NowExisting
	NowRemaining  = firing.NowRemaining
	NextRemaining = firing.NextRemaining
	NextExisting  = firing.NextExisting
)

// Overlap says what happens to a slot that comes due while a run of its trigger is in flight.
type Overlap = firing.Overlap

// The overlap policies. See package firing for each.
const (
	Skip      = firing.Skip
	BufferAll = firing.BufferAll
	Allow     = firing.Allow
)

// Backoff says how the wait between attempts grows: exponentially, capped, jittered.
type Backoff = backoff.Policy

// Trigger is what you declare: when which job runs, and what happens when it cannot. Only ID and Job must be given.
type Trigger struct {
	ID  string // unique within the namespace
	Job string // the name under which Handle registers its handler
	// Schedule says when. The zero value: never by itself, only by FireNow.
	Schedule Schedule
	// Misfire says what happens to slots that were missed. 0: Smart, which is Quartz's default: a one-shot runs now, a
	// bounded count goes on from now, and an endless schedule waits for its next slot. Work that must be made up for
	// after a downtime wants Ignore: each missed slot runs, one after the other, and the grid stays. The instructions
	// that fire now move the grid of a repeating trigger to now, as Quartz does.
	Misfire Misfire
	// Threshold is how late a slot may be before it counts as missed. 0: 1 min, as in Quartz.
	Threshold time.Duration
	// Overlap says what happens to a slot that comes due while a run is in flight. 0: Skip.
	Overlap Overlap
	// Limit of the overlap policy: how many slots may wait (BufferAll, 0: 100), or run at once (Allow, 0: 16).
	Limit int
	// Timeout of one run: its context is cancelled. 0: 1 h.
	Timeout time.Duration
	// Attempts is how often one slot is tried before it is dead. 0: 5.
	Attempts int
	// Backoff between the attempts. Zero fields: 1 s, doubled each time up to 5 min, a fifth of it random.
	Backoff Backoff
	// Data is handed to each run.
	Data []byte
}

// MaxData is the largest Data of a trigger or a Submit, in bytes.
const MaxData = 1 << 20

// stored checks the trigger and fills in the defaults.
func (t Trigger) stored(namespace string) (trigger.Stored, error) {
	bad := func(field string, value any, want string) (trigger.Stored, error) {
		return trigger.Stored{}, fmt.Errorf("%w: trigger %q: %s is %v: want %s", ErrConfig, t.ID, field, value, want)
	}
	if err := checkID("ID", t.ID); err != nil {
		return trigger.Stored{}, err
	}
	if err := checkID("Job", t.Job); err != nil {
		return trigger.Stored{}, fmt.Errorf("trigger %q: %w", t.ID, err)
	}
	if err := t.Schedule.Validate(); err != nil {
		return trigger.Stored{}, fmt.Errorf("%w: trigger %q: Schedule: %w", ErrConfig, t.ID, err)
	}
	if err := t.Backoff.Validate(); err != nil {
		return trigger.Stored{}, fmt.Errorf("%w: trigger %q: Backoff: %w", ErrConfig, t.ID, err)
	}
	switch {
	case !slices.Contains(firing.Instructions, t.Misfire):
		return bad("Misfire", uint8(t.Misfire), fmt.Sprintf("one of %v", firing.Instructions))
	case t.Overlap > Allow:
		return bad("Overlap", uint8(t.Overlap), "Skip, BufferAll or Allow")
	case t.Threshold < 0:
		return bad("Threshold", t.Threshold, "at least 1 ns (0: "+DefaultThreshold.String()+")")
	case t.Timeout < 0:
		return bad("Timeout", t.Timeout, "at least 1 ns (0: "+DefaultTimeout.String()+")")
	case t.Attempts < 0 || t.Attempts > 1_000_000:
		return bad("Attempts", t.Attempts, fmt.Sprintf("1 to 1000000 (0: %d)", DefaultAttempts))
	case t.Limit < 0 || t.Limit > 100_000:
		return bad("Limit", t.Limit, "1 to 100000 (0: the policy's default)")
	case t.Overlap == Skip && t.Limit != 0:
		return bad("Limit", t.Limit, "0 with Overlap Skip, which has no limit")
	case len(t.Data) > MaxData:
		return bad("Data", fmt.Sprintf("%d bytes", len(t.Data)), fmt.Sprintf("at most %d", MaxData))
	}
	return trigger.Stored{
		Definition: firing.Definition{Namespace: namespace, Trigger: t.ID, Job: t.Job, Payload: t.Data, Schedule: t.Schedule,
			Misfire: t.Misfire, Threshold: or(t.Threshold, DefaultThreshold), Overlap: t.Overlap, Limit: t.limit(),
			Attempts: or(t.Attempts, DefaultAttempts), Backoff: t.Backoff.WithDefaults()},
		Timeout: or(t.Timeout, DefaultTimeout),
	}, nil
}

func (t Trigger) limit() int {
	switch t.Overlap {
	case BufferAll:
		return or(t.Limit, DefaultBuffered)
	case Allow:
		return or(t.Limit, DefaultParallel)
	case Skip:
	}
	return 0
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
