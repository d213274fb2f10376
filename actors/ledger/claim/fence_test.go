package claim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// holding is what somebody believes who was told that he holds the key: he acts under this fence, in this session, for
// ever after, however late.
type holding struct {
	who     int
	session uint64
	fence   uint64
}

// TestFencesOnlyGrowAndOneHolderCompletes lets several holders, of which some come back long after their lease and
// some from dead sessions, do anything at any time to one key.
func TestFencesOnlyGrowAndOneHolderCompletes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rec *Record
		now := Hand{Wall: wall, Session: 1, Sole: true}
		var held []holding
		completed := map[int]bool{}
		var trail []string
		fail := func(why string) { t.Fatalf("%s\n%v", why, trail) }
		n := rapid.IntRange(1, 60).Draw(t, "steps")
		for range n {
			now.Wall, now.Mono = now.Wall.Add(time.Second), now.Mono+time.Duration(rapid.IntRange(0, 90).Draw(t, "passed"))*time.Second
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				now.Session, now.Mono = now.Session+1, 0
				trail = append(trail, fmt.Sprintf("session %d", now.Session))
			}
			op := Op{Key: slot0230, Slot: slot0230.Slot, Lease: time.Minute, Reason: "because"}
			op.Action = rapid.SampledFrom([]Action{Decide, Claim, Claim, Complete, Fail, Release, Extend, Skip}).Draw(t, "action")
			who, as := len(trail), now
			if op.Action == Complete || op.Action == Fail || op.Action == Release || op.Action == Extend {
				if len(held) == 0 {
					continue
				}
				h := rapid.SampledFrom(held).Draw(t, "holder")
				who, op.Fence, as.Session = h.who, h.fence, h.session
			}
			op.Final = rapid.Bool().Draw(t, "final")

			next, answer, err := Next(rec, op, as)
			trail = append(trail, fmt.Sprintf("%d: %s under %d in session %d: %v %v -> %s, fence %d", who, op.Action, op.Fence, as.Session, answer, err, next.State, next.Fence))
			if err != nil {
				if !Refusal(err) {
					fail("an error that is no refusal")
				}
				continue
			}
			if err := next.Valid(); err != nil {
				fail(err.Error())
			}
			if rec != nil {
				switch {
				case next.Fence < rec.Fence:
					fail("the fence fell")
				case rec.State.Terminal() && (next.State != rec.State || answer == Recorded):
					fail("a verdict was changed")
				case answer == Recorded && op.Action == Claim && next.Fence == rec.Fence:
					fail("a claim did not raise the fence")
				}
			}
			if answer == Recorded && op.Action == Claim {
				held = append(held, holding{who, as.Session, next.Fence})
			}
			if answer == Recorded && op.Action == Complete {
				completed[who] = true
			}
			if len(completed) > 1 {
				fail("two holders completed")
			}
			if answer == Recorded {
				rec = &next
			}
		}
	})
}
