package demo

import (
	"context"
	"fmt"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// once plays act 4: five calls for two keys, and a process that dies between its claim and its work.
func (s *show) once(ctx context.Context) error {
	calls := []string{"daily-fine@12", "daily-fine@12", "daily-fine@12", "daily-fine@13", "daily-fine@13"}
	rows := [][]string{{"call", "key", "came to", "attempt", "fence"}}
	note := func(call any, key string, out qj.Outcome, says string) error {
		rows = append(rows, []string{fmt.Sprint(call), key, says, fmt.Sprint(out.Attempt), fmt.Sprint(out.Fence)})
		return s.line(struct {
			Act   string `json:"act"`
			Key   string `json:"key"`
			Says  string `json:"came_to"`
			Fence uint64 `json:"fence"`
		}{"once", key, says, out.Fence})
	}
	suppressed := 0
	err := s.with(ctx, s.namespace, func(rt *qj.Runtime) error {
		for i, key := range calls {
			out, err := rt.Do(ctx, key, func(_ context.Context, r *qj.Run) error {
				r.Result = []byte("fined by call " + fmt.Sprint(i+1))
				return nil
			})
			if err != nil {
				return err
			}
			says := "executed"
			if !out.First {
				suppressed++
				says = fmt.Sprintf("suppressed: %s", out.Result)
			}
			if err := note(i+1, key, out, says); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	// Another process claims the key and dies in its handler: nothing is lost with it.
	const crash = "crash-after-claim"
	if err := s.Die(ctx, s.Dir, s.namespace, crash); err != nil {
		return err
	}
	if err := note("a process", crash, qj.Outcome{Attempt: 1, Fence: 1}, "killed in its handler"); err != nil {
		return err
	}
	var out qj.Outcome
	err = s.with(ctx, s.namespace, func(rt *qj.Runtime) (err error) {
		out, err = rt.Do(ctx, crash, func(context.Context, *qj.Run) error { return nil })
		return err
	})
	if err != nil {
		return err
	}
	if err := note("again", crash, out, "executed"); err != nil {
		return err
	}
	s.table(rows)
	if !out.First || out.Fence < 2 {
		return fmt.Errorf("%w: after the crash the key was %s under fence %d, want it executed under a higher one", ErrWrong, out.Verdict, out.Fence)
	}
	s.sum.Fence = out.Fence
	return s.audit(ctx, calls, suppressed)
}

// audit reads back from the ledger what was executed.
func (s *show) audit(ctx context.Context, calls []string, suppressed int) error {
	asked := map[string]bool{}
	for _, key := range calls {
		asked[key] = true
	}
	err := s.records(ctx, claim.Query{Namespace: s.namespace, Kind: claim.KindFree, States: []claim.State{claim.Done}}, func(r *claim.Record) error {
		if asked[r.Key.ID] {
			s.sum.Executed++
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.sum.Suppressed = len(calls) - s.sum.Executed
	if s.sum.Executed != len(asked) || suppressed != s.sum.Suppressed {
		return fmt.Errorf("%w: of %d calls for %d keys the ledger has %d executed, and %d were told so", ErrWrong, len(calls), len(asked), s.sum.Executed, suppressed)
	}
	return nil
}

// DieInHandler is the process of act 4: it claims the key and is gone, by SIGKILL, before its work.
func DieInHandler(ctx context.Context, o Options, namespace, key string, kill func() error) error {
	s := &show{Options: o, store: store(o)}
	rt, err := s.open(ctx, namespace)
	if err != nil {
		return err
	}
	_, err = rt.Do(ctx, key, func(context.Context, *qj.Run) error { return kill() })
	return fmt.Errorf("still alive: %w", err)
}
