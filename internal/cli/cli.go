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
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // zones are known wherever the program runs

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/internal/cli/demo"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

// Exit codes of the program.
const (
	ExitOK       = 0
	ExitFailed   = 1 // the work failed, or its result is wrong
	ExitUsage    = 2 // the command line, a file or its content is not what is allowed
	ExitStore    = 3 // the store is locked, corrupt, of a newer version or unavailable
	ExitUnclosed = 4 // a signal stopped it and not everything could be handed over in time
)

// What an error says besides its text.
var (
	errUsage    = errors.New("usage")                                          // the command line is wrong
	errUnclosed = errors.New("stopped before everything could be handed over") // by a signal
	errEarly    = errors.New("stopped before anything ran")                    // by a signal
)

// program is one call of the program.
type program struct {
	in       io.Reader
	out, err io.Writer
	level    string
	jsonLog  bool
	log      *slog.Logger
	jobs     atomic.Pointer[jobs.Node] // what programs of exec jobs belong to; nil before there are any
}

// patience is how long signals after the first are taken for the same one: some senders signal a process and its group.
const patience = time.Second

// Main runs the program and returns its exit code. SIGINT and SIGTERM end it gracefully. Another one, a second later or
// more, ends it at once: the programs of exec jobs are killed, and the code is ExitUnclosed. Whoever calls Main ends the
// process with what it returns.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p := &program{in: in, out: out, err: errOut}
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, args) }()
	var first time.Time
	for {
		select {
		case c := <-code:
			return c
		case <-signals:
			if first.IsZero() {
				first = time.Now()
				stop()
			} else if time.Since(first) >= patience {
				p.abort()
				return ExitUnclosed
			}
		}
	}
}

// abort ends what runs in other processes.
func (p *program) abort() {
	killed := 0
	if n := p.jobs.Load(); n != nil {
		killed = n.Kill()
	}
	p.complain(fmt.Errorf("%w: at a second signal, with %d programs killed", errUnclosed, killed))
}

func (p *program) complain(err error) {
	_, _ = fmt.Fprintf(p.err, "quarterjack: %v\n", err) // there is nowhere else to say it
}

// run runs the program until its work is done or ctx ends, which is what a signal does, and returns its exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	args = dashes(root, args)
	root.SetArgs(args)
	_, _, err := root.Find(args)
	if err != nil {
		err = fmt.Errorf("%w: %w", errUsage, err) // no such command
	} else {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		p.complain(err)
	}
	return exitCode(err, ctx.Err() != nil)
}

// exitCode is what an error comes to. Once a signal has come, contexts that end and a store that gives up are its
// doing.
func exitCode(err error, signalled bool) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errUnclosed):
		return ExitUnclosed
	case errors.Is(err, demo.ErrWrong), errors.Is(err, errDead):
		return ExitFailed
	case errors.Is(err, errEarly):
		return ExitOK
	case signalled && (errors.Is(err, context.Canceled) || errors.Is(err, qj.ErrUnavailable)):
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
newer version or unavailable; 4 stopped by a signal before everything could be handed over. A second signal, a second
after the first or later, kills the programs that jobs have started and ends with 4 at once.

Flags may be written with one dash or two.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.makeLogger(cmd) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand())
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.PersistentFlags().StringVar(&p.level, "log", "", "what is logged to standard error: debug, info, warn or error (default: info of run, else warn)")
	root.AddCommand(p.runCommand(), p.demoCommand(), p.dieCommand(), p.historyCommand(), p.versionCommand())
	root.InitDefaultHelpCmd() // now that there are commands to help with
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

// helpCommand is cobra's own, but for a topic that it does not know: that is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q", rest[0])
			}
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// dashes writes -name as --name: the flag library knows one dash only before single letters, of which this program has
// none but -h, and people write both. What follows a flag that takes a value is its value, and left alone.
func dashes(root *cobra.Command, args []string) []string {
	out := slices.Clone(args)
	for i := 0; i < len(out) && out[i] != "--"; i++ {
		a := out[i]
		if len(a) < 3 || a[0] != '-' {
			continue
		}
		if a[1] != '-' {
			out[i] = "-" + a
		}
		name, _, whole := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if f := lookup(root, name); f != nil && f.NoOptDefVal == "" && !whole {
			i++
		}
	}
	return out
}

// lookup finds a flag of any command. Flags of one name take a value in all of them or in none.
func lookup(c *cobra.Command, name string) *pflag.Flag {
	for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		if f := set.Lookup(name); f != nil {
			return f
		}
	}
	for _, sub := range c.Commands() {
		if f := lookup(sub, name); f != nil {
			return f
		}
	}
	return nil
}
