package sqlite

import (
	"context"
	"time"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

// group is the requests of one transaction.
type group struct {
	w     *writer
	bound time.Duration
	now   claim.Hand
	reqs  []claim.Request

	out    []claim.Outcome
	failed []bool // requests whose closures lost a transaction: their outcomes stand
	at     int    // the request that is being decided
}

// decide decides all requests, in the transaction that is open. Its error is the store's, or errLost.
func (g *group) decide(ctx context.Context) error {
	for g.at = range g.reqs {
		if g.failed[g.at] {
			continue
		}
		out, err := g.one(ctx, &g.reqs[g.at])
		if err != nil {
			return err
		}
		g.out[g.at] = out
	}
	return nil
}

// one decides a request: plan, closure, and only then what the plan says.
func (g *group) one(ctx context.Context, req *claim.Request) (claim.Outcome, error) {
	v := view{w: g.w}
	p, err := claim.Plan(&v, *req, g.now)
	if claim.Refusal(err) {
		return claim.Outcome{Err: err}, nil
	}
	if err != nil {
		return claim.Outcome{}, classify(err)
	}
	if req.Tx != nil {
		refused, err := g.w.closure(ctx, g.bound, func(ctx context.Context, tx *closureTx) error { return req.Tx(ctx, tx) })
		if err != nil || refused != nil {
			return claim.Outcome{Err: refused}, err
		}
	}
	if err := v.write(&p); err != nil {
		return claim.Outcome{}, classify(err)
	}
	return claim.Outcome{Results: p.Results}, nil
}

// drop leaves out the request whose closure lost the transaction, so that the others can be decided again. It says
// false where no closure did.
func (g *group) drop(err error) bool {
	if g.reqs[g.at].Tx == nil || g.failed[g.at] {
		return false
	}
	g.failed[g.at] = true
	g.out[g.at] = claim.Outcome{Err: classify(err)}
	return true
}
