package claim

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxReason is how many bytes of a reason are kept.
const MaxReason = 2048

// Action is what an [Op] asks for.
type Action uint8

// The actions. See the drawing in the package comment.
const (
	Decide   Action = iota + 1 // make it pending, due at Op.Due
	Claim                      // take it for Op.Lease
	Complete                   // done, with Op.Result
	Fail                       // pending again at Op.Due, or dead where Op.Final
	Release                    // pending again at once; no attempt is spent
	Extend                     // a new lease of Op.Lease from now
	Skip                       // a verdict without a run, for Op.Reason
)

var actionNames = [...]string{Decide: "decide", Claim: "claim", Complete: "complete", Fail: "fail", Release: "release", Extend: "extend", Skip: "skip"}

// String gives the action's name.
func (a Action) String() string {
	if int(a) < len(actionNames) && actionNames[a] != "" {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// Op is one wish about one key.
type Op struct {
	Action Action
	Key    Key

	// Of Decide, Claim and Skip, used where the key has no record yet.
	Slot    time.Time // what the key is for, as the history shows it
	Job     string
	Payload []byte
	// Stored, of Claim: go on with the job and payload that are stored, whatever they are. A key without a record
	// is ErrIllegal then.
	Stored bool
	// New, of Claim and Skip: only a key without a record is taken; one that is known stays as it is (Already).
	New bool
	// Alone: a refusal of this op is its own (the result's Answer is Refused and its Err says why) and does not
	// refuse the rest of the request.
	Alone bool

	Fence uint64        // of Complete, Fail, Release and Extend: the fence under which the caller holds the key
	Lease time.Duration // of Claim and Extend: how long from now; must be above 0
	// Hold, of Claim, is for how long the ledger that granted it extends the lease by itself, counted from the claim:
	// what the run may take, and a grace. 0: until the key is given back or the session ends. The kernel ignores it.
	Hold   time.Duration
	Due    time.Time // of Decide and Fail: when it may be claimed
	Final  bool      // of Fail: no further attempt, the key is dead
	Result []byte    // of Complete and Fail: what the handler left; nil keeps what is there
	Reason string    // of Skip, Fail and Release; cut to MaxReason
}

// Answer says what an [Op] came to. It is no error that a key is done already or in flight: that is what ledgers
// are for.
type Answer uint8

// The answers.
const (
	Recorded Answer = iota + 1 // the transition was made (for Claim: the caller holds the key now)
	Already                    // the key had been decided, or has its verdict; the record says which
	InFlight                   // of Claim and Skip: somebody holds the key; the record says until when
	Refused                    // of an op that stands Alone: Result.Err says why
)

var answerNames = [...]string{Recorded: "recorded", Already: "already", InFlight: "in flight", Refused: "refused"}

// String gives the answer's name.
func (a Answer) String() string {
	if int(a) < len(answerNames) && answerNames[a] != "" {
		return answerNames[a]
	}
	return fmt.Sprintf("answer(%d)", uint8(a))
}

// Next applies op to the record of its key (nil: there is none) and returns the record afterwards and the answer.
// The record that was passed in is not changed. An error (ErrFenced, ErrIllegal, ErrKeyConflict, ErrBadKey) means
// that nothing changes.
func Next(rec *Record, op Op, now Hand) (Record, Answer, error) {
	op.canonical()
	if err := op.check(rec); err != nil {
		return Record{}, 0, err
	}
	now.Wall = instant(now.Wall)
	switch op.Action {
	case Decide:
		return decide(rec, op)
	case Claim:
		return claim(rec, op, now)
	case Skip:
		return skip(rec, op, now)
	default:
		return held(rec, op, now)
	}
}

// canonical brings what the caller gave into the form in which it is kept.
func (op *Op) canonical() {
	op.Key = op.Key.Canonical()
	op.Slot, op.Due = instant(op.Slot), instant(op.Due)
	op.Reason = clean(op.Reason)
	if len(op.Payload) == 0 {
		op.Payload = nil
	}
	if len(op.Result) == 0 {
		op.Result = nil
	}
}

// clean makes a reason storable: it comes from errors, which may hold anything.
func clean(reason string) string {
	if len(reason) > MaxReason {
		reason = reason[:MaxReason]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(reason, ""), "\x00", "")
}

// text says whether s can be kept as text.
func text(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func (op *Op) check(rec *Record) error {
	if err := op.Key.Validate(); err != nil {
		return err
	}
	switch {
	case (op.Action == Claim || op.Action == Extend) && op.Lease <= 0:
		return fmt.Errorf("%w: %s of %s with a lease of %v: want above 0", ErrIllegal, op.Action, op.Key, op.Lease)
	case !storable(op.Slot) || !storable(op.Due):
		return fmt.Errorf("%w: %s of %s for slot %v, due %v: want the years 1 to 9999", ErrIllegal, op.Action, op.Key, op.Slot, op.Due)
	case !text(op.Job):
		return fmt.Errorf("%w: %s of %s for job %q: want UTF-8 without NUL", ErrIllegal, op.Action, op.Key, op.Job)
	case op.Stored && rec == nil:
		return fmt.Errorf("%w: %s of %s as stored: there is no record", ErrIllegal, op.Action, op.Key)
	case rec == nil || op.Stored || (op.Action != Decide && op.Action != Claim):
		return nil
	}
	if got := Fingerprint(op.Job, op.Payload); rec.Fingerprint != 0 && rec.Fingerprint != got {
		return fmt.Errorf("%w: %s has fingerprint %016x, now %016x was given", ErrKeyConflict, op.Key, rec.Fingerprint, got)
	}
	return nil
}

// fresh is the record of a key that is decided now.
func (op *Op) fresh() Record {
	return Record{Key: op.Key, Slot: op.Slot, Due: op.Due, Job: op.Job, Payload: op.Payload, Fingerprint: Fingerprint(op.Job, op.Payload)}
}

// until is where a lease ends that begins now. One that is too long to count never ends.
func until(now Hand, lease time.Duration) time.Duration {
	if now.Mono > math.MaxInt64-lease {
		return math.MaxInt64
	}
	return now.Mono + lease
}

func decide(rec *Record, op Op) (Record, Answer, error) {
	if rec != nil {
		return *rec, Already, nil
	}
	r := op.fresh()
	r.State = Pending
	return r, Recorded, nil
}

// open gives the record that op may take: a fresh one, or a copy of one that is open. Otherwise the answer says why not.
func (op *Op) open(rec *Record, now Hand) (Record, Answer) {
	switch {
	case rec == nil:
		return op.fresh(), Recorded
	case rec.State.Terminal() || op.New:
		return *rec, Already
	case !rec.Open(now):
		return *rec, InFlight
	}
	return *rec, Recorded
}

func claim(rec *Record, op Op, now Hand) (Record, Answer, error) {
	r, answer := op.open(rec, now)
	if answer != Recorded {
		return r, answer, nil
	}
	if r.State == Claimed { // a take-over: the start that was cut short does not count as an attempt
		r.Attempt--
		r.Interruptions++
	}
	r.becomeClaimed(now, op.Lease)
	return r, Recorded, nil
}

func skip(rec *Record, op Op, now Hand) (Record, Answer, error) {
	r, answer := op.open(rec, now)
	if answer == Recorded {
		r.becomeEnded(Skipped, now, op.Reason, nil)
	}
	return r, answer, nil
}

// held are the actions of whoever holds the key.
func held(rec *Record, op Op, now Hand) (Record, Answer, error) {
	switch {
	case rec == nil:
		return Record{}, 0, fmt.Errorf("%w: %s of %s, which was never claimed", ErrIllegal, op.Action, op.Key)
	case rec.Fence != op.Fence:
		return Record{}, 0, fmt.Errorf("%w: %s of %s under fence %d, it has %d now (%s)", ErrFenced, op.Action, op.Key, op.Fence, rec.Fence, rec.State)
	case rec.State.Terminal():
		return *rec, Already, nil // the same holder says it again
	case rec.State != Claimed:
		return Record{}, 0, fmt.Errorf("%w: %s of %s, which is %s", ErrIllegal, op.Action, op.Key, rec.State)
	case rec.Session != now.Session:
		return Record{}, 0, fmt.Errorf("%w: %s of %s by session %d, session %d holds it", ErrFenced, op.Action, op.Key, now.Session, rec.Session)
	}
	r := *rec
	switch op.Action {
	case Complete:
		r.becomeEnded(Done, now, "", op.Result)
	case Fail:
		if op.Final {
			r.becomeEnded(Dead, now, op.Reason, op.Result)
		} else {
			r.becomePending(op.Due, op.Reason, op.Result)
		}
	case Release:
		r.Fence++
		r.Attempt--
		r.Interruptions++
		r.becomePending(now.Wall, op.Reason, nil)
	case Extend:
		r.Lease = until(now, op.Lease)
	default:
		return Record{}, 0, fmt.Errorf("%w: unknown %s of %s", ErrIllegal, op.Action, op.Key)
	}
	return r, Recorded, nil
}

// becomeClaimed: somebody works on the key now.
func (r *Record) becomeClaimed(now Hand, lease time.Duration) {
	r.State, r.Session, r.Lease = Claimed, now.Session, until(now, lease)
	r.Fence++
	r.Attempt++
	r.FiredAt, r.Due = now.Wall, time.Time{}
}

// becomePending: the key waits for its next attempt.
func (r *Record) becomePending(due time.Time, reason string, result []byte) {
	r.State, r.Session, r.Lease = Pending, 0, 0
	r.Due, r.Reason = due, reason
	if result != nil {
		r.Result = result
	}
}

// becomeEnded: the key has its verdict.
func (r *Record) becomeEnded(s State, now Hand, reason string, result []byte) {
	r.State, r.Session, r.Lease = s, 0, 0
	r.Due, r.EndedAt, r.Reason = time.Time{}, now.Wall, reason
	if result != nil {
		r.Result = result
	}
}
