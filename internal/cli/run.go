package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/keygroup"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
	"github.com/quarterjack/quarterjack/internal/cli/nodefile"
)

// errDead says that a group gave batches up.
var errDead = errors.New("batches were given up")

// maxLogOutput is how much of a failed batch's output is logged: its end, in bytes.
const maxLogOutput = 1 << 10

func (p *program) runCommand() *cobra.Command {
	var (
		config string
		grace  time.Duration
		check  bool
	)
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the triggers and groups of a file",
		Long: `Runs the triggers and key groups that a YAML file declares, until SIGINT or SIGTERM. Runs in
flight may finish for -grace then; programs that exec jobs have started get SIGTERM after it, and SIGKILL after their own
grace. A second signal, a second later or more, kills them at once. What an earlier process left unfinished is run first.
A node without triggers ends when its groups' inputs have.

See examples/node for files.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return fmt.Errorf("%w: -grace is %v: want 0 or more", errUsage, grace)
			}
			f, err := nodefile.Load(config)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if check {
				_, err := fmt.Fprintf(p.out, "%s: %d triggers and %d groups, nothing wrong\n", config, len(f.Triggers), len(f.Groups))
				return errors.Join(err, f.Close())
			}
			p.jobs.Store(f.Node)
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
	dead atomic.Int64 // batches that groups have given up
}

func (n *node) run(ctx context.Context, grace time.Duration) error {
	rt, err := qj.Open(ctx, qj.Config{Store: n.store(), Namespace: n.file.Namespace, Logger: n.log, Workers: n.file.Workers})
	if err != nil {
		return early(ctx, err)
	}
	n.rt = rt
	err = n.serve(ctx)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	n.log.Info("stopping", "grace", grace)
	closed := rt.Close(stop)
	// Close gives runs that it has cancelled a moment; their programs have their own graces to end in.
	if killed := n.file.Node.Stop(); killed > 0 {
		n.log.Warn("killed programs that did not end in time", "programs", killed)
	}
	if closed != nil && ctx.Err() != nil {
		closed = fmt.Errorf("%w: %w", errUnclosed, closed)
	}
	if dead := n.dead.Load(); dead > 0 && len(n.file.Triggers) == 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d", errDead, dead))
	}
	n.log.Info("stopped")
	return errors.Join(err, closed)
}

// early marks an error that only says that a signal came before anything ran.
func early(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, qj.ErrUnavailable)) {
		return fmt.Errorf("%w: %w", errEarly, err)
	}
	return err
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
	inputs, err := n.prepare(ctx)
	if err != nil {
		return early(ctx, err)
	}
	if err := n.rt.Start(ctx); err != nil {
		return early(ctx, err)
	}
	n.log.Info("started", "config", n.file.Name, "triggers", len(n.file.Triggers), "groups", len(inputs))
	return n.wait(ctx, inputs)
}

// prepare declares what the file says. Nothing fires yet.
func (n *node) prepare(ctx context.Context) ([]*input, error) {
	if err := n.identify(ctx); err != nil {
		return nil, err
	}
	triggers := make([]qj.Trigger, len(n.file.Triggers))
	for i := range n.file.Triggers {
		t := &n.file.Triggers[i]
		if err := n.rt.Handle(t.ID, handler(t.Job)); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Pos, err)
		}
		triggers[i] = mapped(t)
	}
	if err := n.rt.Declare(ctx, n.file.Owner, triggers...); err != nil {
		return nil, fmt.Errorf("%s: %w", n.file.Name, err)
	}
	return n.groups()
}

// identify gives exec jobs the id of the store, and ends what carries it: the store is ours, so whatever runs for it was
// left by a process that is dead.
func (n *node) identify(ctx context.Context) error {
	if n.file.Store.Dir == "" {
		return nil
	}
	id, err := jobs.LoadID(n.file.Store.Dir)
	if err != nil {
		return err
	}
	n.file.Node.SetID(id)
	killed, err := jobs.SweepOrphans(ctx, id)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		n.log.Warn("programs that an earlier process may have left running cannot be found on this system", "error", err)
	case err != nil:
		return fmt.Errorf("programs that an earlier process left running: %w", err)
	}
	if killed > 0 {
		n.log.Warn("killed programs that an earlier process had left running", "processes", killed)
	}
	return nil
}

// wait reads the inputs and returns when ctx ends, or when they end and there is no trigger. An input that fails ends by
// itself: what else the node does goes on, and a node without triggers says so in the end.
func (n *node) wait(ctx context.Context, inputs []*input) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := make(chan error, len(inputs))
	for _, in := range inputs {
		go func() { ends <- in.read(ctx) }()
	}
	var failed []error
	for left := len(inputs); left > 0 || len(n.file.Triggers) > 0; {
		select {
		case err := <-ends:
			if left--; err != nil {
				n.log.Error("the input of a group is given up", "error", err)
				failed = append(failed, err)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	if len(n.file.Triggers) > 0 {
		return nil
	}
	return errors.Join(failed...)
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

// deliver hands a group's batch to its job. There is no history of batches: what a failed one has put out is logged.
func deliver[A any](ctx context.Context, n *node, g *nodefile.Group, b *qj.Batch[string, A]) error {
	data, err := json.Marshal(struct {
		Key   string `json:"key"`
		Value A      `json:"value"`
		Items int    `json:"items"`
	}{b.Key, b.Value, b.Items})
	if err != nil {
		return qj.Drop(err)
	}
	out, err := g.Job.Do(ctx, jobs.Work{Group: g.Name, Key: b.Key, Attempt: b.Attempt, Data: data})
	if err != nil && len(out) > 0 {
		n.log.Warn("a batch has failed", "group", g.Name, "key", b.Key, "attempt", b.Attempt, "error", err, "output", end(out, maxLogOutput))
	}
	return err
}

// end gives the last bytes of a text, at most so many, from the start of a character on.
func end(b []byte, most int) string {
	if len(b) > most {
		b = b[len(b)-most:]
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return string(b)
}

// buried counts and logs what a group has given up.
func (n *node) buried(d keygroup.DeadLetter) {
	n.dead.Add(1)
	n.log.Error("a batch is given up", "group", d.Group, "key", d.Key, "items", d.Items, "attempts", d.Attempts, "error", d.Err)
}
