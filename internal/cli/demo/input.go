package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quarterjack/quarterjack/testdata"
)

// maxLine is the longest line of input in bytes.
const maxLine = 1 << 20

// ErrInput says that a line of the input is not of the form that the demo reads.
var ErrInput = errors.New("bad input")

// event is one line of the input.
type event struct {
	Key            string
	Added, Deleted int64
}

// count is what a plain loop over the input comes to.
type count struct {
	Events, Added, Deleted int64
}

// input is the whole stream and its straight count, by path and in all.
type input struct {
	events      []event
	paths       map[string]count
	total       count
	fingerprint string
}

// read reads a file of NDJSON, gzip or not, or the stream that is built in.
func read(path string) (*input, error) {
	var src io.Reader = bytes.NewReader(testdata.Changes)
	name := "the built-in stream"
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		src, name = f, path
	}
	in, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

func parse(src io.Reader) (*input, error) {
	r := bufio.NewReader(src)
	if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%w: gzip: %w", ErrInput, err)
		}
		r = bufio.NewReader(z)
	}
	in := &input{paths: map[string]count{}}
	sum := sha256.New()
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		sum.Write(sc.Bytes())
		sum.Write([]byte{'\n'})
		e, err := parseLine(sc.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrInput, n, err)
		}
		in.events = append(in.events, e)
		c := in.paths[e.Key]
		c.Events++
		c.Added += e.Added
		c.Deleted += e.Deleted
		in.paths[e.Key] = c
		in.total.Events++
		in.total.Added += e.Added
		in.total.Deleted += e.Deleted
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrInput, len(in.events)+1, err)
	}
	in.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return in, nil
}

// parseLine reads {"ts":…,"key":"path","added":n,"deleted":n}.
func parseLine(line []byte) (event, error) {
	var v struct {
		Key            *string `json:"key"`
		Added, Deleted *int64
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return event{}, fmt.Errorf("%.80q: %w", line, err)
	}
	if v.Key == nil || *v.Key == "" || v.Added == nil || v.Deleted == nil {
		return event{}, fmt.Errorf("%.80q: want an object with key, added and deleted", line)
	}
	return event{*v.Key, *v.Added, *v.Deleted}, nil
}
