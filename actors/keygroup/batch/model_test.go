package batch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestModel drives one key at random and checks that every item comes out exactly once, in order, in batches within
// their limit.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(0, 5).Draw(rt, "limit")
		k := newKey(rt, Rules{
			Delay:    time.Duration(rapid.IntRange(0, 3).Draw(rt, "delay")) * time.Second,
			Limit:    limit,
			Attempts: rapid.IntRange(1, 4).Draw(rt, "attempts"),
			Timeout:  2 * time.Second,
		})
		var out []int // what was handled or given up, in order
		added := 0
		end := func(o Outcome) {
			if r := k.state.running; r != nil {
				dead := len(k.dead)
				k.do(k.state.Finished(r.Generation, o, k.now))
				if o.Err == nil || len(k.dead) > dead {
					out = append(out, r.Value...)
				}
			}
		}
		start := func() {
			n := len(k.runs)
			k.do(k.state.Start(k.ready.Generation, k.now))
			if len(k.runs) > n {
				require.NotEmpty(rt, k.runs[n].Value)
				require.True(rt, limit == 0 || len(k.runs[n].Value) <= limit, "%d items under a limit of %d", k.runs[n].Items, limit)
				require.Equal(rt, len(k.runs[n].Value), k.runs[n].Items)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				k.add(added)
				added++
			},
			"pass":  func(rt *rapid.T) { k.pass(time.Duration(rapid.IntRange(1, 3).Draw(rt, "s")) * time.Second) },
			"start": func(*rapid.T) { start() },
			"handled": func(*rapid.T) {
				end(Outcome{})
			},
			"failed": func(rt *rapid.T) {
				end(Outcome{Err: errBoom, After: time.Duration(rapid.IntRange(0, 2).Draw(rt, "after")) * time.Second})
			},
			"dropped": func(*rapid.T) { end(Outcome{Err: errBoom, Drop: true}) },
			"stray": func(rt *rapid.T) { // answers of other generations change nothing
				g := k.state.generation + uint64(rapid.IntRange(1, 3).Draw(rt, "off"))
				before := k.state
				k.do(k.state.Tick(g))
				k.do(k.state.Start(g, k.now))
				k.do(k.state.Finished(g, Outcome{}, k.now))
				require.Equal(rt, before, k.state)
			},
			"flush": func(*rapid.T) { k.do(k.state.Flush()) },
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 20).Draw(rt, "really") == 0 {
					k.do(k.state.Close())
				}
			},
			"": func(rt *rapid.T) {
				require.NoError(rt, k.state.valid())
				require.EqualValues(rt, added, k.state.Accepted())
				require.EqualValues(rt, len(out), k.state.Settled())
			},
		})
		if rapid.Bool().Draw(rt, "give back") {
			k.do(k.state.Surrender())
			end(Outcome{Err: errBoom})
			require.Len(rt, k.left, 1)
			out = append(out, k.left[0].Value...)
		} else {
			k.do(k.state.Close())
			for k.state.Phase() != PhaseIdle {
				k.pass(time.Hour)
				start()
				end(Outcome{})
			}
		}
		want := []int(nil)
		for i := range added {
			want = append(want, i)
		}
		require.Equal(rt, want, out)
	})
}
