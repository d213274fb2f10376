package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNewTakesOnlyWhatIsNotKnown: the same request again must never start, skip or hurry the first one.
func TestNewTakesOnlyWhatIsNotKnown(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	now := Hand{Wall: at, Mono: time.Hour, Session: 2, Sole: true}
	k := Free("n", "k")
	fingerprint := Fingerprint("", nil)
	for name, known := range map[string]Record{
		"pending":       {Key: k, State: Pending, Slot: at, Due: at, Fingerprint: fingerprint},
		"claim is over": {Key: k, State: Claimed, Session: 1, Lease: time.Minute, Fence: 1, Attempt: 1, Slot: at, FiredAt: at, Fingerprint: fingerprint},
		"done":          {Key: k, State: Done, Fence: 1, Attempt: 1, Slot: at, FiredAt: at, EndedAt: at, Fingerprint: fingerprint},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, known.Valid())
			for _, op := range []Op{{Action: Claim, Key: k, Lease: time.Minute, New: true}, {Action: Skip, Key: k, Reason: "overlap", New: true}} {
				after, answer, err := Next(&known, op, now)
				require.NoError(t, err)
				require.Equal(t, Already, answer)
				require.Equal(t, known, after)
			}
		})
	}
	for _, op := range []Op{{Action: Claim, Key: k, Slot: at, Lease: time.Minute, New: true}, {Action: Skip, Key: k, Slot: at, Reason: "overlap", New: true}} {
		_, answer, err := Next(nil, op, now)
		require.NoError(t, err)
		require.Equal(t, Recorded, answer)
	}
}
