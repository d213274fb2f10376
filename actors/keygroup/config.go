package keygroup

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/engine"
	"github.com/quarterjack/quarterjack/internal/verdict"
)

// What a zero field of Config means.
const (
	DefaultDelay      = time.Second
	DefaultBatchItems = 10_000
	DefaultMaxItems   = 1_000_000
	DefaultWorkers    = 16
	DefaultTimeout    = time.Minute
	DefaultAttempts   = 5
	DefaultIdleAfter  = time.Minute
	DefaultGrace      = time.Second
)

// AtOnce is the Delay of a group that hands items over as soon as a worker is free, and merges only what arrives until
// then.
const AtOnce = time.Nanosecond

// OnFull is what an Add does when the group is full.
type OnFull uint8

// The policies.
const (
	Block  OnFull = iota // wait until there is room or the context ends, first come, first served
	Reject               // return ErrFull
)

// String gives the policy's name.
func (o OnFull) String() string {
	switch o {
	case Block:
		return "block"
	case Reject:
		return "reject"
	}
	return fmt.Sprintf("onfull(%d)", uint8(o))
}

// Config of a group. Only Name must be given.
type Config struct {
	// Name of the group: one per runtime. It stands in actor names, logs and dead letters.
	Name string
	// Delay from a batch's first item until it is due. 0: 1 s; AtOnce: none. Short and batches are small, long and items
	// wait.
	Delay time.Duration
	// BatchItems is how many items make a batch due at once, and the weight at which it is cut if its accumulator can be
	// (List can, Sum and Last are always handed over whole). 0: 10,000. It must be at least 1.
	BatchItems int
	// MaxItems is how many items of all keys may be admitted and not yet handled. 0: 1,000,000. Small and producers are
	// held back by a handler that hiccups; large and a handler that hangs fills the memory.
	MaxItems int
	// OnFull is what Add does at MaxItems. 0: Block.
	OnFull OnFull
	// Workers is how many handlers run at once. 0: 16.
	Workers int
	// Timeout of one handler call: its context is cancelled, with the cause ErrTimeout. The key waits for the handler to
	// return all the same. 0: 1 min.
	Timeout time.Duration
	// Attempts is how often a batch is tried before it is a dead letter, the first included. Items that merge into a
	// batch while it waits for its retry share its count. An attempt that ended because the ledger's store was
	// unavailable (claim.ErrUnavailable) does not count. 0: 5.
	Attempts int
	// Backoff is the wait between attempts, unless the handler's error asks for another. Zero fields: see its type.
	Backoff backoff.Policy
	// IdleAfter is how long a key with nothing to do is remembered: for this to half as long again. 0: 1 min. Short and
	// keys that come back are made anew each time, a few µs; long and they take memory, about 1.1 kB each.
	IdleAfter time.Duration
	// Grace is how long Close, when its context is over, waits for the handlers whose contexts it has cancelled. 0: 1 s.
	Grace time.Duration
	// OnDead is told of each dead letter, on one of the Workers, several at once. It must not wait for the group. A panic
	// in it is logged. nil: log the dead letter.
	OnDead func(DeadLetter)
}

// DeadLetter is what the group gives up.
type DeadLetter struct {
	Group       string
	Key         any       // the K
	Value       any       // the A of the batch; the V of the one item where Merge panicked
	Items       int       // how many items it holds
	First, Last time.Time // their arrivals
	Attempts    int       // handler calls that it had
	Err         error     // of the last; ErrStopped, or a PanicError of the accumulator
}

// Deps are what a group stands on.
type Deps struct {
	Engine *engine.Engine   // runs the keys; must be given
	Ledger *engine.Ref      // where Batch.CommitTx commits; nil: it returns ErrNoLedger
	Logger *slog.Logger     // nil: slog.Default()
	Now    func() time.Time // nil: time.Now
}

// Validate names the first field that is out of range. Zero fields, but for Name, are in range.
func (c Config) Validate() error {
	refuse := func(field string, value any, allowed string) error {
		return fmt.Errorf("%w: group %q: %s is %v, must be %s", ErrConfig, c.Name, field, value, allowed)
	}
	if c.Name == "" {
		return fmt.Errorf("%w: Name is empty, must be given", ErrConfig)
	}
	for _, d := range []struct {
		field string
		value time.Duration
		zero  time.Duration
	}{{"Delay", c.Delay, DefaultDelay}, {"Timeout", c.Timeout, DefaultTimeout}, {"IdleAfter", c.IdleAfter, DefaultIdleAfter}, {"Grace", c.Grace, DefaultGrace}} {
		if d.value < 0 {
			return refuse(d.field, d.value, fmt.Sprintf("positive (0: %v)", d.zero))
		}
	}
	for _, n := range []struct {
		field string
		value int
		zero  int
	}{{"BatchItems", c.BatchItems, DefaultBatchItems}, {"MaxItems", c.MaxItems, DefaultMaxItems}, {"Workers", c.Workers, DefaultWorkers}, {"Attempts", c.Attempts, DefaultAttempts}} {
		if n.value < 0 || n.value > math.MaxInt32 {
			return refuse(n.field, n.value, fmt.Sprintf("1 to %d (0: %d)", math.MaxInt32, n.zero))
		}
	}
	if c.OnFull > Reject {
		return refuse("OnFull", c.OnFull, "Block or Reject")
	}
	if err := c.Backoff.Validate(); err != nil {
		return fmt.Errorf("%w: group %q: %w", ErrConfig, c.Name, err)
	}
	return nil
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults(log *slog.Logger) Config {
	or(&c.Delay, DefaultDelay)
	or(&c.BatchItems, DefaultBatchItems)
	or(&c.MaxItems, DefaultMaxItems)
	or(&c.Workers, DefaultWorkers)
	or(&c.Timeout, DefaultTimeout)
	or(&c.Attempts, DefaultAttempts)
	or(&c.IdleAfter, DefaultIdleAfter)
	or(&c.Grace, DefaultGrace)
	if c.OnDead == nil {
		c.OnDead = func(d DeadLetter) {
			log.Error("keygroup: dead letter", slog.String("group", d.Group), slog.String("key", verdict.Text(d.Key)),
				slog.Int("items", d.Items), slog.Int("attempts", d.Attempts), slog.String("error", d.Err.Error()))
		}
	}
	return c
}

func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
