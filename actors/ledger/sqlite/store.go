package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // database/sql's driver "sqlite", for connections that are not the writer's

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// What a zero field of Config means, and bounds that are fixed.
const (
	DefaultTxBound = 100 * time.Millisecond
	updateBound    = time.Minute // of Update
	readers        = 4           // connections for reading, at most
)

// Config of a store.
type Config struct {
	Path   string       // of the database file; its directory is made
	Logger *slog.Logger // nil: slog.Default()
	// TxBound is how long a Commit closure may take; all other commits wait for it. 0: 100 ms.
	TxBound time.Duration
}

// Store is a claim.Store in a SQLite file. Make it with New.
type Store struct {
	cfg Config

	turn chan struct{} // holds one token; who has it has the writer

	mu   sync.Mutex // guards open against reads that begin; who changes it has the turn too
	open *opened
}

// opened is what an open store has.
type opened struct {
	lock  *flock.Flock
	w     *writer
	r     reads
	users sync.WaitGroup // of r
}

var _ claim.Store = (*Store)(nil)

// New returns a store that is not open. It touches no file.
func New(cfg Config) *Store {
	if cfg.TxBound <= 0 {
		cfg.TxBound = DefaultTxBound
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Store{cfg: cfg, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// take waits for the writer, and gives what is open.
func (s *Store) take(ctx context.Context) (*opened, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.open == nil {
		s.give()
		return nil, claim.ErrClosed
	}
	return s.open, nil
}

func (s *Store) give() { s.turn <- struct{}{} }

// Open makes the file if there is none, brings its schema up to date, checks it (PRAGMA quick_check, which reads all of
// it) and begins a session.
//
// ErrLocked: another process has it, or this one. ErrNewer, ErrCorrupt, ErrUnavailable: see the package.
func (s *Store) Open(ctx context.Context) (claim.Session, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return claim.Session{}, context.Cause(ctx)
	}
	defer s.give()
	me := self(time.Now())
	if s.open != nil {
		return claim.Session{}, fmt.Errorf("%w: %s is open in this very store: %s", claim.ErrLocked, s.cfg.Path, me)
	}
	o, id, err := openAll(ctx, s.cfg.Path, me)
	if err != nil {
		return claim.Session{}, fmt.Errorf("sqlite: %s: %w", s.cfg.Path, err)
	}
	s.mu.Lock()
	s.open = o
	s.mu.Unlock()
	return claim.Session{ID: id, Sole: true}, nil
}

// openAll opens everything, or nothing.
func openAll(ctx context.Context, path string, me who) (_ *opened, session uint64, err error) {
	if path, err = place(path); err != nil {
		return nil, 0, err
	}
	o := &opened{}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	if o.lock, err = lock(path, me); err != nil {
		return nil, 0, err
	}
	if err := create(path); err != nil {
		return nil, 0, err
	}
	err = with(dsn(path, "rw"), func(db *sql.DB) error { // nothing is changed before it is known to be ours
		if _, err := identify(ctx, db); err != nil {
			return err
		}
		return quickCheck(ctx, db)
	})
	if err != nil {
		return nil, 0, err
	}
	if o.w, err = openWriter(ctx, path); err != nil {
		return nil, 0, err
	}
	err = with(dsn(path, "rw", durable...), func(db *sql.DB) (err error) {
		if err := migrate(ctx, db); err != nil {
			return err
		}
		session, err = beginSession(ctx, db, me)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if err := o.w.prepare(); err != nil {
		return nil, 0, err
	}
	o.r, err = openReads(path)
	return o, session, err
}

// with runs fn over a connection that is there for it only.
func with(dsn string, fn func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(fn(db), db.Close())
}

// close closes what is open of it, the lock last.
func (o *opened) close() error {
	var errs []error
	o.users.Wait()
	if o.r.db != nil {
		errs = append(errs, o.r.db.Close())
	}
	if o.w != nil {
		errs = append(errs, o.w.close())
	}
	if o.lock != nil {
		errs = append(errs, o.lock.Unlock())
	}
	return errors.Join(errs...)
}

// Close waits for the transaction in flight and for reads, and gives the file free. It may be called twice.
func (s *Store) Close() error {
	<-s.turn
	defer s.give()
	s.mu.Lock()
	o := s.open
	s.open = nil
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	return o.close()
}

// Apply decides the requests in order and commits them in one transaction, with one fsync. Ctx is for closures, and for
// waiting for the writer; a transaction that has begun is not given up.
func (s *Store) Apply(ctx context.Context, now claim.Hand, reqs []claim.Request) ([]claim.Outcome, error) {
	o, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.give()
	g := group{w: o.w, bound: s.cfg.TxBound, now: now, reqs: reqs, out: make([]claim.Outcome, len(reqs)), failed: make([]bool, len(reqs))}
	for {
		err := o.w.transaction(func() error { return g.decide(ctx) })
		if err == nil {
			return g.out, nil
		}
		if !errors.Is(err, errLost) || !g.drop(err) {
			return nil, err
		}
		s.cfg.Logger.Warn("sqlite: a Commit closure lost the transaction; the others run again without it", "requests", len(reqs), "error", err)
	}
}

// Update runs fn in a transaction of its own, for tables of yours: to make them, to fill them, to change them. It may
// be called as soon as the store is open, also while the ledger runs, whose commits wait for it meanwhile: when ctx ends,
// or after a minute ([claim.ErrTxBound]), it is given up, and nothing is kept. Fn must not call the ledger, or Update;
// with the context that it is given both are [claim.ErrInTx].
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	if err := claim.InTx(ctx); err != nil {
		return err
	}
	o, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer s.give()
	return classify(o.w.transaction(func() error {
		return errors.Join(o.w.closure(ctx, updateBound, func(ctx context.Context, tx *closureTx) error { return fn(ctx, tx) }))
	}))
}

// Check has SQLite check the whole file, and its indexes against its tables. It takes long for a large one; nobody
// waits for it meanwhile.
func (s *Store) Check(ctx context.Context) error {
	r, done, err := s.reads()
	if err != nil {
		return err
	}
	defer done()
	return r.check(ctx)
}
