// Package nodefile reads node.yaml: the triggers and key groups that a node runs without any Go code.
//
// It is strict, since a field that is silently left out is a job that silently does not run: whatever it does not know
// is refused, with the file, the line, the column and what is allowed, and all that is wrong is told at once. What it
// gives has plain types; zero values stand for what the file leaves to the runtime's defaults.
package nodefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 1 << 20

// The words of a file, in the order in which messages list them. The first is what its absence means.
var (
	Misfires = []string{"smart", "ignore", "fire_now", "now_existing", "now_remaining", "next_remaining", "next_existing"}
	Overlaps = []string{"skip", "buffer_all", "allow"}
	Merges   = []string{"sum", "last", "list"}
	Stores   = []string{"memory", "sqlite"}
)

// File is a node.yaml that has nothing wrong.
type File struct {
	Name      string     // the path as it was given
	Namespace string     // "default" unless given
	Owner     string     // in the sense of Declare; "file:" and the file's base name unless given
	Node      *jobs.Node // what exec jobs belong to; who runs the file gives it its id
	Store     Store
	Workers   int // 0: the runtime's default, as everywhere below
	Triggers  []Trigger
	Groups    []Group
}

// Store says where the ledger is.
type Store struct {
	Kind string // one of Stores; always given
	Dir  string // absolute; empty with memory
	Path string // the database in Dir
}

// Trigger is one entry of triggers.
type Trigger struct {
	ID        string
	Schedule  schedule.Schedule
	Misfire   string // one of Misfires
	Threshold time.Duration
	Overlap   string // one of Overlaps
	Limit     int    // of runs that wait (buffer_all) or run at once (allow)
	Timeout   time.Duration
	Attempts  int
	Backoff   qj.Backoff
	Data      []byte
	Job       jobs.Job
	Pos       string // file:line:col, for messages about it
}

// Group is one entry of groups.
type Group struct {
	Name       string
	Merge      string // one of Merges
	Delay      time.Duration
	BatchItems int
	MaxItems   int
	Workers    int
	Timeout    time.Duration
	Attempts   int
	Backoff    qj.Backoff
	Input      Input
	Job        jobs.Job
	Pos        string // file:line:col, for messages about it
}

// Input is where a group's items come from: lines that each hold a JSON object, gzipped or not.
type Input struct {
	Path string // absolute; "-": standard input
	Key  string // the field whose text is the item's key
	// Value is the field whose value is the item. Empty: each line counts 1 under sum, and is itself the item under
	// last and list.
	Value string
}

// Close lets go of what jobs keep between runs.
func (f *File) Close() error {
	var errs []error
	shut := func(j jobs.Job) {
		if c, ok := j.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	for i := range f.Triggers {
		shut(f.Triggers[i].Job)
	}
	for i := range f.Groups {
		shut(f.Groups[i].Job)
	}
	return errors.Join(errs...)
}

// Load reads the file at path. See Parse.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a file's content. The name is for messages; its directory is what relative paths in the file start from,
// and where exec jobs run unless they say otherwise. No other file is looked at, and no
// secret is read.
//
// The error is all that is wrong, joined, each an *Error; errors.Is finds ErrBad, and schedule.ErrBad or
// schedule.ErrCron where a schedule is at fault.
func Parse(name string, data []byte) (*File, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	root, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := newReader(name, filepath.Dir(abs))
	f := r.file(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return f, nil
}
