package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

// What an exec job does unless told otherwise.
const (
	DefaultPath       = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	DefaultGrace      = 10 * time.Second
	DefaultRetryAfter = time.Second
)

// pipeWait is how long Do waits for output from a process that has left the command's group and still holds its
// output open.
const pipeWait = 2 * time.Second

// ExecConfig says what an [Exec] runs.
type ExecConfig struct {
	Argv []string // the program and its arguments; no shell sees them

	// Env is the whole environment, but for PATH (DefaultPath unless given) and the run's own variables: QJ_SLOT
	// (RFC 3339, absent without a slot), QJ_KEY, QJ_FENCE, QJ_ATTEMPT and QJ_NODE; for a group's batch QJ_GROUP,
	// QJ_GROUP_KEY, QJ_ATTEMPT and QJ_NODE. Names with QJ_ are refused.
	Env map[string]Value

	Dir   string        // the working directory; empty: that of the node
	Grace time.Duration // between SIGTERM and SIGKILL; 0: DefaultGrace

	RetryCodes []int         // exit codes that mean: run again after RetryAfter
	RetryAfter time.Duration // 0: DefaultRetryAfter
	DropCodes  []int         // exit codes that mean: never again; other codes but 0 follow the policy

	// Node keeps the program while it runs, and gives QJ_NODE once it has an id; without one SweepOrphans cannot find
	// what a killed node left. nil: a node of the job's own, without an id.
	Node *Node
}

// Exec runs a program in a process group of its own. See NewExec.
type Exec struct {
	c     ExecConfig
	await func(pid int) error // awaitExit
}

// NewExec makes a job that runs a program: Data on standard input, the end of standard output and standard error
// together as output. Exit code 0 is done.
//
// When the context ends the whole group gets SIGTERM, and SIGKILL once Grace is over. When the program has ended, by
// itself or so, what is left of its group is killed: nothing of it runs when Do returns. A process that leaves the
// group (setsid) is on its own, until the node starts again: see SweepOrphans.
//
// What is wrong with the configuration is answered as *FieldError, all of it joined; a system without process groups
// as errors.ErrUnsupported.
func NewExec(c ExecConfig) (*Exec, error) {
	if !canExec {
		return nil, errNoExec
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = DefaultRetryAfter
	}
	if c.Node == nil {
		c.Node = new(Node)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Exec{c, awaitExit}, nil
}

func (c *ExecConfig) check() error {
	var errs []error
	bad := func(field, given, allowed string) { errs = append(errs, &FieldError{field, given, allowed}) }
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		bad("argv", "no program", "want the program and its arguments")
	}
	for i, a := range c.Argv {
		if strings.ContainsRune(a, 0) {
			bad(fmt.Sprintf("argv[%d]", i), Quote(a), "want a text without NUL")
		}
	}
	for _, name := range sortedKeys(c.Env) {
		field := "env." + name
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			bad(field, Quote(name), "want the name of an environment variable")
		case strings.HasPrefix(name, "QJ_"):
			bad(field, Quote(name), "names with QJ_ are the node's own")
		case strings.ContainsRune(c.Env[name].Literal, 0):
			bad(field, "a text with NUL", "want a text without NUL")
		}
		if err := c.Env[name].check(field); err != nil {
			errs = append(errs, err)
		}
	}
	if c.Grace < 0 {
		bad("grace", c.Grace.String(), "want 0 or more")
	}
	if c.RetryAfter < 0 {
		bad("retry_after", c.RetryAfter.String(), "want 0 or more")
	}
	for field, codes := range map[string][]int{"retry_codes": c.RetryCodes, "drop_codes": c.DropCodes} {
		for i, code := range codes {
			if code < 1 || code > 255 {
				bad(fmt.Sprintf("%s[%d]", field, i), strconv.Itoa(code), "want an exit code from 1 to 255")
			}
		}
	}
	for i, code := range c.DropCodes {
		if slices.Contains(c.RetryCodes, code) {
			bad(fmt.Sprintf("drop_codes[%d]", i), strconv.Itoa(code), "want a code that is not in retry_codes")
		}
	}
	return errors.Join(errs...)
}

// String names the program and how many arguments it gets, since people put secrets into arguments.
func (e *Exec) String() string {
	if n := len(e.c.Argv) - 1; n > 0 {
		return fmt.Sprintf("exec %s with %d arguments", e.c.Argv[0], n)
	}
	return "exec " + e.c.Argv[0]
}

// Do runs the program once. The error of a run that ctx ended is ctx's cause, whatever the exit code.
func (e *Exec) Do(ctx context.Context, w Work) ([]byte, error) {
	program := e.c.Argv[0]
	if ctx.Err() != nil {
		return nil, fmt.Errorf("exec %s: not started: %w", program, context.Cause(ctx))
	}
	env, hide, err := e.environ(w)
	if err != nil {
		return nil, fmt.Errorf("exec %s: %w", program, err)
	}
	path, err := lookPath(program, env[0])
	if err != nil {
		return nil, fmt.Errorf("exec %s: %w", program, err)
	}
	out := newTail(hide)
	cmd := &exec.Cmd{
		Path: path, Args: e.c.Argv, Env: env, Dir: e.c.Dir,
		Stdout: out, Stderr: out, WaitDelay: pipeWait,
	}
	if len(w.Data) > 0 {
		cmd.Stdin = bytes.NewReader(w.Data)
	}
	err = e.verdict(ctx, runGroup(ctx, e.c.Node, cmd, e.c.Grace, e.await))
	return out.bytes(), err
}

// verdict turns what became of the program into what becomes of the run.
func (e *Exec) verdict(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil // ErrWaitDelay: exit code 0, but somebody else holds the output
	}
	named := fmt.Errorf("exec %s: %w", e.c.Argv[0], err)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (stopped: %w)", named, context.Cause(ctx))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch code := exit.ExitCode(); {
		case slices.Contains(e.c.RetryCodes, code):
			return qj.Retry(e.c.RetryAfter, named)
		case slices.Contains(e.c.DropCodes, code):
			return qj.Drop(named)
		}
	}
	return named
}

// environ makes the program's environment, PATH first, and lists the secrets in it.
func (e *Exec) environ(w Work) (env, hide []string, err error) {
	if strings.ContainsRune(w.Key, 0) {
		return nil, nil, qj.Drop(fmt.Errorf("the key %s holds NUL, which no environment variable can", Quote(w.Key)))
	}
	env = append(env, "PATH="+DefaultPath)
	for _, name := range sortedKeys(e.c.Env) {
		v := e.c.Env[name]
		text, err := v.read("env." + name)
		if err != nil {
			return nil, nil, err
		}
		if strings.ContainsRune(text, 0) {
			return nil, nil, fmt.Errorf("env.%s: %v holds NUL, which no environment variable can", name, v)
		}
		if v.Secret() {
			hide = append(hide, text)
		}
		if name == "PATH" {
			env[0] = "PATH=" + text
			continue
		}
		env = append(env, name+"="+text)
	}
	env = append(env, runVars(w)...)
	if id := e.c.Node.ID(); id != "" {
		env = append(env, nodeVar+"="+id)
	}
	return env, hide, nil
}

// runVars tells what the run is. A batch has no key by which its attempts could be told from others: items may join
// it between two of them.
func runVars(w Work) []string {
	attempt := "QJ_ATTEMPT=" + strconv.Itoa(w.Attempt)
	if w.Group != "" {
		return []string{"QJ_GROUP=" + w.Group, "QJ_GROUP_KEY=" + w.Key, attempt}
	}
	vars := []string{"QJ_KEY=" + w.Key, "QJ_FENCE=" + strconv.FormatUint(w.Fence, 10), attempt}
	if !w.Slot.IsZero() {
		vars = append(vars, "QJ_SLOT="+w.Slot.UTC().Format(time.RFC3339Nano))
	}
	return vars
}

// lookPath finds a program as a shell with the job's PATH would. A name with a slash is taken as it is: relative to
// the job's directory.
func lookPath(program, pathVar string) (string, error) {
	if strings.ContainsRune(program, '/') {
		return program, nil
	}
	path := strings.TrimPrefix(pathVar, "PATH=")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, program)
		if !filepath.IsAbs(file) {
			continue // it would depend on where the node was started
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w in the job's PATH, %s", fs.ErrNotExist, path)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
