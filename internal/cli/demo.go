package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quarterjack/quarterjack/internal/cli/demo"
)

func (p *program) demoCommand() *cobra.Command {
	var o demo.Options
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the runtime at work: drift, a real event stream, missed slots, work done once",
		Long: `Plays four acts on the embedded store and prints a small table for each. It may be killed and run again with the
same directory: what is applied is not applied twice.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Err, o.Log, o.Die = p.out, p.err, p.log, dieElsewhere
			o.Bar = terminal(p.err)
			err := demo.Run(cmd.Context(), o)
			if errors.Is(err, demo.ErrInput) || errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("%w: %w", errUsage, err)
			}
			return err
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "directory of the demo's store (default: a fresh temporary one, which it names)")
	c.Flags().StringVar(&o.Input, "input", "", `NDJSON file, gzip or not, of lines like {"key":"a/path","added":3,"deleted":1} (default: the built-in stream)`)
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object a line")
	return c
}

// dieCommand is the process of the demo's last act that dies in its handler.
func (p *program) dieCommand() *cobra.Command {
	var dir, namespace, key string
	c := &cobra.Command{
		Use: "demo-die", Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.DieInHandler(cmd.Context(), demo.Options{Dir: dir, Log: p.log, Out: p.out}, namespace, key, func() error {
				self, err := os.FindProcess(os.Getpid())
				if err != nil {
					return err
				}
				if err := self.Kill(); err != nil {
					return err
				}
				select {} // the kill is on its way
			})
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "")
	c.Flags().StringVar(&namespace, "namespace", "", "")
	c.Flags().StringVar(&key, "key", "", "")
	return c
}

// dieElsewhere runs dieCommand in a process of its own and waits for its end.
func dieElsewhere(ctx context.Context, dir, namespace, key string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, self, "demo-die", "--dir", dir, "--namespace", namespace, "--key", key).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() && exit.ExitCode() != 1 {
		return fmt.Errorf("the process that was to die in its handler ended with %w: %s", err, out)
	}
	return nil
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
