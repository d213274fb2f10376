package jobs

import (
	"fmt"
	"strconv"
)

// What an HTTP job makes of a status unless told otherwise. Every other status is a drop.
var (
	DefaultDone  = []string{"2xx"}
	DefaultRetry = []string{"408", "425", "429", "5xx"}
)

// statuses is a set of HTTP status codes: single ones and classes such as 5xx.
type statuses struct {
	codes, classes map[int]bool
}

// parseStatuses reads codes ("429") and classes ("5xx"). What is wrong is answered by its index.
func parseStatuses(texts []string) (s statuses, wrong []int) {
	s = statuses{codes: map[int]bool{}, classes: map[int]bool{}}
	for i, t := range texts {
		if len(t) == 3 && t[1:] == "xx" && '2' <= t[0] && t[0] <= '5' {
			s.classes[int(t[0]-'0')] = true
		} else if n, err := strconv.Atoi(t); err == nil && len(t) == 3 && n >= 200 && n <= 599 {
			s.codes[n] = true
		} else {
			wrong = append(wrong, i)
		}
	}
	return s, wrong
}

type outcome uint8

const (
	drop outcome = iota
	done
	retry
)

// judge says what a status means. A code that is named counts before its class; naming something for both is
// refused by both.
func judge(code int, doneSet, retrySet statuses) outcome {
	switch {
	case doneSet.codes[code]:
		return done
	case retrySet.codes[code]:
		return retry
	case doneSet.classes[code/100]:
		return done
	case retrySet.classes[code/100]:
		return retry
	}
	return drop
}

// both lists what two sets name alike, as it was written.
func both(a, b statuses) []string {
	var all []string
	for _, n := range sortedKeys(a.codes) {
		if b.codes[n] {
			all = append(all, strconv.Itoa(n))
		}
	}
	for _, n := range sortedKeys(a.classes) {
		if b.classes[n] {
			all = append(all, fmt.Sprintf("%dxx", n))
		}
	}
	return all
}
