// Package backoff computes how long to wait before the next attempt: exponential, capped, jittered.
//
// It is a pure kernel: it reads no clock and no random source. Whoever calls gives the randomness, so that the same input
// gives the same delay, in a test and after a restart alike.
package backoff

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// What a zero field of Policy means.
const (
	DefaultInitial = time.Second
	DefaultMax     = 5 * time.Minute
	DefaultFactor  = 2.0
	DefaultJitter  = 0.2
)

// NoJitter is the Jitter of a Policy whose delays are exact.
const NoJitter = -1

// Policy says how delays grow. The zero value is usable and means the defaults.
type Policy struct {
	// Initial is the delay before the first retry. 0: 1 s. Too small and a fault that lasts is hammered.
	Initial time.Duration
	// Max is the longest delay. 0: 5 min, or Initial if that is longer. Too large and a fault that has passed is noticed late.
	Max time.Duration
	// Factor is what each attempt multiplies the delay by, at least 1 (which keeps it constant). 0: 2.
	Factor float64
	// Jitter is the part of the delay that is random, 0 to 1: the delay d lies in (d*(1-Jitter), d]. 0: 0.2; 1 is full jitter;
	// NoJitter: none, and then whoever failed together comes back together.
	Jitter float64
}

// WithDefaults returns p with its zero fields filled in.
func (p Policy) WithDefaults() Policy {
	if p.Initial == 0 {
		p.Initial = DefaultInitial
	}
	if p.Max == 0 {
		p.Max = max(DefaultMax, p.Initial)
	}
	if p.Factor == 0 {
		p.Factor = DefaultFactor
	}
	if p.Jitter == 0 {
		p.Jitter = DefaultJitter
	}
	return p
}

// Validate returns an error that names the first field that is out of range. Zero fields are in range.
func (p Policy) Validate() error {
	d := p.WithDefaults()
	switch {
	case d.Initial < 0:
		return fmt.Errorf("backoff: Initial is %v, must be positive (0: %v)", p.Initial, DefaultInitial)
	case d.Max < d.Initial:
		return fmt.Errorf("backoff: Max is %v, must be at least Initial, which is %v", d.Max, d.Initial)
	case !(d.Factor >= 1) || math.IsInf(d.Factor, 1):
		return fmt.Errorf("backoff: Factor is %v, must be at least 1 and finite (0: %v)", p.Factor, DefaultFactor)
	case d.Jitter != NoJitter && !(d.Jitter >= 0 && d.Jitter <= 1):
		return fmt.Errorf("backoff: Jitter is %v, must be 0 to 1 (0: %v) or NoJitter", p.Jitter, DefaultJitter)
	}
	return nil
}

// Delay returns the delay before retry number attempt, counted from 1; a smaller attempt counts as 1. It spreads delays by
// rnd, of which all 64 bits should be random (see Hash). The result is at least 1 ns, at most Max, and the same for the same
// arguments. A policy that Validate refuses still gives a delay in that range.
func (p Policy) Delay(attempt int, rnd uint64) time.Duration {
	p = p.WithDefaults()
	whole := p.ceiling(attempt)
	if !(p.Jitter > 0) {
		return whole
	}
	// 53 bits make a float in [0,1), so the delay never loses all of its jitter part and full jitter never gives zero.
	part := float64(rnd>>11) / (1 << 53)
	return max(1, whole-time.Duration(float64(whole)*min(p.Jitter, 1)*part))
}

// ceiling is the delay before jitter.
func (p Policy) ceiling(attempt int) time.Duration {
	limit := max(1, p.Max)
	grown := float64(p.Initial) * math.Pow(p.Factor, float64(max(attempt, 1)-1))
	if !(grown < float64(limit)) { // also when it is infinite or no number
		return limit
	}
	return max(1, time.Duration(grown))
}

// Hash derives the rnd of Delay from the name of what is retried and the attempt, so that delays differ between names and
// attempts and are the same after a restart. It is no secret.
func Hash(key string, attempt int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	// FNV alone leaves the high bits of short keys alike; this is the finisher of SplitMix64.
	x := h.Sum64() + uint64(attempt)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
