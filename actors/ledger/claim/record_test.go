package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValid(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rec    *Record
		change func(*Record)
		says   string // empty: valid
	}{
		{"pending", pending(), nil, ""},
		{"failed", failed(), nil, ""},
		{"claimed", heldRecord(), nil, ""},
		{"done", ended(Done), nil, ""},
		{"dead", ended(Dead), nil, ""},
		{"skipped without a start", pending(), func(r *Record) { r.State, r.EndedAt = Skipped, wall }, ""},
		{"no state", pending(), func(r *Record) { r.State = 0 }, "unknown state(0)"},
		{"a state that does not exist", pending(), func(r *Record) { r.State = 99 }, "unknown state(99)"},
		{"claimed by nobody", heldRecord(), func(r *Record) { r.Session = 0 }, "invariant 1"},
		{"claimed for no time", heldRecord(), func(r *Record) { r.Lease = 0 }, "invariant 1"},
		{"claimed and never fired", heldRecord(), func(r *Record) { r.FiredAt = time.Time{} }, "invariant 1"},
		{"claimed without an attempt", heldRecord(), func(r *Record) { r.Attempt = 0 }, "invariant 1"},
		{"pending with a session", pending(), func(r *Record) { r.Session = 7 }, "invariant 2"},
		{"done with a lease", ended(Done), func(r *Record) { r.Lease = 1 }, "invariant 2"},
		{"done without an end", ended(Done), func(r *Record) { r.EndedAt = time.Time{} }, "invariant 3"},
		{"pending with an end", pending(), func(r *Record) { r.EndedAt = wall }, "invariant 3"},
		{"done without a fence", ended(Done), func(r *Record) { r.Fence = 0 }, "invariant 4"},
		{"dead without an attempt", ended(Dead), func(r *Record) { r.Attempt = 0 }, "invariant 4"},
		{"more attempts than fences", heldRecord(), func(r *Record) { r.Attempt = 2 }, "invariant 5"},
		{"a bad key", pending(), func(r *Record) { r.Key.Namespace = "" }, "namespace is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.rec)
			}
			if tt.says == "" {
				require.NoError(t, tt.rec.Valid())
				return
			}
			require.ErrorContains(t, tt.rec.Valid(), tt.says)
		})
	}
}

func TestOver(t *testing.T) {
	for _, tt := range []struct {
		name string
		rec  *Record
		now  func(*Hand)
		over bool
	}{
		{"what is not claimed is not over", pending(), nil, false},
		{"before its lease ends", heldRecord(), func(h *Hand) { h.Mono = 6*time.Minute - 1 }, false},
		{"when its lease ends", heldRecord(), func(h *Hand) { h.Mono = 6 * time.Minute }, true},
		{"a step of the wall clock ends no lease", heldRecord(), func(h *Hand) { h.Wall = h.Wall.AddDate(10, 0, 0) }, false},
		{"a dead session's is over at once", orphan(), nil, true},
		{"another session's lasts for its lease where sessions share the store", orphan(), func(h *Hand) { h.Sole = false }, false},
		{"another session's ends with its lease", orphan(), func(h *Hand) { h.Sole, h.Mono = false, 6*time.Minute }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := hand()
			if tt.now != nil {
				tt.now(&now)
			}
			assert.Equal(t, tt.over, tt.rec.Over(now))
			assert.Equal(t, tt.over || tt.rec.State == Pending, tt.rec.Open(now))
		})
	}
}

func TestFingerprint(t *testing.T) {
	assert.NotEqual(t, Fingerprint("a", []byte("bc")), Fingerprint("ab", []byte("c")), "where the job ends matters")
	assert.Equal(t, Fingerprint("a", nil), Fingerprint("a", []byte{}))
	assert.NotZero(t, Fingerprint("", nil))
}
