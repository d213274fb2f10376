package jobs

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func newHTTP(t *testing.T, c HTTPConfig) *HTTP {
	h, err := NewHTTP(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func literal(s string) Value { return Value{Literal: s} }

func TestHTTPTellsWhatTheRunIs(t *testing.T) {
	type seen struct {
		method, path, body string
		header             http.Header
	}
	got := make(chan seen, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.URL.RequestURI(), string(body), r.Header}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "made")
	})
	run := Work{
		Trigger: "nightly", Key: "billing/nightly/1.1.0/slot/2026-01-02T03:04:05Z", Fence: 7, Attempt: 2,
		Slot: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte("data"),
	}

	h := newHTTP(t, HTTPConfig{URL: literal(s.URL + "/a?b=c"), Headers: map[string]Value{"x-team": literal("billing")}})
	out, err := h.Do(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, "made", string(out))
	r := <-got
	require.Equal(t, seen{"POST", "/a?b=c", "data", r.header}, r)
	for name, want := range map[string]string{
		"Idempotency-Key": run.Key, "Quarterjack-Fence": "7", "Quarterjack-Attempt": "2",
		"Quarterjack-Slot": "2026-01-02T03:04:05Z", "Content-Type": "application/octet-stream", "X-Team": "billing",
		"User-Agent": "quarterjack",
	} {
		require.Equal(t, want, r.header.Get(name), name)
	}

	h = newHTTP(t, HTTPConfig{URL: literal(s.URL), Method: "PUT", ContentType: "text/csv", Headers: map[string]Value{"User-Agent": literal("x")}})
	_, err = h.Do(t.Context(), Work{Trigger: "t", Key: "k", Data: []byte("a,b")})
	require.NoError(t, err)
	r = <-got
	require.Equal(t, "PUT", r.method)
	require.Equal(t, "text/csv", r.header.Get("Content-Type"))
	require.Equal(t, "x", r.header.Get("User-Agent"))
	require.NotContains(t, r.header, "Quarterjack-Slot")

	h = newHTTP(t, HTTPConfig{URL: literal(s.URL), Method: "GET"})
	_, err = h.Do(t.Context(), Work{Trigger: "t", Key: "k"})
	require.NoError(t, err)
	r = <-got
	require.Equal(t, "GET", r.method)
	require.NotContains(t, r.header, "Content-Type")

	h = newHTTP(t, HTTPConfig{URL: literal(s.URL)})
	_, err = h.Do(t.Context(), Work{Group: "counts", Key: "any\ntext", Data: []byte(`{"value":1}`)})
	require.NoError(t, err)
	r = <-got
	require.NotContains(t, r.header, "Idempotency-Key", "a batch is another one at each attempt")
	require.NotContains(t, r.header, "Quarterjack-Fence")
	require.Equal(t, "application/json", r.header.Get("Content-Type"))

	_, err = h.Do(t.Context(), Work{Trigger: "t", Key: "any\ntext"})
	requireVerdict(t, "drop", 0, err)
}

func TestHTTPStatusDecides(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("code"), &code)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "why")
	})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own := HTTPConfig{Done: []string{"2xx", "409"}, Retry: []string{"404", "5xx", "202"}}
	for _, c := range []struct {
		code  int
		after string
		c     HTTPConfig
		want  string
		wait  time.Duration
	}{
		{code: 200}, {code: 201}, {code: 202}, {code: 299},
		{code: 408, want: "plain"}, {code: 425, want: "plain"}, {code: 429, want: "plain"},
		{code: 500, want: "plain"}, {code: 503, want: "plain"}, {code: 599, want: "plain"},
		{code: 400, want: "drop"}, {code: 404, want: "drop"}, {code: 410, want: "drop"}, {code: 499, want: "drop"},
		{code: 300, want: "drop"}, {code: 304, want: "drop"}, {code: 399, want: "drop"}, {code: 600, want: "drop"},
		{code: 999, want: "drop"},

		{code: 503, after: "120", want: "retry", wait: 2 * time.Minute},
		{code: 429, after: "Fri, 02 Jan 2026 03:05:05 GMT", want: "retry", wait: time.Minute},
		{code: 503, after: "Fri, 02 Jan 2026 03:04:05 GMT", want: "plain"}, // no time to come
		{code: 503, after: "86401", want: "retry", wait: 24 * time.Hour},
		{code: 503, after: "99999999999999999999", want: "retry", wait: 24 * time.Hour},
		{code: 503, after: "Sat, 02 Jan 2027 03:04:05 GMT", want: "retry", wait: 24 * time.Hour},
		{code: 503, after: "0", want: "plain"}, {code: 503, after: "-5", want: "plain"},
		{code: 503, after: "soon", want: "plain"}, {code: 503, after: "1.5", want: "plain"},
		{code: 400, after: "120", want: "drop"}, {code: 200, after: "120"},

		{code: 409, c: own}, {code: 404, c: own, want: "plain"}, {code: 202, c: own, want: "plain"},
		{code: 429, c: own, want: "drop"}, {code: 502, after: "1", c: own, want: "retry", wait: time.Second},
	} {
		t.Run(fmt.Sprint(c.code, " ", c.after), func(t *testing.T) {
			c.c.URL = literal(fmt.Sprintf("%s/path?code=%d&after=%s", s.URL, c.code, url.QueryEscape(c.after)))
			h := newHTTP(t, c.c)
			h.now = func() time.Time { return now }
			out, err := h.Do(t.Context(), Work{})
			requireVerdict(t, c.want, c.wait, err)
			if c.want != "" {
				require.EqualError(t, err, fmt.Sprintf("http POST %s/path?…: status %d", s.URL, c.code))
			}
			if c.code != http.StatusNotModified { // it has no body
				require.Equal(t, "why", string(out))
			}
		})
	}
}

func TestHTTPRedirects(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Method, " ", string(body), " ", r.Header.Get("X-Key"), r.Header.Get("Referer"), r.Header.Get("Idempotency-Key"))
	})
	mux := http.NewServeMux()
	for path, to := range map[string]string{"/far": other.URL + "/x", "/near": "/end", "/loop": "/loop", "/odd": "ftp://127.0.0.1/x"} {
		mux.Handle(path, http.RedirectHandler(to, http.StatusTemporaryRedirect))
	}
	mux.Handle("/see", http.RedirectHandler("/end", http.StatusSeeOther))
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Method, " ", string(body), " ", r.Header.Get("X-Key"), r.Header.Get("Referer"))
	})
	s := serve(t, mux.ServeHTTP)
	for _, c := range []struct {
		name, path, method string
		follow             bool
		want, out          string
	}{
		{"not followed unless asked", "/near", "POST", false, "drop", ""},
		{"with its body and headers", "/near", "POST", true, "", "POST data key"},
		{"without the query and the configured headers elsewhere", "/far", "POST", true, "", "POST data id"},
		{"not where a POST would become a GET", "/see", "POST", true, "drop", ""},
		{"a GET stays one", "/see", "GET", true, "", "GET  key"},
		{"not for ever", "/loop", "POST", true, "drop", ""},
		{"not out of the web", "/odd", "POST", true, "drop", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHTTP(t, HTTPConfig{
				URL: literal(s.URL + c.path + "?token=t"), Method: c.method, FollowRedirects: c.follow,
				Headers: map[string]Value{"X-Key": literal("key")},
			})
			out, err := h.Do(t.Context(), Work{Trigger: "t", Key: "id", Data: []byte("data")})
			requireVerdict(t, c.want, 0, err)
			if c.want == "" {
				require.Equal(t, c.out, string(out))
			} else {
				require.ErrorContains(t, err, "redirect")
			}
		})
	}
}

func TestHTTPSecretsAreSentAndNeverShown(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintln(w, r.Header.Get("Authorization"), r.Header.Get("X-Token"), r.URL, user, password)
		if r.URL.Path == "/fail" {
			panic(http.ErrAbortHandler)
		}
	})
	host := strings.TrimPrefix(s.URL, "http://")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("Bearer s3cret-1\n"), 0o600))
	t.Setenv("X_TOKEN", "s3cret-2")
	t.Setenv("HOOK", s.URL+"/services/s3cret-3?key=s3cret-4")
	t.Setenv("BAD_HOOK", "http://s3cret-5 /x")
	t.Setenv("NO_HOST", "s3cret-6://x")
	t.Setenv("LINES", "s3cret-7\nX: y")
	t.Setenv("HOOK_FAIL", "http://s3cret-8:s3cret-9@"+host+"/fail")
	basic := base64.StdEncoding.EncodeToString([]byte("user:s3cret-10"))

	for name, c := range map[string]struct {
		c         HTTPConfig
		sees, out string // what must be in the String, the output or the error
	}{
		"headers": {HTTPConfig{URL: literal(s.URL + "/h"), Headers: map[string]Value{
			"Authorization": {File: file}, "X-Token": {Env: "X_TOKEN"}}}, "http POST " + s.URL + "/h", "*** *** /h"},
		"userinfo": {HTTPConfig{URL: literal("http://user:s3cret-10@" + host + "/u")},
			"http POST " + s.URL + "/u", "Basic ***  /u user ***"},
		"a token as userinfo": {HTTPConfig{URL: literal("http://s3cret-11@" + host + "/u?x=s3cret-12")}, "http POST " + s.URL + "/u?…", ""},
		"the URL":             {HTTPConfig{URL: Value{Env: "HOOK"}}, "http POST {env: HOOK}", "***?***"},
		"a URL that fails":    {HTTPConfig{URL: Value{Env: "HOOK_FAIL"}}, "http POST {env: HOOK_FAIL}", "http POST {env: HOOK_FAIL}: "},
		"a URL that is none":  {HTTPConfig{URL: Value{Env: "BAD_HOOK"}}, "", "{env: BAD_HOOK} holds a URL that cannot be read"},
		"not a web URL":       {HTTPConfig{URL: Value{Env: "NO_HOST"}}, "", "{env: NO_HOST} holds a URL that is of another kind"},
		"a header of two lines": {HTTPConfig{URL: literal(s.URL), Headers: map[string]Value{"X-Token": {Env: "LINES"}}}, "",
			"headers.X-Token: {env: LINES} holds a line break"},
		"a header that is not there": {HTTPConfig{URL: literal(s.URL), Headers: map[string]Value{"X-Token": {File: file + "x"}}}, "",
			"headers.X-Token: stat " + file + "x"},
		"a URL that is not there": {HTTPConfig{URL: Value{Env: "NO_SUCH_VARIABLE"}}, "", "no NO_SUCH_VARIABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHTTP(t, c.c)
			out, err := h.Do(t.Context(), Work{})
			all := fmt.Sprintf("%v\n%s\n%v\n%+v\n%#v", h, out, err, err, err)
			require.Contains(t, all, c.sees)
			require.Contains(t, all, c.out)
			require.NotContains(t, all, "s3cret")
			require.NotContains(t, all, basic)
		})
	}
}

func TestHTTPWithoutAWholeAnswerFollowsThePolicy(t *testing.T) {
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-hang })
	mux.HandleFunc("/drip", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-hang
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "begun")
	})
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusGone)
	})
	s := serve(t, mux.ServeHTTP)
	t.Cleanup(func() { close(hang) })

	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "http://" + l.Addr().String()
	require.NoError(t, l.Close())

	for name, c := range map[string]struct{ url, out, err, want string }{
		"nobody listens":     {nobody + "/x?token=t", "", "connection refused", "plain"},
		"no answer":          {s.URL + "/hang", "", "no whole answer within 50ms", "plain"},
		"half an answer":     {s.URL + "/drip", "begun", "no whole answer within 50ms", "plain"},
		"an answer cut off":  {s.URL + "/cut", "begun", "status 200, and then: unexpected EOF", "plain"},
		"the status is told": {s.URL + "/gone", "", "status 410", "drop"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHTTP(t, HTTPConfig{URL: literal(c.url), Timeout: 50 * time.Millisecond})
			if !strings.Contains(c.err, "within") {
				h = newHTTP(t, HTTPConfig{URL: literal(c.url)})
			}
			out, err := h.Do(t.Context(), Work{})
			require.Equal(t, c.out, string(out))
			requireVerdict(t, c.want, 0, err)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "token")
			if strings.Contains(c.err, "within") {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

func TestHTTPThatIsStoppedFailsWithTheReason(t *testing.T) {
	asked, hang := make(chan struct{}), make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-hang
	})
	t.Cleanup(func() { close(hang) })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(context.Canceled)
	}()
	_, err := newHTTP(t, HTTPConfig{URL: literal(s.URL)}).Do(ctx, Work{})
	requireVerdict(t, "plain", 0, err)
	require.ErrorIs(t, err, context.Canceled)
}

func TestHTTPEndlessAnswerIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3000 {
			_, _ = fmt.Fprintf(w, "%099d\n", i)
		}
	})
	out, err := newHTTP(t, HTTPConfig{URL: literal(s.URL)}).Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Len(t, out, MaxOutput)
	require.True(t, strings.HasSuffix(string(out), "2999\n"))
}

func TestHTTPVerifiesTheServer(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	h := newHTTP(t, HTTPConfig{URL: literal(s.URL)})
	_, err := h.Do(t.Context(), Work{})
	requireVerdict(t, "plain", 0, err)
	require.ErrorContains(t, err, "certificate")

	h = newHTTP(t, HTTPConfig{URL: literal(s.URL)})
	h.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	out, err := h.Do(t.Context(), Work{})
	require.NoError(t, err)
	require.Equal(t, "hello", string(out))
}

func TestHTTPRedirectDoesNotLeaveTLS(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	h := newHTTP(t, HTTPConfig{URL: literal(s.URL), FollowRedirects: true})
	h.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	_, err := h.Do(t.Context(), Work{})
	requireVerdict(t, "drop", 0, err)
	require.ErrorContains(t, err, "status 307")
}

func TestHTTPConfigIsCheckedWhole(t *testing.T) {
	_, err := NewHTTP(HTTPConfig{
		Method: "post", URL: literal("http://user:sesame@/x?sesame"), Timeout: -1, ContentType: "a\nb",
		Headers: map[string]Value{
			"Idempotency-Key": {}, "Host": {}, "a b": {}, "X": {Literal: "a\nsesame"}, "x": {}, "Y": {Env: "A", File: "B"},
		},
		Done: []string{"2xx", "20x", "999", "503", "5xx"}, Retry: []string{"6xx", "5xx", "503", ""},
	})
	require.Equal(t, []string{
		"content_type", "done_status[1]", "done_status[2]", "headers.Host", "headers.Idempotency-Key", "headers.X", "headers.Y",
		"headers.a b", "headers.x", "method", "retry_status", "retry_status[0]", "retry_status[3]", "timeout", "url",
	}, fieldsOf(t, err))
	require.NotContains(t, err.Error(), "sesame")

	for text, why := range map[string]string{
		"": "is empty", "example.org": "is of another kind", "ftp://example.org": "is of another kind",
		"http://": "has no host", "https://:443/": "has no host", "http://a b/": "cannot be read", "http://[::1": "cannot be read",
	} {
		_, err := NewHTTP(HTTPConfig{URL: literal(text)})
		require.EqualError(t, err, "url: a URL that "+why+": want http:// or https:// and a host")
	}
}

func TestHTTPMasksTheValuesOfHeaders(t *testing.T) {
	t.Setenv("PIN", "42")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("X-Api-Key"), " ", r.Header.Get("X-Pin"), " ", r.Header.Get("X-Zone"))
	})
	h := newHTTP(t, HTTPConfig{URL: literal(s.URL), Headers: map[string]Value{
		"X-Api-Key": literal("sesame"), "X-Pin": {Env: "PIN"}, "X-Zone": literal("eu"),
	}})
	out, err := h.Do(t.Context(), Work{Trigger: "t", Key: "k"})
	require.NoError(t, err)
	require.Equal(t, "*** *** eu", string(out), "short values that the configuration shows hide nothing")
}
