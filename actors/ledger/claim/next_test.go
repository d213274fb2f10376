package claim

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at reads "03-08 02:30:00" as an instant of 2026, UTC.
func at(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.999999999", "2026-"+s)
	if err != nil {
		panic(err)
	}
	return t
}

var (
	slot0230 = Key{Namespace: "billing", Trigger: "invoice", Incarnation: 1, Version: 1, Kind: KindSlot, Slot: at("03-08 02:30:00")}
	wall     = at("03-08 02:30:01")
)

// hand is session 7, five minutes after it began, of a store that this process has for itself.
func hand() Hand { return Hand{Wall: wall, Mono: 5 * time.Minute, Session: 7, Sole: true} }

// Records in each state, all of key slot0230 with job "bill" and payload "p".

func pending() *Record {
	return &Record{Key: slot0230, State: Pending, Slot: slot0230.Slot, Due: at("03-08 02:31:00"), Job: "bill", Payload: []byte("p"), Fingerprint: Fingerprint("bill", []byte("p"))}
}

// failed waits for its second attempt.
func failed() *Record {
	r := pending()
	r.Fence, r.Attempt, r.FiredAt, r.Reason = 1, 1, at("03-08 02:30:00"), "no route to host"
	return r
}

// held is claimed by this session under fence 1, until minute 6.
func heldRecord() *Record {
	r := failed()
	r.State, r.Session, r.Lease, r.Due, r.Reason = Claimed, 7, 6*time.Minute, time.Time{}, ""
	return r
}

// expired is claimed by this session, its lease ended at minute 4.
func expired() *Record {
	r := heldRecord()
	r.Lease = 4 * time.Minute
	return r
}

// orphan is claimed by a session that is dead.
func orphan() *Record {
	r := heldRecord()
	r.Session = 3
	return r
}

func ended(s State) *Record {
	r := heldRecord()
	r.State, r.Session, r.Lease, r.EndedAt = s, 0, 0, at("03-08 02:30:00.5")
	return r
}

func op(a Action) Op {
	o := Op{Action: a, Key: slot0230}
	if a == Decide || a == Claim || a == Skip {
		o.Slot, o.Job, o.Payload = slot0230.Slot, "bill", []byte("p")
	} else {
		o.Fence = 1
	}
	if a == Decide || a == Fail {
		o.Due = at("03-08 02:45:00")
	}
	if a == Claim || a == Extend {
		o.Lease = time.Minute
	}
	if a == Skip || a == Fail || a == Release {
		o.Reason = "because"
	}
	return o
}

func final() Op {
	o := op(Fail)
	o.Final = true
	return o
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rec    *Record
		op     Op
		answer Answer
		want   func(r *Record) // what the record is afterwards, beginning with what it was
	}{
		{"absent is decided", nil, op(Decide), Recorded, func(r *Record) {
			*r = *pending()
			r.Due = at("03-08 02:45:00")
		}},
		{"absent is claimed", nil, op(Claim), Recorded, func(r *Record) {
			*r = *heldRecord()
			r.FiredAt = wall
		}},
		{"absent is skipped", nil, op(Skip), Recorded, func(r *Record) {
			*r = *pending()
			r.State, r.Due, r.EndedAt, r.Reason = Skipped, time.Time{}, wall, "because"
		}},
		{"pending is claimed", pending(), op(Claim), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.Fence, r.Attempt, r.FiredAt, r.Due = Claimed, 7, 6*time.Minute, 1, 1, wall, time.Time{}
		}},
		{"a failed one is claimed for its second attempt", failed(), op(Claim), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.Fence, r.Attempt, r.FiredAt, r.Due = Claimed, 7, 6*time.Minute, 2, 2, wall, time.Time{}
		}},
		{"pending is skipped", pending(), op(Skip), Recorded, func(r *Record) {
			r.State, r.Due, r.EndedAt, r.Reason = Skipped, time.Time{}, wall, "because"
		}},
		{"claimed is completed", heldRecord(), Op{Action: Complete, Key: slot0230, Fence: 1, Result: []byte("42")}, Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.EndedAt, r.Result = Done, 0, 0, wall, []byte("42")
		}},
		{"claimed fails", heldRecord(), op(Fail), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.Due, r.Reason = Pending, 0, 0, at("03-08 02:45:00"), "because"
		}},
		{"claimed fails for good", heldRecord(), final(), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.EndedAt, r.Reason = Dead, 0, 0, wall, "because"
		}},
		{"claimed is released: the fence rises, no attempt is spent", heldRecord(), op(Release), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.Due, r.Reason = Pending, 0, 0, wall, "because"
			r.Fence, r.Attempt, r.Interruptions = 2, 0, 1
		}},
		{"claimed is extended", heldRecord(), op(Extend), Recorded, func(r *Record) { r.Lease = 6 * time.Minute }},
		{"an expired lease is taken over: the fence rises, the attempt stays", expired(), op(Claim), Recorded, func(r *Record) {
			r.Lease, r.Fence, r.Attempt, r.Interruptions, r.FiredAt = 6*time.Minute, 2, 1, 1, wall
		}},
		{"a dead session's claim is taken over, whatever its lease", orphan(), op(Claim), Recorded, func(r *Record) {
			r.Session, r.Lease, r.Fence, r.Attempt, r.Interruptions, r.FiredAt = 7, 6*time.Minute, 2, 1, 1, wall
		}},
		{"an expired lease is skipped", expired(), op(Skip), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.EndedAt, r.Reason = Skipped, 0, 0, wall, "because"
		}},
		{"an expired lease is completed by its holder, if nobody else has claimed", expired(), op(Complete), Recorded, func(r *Record) {
			r.State, r.Session, r.Lease, r.EndedAt = Done, 0, 0, wall
		}},
		{"an expired lease is extended by its holder, if nobody else has claimed", expired(), op(Extend), Recorded, func(r *Record) {
			r.Lease = 6 * time.Minute
		}},

		{"pending is not decided twice", pending(), op(Decide), Already, nil},
		{"claimed is not decided", heldRecord(), op(Decide), Already, nil},
		{"done is not decided", ended(Done), op(Decide), Already, nil},
		{"done is not claimed", ended(Done), op(Claim), Already, nil},
		{"skipped is not claimed", ended(Skipped), op(Claim), Already, nil},
		{"dead is not claimed", ended(Dead), op(Claim), Already, nil},
		{"done is not skipped", ended(Done), op(Skip), Already, nil},
		{"claimed is in flight for another claim", heldRecord(), op(Claim), InFlight, nil},
		{"claimed is in flight for a skip", heldRecord(), op(Skip), InFlight, nil},
		{"its holder completes it twice", ended(Done), op(Complete), Already, nil},
		{"its holder fails what it completed", ended(Done), op(Fail), Already, nil},
		{"its holder extends what it completed", ended(Done), op(Extend), Already, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, want Record
			if tt.rec != nil {
				require.NoError(t, tt.rec.Valid(), "the table's own record")
				before, want = *tt.rec, *tt.rec
			}
			if tt.want != nil {
				tt.want(&want)
			}
			got, answer, err := Next(tt.rec, tt.op, hand())
			require.NoError(t, err)
			assert.Equal(t, tt.answer, answer)
			assert.Equal(t, want, got)
			require.NoError(t, got.Valid())
			if tt.rec != nil {
				assert.Equal(t, before, *tt.rec, "the record that was passed in")
			}
		})
	}
}

func TestNextRefuses(t *testing.T) {
	with := func(o Op, change func(*Op)) Op { change(&o); return o }
	another := hand()
	another.Session = 8
	for _, tt := range []struct {
		name string
		rec  *Record
		op   Op
		now  Hand
		err  error
		says string
	}{
		{"complete of what was never claimed", nil, op(Complete), hand(), ErrIllegal, "complete of billing/invoice/1.1.0/slot/2026-03-08T02:30:00Z, which was never claimed"},
		{"fail of what was never claimed", nil, op(Fail), hand(), ErrIllegal, "fail of"},
		{"release of what was never claimed", nil, op(Release), hand(), ErrIllegal, "release of"},
		{"extend of what was never claimed", nil, op(Extend), hand(), ErrIllegal, "extend of"},
		{"complete of a pending one", failed(), op(Complete), hand(), ErrIllegal, "which is pending"},
		{"fail of a pending one", failed(), op(Fail), hand(), ErrIllegal, "which is pending"},
		{"release of a pending one", failed(), op(Release), hand(), ErrIllegal, "which is pending"},
		{"extend of a pending one", failed(), op(Extend), hand(), ErrIllegal, "which is pending"},
		{"complete under an older fence", heldRecord(), with(op(Complete), func(o *Op) { o.Fence = 0 }), hand(), ErrFenced, "under fence 0, it has 1 now (claimed)"},
		{"complete under a fence that was never given", heldRecord(), with(op(Complete), func(o *Op) { o.Fence = 9 }), hand(), ErrFenced, "under fence 9"},
		{"fail under an older fence", heldRecord(), with(op(Fail), func(o *Op) { o.Fence = 0 }), hand(), ErrFenced, ""},
		{"release under an older fence", heldRecord(), with(op(Release), func(o *Op) { o.Fence = 0 }), hand(), ErrFenced, ""},
		{"extend under an older fence", heldRecord(), with(op(Extend), func(o *Op) { o.Fence = 0 }), hand(), ErrFenced, ""},
		{"complete of what another completed", ended(Done), with(op(Complete), func(o *Op) { o.Fence = 0 }), hand(), ErrFenced, "done"},
		{"complete by another session", heldRecord(), op(Complete), another, ErrFenced, "by session 8, session 7 holds it"},
		{"extend by another session", heldRecord(), op(Extend), another, ErrFenced, "by session 8"},
		{"claim for no time", pending(), with(op(Claim), func(o *Op) { o.Lease = 0 }), hand(), ErrIllegal, "lease of 0s: want above 0"},
		{"extend for less than no time", heldRecord(), with(op(Extend), func(o *Op) { o.Lease = -1 }), hand(), ErrIllegal, "lease of -1ns"},
		{"claim of an absent one as stored", nil, with(op(Claim), func(o *Op) { o.Stored = true }), hand(), ErrIllegal, "there is no record"},
		{"claim with another payload", pending(), with(op(Claim), func(o *Op) { o.Payload = []byte("q") }), hand(), ErrKeyConflict, "has fingerprint"},
		{"claim of a done one with another payload", ended(Done), with(op(Claim), func(o *Op) { o.Payload = []byte("q") }), hand(), ErrKeyConflict, ""},
		{"decide with another job", pending(), with(op(Decide), func(o *Op) { o.Job = "mail" }), hand(), ErrKeyConflict, ""},
		{"no action", heldRecord(), Op{Key: slot0230, Fence: 1}, hand(), ErrIllegal, "unknown action(0)"},
		{"an action that does not exist", heldRecord(), Op{Action: 99, Key: slot0230, Fence: 1}, hand(), ErrIllegal, "unknown action(99)"},
		{"no key", nil, Op{Action: Claim, Lease: time.Minute}, hand(), ErrBadKey, "namespace is empty"},
		{"a due time after the year 9999", nil, with(op(Decide), func(o *Op) { o.Due = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), hand(), ErrIllegal, "years 1 to 9999"},
		{"a job that is not UTF-8", nil, with(op(Decide), func(o *Op) { o.Job = "\xff" }), hand(), ErrIllegal, "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, answer, err := Next(tt.rec, tt.op, tt.now)
			require.ErrorIs(t, err, tt.err)
			require.ErrorContains(t, err, tt.says)
			assert.Zero(t, got)
			assert.Zero(t, answer)
			assert.True(t, Refusal(err))
		})
	}
}

func TestNextGoesOnWithWhatIsStored(t *testing.T) {
	got, answer, err := Next(failed(), Op{Action: Claim, Key: slot0230, Stored: true, Lease: time.Minute}, hand())
	require.NoError(t, err)
	assert.Equal(t, Recorded, answer)
	assert.Equal(t, "bill", got.Job)
	assert.Equal(t, []byte("p"), got.Payload)
}

func TestNextKeepsWhatStoresCanHold(t *testing.T) {
	zurich, err := time.LoadLocation("Europe/Zurich")
	require.NoError(t, err)
	fine := at("03-08 02:30:00.123456789")
	key := slot0230
	key.Slot, key.ID, key.Ordinal = fine.In(zurich), "ignored", 9
	now := hand()
	now.Wall = fine.In(zurich)

	r, _, err := Next(nil, Op{Action: Claim, Key: key, Slot: fine.In(zurich), Payload: []byte{}, Lease: math.MaxInt64}, now)
	require.NoError(t, err)
	micro := at("03-08 02:30:00.123456")
	assert.Equal(t, micro, r.Slot)
	assert.Equal(t, micro, r.FiredAt)
	assert.Equal(t, "billing/invoice/1.1.0/slot/2026-03-08T02:30:00.123456Z", r.Key.String())
	assert.Equal(t, r.Key, key.Canonical())
	assert.Nil(t, r.Payload)
	assert.Equal(t, time.Duration(math.MaxInt64), r.Lease, "a lease that is too long to count never ends")

	r, _, err = Next(&r, Op{Action: Fail, Key: key, Fence: 1, Final: true, Reason: strings.Repeat("é", MaxReason) + "\x00"}, now)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("é", MaxReason/2), r.Reason)
	r.State = Claimed
	_, _, err = Next(nil, Op{Action: Skip, Key: key, Reason: "a\x00b\xff"}, now)
	require.NoError(t, err)
	assert.Equal(t, "ab", clean("a\x00b\xff"))
}

func TestNamesOfTheUnknown(t *testing.T) {
	assert.Equal(t, "action(77)", Action(77).String())
	assert.Equal(t, "state(77)", State(77).String())
	assert.Equal(t, "kind(77)", Kind(77).String())
	assert.Equal(t, "answer(77)", Answer(77).String())
	assert.Equal(t, "in flight", InFlight.String())
	assert.False(t, Refusal(errors.New("disk on fire")))
	assert.False(t, Refusal(ErrUnavailable))
}
