package quarterjack

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor" //nolint:depguard // a runtime joins its user's own actor system

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
)

// Defaults. The table in the package comment lists them.
const (
	DefaultNamespace = "default"
	DefaultWorkers   = 16
	DefaultThreshold = time.Minute
	DefaultTimeout   = time.Hour
	DefaultAttempts  = 5
	DefaultBuffered  = 100 // Limit under BufferAll
	DefaultParallel  = 16  // Limit under Allow
	DefaultLease     = 30 * time.Second
)

// MaxID is the longest id of a trigger, job, group, owner or namespace in bytes.
const MaxID = 200

// Config of a runtime. The zero value is usable: it keeps the ledger in memory and logs to slog.Default().
type Config struct {
	// Store keeps the ledger: memory.New, sqlite.New. nil: memory, which forgets everything with the process.
	Store claim.Store
	// Namespace separates runtimes that share a store: neither sees the other's triggers and keys. "": default.
	Namespace string
	// Logger is told of what people should know. nil: slog.Default().
	Logger *slog.Logger
	// Workers is how many handlers of triggers and Submit run at once. 0: 16. Small and slots wait for a free one;
	// large and whatever they all call is called by so many at once.
	Workers int
	// System is joined when given: the runtime's actors live in it, and Close leaves it running. nil: the runtime
	// makes its own.
	System *actor.ActorSystem
}

func (c Config) withDefaults() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if err := checkID("Namespace", c.Namespace); err != nil {
		return c, err
	}
	if c.Workers < 0 {
		return c, fmt.Errorf("%w: Workers is %d: want at least 1 (0: %d)", ErrConfig, c.Workers, DefaultWorkers)
	}
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	if c.Store == nil {
		c.Store = memory.New()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// shards is how many timers the clock may arm at once.
func shards() int { return min(runtime.GOMAXPROCS(0), 8) }

// checkID says what is wrong with a name that becomes part of keys.
func checkID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: %s is empty: want 1 to %d bytes", ErrConfig, field, MaxID)
	case len(id) > MaxID:
		return fmt.Errorf("%w: %s has %d bytes: want 1 to %d", ErrConfig, field, len(id), MaxID)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w: %s is %q: want UTF-8 without control characters", ErrConfig, field, id)
	}
	return nil
}
