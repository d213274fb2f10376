package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The benchmarks run the same work on this engine and on proto.actor with its default mailbox and dispatcher ("proto").

type benchMsg struct{ last *sync.WaitGroup }

type benchActor struct{}

func (benchActor) Receive(_ *Context, msg any) {
	if m, ok := msg.(*benchMsg); ok && m.last != nil {
		m.last.Done()
	}
}

func protoActor(c actor.Context) {
	if m, ok := c.Message().(*benchMsg); ok && m.last != nil {
		m.last.Done()
	}
}

func benchEngine(b *testing.B) *Engine {
	e, err := New(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return e
}

func benchSpawn(b *testing.B, e *Engine, name string) *Ref {
	r, err := e.Spawn(name, func() Actor { return benchActor{} })
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkFlood is the time per message when producers send as fast as they can to one actor.
func BenchmarkFlood(b *testing.B) {
	for _, producers := range []int{1, 2, 16} {
		flood := func(b *testing.B, send func(any)) {
			b.ReportAllocs()
			msg := &benchMsg{}
			var done, sent sync.WaitGroup
			b.ResetTimer()
			for p := range producers {
				n := b.N / producers
				if p == 0 {
					n = b.N - n*(producers-1)
				}
				sent.Go(func() {
					for range n {
						send(msg)
					}
				})
			}
			sent.Wait()
			done.Add(1)
			send(&benchMsg{&done})
			done.Wait()
		}
		b.Run(fmt.Sprintf("engine/producers=%d", producers), func(b *testing.B) {
			flood(b, benchSpawn(b, benchEngine(b), "a").Tell)
		})
		b.Run(fmt.Sprintf("proto/producers=%d", producers), func(b *testing.B) {
			system := newSystem(slog.New(slog.DiscardHandler))
			pid := system.Root.Spawn(actor.PropsFromFunc(protoActor))
			flood(b, func(m any) { system.Root.Send(pid, m) })
			system.Root.Stop(pid)
		})
	}
}

// BenchmarkIdle is the time per message when each goes to another of 100,000 actors that are idle, and what such an actor costs.
func BenchmarkIdle(b *testing.B) {
	const actors = 100_000
	idle := func(b *testing.B, spawn func(int) func(any)) {
		before := heap()
		send := make([]func(any), actors)
		for i := range send {
			send[i] = spawn(i)
		}
		var all sync.WaitGroup
		all.Add(actors)
		for i := range send {
			send[i](&benchMsg{&all})
		}
		all.Wait()
		each := float64(heap()-before)/actors - 24 // send's slot and closure
		b.ResetTimer()
		all.Add(b.N)
		msg := &benchMsg{&all}
		for i := range b.N {
			send[i%actors](msg)
		}
		all.Wait()
		b.ReportMetric(each, "B/actor")
		runtime.KeepAlive(send)
	}
	b.Run("engine", func(b *testing.B) {
		e := benchEngine(b)
		idle(b, func(i int) func(any) { return benchSpawn(b, e, fmt.Sprintf("trigger/%d", i)).Tell })
	})
	b.Run("proto", func(b *testing.B) {
		system := newSystem(slog.New(slog.DiscardHandler))
		props := actor.PropsFromFunc(protoActor)
		var pids []*actor.PID
		idle(b, func(i int) func(any) {
			pid, err := system.Root.SpawnNamed(props, fmt.Sprintf("trigger/%d", i))
			if err != nil {
				b.Fatal(err)
			}
			pids = append(pids, pid)
			return func(m any) { system.Root.Send(pid, m) }
		})
		for _, pid := range pids {
			system.Root.Stop(pid)
		}
	})
}

// heap returns the bytes in use, when nothing more can be collected.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkSpawn is the time of one named spawn.
func BenchmarkSpawn(b *testing.B) {
	b.Run("engine", func(b *testing.B) {
		e := benchEngine(b)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			benchSpawn(b, e, fmt.Sprintf("trigger/%d", i))
		}
	})
	b.Run("proto", func(b *testing.B) {
		system := newSystem(slog.New(slog.DiscardHandler))
		props := actor.PropsFromFunc(protoActor)
		var pids []*actor.PID
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pid, _ := system.Root.SpawnNamed(props, fmt.Sprintf("trigger/%d", i))
			pids = append(pids, pid)
		}
		for _, pid := range pids {
			system.Root.Stop(pid)
		}
	})
}

type benchAsk struct{ *Question[int] }

type benchAnswerer struct{}

func (benchAnswerer) Receive(_ *Context, msg any) {
	if q, ok := msg.(benchAsk); ok {
		q.Reply(1)
	}
}

// BenchmarkAsk is the time of one question and its answer.
func BenchmarkAsk(b *testing.B) {
	b.Run("engine", func(b *testing.B) {
		r, err := benchEngine(b).Spawn("a", func() Actor { return benchAnswerer{} })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			q := benchAsk{NewQuestion[int]()}
			r.Tell(q)
			if _, err := q.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("proto", func(b *testing.B) {
		system := newSystem(slog.New(slog.DiscardHandler))
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if c.Sender() != nil {
				c.Respond(1)
			}
		}))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := system.Root.RequestFuture(pid, 1, time.Minute).Result(); err != nil {
				b.Fatal(err)
			}
		}
		system.Root.Stop(pid)
	})
}
