package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// Modes of what is made.
const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// who is a process, as the lock file and the table of sessions name it.
type who struct {
	pid           int
	host, program string
	since         time.Time
}

func self(now time.Time) who {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return who{os.Getpid(), host, filepath.Base(os.Args[0]), now.UTC().Truncate(time.Second)}
}

func (w who) String() string {
	return fmt.Sprintf("process %d (%s) on %s, since %s", w.pid, w.program, w.host, w.since.Format(time.RFC3339))
}

// lock takes the lock file of a database, and writes into it who has it. The file stays when it is unlocked: only the
// lock counts, which ends with the process.
func lock(db string, me who) (*flock.Flock, error) {
	l := flock.New(db+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("%w: lock file: %w", claim.ErrUnavailable, err)
	}
	if !got {
		return nil, fmt.Errorf("%w: %s: %s", claim.ErrLocked, db, holder(l.Path()))
	}
	_ = os.WriteFile(l.Path(), []byte(me.String()+"\n"), fileMode) // a courtesy: the lock holds without it
	return l, nil
}

// holder reads who has the lock. It is a courtesy: where it cannot be read, it is not known.
func holder(path string) string {
	b, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return text
	}
	return "by whom is not known"
}

// place makes the directory of path and gives the path by which every process knows the file: absolute, and without
// symbolic links.
func place(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w: Path is empty, must name a file", claim.ErrUnavailable)
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(abs), dirMode)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		return target, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// create makes the database's file where there is none, so that SQLite finds it with our mode, and gives its own files
// the same. A file that is there is not touched: opening and closing it would end SQLite's locks on it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", claim.ErrUnavailable, err)
	}
	return nil
}
