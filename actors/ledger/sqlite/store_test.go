package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// raw runs plain SQL on a file, beside the store.
func raw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deeper")
	f := openStore(t, Config{Path: filepath.Join(dir, "quarterjack.db")})
	f.claimed("a")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(f.path + suffix)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

// TestMain runs this instead of the tests where the variable is set: another process that opens
// a store, says so, and waits until it is told to end.
const holdVar = "QUARTERJACK_TEST_HOLD"

func hold(path string) int {
	s := New(Config{Path: path})
	if _, err := s.Open(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("open")
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestASecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarterjack.db")
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), holdVar+"="+path)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", said)

	s := New(Config{Path: path})
	_, err = s.Open(t.Context())
	require.ErrorIs(t, err, claim.ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("process %d (%s) on ", c.Process.Pid, filepath.Base(os.Args[0])))
	require.ErrorContains(t, err, "since 20")

	link := filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(path, link))
	_, err = New(Config{Path: link}).Open(t.Context())
	require.ErrorIs(t, err, claim.ErrLocked, "another name of the same file")

	r, err := OpenReader(path)
	require.NoError(t, err, "reading is free")
	_, err = r.Records(t.Context(), claim.Query{})
	require.NoError(t, err)
	require.NoError(t, r.Close())

	require.NoError(t, in.Close())
	require.NoError(t, c.Wait())
	text, err := os.ReadFile(path + ".lock")
	require.NoError(t, err)
	assert.NotEmpty(t, text, "the file stays")
	session, err := s.Open(t.Context())
	require.NoError(t, err, "a lock file without a lock is no obstacle")
	assert.Equal(t, uint64(2), session.ID)
	require.NoError(t, s.Close())
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		err  error
		says string
	}{
		{"from a newer version", func(t *testing.T, path string) {
			require.NoError(t, openStore(t, Config{Path: path}).Close())
			raw(t, path, "PRAGMA user_version = 99")
		}, claim.ErrNewer, "its schema has version 99, this program knows up to 1"},
		{"no database", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("this is a letter\n", 1000)), 0o600))
		}, claim.ErrCorrupt, "not a database"},
		{"of another program", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE letters (x)", "PRAGMA application_id = 7", "PRAGMA user_version = 3")
		}, claim.ErrCorrupt, "of another program (application_id 7, user_version 3)"},
		{"of a program that gives no application_id", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE letters (x)", "PRAGMA user_version = 3")
		}, claim.ErrCorrupt, "of another program"},
		{"damaged", func(t *testing.T, path string) {
			f := openStore(t, Config{Path: path})
			for i := range 300 {
				f.claimed(fmt.Sprint(i))
			}
			require.NoError(t, f.Close())
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			for i := 5 * 4096; i < len(b); i++ {
				b[i] ^= 0x55
			}
			require.NoError(t, os.WriteFile(path, b, 0o600))
		}, claim.ErrCorrupt, ""},
		{"cut short", func(t *testing.T, path string) {
			f := openStore(t, Config{Path: path})
			require.NoError(t, f.Close())
			require.NoError(t, os.Truncate(path, 5000))
		}, claim.ErrCorrupt, ""},
		{"a directory", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, claim.ErrUnavailable, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "quarterjack.db")
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			s := New(Config{Path: path})
			_, err := s.Open(t.Context())
			require.ErrorIs(t, err, tt.err)
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, path)
			require.NoError(t, s.Close())
			after, _ := os.ReadFile(path)
			assert.Equal(t, before, after, "what is refused is not touched")
			if tt.name != "damaged" { // reading looks only at what it reads
				_, err = OpenReader(path)
				require.ErrorIs(t, err, tt.err)
			}
			l, err := lock(path, self(noon))
			require.NoError(t, err, "and not locked")
			require.NoError(t, l.Unlock())
		})
	}
}

func TestPlacesThatAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for says, path := range map[string]string{"Path is empty": "", "not a directory": filepath.Join(file, "quarterjack.db")} {
		_, err := New(Config{Path: path}).Open(t.Context())
		require.ErrorIs(t, err, claim.ErrUnavailable)
		require.ErrorContains(t, err, says)
	}
}

func TestAFileOfTheUsersBecomesAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%20?#.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	f := openStore(t, Config{Path: path})
	require.NoError(t, f.Close())
	_, err := f.Open(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Check(t.Context()))
	_, err = os.Stat(path)
	require.NoError(t, err)
}

func TestAFullDisk(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a", "b", "c")
	require.NoError(t, f.apply(commit("a", fine("loan 1")))[0].Err)
	limit := func(pages int) {
		t.Helper()
		_, err := f.open.w.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil)
		require.NoError(t, err)
	}
	var pages int
	require.NoError(t, f.View(t.Context(), func(ctx context.Context, tx Tx) error {
		return tx.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages)
	}))
	limit(pages + 2)

	big := claimOp("big")
	big.Payload = make([]byte, 1<<20)
	_, err := f.Apply(t.Context(), f.now, []claim.Request{{Ops: []claim.Op{claimOp("d")}}, {Ops: []claim.Op{big}}, {Ops: []claim.Op{claimOp("e")}}})
	require.ErrorIs(t, err, claim.ErrUnavailable)
	assert.Zero(t, f.state("d"), "nothing of that transaction is kept")
	assert.Zero(t, f.state("e"))

	out := f.apply(
		commit("b", fine("loan 2")),
		commit("c", func(ctx context.Context, tx Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO fines SELECT hex(zeroblob(1000000)), 1")
			return err
		}),
	)
	require.NoError(t, out[0].Err, "a closure that fills the disk fails alone")
	require.ErrorIs(t, out[1].Err, claim.ErrUnavailable)
	require.ErrorIs(t, f.Update(t.Context(), func(ctx context.Context, tx Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO fines SELECT hex(zeroblob(1000000)), 1")
		return err
	}), claim.ErrUnavailable)
	assert.Equal(t, map[string]int{"loan 1": 1, "loan 2": 1}, f.fines())

	limit(1 << 30)
	f.claimed("d", "e")
	require.NoError(t, f.apply(claim.Request{Ops: []claim.Op{big}})[0].Err, "there is room again")
	require.NoError(t, f.Check(t.Context()))
}

func TestAnotherWriterIsWaitedForAndThenUnavailable(t *testing.T) {
	f := openStore(t, Config{})
	db, err := sql.Open("sqlite", f.path+"?_txlock=immediate")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = f.open.w.ExecContext(t.Context(), "PRAGMA busy_timeout = 10", nil)
	require.NoError(t, err)
	_, err = f.Apply(t.Context(), f.now, []claim.Request{{Ops: []claim.Op{claimOp("a")}}})
	require.ErrorIs(t, err, claim.ErrUnavailable)
	require.NoError(t, tx.Rollback())
	f.claimed("a")
}

func TestWhatIsClosed(t *testing.T) {
	f := openStore(t, Config{})
	require.NoError(t, f.Close())
	nothing := func(context.Context, Tx) error { t.Error("it ran"); return nil }
	require.ErrorIs(t, f.Update(t.Context(), nothing), claim.ErrClosed)
	require.ErrorIs(t, f.View(t.Context(), nothing), claim.ErrClosed)
	require.ErrorIs(t, f.Check(t.Context()), claim.ErrClosed)
}

func TestWhoWaitsForTheWriterMayGiveUp(t *testing.T) {
	f := openStore(t, Config{})
	<-f.turn
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Apply(ctx, f.now, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = f.Open(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, f.Update(ctx, nil), context.Canceled)
	f.give()
}

func TestAColumnThatWasAlteredByHand(t *testing.T) {
	f := openStore(t, Config{})
	f.claimed("a")
	raw(t, f.path, "UPDATE qj_claims SET key = 'nonsense'")
	_, err := f.Records(t.Context(), claim.Query{})
	require.ErrorIs(t, err, claim.ErrCorrupt)
	raw(t, f.path, "DELETE FROM qj_claims")

	require.NoError(t, f.apply(claim.Request{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "i"}}})[0].Err)
	raw(t, f.path, "DROP INDEX qj_rows_due", "ALTER TABLE qj_rows DROP COLUMN due")
	_, err = f.Rows(t.Context(), claim.RowQuery{})
	require.ErrorContains(t, err, "no such column: due")
	_, err = f.Apply(t.Context(), f.now, []claim.Request{{Rows: []claim.Row{{Kind: "k", Namespace: "n", ID: "j"}}}})
	require.ErrorContains(t, err, "no column named due")
}
