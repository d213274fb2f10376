package keygroup

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quarterjack/quarterjack/actors/keygroup/batch"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// key is the actor of one key, in all its incarnations: what it has gathered outlives a failure of its code.
//
// Items come through the inbox, so that an actor message is sent when the inbox is no longer empty, not for each item.
// All else comes as messages. Fields under mu are shared with adders; the rest belongs to the actor's turn.
type key[K comparable, V, A any] struct {
	group *Group[K, V, A]
	key   K
	home  *shard[K, V, A]

	mu      sync.Mutex
	ref     *engine.Ref
	inbox   []V
	arrived time.Time // of the first item in the inbox
	quiet   time.Time // since when there is nothing to do; zero: there is
	gone    bool      // takes nothing more
	stop    stop

	state   batch.State[V, A]
	taken   []V // out of the inbox, and merged up to merged
	merged  int
	at      time.Time     // arrival of taken[merged]
	alarmed atomic.Uint64 // generation of the tick that the alarm is set for
	dead    uint64        // items in dead letters; their room is given back when OnDead has returned
	burying int           // of them: items for which it has not
	freed   uint64        // items whose room was given back here
	flushes []waiting
	closing *latch      // told when the actor has stopped
	heir    *heir[K, A] // gets what is left, and is told when the actor has stopped or is abandoned

	inherited bool // the heir was told
}

// waiting is a flush that waits until so many items are through.
type waiting struct {
	until uint64
	latch *latch
}

// push, under mu which it releases, puts items into the inbox.
func (k *key[K, V, A]) push(vs ...V) {
	first := len(k.inbox) == 0
	if first {
		k.arrived = k.group.deps.Now()
		k.quiet = time.Time{}
	}
	k.inbox = append(k.inbox, vs...)
	k.mu.Unlock()
	if first {
		k.ref.Tell(wake{})
	}
}

// Receive handles one message.
func (k *key[K, V, A]) Receive(c *engine.Context, msg any) {
	switch msg := msg.(type) {
	case engine.Started:
		if c.Incarnation() == 1 {
			return
		}
		k.resume()
	case wake:
		k.drain()
	case tick:
		k.drain()
		k.perform(k.state.Tick(msg.generation))
	case *permit:
		k.drain() // what is there already goes with this batch
		msg.used = true
		k.start(msg.generation)
	case *finished[K, V, A]:
		msg.seen = true
		k.finish(msg)
	case buried:
		k.burying -= msg.items
	case *flush:
		k.drain()
		msg.taken = true
		k.perform(k.state.Flush())
		k.flushes = append(k.flushes, waiting{k.state.Accepted(), msg.latch})
	case *shutdown:
		msg.taken, k.closing = true, msg.latch
		k.drain()
		k.perform(k.state.Close())
	case *surrender[K, A]:
		msg.taken, k.heir = true, msg.heir
		k.drain()
		k.perform(k.state.Surrender())
	case abandon:
		k.perform(k.state.Abandon())
		k.settle() // before the heir looks
		k.inherit()
	case passivate:
		k.drain()
	case engine.Stopped:
		k.stopped()
		return
	}
	k.settle()
	_, wanted := msg.(passivate)
	if (wanted || k.closing != nil || k.heir != nil) && k.leave() {
		c.Stop()
	}
}

// resume goes on after the code of an earlier incarnation failed: its message is lost, and with it perhaps what the state
// waits for.
func (k *key[K, V, A]) resume() {
	k.drain()
	k.perform(k.state.Resume())
	if k.closing != nil {
		k.perform(k.state.Close())
	}
	if k.heir != nil {
		k.perform(k.state.Surrender())
	}
}

// drain merges what is in the inbox now. Effects are performed when all of it is merged, so that a batch that is due at
// once holds all that was there. What comes in meanwhile has its own wake.
func (k *key[K, V, A]) drain() {
	effects := k.mergeAll() // what an incarnation that failed has left
	k.mu.Lock()
	k.inbox, k.taken, k.at = k.taken, k.inbox, k.arrived
	k.mu.Unlock()
	effects = append(effects, k.mergeAll()...)
	k.perform(effects)
}

// mergeAll merges all that is taken, and leaves taken empty to be the next inbox.
func (k *key[K, V, A]) mergeAll() (effects []batch.Effect) {
	for k.merged < len(k.taken) {
		effects = append(effects, k.merge()...)
	}
	const keep = 256 // items that an empty inbox may have room for; a larger one was a burst's
	clear(k.taken)
	k.taken, k.merged = k.taken[:0], 0
	if cap(k.taken) > keep {
		k.taken = nil
	}
	return effects
}

// merge adds items to the state until one of them has effects, or panics: then that item is lost, and a dead letter.
func (k *key[K, V, A]) merge() (effects []batch.Effect) {
	g := k.group
	from, had := k.merged, k.state.Gathered() > 0
	clean := false
	defer func() {
		done := uint64(k.merged - from)
		g.counts.adds.Add(done)
		if done > 0 && !had {
			done--
		}
		g.counts.merged.Add(done)
		if clean {
			return
		}
		lost := k.taken[k.merged]
		k.merged++
		g.counts.adds.Add(1)
		g.bury(DeadLetter{
			Group: g.cfg.Name, Key: k.key, Value: lost, Items: 1, First: k.at, Last: k.at,
			Err: panicked(recover(), debug.Stack()),
		}, nil)
	}()
	for k.merged < len(k.taken) && effects == nil {
		effects = k.state.Add(k.taken[k.merged], k.at)
		k.merged++
		if k.merged == from+1 {
			k.at = g.deps.Now()
		}
	}
	clean = true
	return effects
}

// perform does what the state wants, in its order.
func (k *key[K, V, A]) perform(effects []batch.Effect) {
	g := k.group
	for _, e := range effects {
		switch e := e.(type) {
		case batch.Arm:
			g.alarm.set(e.Deadline, k, e.Generation)
		case batch.Ready:
			g.alarm.drop(k)
			if g.pool.TryAcquire() {
				k.start(e.Generation)
			} else {
				g.pool.Acquire(func() { k.ref.Tell(&permit{pool: g.pool, generation: e.Generation}) })
			}
		case *batch.Run[A]:
			g.pool.Go(func() { g.handle(k, e) })
		case *batch.DeadLetter[A]:
			k.bury(e)
		case *batch.Left[A]:
			g.alarm.drop(k)
			k.handBack(e)
		case batch.Late:
			g.counts.late.Add(1)
		case batch.Stale:
			g.counts.stale.Add(1)
		case batch.Idle:
			g.alarm.drop(k)
		}
	}
}

func (k *key[K, V, A]) awaited() *atomic.Uint64 { return &k.alarmed }

func (k *key[K, V, A]) ring(generation uint64) { k.ref.Tell(tick{generation}) }

// bury has OnDead told of a dead letter. A flush waits for that.
func (k *key[K, V, A]) bury(e *batch.DeadLetter[A]) {
	n := e.Batch.Items
	k.dead += uint64(n)
	k.burying += n
	k.group.bury(k.group.letter(k.key, e.Batch, e.Err), func() { k.ref.Tell(buried{n}) })
}

// settle gives back the room of items that are through, and tells the flushes that waited for them.
func (k *key[K, V, A]) settle() {
	if free := k.state.Settled() - k.dead; free > k.freed {
		k.group.room.release(int64(free - k.freed))
		k.freed = free
	}
	through := k.state.Settled() - uint64(k.burying)
	k.flushes = slices.DeleteFunc(k.flushes, func(w waiting) bool {
		if w.until > through {
			return false
		}
		w.latch.part(nil)
		return true
	})
	if k.resting() {
		k.mu.Lock()
		if len(k.inbox) == 0 && k.quiet.IsZero() {
			k.quiet = k.group.deps.Now()
		}
		k.mu.Unlock()
	}
}

// resting says that there is nothing to do but what may be in the inbox.
func (k *key[K, V, A]) resting() bool {
	return k.state.Phase() == batch.PhaseIdle && k.burying == 0 && len(k.taken) == 0
}
