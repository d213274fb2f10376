package quarterjack_test

import (
	"context"
	"fmt"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

// A group merges items of one key while its last batch is still being handled: a thousand increments are one write.
func ExampleNewSum() {
	ctx := context.Background()
	rt, err := qj.Open(ctx, qj.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	counts, err := qj.NewSum(rt, "pages", qj.GroupConfig{Delay: time.Hour}, func(_ context.Context, b *qj.Batch[string, int64]) error {
		fmt.Println(b.Key, b.Value, b.Items)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 1000 {
		if err := counts.Add(ctx, "/index", 2); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(counts.Flush(ctx)) // do not wait for the delay
	fmt.Println(rt.Close(ctx))
	// Output:
	// /index 2000 1000
	// <nil>
	// <nil>
}
