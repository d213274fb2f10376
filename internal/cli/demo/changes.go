package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
)

// report is how many events may be applied between two lines of progress.
const report = 1000

// mostEvents is how many events a batch holds: so a step of the progress is less than mostEvents and report together,
// also where all events are of one key.
const mostEvents = 4000

// change is one line of the input, with its number.
type change struct {
	added, deleted int64
	line           int64
}

// tally is what changes of one path come to.
type tally struct {
	events, added, deleted int64
	line                   int64 // the last input line that is in it
}

// sum makes a tally of a batch. Lines of a path come in their order, and batches of a key are never two at a time, so the
// last line of a batch tells what is applied.
func sum(batch []change) tally {
	t := tally{events: int64(len(batch))}
	for _, c := range batch {
		t.added += c.added
		t.deleted += c.deleted
		t.line = max(t.line, c.line)
	}
	return t
}

// changes plays act 2: the stream through a key group into the table demo_changes.
func (s *show) changes(ctx context.Context) error {
	in := s.in
	rt, err := s.open(ctx, "demo")
	if err != nil {
		return err
	}
	applied, already, err := s.applied(ctx, in)
	if err != nil {
		return errors.Join(err, rt.Close(ctx))
	}
	p := s.progress(already, in.total.Events)
	group, err := qj.NewList(rt, "changes", qj.GroupConfig{Delay: 20 * time.Millisecond, Workers: 256, MaxItems: 20_000, BatchItems: mostEvents},
		func(ctx context.Context, b *qj.Batch[string, []change]) error {
			t := sum(b.Value)
			err := sqlite.Commit(ctx, b, func(ctx context.Context, tx sqlite.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO demo_changes (path, events, added, deleted, line) VALUES (?, ?, ?, ?, ?)
					ON CONFLICT (path) DO UPDATE SET events = events + excluded.events, added = added + excluded.added,
					deleted = deleted + excluded.deleted, line = excluded.line`,
					b.Key, t.events, t.added, t.deleted, t.line)
				return err
			})
			if err != nil {
				return err
			}
			return p.add(t.events)
		})
	if err != nil {
		return errors.Join(err, rt.Close(ctx))
	}
	for i, e := range in.events {
		if line := int64(i + 1); line > applied[e.Key] {
			if err := group.Add(ctx, e.Key, change{e.Added, e.Deleted, line}); err != nil {
				return errors.Join(err, rt.Close(ctx))
			}
		}
	}
	left, err := group.Close(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %d keys were not handed over", ErrWrong, len(left))
	}
	if err := errors.Join(err, p.end(), rt.Close(ctx)); err != nil {
		return err
	}
	s.sum.Batches = p.batches
	if p.batches > 0 {
		s.sum.MeanBatch = float64(p.done-already) / float64(p.batches)
	}
	return s.compare(ctx, in)
}

// applied reads from the table which line of each path is applied, and makes sure that they are lines of this input.
func (s *show) applied(ctx context.Context, in *input) (lines map[string]int64, events int64, err error) {
	lines = map[string]int64{}
	err = s.store.Update(ctx, func(ctx context.Context, tx sqlite.Tx) error {
		kept, err := meta(ctx, tx, "input", in.fingerprint)
		if err != nil {
			return err
		}
		if kept != in.fingerprint {
			return fmt.Errorf("%w: %s holds lines of another input: give each input a directory of its own", ErrInput, s.Dir)
		}
		return each(ctx, tx, `SELECT path, events, line FROM demo_changes`, func(rows *sql.Rows) error {
			var path string
			var n, line int64
			if err := rows.Scan(&path, &n, &line); err != nil {
				return err
			}
			lines[path] = line
			events += n
			return nil
		})
	})
	return lines, events, err
}

// compare reads the table back and holds it against the straight count, path by path.
func (s *show) compare(ctx context.Context, in *input) error {
	var got count
	var keys int64
	var wrong error
	rt, err := s.open(ctx, "demo")
	if err != nil {
		return err
	}
	err = s.store.View(ctx, func(ctx context.Context, tx sqlite.Tx) error {
		return each(ctx, tx, `SELECT path, events, added, deleted FROM demo_changes`, func(rows *sql.Rows) error {
			var path string
			var c count
			if err := rows.Scan(&path, &c.Events, &c.Added, &c.Deleted); err != nil {
				return err
			}
			keys++
			got = count{got.Events + c.Events, got.Added + c.Added, got.Deleted + c.Deleted}
			if want := in.paths[path]; c != want && wrong == nil {
				wrong = fmt.Errorf("%w: the table has %+v for %q, a straight count of the input %+v", ErrWrong, c, path, want)
			}
			return nil
		})
	})
	if err := errors.Join(err, rt.Close(ctx)); err != nil {
		return err
	}
	s.sum.Events, s.sum.Keys, s.sum.Added, s.sum.Deleted = got.Events, keys, got.Added, got.Deleted
	row := func(who string, c count, keys int64) []string {
		return []string{who, fmt.Sprint(c.Events), fmt.Sprint(keys), fmt.Sprint(c.Added), fmt.Sprint(c.Deleted)}
	}
	s.table([][]string{{"", "events", "keys", "added", "deleted"}, row("table demo_changes", got, keys), row("straight count", in.total, int64(len(in.paths)))})
	s.say("\n  %d batches in this run, %.1f events in each\n", s.sum.Batches, s.sum.MeanBatch)
	if wrong == nil && (got != in.total || keys != int64(len(in.paths))) {
		wrong = fmt.Errorf("%w: the table has %+v of %d keys, a straight count of the input %+v of %d", ErrWrong, got, keys, in.total, len(in.paths))
	}
	return wrong
}

func each(ctx context.Context, tx sqlite.Tx, query string, fn func(*sql.Rows) error) (err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// progress tells how many events are applied: as a bar on a terminal, as lines elsewhere.
type progress struct {
	s       *show
	total   int64
	mu      sync.Mutex
	bar     *progressbar.ProgressBar
	done    int64
	said    int64
	batches int64
}

func (s *show) progress(done, total int64) *progress {
	p := &progress{s: s, total: total, done: done, said: done}
	if s.Bar && !s.JSON {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(s.Err), progressbar.OptionSetDescription("  applied"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(40))
	}
	return p
}

// add counts the events of a batch that is committed.
func (p *progress) add(events int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += events
	p.batches++
	if p.done-p.said < report {
		return nil
	}
	return p.tell()
}

func (p *progress) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		return p.bar.Finish()
	}
	return p.tell()
}

func (p *progress) tell() error {
	said := p.said
	p.said = p.done
	switch {
	case p.s.JSON:
		return p.s.line(struct {
			Act     string `json:"act"`
			Applied int64  `json:"applied"`
		}{"changes", p.done})
	case p.bar != nil:
		return p.bar.Set64(p.done)
	case p.done == p.total || p.done/20_000 != said/20_000:
		p.s.say("  %d of %d events applied\n", p.done, p.total)
	}
	return nil
}
