package quarterjack_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
)

// Do runs a function once for its key. Whoever comes second gets the first one's result.
func ExampleRuntime_Do() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := rt.Do(ctx, "order-17/charge", func(_ context.Context, r *qj.Run) error {
			fmt.Println("charging under fence", r.Fence)
			r.Result = []byte("receipt 1")
			return nil
		})
		fmt.Println(out.First, out.Verdict, string(out.Result), err)
	}
	fmt.Println(rt.Close(ctx))
	// Output:
	// charging under fence 1
	// true done receipt 1 <nil>
	// false done receipt 1 <nil>
	// <nil>
}

// Submit hands work over: the runtime retries it until it is done.
func ExampleRuntime_Submit() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan int, 1)
	err = rt.Handle("mail", func(_ context.Context, r *qj.Run) error {
		if r.Attempt < 3 {
			return qj.Retry(time.Millisecond, errors.New("the mail server is busy"))
		}
		done <- r.Attempt
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := rt.Submit(ctx, "mail", "welcome/ada", []byte("Dear Ada")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("sent at attempt", <-done)
	fmt.Println(rt.Close(ctx))
	// Output:
	// sent at attempt 3
	// <nil>
}

// In mode Tx the effect and the completion are one transaction: both or neither.
func ExampleRuntime_Handle_tx() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{Store: memory.New()})
	if err != nil {
		fmt.Println(err)
		return
	}
	balance := 0
	done := make(chan struct{})
	err = rt.Handle("interest", func(ctx context.Context, r *qj.Run) error {
		defer close(done)
		return memory.Commit(ctx, r, func(context.Context) error { // sqlite.Commit gives a transaction here
			balance += 10
			return nil
		})
	}, qj.Tx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Schedule(ctx, qj.Trigger{ID: "once", Job: "interest", Schedule: qj.Once(time.Now())}); err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	fmt.Println(rt.Close(ctx))
	fmt.Println(balance)
	// Output:
	// <nil>
	// 10
}
