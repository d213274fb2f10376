package ledger_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/quarterjack/quarterjack/actors/ledger"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/memory"
	"github.com/quarterjack/quarterjack/actors/ledger/sqlite"
	"github.com/quarterjack/quarterjack/internal/engine"
)

var noon = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

// benchKey is the n-th slot of a caller's own trigger.
func benchKey(caller, n int) claim.Key {
	return claim.Key{
		Namespace: "bench", Trigger: fmt.Sprintf("trigger-%04d", caller), Incarnation: 1, Version: 1,
		Kind: claim.KindSlot, Slot: noon.Add(time.Duration(n) * time.Second),
	}
}

// BenchmarkWholeClaims measures claims and completions through the actor, a pair an op, by callers that wait for each
// answer. For SQLite the same statements are then run by themselves, as many to a transaction as there are callers;
// of-raw is how much of that speed is left.
func BenchmarkWholeClaims(b *testing.B) {
	stores := map[string]func(b *testing.B) claim.Store{
		"memory": func(*testing.B) claim.Store { return memory.New() },
		"sqlite": func(b *testing.B) claim.Store {
			return sqlite.New(sqlite.Config{Path: filepath.Join(b.TempDir(), "quarterjack.db")})
		},
	}
	for _, name := range []string{"memory", "sqlite"} {
		for _, callers := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				speed := whole(b, stores[name](b), callers)
				b.ReportMetric(speed, "pairs/s")
				if name == "sqlite" {
					b.ReportMetric(speed/raw(b, callers), "of-raw")
				}
			})
		}
	}
}

// whole runs b.N pairs and gives pairs a second.
func whole(b *testing.B, s claim.Store, callers int) float64 {
	session, err := s.Open(b.Context())
	must(b, err)
	e, err := engine.New(engine.Config{Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	l, err := ledger.Spawn(e, ledger.Config{Store: s, Session: session})
	must(b, err)

	var left atomic.Int64
	left.Store(int64(b.N))
	var wait sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for caller := range callers {
		wait.Go(func() {
			for n := 0; left.Add(-1) >= 0; n++ {
				key := benchKey(caller, n)
				o := l.Apply(b.Context(), claim.Request{Ops: []claim.Op{{Action: claim.Claim, Key: key, Slot: key.Slot, Job: "job", Lease: time.Minute}}})
				if o.Err == nil {
					o = l.Apply(b.Context(), claim.Request{Ops: []claim.Op{{Action: claim.Complete, Key: key, Fence: o.Results[0].Record.Fence, Result: []byte("ok")}}})
				}
				if o.Err != nil {
					b.Error(o.Err)
					return
				}
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	speed := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(l.Stats().Mean(), "requests/commit")
	must(b, l.Close(b.Context()))
	must(b, e.Stop(b.Context()))
	must(b, s.Close())
	return speed
}

// raw runs b.N pairs of the store's own statements, batch of them to a transaction, and gives pairs a second.
func raw(b *testing.B, batch int) float64 {
	path := filepath.Join(b.TempDir(), "raw.db")
	s := sqlite.New(sqlite.Config{Path: path}) // for its schema
	_, err := s.Open(b.Context())
	must(b, err)
	must(b, s.Close())
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(FULL)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(4000)&_txlock=immediate")
	must(b, err)
	db.SetMaxOpenConns(1)
	stmts := map[string]*sql.Stmt{}
	for name, query := range map[string]string{
		"read": "SELECT state, session, lease, fence, attempt, interruptions, slot, due, fired_at, ended_at, job, payload, fingerprint, result, reason FROM qj_claims WHERE key = ?",
		"add":  "INSERT INTO qj_claims VALUES (?, 2, 1, 60000000000, 1, 1, 0, ?, NULL, ?, NULL, 'job', NULL, 4711, NULL, '')",
		"set":  "UPDATE qj_claims SET state = 3, session = 0, lease = 0, fence = 1, attempt = 1, interruptions = 0, due = NULL, fired_at = ?, ended_at = ?, result = ?, reason = '' WHERE key = ?",
	} {
		stmts[name], err = db.PrepareContext(b.Context(), query) //nolint:sqlclosecheck // with the database
		must(b, err)
	}
	began := time.Now()
	for from := 0; from < b.N; from += batch {
		claimed, err := db.BeginTx(b.Context(), nil)
		must(b, err)
		rawEach(b, claimed, stmts, from, min(batch, b.N-from), batch, func(key string, at int64) (string, []any) {
			return "add", []any{key, at, at}
		})
		must(b, claimed.Commit())
		completed, err := db.BeginTx(b.Context(), nil)
		must(b, err)
		rawEach(b, completed, stmts, from, min(batch, b.N-from), batch, func(key string, at int64) (string, []any) {
			return "set", []any{at, at, []byte("ok"), key}
		})
		must(b, completed.Commit())
	}
	speed := float64(b.N) / time.Since(began).Seconds()
	must(b, db.Close())
	return speed
}

// rawEach reads and writes n keys.
func rawEach(b *testing.B, tx *sql.Tx, stmts map[string]*sql.Stmt, from, n, batch int, write func(key string, at int64) (stmt string, args []any)) {
	values := make([]any, 15)
	into := make([]any, len(values))
	for i := range into {
		into[i] = &values[i]
	}
	read := tx.StmtContext(b.Context(), stmts["read"]) //nolint:sqlclosecheck // with the transaction
	for i := range n {
		key := benchKey(i, from/batch)
		text := key.String()
		if err := read.QueryRowContext(b.Context(), text).Scan(into...); err != nil && !errors.Is(err, sql.ErrNoRows) {
			b.Fatal(err)
		}
		name, args := write(text, key.Slot.UnixMicro())
		if _, err := tx.StmtContext(b.Context(), stmts[name]).ExecContext(b.Context(), args...); err != nil { //nolint:sqlclosecheck // with the transaction
			b.Fatal(err)
		}
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
