package ledger

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// beats is how often a lease is extended before it would end: one beat may fail, and another be late.
const beats = 3

// held are the claims of this session that are not yet given back, known from the answers that were given, and the
// timer that extends them. While nothing is held there is no timer.
type held struct {
	now    func() time.Duration // the session's monotonic hand
	extend func([]claim.Op)     // commits them, and has the answers noted
	logger *slog.Logger

	mu      sync.Mutex
	holds   map[claim.Key]*hold
	stuck   int // holds that are extended no more
	timer   *time.Timer
	due     time.Duration // when the timer fires, which may be before anything is to be done; 0: it does not
	stopped bool
}

// hold is one claim.
type hold struct {
	fence uint64
	lease time.Duration
	next  time.Duration // when it is to be extended
	until time.Duration // when that ends; 0: never
	stuck bool          // it has ended, and the key was not given back
}

func (h *held) init(now func() time.Duration, extend func([]claim.Op), logger *slog.Logger) {
	h.now, h.extend, h.logger, h.holds = now, extend, logger, map[claim.Key]*hold{}
}

// note learns from what was answered.
func (h *held) note(now claim.Hand, reqs []claim.Request, out []claim.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range reqs {
		for j := range reqs[i].Ops {
			op := &reqs[i].Ops[j]
			if out[i].Err != nil {
				h.failed(now, op, out[i].Err)
				continue
			}
			r := &out[i].Results[j]
			switch {
			case r.Answer == claim.Refused:
				h.failed(now, op, r.Err)
			case r.Record.State != claim.Claimed:
				h.drop(r.Record.Key)
			case r.Answer == claim.Recorded:
				h.hold(now, op, &r.Record)
			}
		}
	}
	if len(h.holds) == h.stuck && h.timer != nil {
		h.timer.Stop()
		h.due = 0
	}
}

// hold notes a claim that was made or extended.
func (h *held) hold(now claim.Hand, op *claim.Op, r *claim.Record) {
	have := h.holds[r.Key]
	if have == nil || op.Action == claim.Claim {
		h.drop(r.Key)
		have = &hold{fence: r.Fence}
		if op.Hold > 0 {
			have.until = now.Mono + op.Hold
		}
		h.holds[r.Key] = have
	}
	have.lease, have.next = op.Lease, now.Mono+op.Lease/beats
	if !have.stuck {
		h.arm(have.next)
	}
}

// failed notes that an op came to nothing: what another has claimed is not held any more, and what could not be
// extended now is tried again soon.
func (h *held) failed(now claim.Hand, op *claim.Op, err error) {
	if op.Action != claim.Extend {
		return
	}
	key := op.Key.Canonical()
	have := h.holds[key]
	switch {
	case have == nil || have.fence != op.Fence:
	case claim.Refusal(err):
		h.drop(key)
		h.logger.Warn("ledger: a claim was lost before it was given back", "key", key.String(), "fence", op.Fence, "error", err)
	default:
		have.next = now.Mono + have.lease/(beats*beats)
		h.arm(have.next)
	}
}

func (h *held) drop(k claim.Key) {
	if have := h.holds[k]; have != nil {
		if have.stuck {
			h.stuck--
		}
		delete(h.holds, k)
	}
}

// arm, under mu, sets the timer to next, if that is before what it is set to.
func (h *held) arm(next time.Duration) {
	if h.stopped || h.due != 0 && h.due <= next {
		return
	}
	h.due = next
	// 1 ns and not 0: in a synctest bubble Go 1.26 may crash under -race on a timer that is due as it is set.
	after := max(next-h.now(), 1)
	if h.timer == nil {
		h.timer = time.AfterFunc(after, h.beat)
		return
	}
	h.timer.Reset(after)
}

// beat extends what is due, and what will be before long, so that claims made one after the other are extended
// together.
func (h *held) beat() {
	if ops := h.collect(); len(ops) > 0 {
		h.extend(ops)
	}
}

func (h *held) collect() []claim.Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = 0
	if h.stopped {
		return nil
	}
	now := h.now()
	var ops []claim.Op
	for k, n := range h.holds {
		switch {
		case n.stuck:
			continue
		case n.until > 0 && now >= n.until:
			n.stuck = true
			h.stuck++
			h.logger.Warn("ledger: a claim was held for longer than it may be; it is extended no more", "key", k.String(), "fence", n.fence)
			continue
		case now+n.lease/(2*beats) >= n.next:
			ops = append(ops, claim.Op{Action: claim.Extend, Key: k, Fence: n.fence, Lease: n.lease})
			n.next = now + n.lease/beats
		}
		h.arm(n.next)
	}
	return ops
}

// stop ends the heartbeat.
func (h *held) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// len gives how many claims are held, and how many of them are extended no more.
func (h *held) len() (all, stuck int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holds), h.stuck
}

// extend commits ops of the ledger's own, each by itself: one that was lost must not keep the others.
func (l *Ledger) extend(ops []claim.Op) {
	items := make([]item, len(ops))
	for i, op := range ops {
		items[i].commit = &claim.Commit{Request: claim.Request{Ops: []claim.Op{op}}, Reply: func(claim.Outcome) {}}
	}
	l.line.addOwn(items)
}
