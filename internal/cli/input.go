package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/internal/cli/nodefile"
)

// maxLine is the longest line of a group's input, in bytes.
const maxLine = 1 << 20

// input feeds one group of a file.
type input struct {
	*program
	group *nodefile.Group
	add   func(ctx context.Context, key string, value json.RawMessage) error
}

// groups makes the file's groups and gives what feeds them.
func (n *node) groups() ([]*input, error) {
	var all []*input
	for i := range n.file.Groups {
		g := &n.file.Groups[i]
		add, err := n.group(g)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Pos, err)
		}
		all = append(all, &input{program: n.program, group: g, add: add})
	}
	return all, nil
}

func (n *node) group(g *nodefile.Group) (func(context.Context, string, json.RawMessage) error, error) {
	cfg := qj.GroupConfig{Delay: g.Delay, BatchItems: g.BatchItems, MaxItems: g.MaxItems, Workers: g.Workers, Timeout: g.Timeout,
		Attempts: g.Attempts, Backoff: g.Backoff, OnDead: n.buried}
	switch g.Merge {
	case "sum":
		sum, err := qj.NewSum(n.rt, g.Name, cfg, func(ctx context.Context, b *qj.Batch[string, int64]) error {
			return deliver(ctx, n, g, b)
		})
		return func(ctx context.Context, key string, value json.RawMessage) error {
			v := int64(1)
			if g.Input.Value != "" {
				if err := json.Unmarshal(value, &v); err != nil || string(value) == "null" {
					return fmt.Errorf("%w: field %q is %.40s: sum takes whole numbers of 64 bits", errLine, g.Input.Value, value)
				}
			}
			return sum.Add(ctx, key, v)
		}, err
	case "last":
		last, err := qj.NewLast(n.rt, g.Name, cfg, func(ctx context.Context, b *qj.Batch[string, json.RawMessage]) error {
			return deliver(ctx, n, g, b)
		})
		return func(ctx context.Context, key string, value json.RawMessage) error { return last.Add(ctx, key, value) }, err
	default:
		list, err := qj.NewList(n.rt, g.Name, cfg, func(ctx context.Context, b *qj.Batch[string, []json.RawMessage]) error {
			return deliver(ctx, n, g, b)
		})
		return func(ctx context.Context, key string, value json.RawMessage) error { return list.Add(ctx, key, value) }, err
	}
}

// errLine marks a line that is no item. It is logged, and the next one is read.
var errLine = errors.New("bad line")

// read feeds the group with the lines of its input, until they or ctx end.
func (in *input) read(ctx context.Context) error {
	src, done, err := in.open(ctx)
	if err != nil {
		return fmt.Errorf("%s: input: %w", in.group.Pos, err)
	}
	defer done()
	lines := bufio.NewReaderSize(src, maxLine)
	for n, bad := 1, 0; ctx.Err() == nil; n++ {
		line, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			in.log.Info("the input has ended", "group", in.group.Name, "lines", n-1, "left_out", bad)
			return nil
		}
		if err == nil && len(bytes.TrimSpace(line)) > 0 {
			err = in.line(ctx, line)
		}
		switch {
		case errors.Is(err, errLine):
			if bad++; bad <= 10 {
				in.log.Error("a line of the input is left out", "group", in.group.Name, "line", n, "error", err)
			}
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("group %q: %s: line %d: %w", in.group.Name, in.group.Input.Path, n, err)
		}
	}
	return nil
}

// nextLine gives a line of at most the reader's size, with its line break, valid until the next call; io.EOF when there
// is none. A longer one is passed over and is errLine.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case long:
		return nil, fmt.Errorf("%w: longer than %d bytes", errLine, r.Size())
	case err != nil && len(line) == 0:
		return nil, io.EOF
	}
	return line, nil
}

func (in *input) line(ctx context.Context, line []byte) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(line, &fields); err != nil {
		return fmt.Errorf("%w: %.80q: want a JSON object: %w", errLine, line, err)
	}
	raw, ok := fields[in.group.Input.Key]
	if !ok {
		return fmt.Errorf("%w: %.80q: no field %q, which is the key", errLine, line, in.group.Input.Key)
	}
	key, ok := keyOf(raw)
	if !ok {
		return fmt.Errorf("%w: field %q is %.40s: a key is a text that is not empty, or a number", errLine, in.group.Input.Key, raw)
	}
	f := in.group.Input.Value
	if f == "" {
		return in.add(ctx, key, bytes.Clone(bytes.TrimSpace(line)))
	}
	value, ok := fields[f]
	if !ok {
		return fmt.Errorf("%w: %.80q: no field %q, which is the value", errLine, line, f)
	}
	return in.add(ctx, key, value)
}

// keyOf reads a key. A number names one as it is written.
func keyOf(raw json.RawMessage) (key string, ok bool) {
	switch {
	case raw[0] == '"':
		ok = json.Unmarshal(raw, &key) == nil && key != ""
		return key, ok
	case raw[0] == '-', '0' <= raw[0] && raw[0] <= '9':
		return string(raw), true
	}
	return "", false
}

// open opens the input; a FIFO or standard input that blocks is closed under the reader when ctx ends.
func (in *input) open(ctx context.Context) (io.Reader, func(), error) {
	var src io.ReadCloser
	if in.group.Input.Path == "-" {
		src = io.NopCloser(in.in)
		if c, ok := in.in.(io.ReadCloser); ok {
			src = c
		}
	} else {
		f, err := os.Open(in.group.Input.Path)
		if err != nil {
			return nil, nil, err
		}
		src = f
	}
	stop := context.AfterFunc(ctx, func() { _ = src.Close() }) // it ends the read that is under way
	done := func() {
		if stop() {
			_ = src.Close() // it was only read
		}
	}
	r := bufio.NewReader(src)
	if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return z, done, nil
	}
	return r, done, nil
}
