package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
)

// What an HTTP job does unless told otherwise.
const (
	DefaultMethod  = http.MethodPost
	DefaultTimeout = 30 * time.Second
)

// Methods lists the methods that an HTTP job may use.
var Methods = []string{
	http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet, http.MethodHead,
}

// The headers by which a callee tells one piece of work from another.
const (
	HeaderKey     = "Idempotency-Key"     // the run's key; absent for a group's batch, whose items differ per attempt
	HeaderFence   = "Quarterjack-Fence"   // refuse the request if a higher one was seen for the key; absent for a batch
	HeaderAttempt = "Quarterjack-Attempt" // counts from 1
	HeaderSlot    = "Quarterjack-Slot"    // RFC 3339; absent without a slot
)

// ownHeaders cannot be configured: they are the run's, or the connection's.
var ownHeaders = []string{
	HeaderKey, HeaderFence, HeaderAttempt, HeaderSlot,
	"Connection", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// HTTPConfig says what request an [HTTP] job makes.
type HTTPConfig struct {
	Method  string // one of Methods; empty: DefaultMethod
	URL     Value  // http or https
	Headers map[string]Value

	// ContentType of the body; empty: application/json for a group's batch, else application/octet-stream.
	ContentType string

	Timeout         time.Duration // from dialling to the end of the answer; 0: DefaultTimeout
	FollowRedirects bool          // up to 10, where the method stays and https does not become http

	Done  []string // statuses ("204") and classes ("2xx") that mean done; none: DefaultDone
	Retry []string // those that mean: again, after Retry-After or as the policy says; none: DefaultRetry
}

// check says what is wrong, and fills in what was left out.
func (c *HTTPConfig) check() (doneSet, retrySet statuses, err error) {
	var errs []error
	bad := func(field, given, allowed string) { errs = append(errs, &FieldError{field, given, allowed}) }
	if c.Method == "" {
		c.Method = DefaultMethod
	}
	if !slices.Contains(Methods, c.Method) {
		bad("method", Quote(c.Method), "want one of "+strings.Join(Methods, ", "))
	}
	if e := c.URL.check("url"); e != nil {
		errs = append(errs, e)
	} else if !c.URL.Secret() {
		if _, why := parseURL(c.URL.Literal); why != "" {
			bad("url", "a URL that "+why, urlAllowed)
		}
	}
	canonical := map[string]string{}
	for _, name := range sortedKeys(c.Headers) {
		field := "headers." + name
		same := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			bad(field, Quote(name), "want the name of a header")
		case slices.Contains(ownHeaders, same):
			bad(field, Quote(name), "the header is set by the job itself")
		case canonical[same] != "":
			bad(field, Quote(name), "it is "+Quote(canonical[same])+" once more")
		case !isHeaderText(c.Headers[name].Literal):
			bad(field, "a value with a line break or another control character", "want one line")
		}
		canonical[same] = name
		if e := c.Headers[name].check(field); e != nil {
			errs = append(errs, e)
		}
	}
	if !isHeaderText(c.ContentType) {
		bad("content_type", Quote(c.ContentType), "want a media type")
	}
	if c.Timeout < 0 {
		bad("timeout", c.Timeout.String(), "want more than 0")
	} else if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if len(c.Done) == 0 {
		c.Done = DefaultDone
	}
	if len(c.Retry) == 0 {
		c.Retry = DefaultRetry
	}
	var wrongDone, wrongRetry []int
	doneSet, wrongDone = parseStatuses(c.Done)
	retrySet, wrongRetry = parseStatuses(c.Retry)
	const want = "want a status from 200 to 599, or 2xx, 3xx, 4xx or 5xx"
	for _, i := range wrongDone {
		bad(fmt.Sprintf("done_status[%d]", i), Quote(c.Done[i]), want)
	}
	for _, i := range wrongRetry {
		bad(fmt.Sprintf("retry_status[%d]", i), Quote(c.Retry[i]), want)
	}
	for _, s := range both(doneSet, retrySet) {
		bad("retry_status", Quote(s), "want a status that is not in done_status")
	}
	return doneSet, retrySet, errors.Join(errs...)
}

const urlAllowed = "want http:// or https:// and a host"

// parseURL reads the URL of a request, or says why not, without quoting it.
func parseURL(text string) (*url.URL, string) {
	if text == "" {
		return nil, "is empty"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "cannot be read" // the error quotes it
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "is of another kind"
	case u.Hostname() == "":
		return nil, "has no host"
	}
	return u, ""
}

// redacted shows a URL without what may be secret in it.
func redacted(u *url.URL) string {
	text := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		text += "?…"
	}
	return text
}

// isToken says whether a text may be the name of a header (RFC 9110).
func isToken(s string) bool {
	const others = "!#$%&'*+-.^_`|~"
	for _, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (r < '0' || r > '9') && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return s != ""
}

// isHeaderText says whether a text may be the value of a header.
func isHeaderText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
