// Package cli is the program quarterjack.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // zones are known wherever the program runs

	"github.com/spf13/cobra"

	qj "github.com/quarterjack/quarterjack"
)

// Exit codes of the program.
const (
	ExitOK       = 0
	ExitFailed   = 1 // the work failed, or its result is wrong
	ExitUsage    = 2 // the command line, a file or its content is not what is allowed
	ExitStore    = 3 // the store is locked, corrupt, of a newer version or unavailable
	ExitUnclosed = 4 // a signal stopped it and not everything could be handed over in time
)

// errUsage marks errors of the command line.
var errUsage = errors.New("usage")

// program is one call of the program.
type program struct {
	in       io.Reader
	out, err io.Writer
	level    string
	jsonLog  bool
	log      *slog.Logger
}

// patience is how long signals after the first are taken for the same one: some senders signal a process and its group.
const patience = time.Second

// Main runs the program and returns its exit code. SIGINT and SIGTERM end it gracefully; another one, a second later or
// more, ends it at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(patience, stop) }) // the next signal has its default effect then
	return run(ctx, args, in, out, errOut)
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{in: in, out: out, err: errOut}
	root := p.root()
	root.InitDefaultHelpCmd()
	args = dashes(args)
	root.SetArgs(args)
	_, _, err := root.Find(args)
	if err != nil {
		err = fmt.Errorf("%w: %w", errUsage, err) // no such command
	} else {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "quarterjack: %v\n", err) // there is nowhere else to say it
	}
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errUnclosed):
		return ExitUnclosed
	case errors.Is(err, errUsage), errors.Is(err, qj.ErrConfig):
		return ExitUsage
	case errors.Is(err, qj.ErrLocked), errors.Is(err, qj.ErrCorrupt), errors.Is(err, qj.ErrNewer), errors.Is(err, qj.ErrUnavailable):
		return ExitStore
	}
	return ExitFailed
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "quarterjack",
		Short: "Work at a time, by key, once",
		Long: `Quarterjack fires triggers at their time, merges items by key and does each piece of work once.

Exit codes: 0 done; 1 failed, or a result is wrong; 2 bad command line or file; 3 the store is locked, corrupt, of a
newer version or unavailable; 4 stopped by a signal before everything could be handed over.

Flags may be written with one dash or two.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.makeLogger(cmd) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.PersistentFlags().StringVar(&p.level, "log", "", "what is logged to standard error: debug, info, warn or error (default: info of run, else warn)")
	root.AddCommand(p.runCommand(), p.demoCommand(), p.dieCommand(), p.historyCommand(), p.versionCommand())
	return root
}

func (p *program) makeLogger(cmd *cobra.Command) error {
	level := slog.LevelWarn
	if cmd.Name() == "run" {
		level = slog.LevelInfo
	}
	if p.level != "" {
		if err := level.UnmarshalText([]byte(p.level)); err != nil {
			return fmt.Errorf("%w: -log is %q: want debug, info, warn or error", errUsage, p.level)
		}
	}
	o := &slog.HandlerOptions{Level: level}
	p.log = slog.New(slog.NewTextHandler(p.err, o))
	if p.jsonLog {
		p.log = slog.New(slog.NewJSONHandler(p.err, o))
	}
	return nil
}

// noArgs refuses arguments behind the flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: %s takes no argument, got %q", errUsage, cmd.Name(), args)
	}
	return nil
}

// dashes writes -name as --name: the flag library knows one dash only before single letters, of which this program has
// none but -h, and people write both.
func dashes(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			out[i] = "-" + a
		}
	}
	return out
}
