package quarterjack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quarterjack/quarterjack/actors/trigger"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// Bounds of what Close does after its context is over.
const (
	closeGrace = 2 * time.Second  // handlers whose contexts were cancelled may take so long to return
	closeStop  = 10 * time.Second // actors, the ledger's last commit and its store
	closeAlone = 30 * time.Second // all of it, where a handler asked for it and nobody waits
)

// Close ends the runtime: nothing new is started, groups hand over what they hold, runs in flight may finish while
// their leases are kept alive, and the store is closed last. If ctx is over first, their contexts are cancelled and
// what they did not finish goes back to pending, without spending an attempt; the next Start runs it. The error says
// what could not be handed over or did not return. It may be called twice; the second call waits for the first,
// and where its own ctx is over before, cancels the runs.
//
// Called from within a handler (with the handler's context) it begins to close and returns at once, since it would
// wait for its own caller.
func (rt *Runtime) Close(ctx context.Context) error {
	rt.mu.Lock()
	first := rt.phase != closing
	rt.phase = closing
	rt.mu.Unlock()
	within := ctx.Value(insideKey{}) != nil
	if first && within {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeAlone)
			defer cancel()
			rt.end(ctx)
		}()
	} else if first {
		rt.end(ctx)
	}
	if within {
		return nil
	}
	select {
	case <-rt.closed:
	default:
		select {
		case <-rt.closed:
		case <-ctx.Done(): // whoever closes first may have more time; this caller has none
			rt.runs.cancel(errShutdown)
			return context.Cause(ctx)
		}
	}
	return rt.closeErr
}

// end closes everything in the order in which things feed each other: triggers start nothing more, runs end (they may
// still add to groups), groups hand over, ends are recorded, actors stop, the ledger writes its last, the store closes.
func (rt *Runtime) end(ctx context.Context) {
	defer close(rt.closed)
	triggers := rt.actors()
	drained := make([]*engine.Question[struct{}], len(triggers))
	for i, ref := range triggers {
		drained[i] = engine.NewQuestion[struct{}]()
		ref.Tell(&trigger.Drain{Question: drained[i]})
	}
	errs := []error{rt.endRuns(ctx)}
	errs = append(errs, rt.endGroups(ctx)...)
	rt.clock.Stop()
	if rt.runs.permits.InUse() == 0 {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeStop)
		defer cancel()
		for _, q := range drained {
			if _, err := q.Wait(wait); err != nil && !errors.Is(err, engine.ErrGone) {
				errs = append(errs, fmt.Errorf("the end of a run could not be recorded, it runs again after the next Start: %w", err))
				break
			}
		}
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeStop)
	defer cancel()
	// What triggers could not record reaches the ledger as they stop, and the ledger goes after them.
	for _, ref := range triggers {
		ref.Stop()
	}
	for _, ref := range triggers {
		select {
		case <-ref.Done():
		case <-stop.Done():
		}
	}
	errs = append(errs, rt.book.Close(stop), rt.engine.Stop(stop), rt.cfg.Store.Close())
	rt.closeErr = errors.Join(errs...)
}

func (rt *Runtime) actors() []*engine.Ref {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var all []*engine.Ref
	for _, refs := range []map[string]*engine.Ref{rt.triggers, rt.queues} {
		for _, ref := range refs {
			all = append(all, ref)
		}
	}
	return all
}

// endGroups closes all groups at once: each flushes what it holds.
func (rt *Runtime) endGroups(ctx context.Context) []error {
	rt.mu.Lock()
	groups := maps.Clone(rt.groups)
	rt.mu.Unlock()
	if ctx.Err() != nil { // what runs have left no time for gets a little
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		ctx = grace
	}
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for name, g := range groups {
		wait.Go(func() {
			left, err := g.end(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("group %q: %d keys were not handed over: %w", name, left, err))
			}
		})
	}
	wait.Wait()
	return errs
}

// endRuns waits for the handlers, and cancels them when ctx is over.
func (rt *Runtime) endRuns(ctx context.Context) error {
	wait := func(ctx context.Context) error { return errors.Join(rt.runs.permits.Wait(ctx), rt.calls.Wait(ctx)) }
	err := wait(ctx)
	rt.runs.cancel(errShutdown)
	if err == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	if wait(grace) == nil {
		return fmt.Errorf("runs were interrupted, they go on after the next Start: %w", err)
	}
	return fmt.Errorf("%d handlers did not return, %w", rt.runs.permits.InUse()+rt.calls.InUse(), err)
}
