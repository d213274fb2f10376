// Package demo is the program's demo: the runtime's main job on the embedded store, in four acts.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
)

// File is the name of the store in the demo's directory.
const File = "quarterjack.db"

// ErrWrong says that what the demo read back is not what it should be.
var ErrWrong = errors.New("the demo's result is wrong")

// Options of the demo.
type Options struct {
	Dir   string // where its store is; empty: a fresh temporary directory, which it names
	Input string // NDJSON, gzip or not; empty: the stream that is built in
	JSON  bool   // one JSON object a line instead of tables
	Out   io.Writer
	Err   io.Writer // the progress bar
	Bar   bool      // Err is a terminal
	Log   *slog.Logger
	// Die makes the command that claims a key in the demo's store and dies by SIGKILL in its handler.
	Die func(ctx context.Context, dir, namespace, key string) error
}

// summary is the demo's last line.
type summary struct {
	Dir         string  `json:"dir"`
	Run         int     `json:"run"`
	Events      int64   `json:"events"`
	Keys        int64   `json:"keys"`
	Batches     int64   `json:"batches"`
	MeanBatch   float64 `json:"mean_batch"`
	Added       int64   `json:"added"`
	Deleted     int64   `json:"deleted"`
	Executed    int     `json:"executed_once"`
	Suppressed  int     `json:"suppressed"`
	Fence       uint64  `json:"fence_after_crash"`
	ElapsedSecs float64 `json:"seconds"`
}

// show is what the acts share.
type show struct {
	Options
	in        *input
	store     *sqlite.Store
	namespace string // of acts 1, 3 and 4: each run of the directory has its own
	sum       summary

	mu sync.Mutex // Out
}

// Run plays the four acts. Its error is ErrWrong where a sum or a count is not what it should be.
func Run(ctx context.Context, o Options) error {
	begun := time.Now()
	in, err := read(o.Input) // before anything is shown: a bad line is said at once
	if err != nil {
		return err
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "quarterjack-demo-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	s := &show{Options: o, store: store(o), in: in}
	s.sum.Dir = o.Dir
	s.say("Everything is kept in %s\n", filepath.Join(o.Dir, File))
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for i, act := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"Drift: what 80 ms of work do to a fixed rate and to a fixed delay, and 300 ms to a rate of 100 ms", s.drift},
		{"Changes: a real event stream, merged by key, each batch and its sums in one transaction", s.changes},
		{"Downtime: missed slots under each misfire instruction of Quartz's simple triggers", s.downtime},
		{"Once: the same key again, and a process that dies in its handler", s.once},
	} {
		s.say("\nAct %d. %s\n\n", i+1, act.title)
		if err := act.play(ctx); err != nil {
			return fmt.Errorf("act %d: %w", i+1, err)
		}
	}
	s.sum.ElapsedSecs = time.Since(begun).Round(10 * time.Millisecond).Seconds()
	s.say("\n%d events of %d keys applied once each, +%d -%d lines; %d of 5 calls executed, %d suppressed. %.1f s.\n",
		s.sum.Events, s.sum.Keys, s.sum.Added, s.sum.Deleted, s.sum.Executed, s.sum.Suppressed, s.sum.ElapsedSecs)
	s.say("Look at every slot and key:  quarterjack history -dir %s\n", o.Dir)
	return s.line(s.sum)
}

// open opens a runtime on the demo's store.
func (s *show) open(ctx context.Context, namespace string) (*qj.Runtime, error) {
	return qj.Open(ctx, qj.Config{Store: s.store, Namespace: namespace, Logger: s.Log, Workers: 64})
}

// with does something with a runtime on the demo's store, and closes it whatever comes of that.
func (s *show) with(ctx context.Context, namespace string, do func(*qj.Runtime) error) error {
	rt, err := s.open(ctx, namespace)
	if err != nil {
		return err
	}
	return errors.Join(do(rt), rt.Close(ctx))
}

// say prints for people.
func (s *show) say(format string, args ...any) {
	if s.JSON {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.Out, format, args...) // a closed pipe ends the demo at its next line of JSON, or not at all
}

// line prints one JSON object for machines.
func (s *show) line(v any) error {
	if !s.JSON {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.Out.Write(append(b, '\n'))
	return err
}

// table prints rows for people; the first is the heading.
func (s *show) table(rows [][]string) {
	if s.JSON {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for _, cell := range row {
			_, _ = fmt.Fprintf(w, "  %s\t", cell)
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
}

// pause waits, or returns when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
