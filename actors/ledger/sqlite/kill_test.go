package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger"
	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/internal/engine"
)

// killVar has the test binary be a process that works through killKeys keys until it is killed.
const killVar = "QUARTERJACK_TEST_KILL"

const (
	killKeys = 400
	kills    = 15
)

// toBeKilled works off all keys, several at a time, and says what it was told: "claimed KEY FENCE" and "done KEY". Some
// keys fail the first time, some are released. At the end it says "finished".
func toBeKilled(path string) int {
	if err := workOff(context.Background(), path); err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("finished")
	return 0
}

func workOff(ctx context.Context, path string) error {
	s := New(Config{Path: path, TxBound: time.Minute})
	session, err := s.Open(ctx)
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS effects (key TEXT NOT NULL, fence INTEGER NOT NULL)") // no key: it would hide a second effect
		return err
	})
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Config{})
	if err != nil {
		return err
	}
	l, err := ledger.Spawn(e, ledger.Config{Store: s, Session: session})
	if err != nil {
		return err
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			for errs[i] == nil {
				n := next.Add(1) - 1
				if n >= killKeys {
					return
				}
				errs[i] = workOn(ctx, l, n)
			}
		})
	}
	wait.Wait()
	return errors.Join(errors.Join(errs...), l.Close(ctx), e.Stop(ctx), s.Close())
}

// workOn works on a key until it has its verdict.
func workOn(ctx context.Context, l *ledger.Ledger, n int64) error {
	id := fmt.Sprintf("%03d", n)
	key := free(id)
	for {
		o := l.Apply(ctx, claim.Request{Ops: []claim.Op{claimOp(id)}})
		if o.Err != nil {
			return o.Err
		}
		r := o.Results[0]
		if r.Answer == claim.Already {
			return nil
		}
		if r.Answer != claim.Recorded {
			return fmt.Errorf("%s is %s: earlier sessions hold nothing", id, r.Answer)
		}
		fence := r.Record.Fence
		fmt.Println("claimed", id, fence)
		req := claim.Request{
			Ops: []claim.Op{{Action: claim.Complete, Key: key, Fence: fence}},
			Tx: func(ctx context.Context, tx any) error {
				_, err := tx.(*closureTx).ExecContext(ctx, "INSERT INTO effects VALUES (?, ?)", id, fence)
				return err
			},
		}
		switch {
		case n%5 == 1 && r.Record.Attempt == 1:
			req = claim.Request{Ops: []claim.Op{{Action: claim.Fail, Key: key, Fence: fence, Reason: "the first time"}}}
		case n%5 == 2 && r.Record.Interruptions == 0:
			req = claim.Request{Ops: []claim.Op{{Action: claim.Release, Key: key, Fence: fence, Reason: "once"}}}
		}
		if o := l.Apply(ctx, req); o.Err != nil {
			return o.Err
		}
		if req.Tx != nil {
			fmt.Println("done", id)
			return nil
		}
	}
}

// TestKilledAtAnyMoment kills a process with SIGKILL, again and again, while it claims, commits effects and completes;
// then lets it finish, and reads the file by plain SQL.
func TestKilledAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarterjack.db")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	fences, done := map[string]int64{}, map[string]bool{}
	began, killed := time.Now(), 0
	for killed < kills && time.Since(began) < 10*time.Second {
		if !live(t, path, 1+random.IntN(60), fences, done) {
			break // it finished before
		}
		killed++
	}
	t.Logf("%d kills, %d of %d keys were acknowledged as done before the last run", killed, len(done), killKeys)
	require.NotZero(t, killed)
	require.False(t, live(t, path, -1, fences, done), "left alone, it finishes")

	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.Empty(t, column(t, db, "SELECT key FROM qj_claims WHERE state <> 3 OR ended_at IS NULL OR session <> 0"), "every key has its verdict")
	require.Empty(t, column(t, db, "SELECT key FROM effects GROUP BY key HAVING count(*) <> 1"), "one effect a key")
	require.Len(t, column(t, db, "SELECT DISTINCT key FROM effects"), killKeys)
	require.Empty(t, column(t, db, "SELECT c.key FROM qj_claims c LEFT JOIN effects e ON c.key = 'n//0.0.0/free/' || e.key WHERE e.fence IS NOT c.fence"), "made under the fence that completed it")
	require.Empty(t, column(t, db, "SELECT key FROM qj_claims WHERE fence < attempt"))
	for id, acknowledged := range fences {
		var fence int64
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT fence FROM qj_claims WHERE key = ?", free(id).String()).Scan(&fence))
		assert.GreaterOrEqual(t, fence, acknowledged, "the fence of %s fell", id)
	}
	var sessions int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM qj_sessions").Scan(&sessions))
	assert.Equal(t, killed+1, sessions)
	assert.Equal(t, []string{"ok"}, column(t, db, "PRAGMA integrity_check"))
}

// live has a process work, and kills it when it has said so many lines (-1: never). It checks what it says against what
// was said before, and says whether it was killed.
func live(t *testing.T, path string, lines int, fences map[string]int64, done map[string]bool) (killed bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), killVar+"="+path)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	finished := false
	for s := bufio.NewScanner(out); s.Scan(); {
		if lines--; lines == 0 {
			require.NoError(t, c.Process.Kill())
		}
		word := strings.Fields(s.Text())
		switch {
		case len(word) == 3 && word[0] == "claimed":
			var fence int64
			_, err := fmt.Sscan(word[2], &fence)
			require.NoError(t, err)
			require.Greater(t, fence, fences[word[1]], "a claim has a higher fence than all before it")
			require.False(t, done[word[1]], "%s was done, and is claimed again", word[1])
			fences[word[1]] = fence
		case len(word) == 2 && word[0] == "done":
			require.False(t, done[word[1]], "%s is done twice", word[1])
			done[word[1]] = true
		case s.Text() == "finished":
			finished = true
		case len(word) > 0 && word[0] == "error":
			require.Fail(t, "the process failed", s.Text())
		}
	}
	err = c.Wait()
	if finished {
		return false
	}
	require.ErrorContains(t, err, "signal: killed")
	return true
}

// column gives the first column of a query's rows.
func column(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		all = append(all, v)
	}
	require.NoError(t, rows.Err())
	return all
}
