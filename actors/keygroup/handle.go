package keygroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/backoff"
	"github.com/quarterjack/quarterjack/internal/verdict"
)

// start runs the batch of that generation on the worker that the caller has acquired.
func (k *key[K, V, A]) start(generation uint64) {
	clean := false
	defer func() {
		if clean {
			return
		}
		err := panicked(recover(), debug.Stack())
		k.group.pool.Release()
		k.perform(k.state.GiveUp(err, k.group.deps.Now()))
	}()
	effects := k.state.Start(generation, k.group.deps.Now())
	clean = true
	if _, ok := effects[0].(*batch.Run[A]); !ok {
		k.group.pool.Release()
	}
	k.perform(effects)
}

// finish goes on after a handler has returned.
func (k *key[K, V, A]) finish(f *finished[K, V, A]) {
	g := k.group
	g.count(f.run, f.outcome)
	clean := false
	defer func() {
		if clean {
			return
		}
		err := errors.Join(f.outcome.Err, panicked(recover(), debug.Stack()))
		k.perform(k.state.Finished(f.run.Generation, batch.Outcome{Err: err, Drop: true}, g.deps.Now()))
	}()
	effects := k.state.Finished(f.run.Generation, f.outcome, g.deps.Now())
	clean = true
	k.perform(effects)
}

// handle runs the handler on one batch and tells the key, whatever the handler does to its goroutine.
func (g *Group[K, V, A]) handle(k *key[K, V, A], run *batch.Run[A]) {
	b := &Batch[K, A]{
		Key: k.key, Value: run.Value, Items: run.Items, First: run.First, Last: run.Last,
		Attempt: run.Attempt, Generation: run.Generation, Trigger: run.Trigger, ledger: g.deps.Ledger,
	}
	ctx := context.WithValue(g.life, handling{g}, true)
	ctx, cancel := context.WithTimeoutCause(ctx, g.cfg.Timeout, ErrTimeout)

	var err error
	returned := false
	defer func() {
		if !returned {
			err = panicked(recover(), debug.Stack())
		}
		err = verdict.Guard(err) // from here on its methods, which may panic too, are called by nobody else
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		cancel()
		if b.finish() && err != nil {
			g.deps.Logger.Warn("keygroup: a handler failed after its batch was committed, which therefore counts as handled",
				slog.String("group", g.cfg.Name), slog.String("key", verdict.Text(k.key)), slog.String("error", err.Error()))
			err = nil
		}
		k.ref.Tell(&finished[K, V, A]{of: k, run: run, outcome: g.judge(k, run.Attempt, err)})
	}()
	err = g.handler(ctx, b)
	returned = true
}

// judge reads from the handler's error what is to become of the batch.
func (g *Group[K, V, A]) judge(k *key[K, V, A], attempt int, err error) batch.Outcome {
	if err == nil {
		return batch.Outcome{}
	}
	v := verdict.Of(err)
	// A store that is unavailable is no fault of the batch: it waits for it as long as it takes.
	o := batch.Outcome{Err: err, Drop: v.Drop, Excused: errors.Is(err, claim.ErrUnavailable)}
	if v.RetryAfter != nil {
		o.After = *v.RetryAfter
	}
	if o.After <= 0 && !o.Drop {
		o.After = g.cfg.Backoff.Delay(attempt, backoff.Hash(k.ref.Name(), attempt))
	}
	return o
}

func (g *Group[K, V, A]) count(run *batch.Run[A], o batch.Outcome) {
	if o.Err != nil {
		g.counts.failures.Add(1)
		return
	}
	g.counts.batches.Add(1)
	g.counts.handled.Add(uint64(run.Items))
}

// letter makes a dead letter of a batch.
func (g *Group[K, V, A]) letter(k K, run *batch.Run[A], err error) DeadLetter {
	return DeadLetter{
		Group: g.cfg.Name, Key: k, Value: run.Value, Items: run.Items,
		First: run.First, Last: run.Last, Attempts: run.Attempt, Err: err,
	}
}

// bury tells OnDead on a worker, gives the items' room back, and then calls then, if that is given.
func (g *Group[K, V, A]) bury(d DeadLetter, then func()) {
	g.counts.dead.Add(1)
	g.counts.deadItems.Add(uint64(d.Items))
	g.pool.Acquire(func() {
		g.pool.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					g.deps.Logger.Error("keygroup: OnDead failed", slog.String("group", g.cfg.Name), slog.String("key", verdict.Text(d.Key)),
						slog.String("reason", verdict.Text(r)), slog.String("stack", string(debug.Stack())))
				}
				g.room.release(int64(d.Items))
				if then != nil {
					then()
				}
			}()
			g.cfg.OnDead(d)
		})
	})
}
