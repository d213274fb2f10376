//go:build linux || darwin

package jobs

import "time"

// How often processes are looked at that are told to end: soon at first, since most end at once, and less often then,
// since a look may cost a walk over all processes.
const (
	pollFirst = 5 * time.Millisecond
	pollLast  = 50 * time.Millisecond
)

func pollNext(wait time.Duration) time.Duration { return min(2*wait, pollLast) }
