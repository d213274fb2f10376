package keygroup

import "time"

// sweepLater sees to it that idle keys are forgotten as long as there are keys. A group without any owns no timer.
func (g *Group[K, V, A]) sweepLater() {
	if !g.sweeping.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(max(g.cfg.IdleAfter/2, time.Millisecond), func() {
		g.sweep()
		g.sweeping.Store(false)
		if g.keys.live.Load() > 0 && !g.shut.Load() {
			g.sweepLater()
		}
	})
}

// sweep asks the keys that have had nothing to do for long enough to be gone. They look again, in their own turn.
func (g *Group[K, V, A]) sweep() {
	now := g.deps.Now()
	g.keys.each(func(k *key[K, V, A]) {
		k.mu.Lock()
		idle := !k.gone && !k.quiet.IsZero() && now.Sub(k.quiet) >= g.cfg.IdleAfter
		ref := k.ref
		k.mu.Unlock()
		if idle {
			ref.Tell(passivate{})
		}
	})
}
