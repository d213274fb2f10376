package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
	"github.com/quarterjack/quarterjack/internal/cli/nodefile"
)

// errUnclosed says that a signal stopped the node and not everything could be handed over in time.
var errUnclosed = errors.New("stopped before everything could be handed over")

func (p *program) runCommand() *cobra.Command {
	var (
		config string
		grace  time.Duration
		check  bool
	)
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the triggers and groups of a file",
		Long: `Runs the triggers and key groups that a YAML file declares, until SIGINT or SIGTERM; a second signal ends it at
once. What an earlier process left unfinished is run first. A node without triggers ends when its groups' inputs have.

See examples/node for files.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := nodefile.Load(config)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if check {
				_, err := fmt.Fprintf(p.out, "%s: %d triggers and %d groups, nothing wrong\n", config, len(f.Triggers), len(f.Groups))
				return errors.Join(err, f.Close())
			}
			n := &node{program: p, file: f}
			n.lendLogger()
			return errors.Join(n.run(cmd.Context(), grace), f.Close())
		},
	}
	c.Flags().StringVar(&config, "config", "node.yaml", "the file")
	c.Flags().DurationVar(&grace, "grace", 30*time.Second, "how long runs in flight may take after a signal")
	c.Flags().BoolVar(&check, "check", false, "only read the file and say what is wrong with it")
	c.Flags().BoolVar(&p.jsonLog, "json", false, "log one JSON object a line")
	return c
}

// node is a running file.
type node struct {
	*program
	file *nodefile.File
	rt   *qj.Runtime
}

func (n *node) run(ctx context.Context, grace time.Duration) error {
	rt, err := qj.Open(ctx, qj.Config{Store: n.store(), Namespace: n.file.Namespace, Logger: n.log, Workers: n.file.Workers})
	if err != nil {
		return err
	}
	n.rt = rt
	err = n.serve(ctx)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	n.log.Info("stopping", "grace", grace)
	closed := rt.Close(stop)
	if closed != nil && ctx.Err() != nil {
		closed = fmt.Errorf("%w: %w", errUnclosed, closed)
	}
	n.log.Info("stopped")
	return errors.Join(err, closed)
}

// lendLogger makes jobs of kind log write where the node does.
func (n *node) lendLogger() {
	lend := func(j jobs.Job) {
		if l, ok := j.(*jobs.Log); ok {
			l.Logger = n.log
		}
	}
	for i := range n.file.Triggers {
		lend(n.file.Triggers[i].Job)
	}
	for i := range n.file.Groups {
		lend(n.file.Groups[i].Job)
	}
}

func (n *node) store() claim.Store {
	if n.file.Store.Kind == "memory" {
		return memory.New()
	}
	return sqlite.New(sqlite.Config{Path: n.file.Store.Path, Logger: n.log})
}

// serve prepares the runtime, starts it, and returns when ctx ends or nothing is left to do.
func (n *node) serve(ctx context.Context) error {
	if n.file.Node != "" { // the store is ours: whatever runs for this node now was left by a process that is dead
		killed, err := jobs.SweepOrphans(ctx, n.file.Node)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			n.log.Warn("programs that an earlier process may have left running cannot be found on this system", "error", err)
		case err != nil:
			return fmt.Errorf("programs that an earlier process left running: %w", err)
		}
		if killed > 0 {
			n.log.Warn("killed programs that an earlier process had left running", "processes", killed)
		}
	}
	triggers := make([]qj.Trigger, len(n.file.Triggers))
	for i := range n.file.Triggers {
		t := &n.file.Triggers[i]
		if err := n.rt.Handle(t.ID, handler(t.Job)); err != nil {
			return fmt.Errorf("%s: %w", t.Pos, err)
		}
		triggers[i] = mapped(t)
	}
	if err := n.rt.Declare(ctx, n.file.Owner, triggers...); err != nil {
		return fmt.Errorf("%s: %w", n.file.Name, err)
	}
	inputs, err := n.groups()
	if err != nil {
		return err
	}
	if err := n.rt.Start(ctx); err != nil {
		return err
	}
	n.log.Info("started", "config", n.file.Name, "triggers", len(triggers), "groups", len(inputs))
	return n.wait(ctx, inputs)
}

// wait reads the inputs and returns when ctx ends, when an input fails, or when they end and there is no trigger.
func (n *node) wait(ctx context.Context, inputs []*input) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := make(chan error, len(inputs))
	for _, in := range inputs {
		go func() { ends <- in.read(ctx) }()
	}
	for left := len(inputs); left > 0 || len(n.file.Triggers) > 0; {
		select {
		case err := <-ends:
			if left--; err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// mapped gives a file's trigger as the facade knows it.
func mapped(t *nodefile.Trigger) qj.Trigger {
	m, _ := firing.ParseMisfire(t.Misfire) // the file's reader has checked both
	o, _ := firing.ParseOverlap(t.Overlap)
	return qj.Trigger{ID: t.ID, Job: t.ID, Schedule: t.Schedule, Misfire: m, Threshold: t.Threshold, Overlap: o, Limit: t.Limit,
		Timeout: t.Timeout, Attempts: t.Attempts, Backoff: t.Backoff, Data: t.Data}
}

// handler runs a file's job.
func handler(job jobs.Job) qj.Handler {
	return func(ctx context.Context, r *qj.Run) error {
		out, err := job.Do(ctx, jobs.Work{Trigger: r.Trigger, Slot: r.Slot, Key: r.Key, Fence: r.Fence, Attempt: r.Attempt, Data: r.Data})
		if len(out) > 0 {
			r.Result = out
		}
		return err
	}
}

// deliver hands a group's batch to its job.
func deliver[A any](ctx context.Context, job jobs.Job, name string, b *qj.Batch[string, A]) error {
	data, err := json.Marshal(struct {
		Key   string `json:"key"`
		Value A      `json:"value"`
		Items int    `json:"items"`
	}{b.Key, b.Value, b.Items})
	if err != nil {
		return qj.Drop(err)
	}
	_, err = job.Do(ctx, jobs.Work{Group: name, Key: fmt.Sprintf("%s/%s/%d", name, b.Key, b.Generation), Attempt: b.Attempt, Data: data})
	return err
}
