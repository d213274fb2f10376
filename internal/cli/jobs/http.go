package jobs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

// MaxRetryAfter bounds how long a server may put a run off.
const MaxRetryAfter = 24 * time.Hour

// minHidden is the length, in bytes, from which the value of a header is masked though the configuration shows it:
// masking shorter ones would make output unreadable and hide nothing. Secrets are masked whatever their length.
const minHidden = 4

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// HTTP makes a web request. See NewHTTP.
type HTTP struct {
	c           HTTPConfig
	done, retry statuses
	transport   *http.Transport
	now         func() time.Time
}

// NewHTTP makes a job that makes a request with Data as its body, and the end of the answer's body as output.
//
// The key, fence, attempt and slot of the run go along as headers (HeaderKey and so on). The values of configured
// headers are masked in output and errors. The status decides: done,
// retry (with the server's Retry-After, of at most MaxRetryAfter, if it names a time to come; else as the policy says)
// or drop, which every other status is, redirects included. A request that gets no whole answer follows the policy.
//
// Certificates are verified. The proxy is the one that the node's environment names (HTTPS_PROXY and so on).
// Connections are kept for reuse: Close lets go of them.
//
// What is wrong with the configuration is answered as *FieldError, all of it joined.
func NewHTTP(c HTTPConfig) (*HTTP, error) {
	doneSet, retrySet, err := c.check()
	if err != nil {
		return nil, err
	}
	return &HTTP{
		c: c, done: doneSet, retry: retrySet, now: time.Now,
		transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     30 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
	}, nil
}

// Close closes the connections that are not in use. The job can be used again.
func (h *HTTP) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// String names the method and the URL, without userinfo and query.
func (h *HTTP) String() string { return "http " + h.c.Method + " " + h.target() }

// target names the URL for people.
func (h *HTTP) target() string {
	if h.c.URL.Secret() {
		return h.c.URL.String()
	}
	u, _ := parseURL(h.c.URL.Literal)
	return redacted(u)
}

// Do makes the request once.
func (h *HTTP) Do(ctx context.Context, w Work) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Timeout,
		fmt.Errorf("no whole answer within %v: %w", h.c.Timeout, context.DeadlineExceeded))
	defer cancel()
	req, hide, err := h.request(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", h, err)
	}
	client := http.Client{Transport: h.transport, CheckRedirect: h.redirect}
	resp, err := client.Do(req)
	if err != nil {
		return nil, h.failed(ctx, err, hide)
	}
	defer func() { _ = resp.Body.Close() }()
	out := newTail(hide)
	_, readErr := io.Copy(out, resp.Body)
	err = h.verdict(resp)
	if err == nil && readErr != nil {
		err = h.failed(ctx, fmt.Errorf("status %d, and then: %w", resp.StatusCode, readErr), hide)
	}
	return out.bytes(), err
}

// request makes the request and lists the secrets in it.
func (h *HTTP) request(ctx context.Context, w Work) (req *http.Request, hide []string, err error) {
	text, err := h.c.URL.read("url")
	if err != nil {
		return nil, nil, err
	}
	u, why := parseURL(text)
	if why != "" {
		return nil, nil, fmt.Errorf("url: %v holds a URL that %s: %s", h.c.URL, why, urlAllowed)
	}
	hide = secretsOf(u, h.c.URL.Secret(), text)

	req, err = http.NewRequestWithContext(ctx, h.c.Method, text, bytes.NewReader(w.Data))
	if err != nil {
		return nil, nil, errors.New(maskText(err.Error(), hide))
	}
	for name, v := range h.c.Headers {
		text, err := v.read("headers." + name)
		if err != nil {
			return nil, nil, err
		}
		if !isHeaderText(text) {
			return nil, nil, fmt.Errorf("headers.%s: %v holds a line break or another control character", name, v)
		}
		req.Header.Set(name, text)
		if v.Secret() || len(text) >= minHidden {
			hide = append(hide, text)
			if _, credentials, ok := strings.Cut(text, " "); ok { // "Bearer …"
				hide = append(hide, credentials)
			}
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "quarterjack")
	}
	return req, hide, h.runHeaders(req.Header, w)
}

// runHeaders sets the headers that tell of the run.
func (h *HTTP) runHeaders(header http.Header, w Work) error {
	switch {
	case h.c.ContentType != "":
		header.Set("Content-Type", h.c.ContentType)
	case len(w.Data) == 0:
	case w.Group != "":
		header.Set("Content-Type", "application/json")
	default:
		header.Set("Content-Type", "application/octet-stream")
	}
	if w.Group == "" && w.Key != "" {
		if !isHeaderText(w.Key) {
			return qj.Drop(fmt.Errorf("the key %s cannot be a header", Quote(w.Key)))
		}
		header.Set(HeaderKey, w.Key)
	}
	if w.Group == "" {
		header.Set(HeaderFence, strconv.FormatUint(w.Fence, 10))
	}
	header.Set(HeaderAttempt, strconv.Itoa(w.Attempt))
	if !w.Slot.IsZero() {
		header.Set(HeaderSlot, w.Slot.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// secretsOf lists what of a URL must not be shown: its userinfo and its query, and all but the host where the URL
// itself is the secret.
func secretsOf(u *url.URL, secret bool, text string) []string {
	hide := []string{u.RawQuery}
	if u.User != nil {
		password, _ := u.User.Password()
		basic := u.User.Username() + ":" + password
		hide = append(hide, u.User.String(), basic, base64.StdEncoding.EncodeToString([]byte(basic)))
		if password != "" {
			hide = append(hide, password)
		} else {
			hide = append(hide, u.User.Username()) // a token
		}
	}
	if secret {
		hide = append(hide, text)
		if u.Path != "/" {
			hide = append(hide, u.Path, u.EscapedPath())
		}
	}
	return hide
}

// redirect decides whether the client goes on to req. If not, the redirect is the answer.
func (h *HTTP) redirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !h.c.FollowRedirects, len(via) > maxRedirects:
		return http.ErrUseLastResponse
	case req.Method != first.Method: // 301, 302 and 303 would make a GET of a POST, and its 200 would look like success
		return http.ErrUseLastResponse
	case req.URL.Scheme != "https" && first.URL.Scheme == "https", req.URL.Scheme != "https" && req.URL.Scheme != "http":
		return http.ErrUseLastResponse
	}
	req.Header.Del("Referer") // it tells the query
	if req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		for name := range h.c.Headers {
			req.Header.Del(name)
		}
	}
	return nil
}

// verdict turns an answer into what becomes of the run.
func (h *HTTP) verdict(resp *http.Response) error {
	outcome := judge(resp.StatusCode, h.done, h.retry)
	if outcome == done {
		return nil
	}
	err := fmt.Errorf("%v: status %d", h, resp.StatusCode)
	if outcome == retry {
		if after := retryAfter(resp.Header.Get("Retry-After"), h.now()); after > 0 {
			return qj.Retry(after, err)
		}
		return err
	}
	if resp.Header.Get("Location") != "" && resp.StatusCode/100 == 3 {
		if h.c.FollowRedirects {
			err = fmt.Errorf("%w: the redirect is one too many, changes the method or leaves https", err)
		} else {
			err = fmt.Errorf("%w: redirects are followed with follow_redirects: true only", err)
		}
	}
	return qj.Drop(err)
}

// failed describes a request that got no whole answer. What went wrong is told as text, since the errors beneath
// quote the URL; the end of the context alone stays to be found by errors.Is.
func (h *HTTP) failed(ctx context.Context, err error, hide []string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%v: %w", h, context.Cause(ctx))
	}
	if quoting, ok := errors.AsType[*url.Error](err); ok {
		err = quoting.Err
	}
	return fmt.Errorf("%v: %s", h, maskText(err.Error(), hide))
}

// retryAfter reads a Retry-After header: seconds or a date. 0 if it names no time to come.
func retryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil { // more than fits
			return MaxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}
