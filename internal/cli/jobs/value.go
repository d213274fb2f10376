package jobs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// MaxSecret is the longest secret that is taken, in bytes.
const MaxSecret = 16 << 10

// ErrSecret says that a secret could not be had. The message names the field and where it was looked for.
var ErrSecret = errors.New("no secret")

// Value is a text for a job: as it stands, or a secret that is read from a variable of the node's own environment or
// from a file, each time it is used. At most one field is set; the zero Value is the empty text.
type Value struct {
	Literal string
	Env     string // the name of a variable
	File    string // a path; one line break at the end of the file is cut
}

// Secret says whether the text must not be shown.
func (v Value) Secret() bool { return v.Env != "" || v.File != "" }

// String shows where a secret comes from, never what it is.
func (v Value) String() string {
	switch {
	case v.Env != "":
		return "{env: " + v.Env + "}"
	case v.File != "":
		return "{file: " + v.File + "}"
	}
	return v.Literal
}

// GoString shows no more than String does.
func (v Value) GoString() string { return v.String() }

// read gives the text. The error is ErrSecret with the field that asked for it.
func (v Value) read(field string) (string, error) {
	switch {
	case v.Env != "":
		text := os.Getenv(v.Env)
		if text == "" {
			return "", fmt.Errorf("%w: %s: the node's environment has no %s, or it is empty", ErrSecret, field, v.Env)
		}
		return text, v.fits(field, len(text))
	case v.File != "":
		return v.readFile(field)
	}
	return v.Literal, nil
}

func (v Value) readFile(field string) (string, error) {
	no := func(err error) (string, error) { return "", fmt.Errorf("%w: %s: %w", ErrSecret, field, err) }
	// Opening a pipe would wait for whoever writes to it.
	info, err := os.Stat(v.File)
	if err != nil {
		return no(err)
	}
	if !info.Mode().IsRegular() {
		return no(fmt.Errorf("%s is not a regular file", v.File))
	}
	f, err := os.Open(v.File)
	if err != nil {
		return no(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxSecret+2)) // the line break does not count
	if err != nil {
		return no(err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if text == "" {
		return no(fmt.Errorf("%s is empty", v.File))
	}
	return text, v.fits(field, len(text))
}

func (v Value) fits(field string, n int) error {
	if n > MaxSecret {
		return fmt.Errorf("%w: %s: %s is longer than %d bytes", ErrSecret, field, v, MaxSecret)
	}
	return nil
}

// check says what is wrong with the value's form.
func (v Value) check(field string) error {
	given := 0
	for _, s := range []string{v.Literal, v.Env, v.File} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return &FieldError{field, "more than one of a text, env and file", "want one of them"}
	case strings.ContainsAny(v.Env, "=\x00"):
		return &FieldError{field + ".env", Quote(v.Env), "want the name of an environment variable"}
	case strings.ContainsRune(v.File, 0):
		return &FieldError{field + ".file", Quote(v.File), "want a path"}
	}
	return nil
}
