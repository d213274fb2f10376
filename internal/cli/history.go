package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
	"github.com/quarterjack/quarterjack/internal/cli/demo"
)

// entry is one line of the history: a key, or a range of slots that were skipped without being keyed.
type entry struct {
	Namespace     string     `json:"namespace"`
	Trigger       string     `json:"trigger"`
	Incarnation   uint32     `json:"incarnation"`
	Version       uint32     `json:"version"`
	Kind          string     `json:"kind"`
	Slot          *time.Time `json:"slot,omitempty"`
	First         *time.Time `json:"first,omitempty"`
	Last          *time.Time `json:"last,omitempty"`
	Count         int64      `json:"count,omitempty"`
	FiredAt       *time.Time `json:"fired_at"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`
	Attempt       uint32     `json:"attempt"`
	Interruptions uint32     `json:"interruptions,omitempty"`
	Fence         uint64     `json:"fence"`
	Verdict       string     `json:"verdict"`
	Reason        string     `json:"reason"`
	Job           string     `json:"job,omitempty"`
	Key           string     `json:"key,omitempty"`
	Output        string     `json:"output,omitempty"`
}

// historyOptions are the flags of history.
type historyOptions struct {
	dir, file, namespace, trigger, verdict string
	json, output                           bool
}

func (p *program) historyCommand() *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "history",
		Short: "List every slot and key with its verdict, also beside a running node",
		Long: `Lists what the ledger in a directory knows: each key (a slot, a run by hand, a free key) with its verdict, and each
stretch of skipped slots as one line with first, last and count. It only reads; SQLite keeps its own -shm and -wal files
beside the store while somebody does.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.history(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.dir, "dir", ".", "directory that holds the store")
	c.Flags().StringVar(&o.file, "file", demo.File, "the store's file in it")
	c.Flags().StringVar(&o.namespace, "namespace", "", "only this namespace")
	c.Flags().StringVar(&o.trigger, "trigger", "", "only this trigger")
	c.Flags().StringVar(&o.verdict, "verdict", "", "only this verdict: done, skipped, dead, pending or claimed")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object a line")
	c.Flags().BoolVar(&o.output, "output", false, "show what handlers left, below each line (always part of -json)")
	return c
}

func (p *program) history(ctx context.Context, o historyOptions) error {
	switch o.verdict {
	case "", "done", "skipped", "dead", "pending", "claimed":
	default:
		return fmt.Errorf("%w: -verdict is %q: want done, skipped, dead, pending or claimed", errUsage, o.verdict)
	}
	r, err := sqlite.OpenReader(filepath.Join(o.dir, o.file))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: -dir: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	var to printer = newTable(p.out, o.output)
	if o.json {
		to = jsonPrinter{json.NewEncoder(p.out)}
	}
	n := 0
	err = merge(ctx, r, claim.Query{Namespace: o.namespace, Trigger: o.trigger}, func(e *entry) error {
		if o.verdict != "" && e.Verdict != o.verdict {
			return nil
		}
		n++
		return to.print(e)
	})
	if n == 0 && err == nil {
		p.log.Warn("nothing of that kind is in the history", "namespace", o.namespace, "trigger", o.trigger, "verdict", o.verdict)
	}
	return errors.Join(err, to.end(), r.Close())
}

// merge gives records and ranges in the order of their instants, without holding them all.
func merge(ctx context.Context, r claim.Reader, q claim.Query, fn func(*entry) error) error {
	records := &feed{read: func(after *claim.Cursor) ([]located, error) {
		q.After = after
		list, err := r.Records(ctx, q)
		return locate(list, claim.Record.Cursor, recordEntry), err
	}}
	ranges := &feed{read: func(after *claim.Cursor) ([]located, error) {
		q.After = after
		list, err := r.Ranges(ctx, q)
		return locate(list, claim.Range.Cursor, rangeEntry), err
	}}
	for {
		a, err := records.peek()
		if err != nil {
			return err
		}
		b, err := ranges.peek()
		if err != nil {
			return err
		}
		var e *entry
		switch {
		case a == nil && b == nil:
			return nil
		case b == nil, a != nil && cmp.Compare(a.at.At.UnixNano(), b.at.At.UnixNano()) <= 0:
			e = records.next()
		default:
			e = ranges.next()
		}
		if err := fn(e); err != nil {
			return err
		}
	}
}

// located is an entry with its place in its listing.
type located struct {
	at    *claim.Cursor
	entry *entry
}

func locate[T any](list []T, cursor func(T) *claim.Cursor, show func(*T) *entry) []located {
	var out []located
	for i := range list {
		out = append(out, located{cursor(list[i]), show(&list[i])})
	}
	return out
}

// feed reads a listing page by page.
type feed struct {
	read func(after *claim.Cursor) ([]located, error)
	page []located
	last *claim.Cursor
	end  bool
}

func (f *feed) peek() (*located, error) {
	if len(f.page) == 0 && !f.end {
		page, err := f.read(f.last)
		if err != nil {
			return nil, err
		}
		f.page, f.end = page, len(page) == 0
	}
	if f.end {
		return nil, nil
	}
	return &f.page[0], nil
}

func (f *feed) next() *entry {
	first := f.page[0]
	f.page, f.last = f.page[1:], first.at
	return first.entry
}

func recordEntry(r *claim.Record) *entry {
	return &entry{Namespace: r.Key.Namespace, Trigger: r.Key.Trigger, Incarnation: r.Key.Incarnation, Version: r.Key.Version,
		Kind: r.Key.Kind.String(), Slot: instant(r.Slot), FiredAt: instant(r.FiredAt), EndedAt: instant(r.EndedAt), Attempt: r.Attempt,
		Interruptions: r.Interruptions, Fence: r.Fence, Verdict: r.State.String(), Reason: r.Reason, Job: r.Job, Key: r.Key.String(),
		Output: text(r.Result)}
}

func rangeEntry(r *claim.Range) *entry {
	return &entry{Namespace: r.Namespace, Trigger: r.Trigger, Incarnation: r.Incarnation, Version: r.Version, Kind: "range",
		First: instant(r.First), Last: instant(r.Last), Count: r.Count, EndedAt: instant(r.At), Verdict: claim.Skipped.String(), Reason: r.Reason}
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text is what a handler left, as people can read it.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}

type printer interface {
	print(e *entry) error
	end() error
}

type jsonPrinter struct{ enc *json.Encoder }

func (p jsonPrinter) print(e *entry) error { return p.enc.Encode(e) }
func (jsonPrinter) end() error             { return nil }

// tablePrinter prints in pages, so that a long history needs no memory.
type tablePrinter struct {
	out    io.Writer
	w      *tabwriter.Writer
	output bool
	n      int
}

func newTable(out io.Writer, output bool) *tablePrinter {
	return &tablePrinter{out: out, w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), output: output}
}

func (p *tablePrinter) print(e *entry) error {
	if p.n%1000 == 0 {
		if err := p.end(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.w, "SLOT (UTC)\tNAMESPACE\tTRIGGER OR KEY\tKIND\tVERDICT\tATTEMPT\tFENCE\tDRIFT\tREASON"); err != nil {
			return err
		}
	}
	p.n++
	const layout = "2006-01-02 15:04:05.000"
	slot, drift, name := "", "", e.Trigger
	attempt, fence := strconv.FormatUint(uint64(e.Attempt), 10), strconv.FormatUint(e.Fence, 10)
	switch {
	case e.First != nil:
		attempt, fence = "-", "-" // never keyed
		slot = e.First.Format(layout) + " to " + e.Last.Format(layout) + fmt.Sprintf(" (%d)", e.Count)
	case e.Slot != nil:
		slot = e.Slot.Format(layout)
		if e.FiredAt != nil {
			drift = e.FiredAt.Sub(*e.Slot).Round(time.Millisecond).String()
		}
	}
	if name == "" {
		name = e.Key
	}
	reason, _, _ := strings.Cut(e.Reason, "\n")
	if _, err := fmt.Fprintf(p.w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", slot, visible(e.Namespace), visible(name), e.Kind, e.Verdict, attempt, fence, drift, visible(reason)); err != nil {
		return err
	}
	if !p.output || e.Output == "" {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSpace(e.Output), "\n") {
		if _, err := fmt.Fprintf(p.out, "    %s\n", visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// visible shows what a terminal would obey, and what cannot be seen, as escapes: \x1b, \u202e.
func visible(s string) string {
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= unicode.MaxLatin1:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func (p *tablePrinter) end() error { return p.w.Flush() }
