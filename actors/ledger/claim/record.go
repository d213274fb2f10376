package claim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// State of one key. A key that was never decided has no record.
type State uint8

// The states of a key.
const (
	Pending State = iota + 1 // decided, and waits for its (next) attempt from Due on
	Claimed                  // somebody works on it, until its lease ends
	Done                     // completed, once; terminal
	Skipped                  // a policy decided that it is not run; Reason says which; terminal
	Dead                     // its attempts are used up or its handler gave it up; terminal
)

var stateNames = [...]string{Pending: "pending", Claimed: "claimed", Done: "done", Skipped: "skipped", Dead: "dead"}

// String gives the state's name as the history shows it.
func (s State) String() string {
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Terminal says whether the state is a verdict: no claim is possible any more.
func (s State) Terminal() bool { return s >= Done }

// Hand is one reading of the clocks, taken by the shell. Wall is what people see; leases are measured on Mono, the
// monotonic time since the session began, so that a step of the wall clock ends no lease.
type Hand struct {
	Wall    time.Time
	Mono    time.Duration
	Session uint64 // who asks: the session that the store gave when it was opened
	// Sole is set by stores that one process has for itself: opening it proved every other session dead, so their
	// claims are over at once.
	Sole bool
}

// Record is all that the ledger knows of one key.
//
// Invariants, checked by Valid:
//  1. Claimed has a Session, a Lease, a FiredAt and an Attempt of at least 1.
//  2. No other state has a Session or a Lease.
//  3. A terminal state has an EndedAt; no other has.
//  4. Done and Dead were claimed at least once: Fence and Attempt are at least 1.
//  5. Fence is at least Attempt, since each attempt raises it.
type Record struct {
	Key     Key
	State   State
	Session uint64        // holder of the claim
	Lease   time.Duration // when the claim ends, on the holder's monotonic hand
	Fence   uint64        // raised by each claim and each release; never lowered

	Attempt       uint32 // starts so far, without those that were interrupted
	Interruptions uint32 // starts that were cut short by no fault of the work: released, or their process died

	Slot    time.Time // the instant that it is for: the slot, or when it was asked for
	Due     time.Time // Pending: not before this instant
	FiredAt time.Time // wall time of the last start
	EndedAt time.Time // wall time of the verdict

	Job         string // the registered job that does the work; empty where the caller brings the code (Do)
	Payload     []byte // what was decided is what is retried
	Fingerprint uint64 // of job and payload; 0: not checked
	Result      []byte // what the handler left: the stored result of Do, the output of a program
	Reason      string // why it was skipped, failed or is dead
}

// Fingerprint makes the number by which two payloads of one key are told apart. It is never 0.
func Fingerprint(job string, payload []byte) uint64 {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(job)))
	h.Write(n[:])
	h.Write([]byte(job))
	h.Write(payload)
	if v := binary.BigEndian.Uint64(h.Sum(nil)); v != 0 {
		return v
	}
	return 1
}

// Over says whether the record's claim has ended by time: its lease is past, or its session is dead. It is false
// for a record that is not claimed.
func (r *Record) Over(now Hand) bool {
	if r.State != Claimed {
		return false
	}
	if r.Session != now.Session {
		return now.Sole || now.Mono >= r.Lease
	}
	return now.Mono >= r.Lease
}

// Open says whether the key can be claimed now: it is pending, or its claim is over.
func (r *Record) Open(now Hand) bool { return r.State == Pending || r.Over(now) }

// Valid checks the invariants and names the first that is broken.
func (r *Record) Valid() error {
	broken := func(n int, why string) error {
		return fmt.Errorf("record %s (%s): invariant %d: %s", r.Key, r.State, n, why)
	}
	switch {
	case r.State < Pending || r.State > Dead:
		return fmt.Errorf("record %s: unknown %s", r.Key, r.State)
	case r.State == Claimed && (r.Session == 0 || r.Lease <= 0 || r.FiredAt.IsZero() || r.Attempt == 0):
		return broken(1, "claimed without session, lease, fired-at or attempt")
	case r.State != Claimed && (r.Session != 0 || r.Lease != 0):
		return broken(2, "a session or lease outside of claimed")
	case r.State.Terminal() == r.EndedAt.IsZero():
		return broken(3, "ended-at and terminal state differ")
	case (r.State == Done || r.State == Dead) && (r.Fence == 0 || r.Attempt == 0):
		return broken(4, "ended without a start")
	case r.Fence < uint64(r.Attempt):
		return broken(5, "fence below attempt")
	}
	return r.Key.Validate()
}
