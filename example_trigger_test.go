package quarterjack_test

import (
	"context"
	"fmt"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

// A trigger fires a job on a grid that neither slow runs nor restarts move.
func ExampleRuntime_Declare() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{}) // the zero Config keeps everything in memory
	if err != nil {
		fmt.Println(err)
		return
	}
	slots := make(chan time.Time, 3)
	err = rt.Handle("report", func(_ context.Context, r *qj.Run) error {
		slots <- r.Slot
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	begin := time.Now().Truncate(time.Millisecond).Add(20 * time.Millisecond)
	err = rt.Declare(ctx, "example", qj.Trigger{ID: "every-10ms", Job: "report", Schedule: qj.Every(10 * time.Millisecond).From(begin).Times(3)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		fmt.Println((<-slots).Sub(begin))
	}
	fmt.Println(rt.Close(ctx))
	// Output:
	// 0s
	// 10ms
	// 20ms
	// <nil>
}

// FireNow runs a job beside its schedule. The same request again does not run it again.
func ExampleRuntime_FireNow() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan string, 1)
	handler := func(_ context.Context, r *qj.Run) error {
		ran <- fmt.Sprintf("%s: %s", r.Kind, r.Data)
		return nil
	}
	if err := rt.Handle("report", handler); err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Schedule(ctx, qj.Trigger{ID: "by-hand", Job: "report"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	first, err := rt.FireNow(ctx, "by-hand", "ticket-4711", []byte("for the auditor"))
	fmt.Println(first.First, err)
	fmt.Println(<-ran)
	again, err := rt.FireNow(ctx, "by-hand", "ticket-4711", []byte("for the auditor"))
	fmt.Println(again.First, err)
	fmt.Println(rt.Close(ctx))
	// Output:
	// true <nil>
	// manual: for the auditor
	// false <nil>
	// <nil>
}
