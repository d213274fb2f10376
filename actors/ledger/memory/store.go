package memory

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
	"github.com/quarterjack/quarterjack/actors/ledger/internal/bounded"
)

// What is used where no option says otherwise.
const (
	DefaultHistory = 1000
	DefaultTxBound = 100 * time.Millisecond
)

// Option changes a setting of New.
type Option func(*Store)

// History sets how many terminal records and how many ranges are kept of each trigger. Below 1 counts as 1.
func History(n int) Option { return func(s *Store) { s.history = max(n, 1) } }

// TxBound sets how long a function that is given to [Commit] may take. Below 1 ns counts as 1 ns. All other claims wait
// for it.
func TxBound(d time.Duration) Option { return func(s *Store) { s.txBound = max(d, 1) } }

// Store is a claim.Store in memory. Make it with New.
type Store struct {
	history int
	txBound time.Duration

	apply sync.Mutex   // held by Apply, from what it reads to what it writes; Open and Close wait for it
	mu    sync.RWMutex // guards what follows; never held while a caller's function runs

	open    bool
	session uint64
	shelves map[owner]*shelf
	rows    map[claim.RowKey]claim.Row
}

var _ claim.Store = (*Store)(nil)

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{history: DefaultHistory, txBound: DefaultTxBound, shelves: map[owner]*shelf{}, rows: map[claim.RowKey]claim.Row{}}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Open begins a session. A store that is open is ErrLocked.
func (s *Store) Open(context.Context) (claim.Session, error) {
	s.apply.Lock()
	defer s.apply.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return claim.Session{}, fmt.Errorf("%w: it is open in this process, in session %d", claim.ErrLocked, s.session)
	}
	s.open = true
	s.session++
	return claim.Session{ID: s.session, Sole: true}, nil
}

// Close ends the session and keeps what is stored. It never fails.
func (s *Store) Close() error {
	s.apply.Lock()
	defer s.apply.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	return nil
}

// Apply decides the requests in order. It fails as a whole only where the store is closed.
func (s *Store) Apply(ctx context.Context, now claim.Hand, reqs []claim.Request) ([]claim.Outcome, error) {
	s.apply.Lock()
	defer s.apply.Unlock()
	if err := s.closed(); err != nil {
		return nil, err
	}
	out := make([]claim.Outcome, len(reqs))
	for i := range reqs {
		out[i] = s.one(ctx, now, &reqs[i])
	}
	return out, nil
}

// closed is ErrClosed where the store is not open.
func (s *Store) closed() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.open {
		return claim.ErrClosed
	}
	return nil
}

// one decides a request. Only Apply writes, and it is held: nothing changes between the plan and what is kept of it.
func (s *Store) one(ctx context.Context, now claim.Hand, req *claim.Request) claim.Outcome {
	p, err := claim.Plan((*view)(s), *req, now)
	if err == nil && req.Tx != nil {
		err = bounded.Call(ctx, s.txBound, func(ctx context.Context) error { return req.Tx(ctx, inTx{}) })
	}
	if err != nil {
		return claim.Outcome{Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range p.Records {
		s.shelf(keyOwner(p.Records[i].Key)).put(own(p.Records[i]), s.history)
	}
	for _, row := range p.Rows {
		row.Blob = bytes.Clone(row.Blob)
		s.rows[row.Key()] = row
	}
	for _, k := range p.Drop {
		delete(s.rows, k)
	}
	for _, r := range p.Ranges {
		s.shelf(owner{r.Namespace, r.Trigger}).putRange(r, s.history)
	}
	for i := range p.Results {
		p.Results[i].Record = own(p.Results[i].Record)
	}
	return claim.Outcome{Results: p.Results}
}

// own gives the record with bytes of its own: callers may change theirs.
func own(r claim.Record) claim.Record {
	r.Payload, r.Result = bytes.Clone(r.Payload), bytes.Clone(r.Result)
	return r
}

// view is the store as a plan reads it.
type view Store

func (v *view) Record(k claim.Key) (*claim.Record, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if sh := v.shelves[keyOwner(k)]; sh != nil {
		if r, ok := sh.records[k]; ok {
			return &r, nil
		}
	}
	return nil, nil
}

func (v *view) Row(k claim.RowKey) (*claim.Row, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if r, ok := v.rows[k]; ok {
		return &r, nil
	}
	return nil, nil
}
