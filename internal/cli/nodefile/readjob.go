package nodefile

import (
	"net/textproto"
	"net/url"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

// job reads one job of any kind; nil if something is wrong with it.
func (r *reader) job(n ast.Node, path string, node *jobs.Node) jobs.Job {
	kinds := []string{"exec", "http", "log"}
	o, ok := r.object(n, path, kinds...)
	if !ok {
		return nil
	}
	kind, ok := o.one("kind of job", kinds...)
	if !ok {
		return nil
	}
	var job jobs.Job
	switch n, path := o.fields[kind], o.at(kind); kind {
	case "exec":
		job = r.exec(n, path, node)
	case "http":
		job = r.http(n, path)
	case "log":
		job = r.log(n, path)
	}
	if r.failed(path) {
		return nil // a nil pointer in an interface is none
	}
	return job
}

func (r *reader) exec(n ast.Node, path string, node *jobs.Node) *jobs.Exec {
	o, ok := r.object(n, path, "argv", "env", "dir", "grace", "retry_codes", "retry_after", "drop_codes")
	if !ok {
		return nil
	}
	o.need("argv")
	dir := r.dir
	if o.has("dir") {
		dir = o.path("dir")
	}
	job, err := jobs.NewExec(jobs.ExecConfig{
		Argv:       o.texts("argv", false),
		Env:        o.values("env"),
		Dir:        dir,
		Grace:      o.duration("grace"),
		RetryCodes: o.integers("retry_codes"),
		RetryAfter: o.duration("retry_after"),
		DropCodes:  o.integers("drop_codes"),
		Node:       node,
	})
	r.failJob(path, err)
	return job
}

func (r *reader) http(n ast.Node, path string) *jobs.HTTP {
	o, ok := r.object(n, path, "url", "method", "headers", "content_type", "timeout", "follow_redirects", "done_status", "retry_status")
	if !ok {
		return nil
	}
	o.need("url")
	c := jobs.HTTPConfig{
		Method:          o.filled("method"),
		Headers:         o.values("headers"),
		ContentType:     o.filled("content_type"),
		Timeout:         o.duration("timeout"),
		FollowRedirects: o.flag("follow_redirects"),
		Done:            o.texts("done_status", true),
		Retry:           o.texts("retry_status", true),
	}
	for name, texts := range map[string][]string{"done_status": c.Done, "retry_status": c.Retry} {
		if o.has(name) && len(texts) == 0 {
			r.fail(o.at(name), "an empty list", "want at least one status")
		}
	}
	if n, ok := o.fields["url"]; ok {
		c.URL = r.value(n, o.at("url"))
	}
	job, err := jobs.NewHTTP(c)
	r.failJob(path, err)
	r.noSecrets(o, c)
	return job
}

// secretHeaders are those whose value lets in whoever has it.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// noSecrets refuses credentials that stand in the file itself.
func (r *reader) noSecrets(o object, c jobs.HTTPConfig) {
	const elsewhere = "want a secret from elsewhere: {env: NAME} or {file: PATH}"
	for name, v := range c.Headers {
		path := o.at("headers") + "." + name
		if slices.Contains(secretHeaders, textproto.CanonicalMIMEHeaderKey(name)) && !v.Secret() {
			r.fail(path, "credentials in the file", elsewhere)
		}
	}
	if u, err := url.Parse(c.URL.Literal); err == nil && u.User != nil {
		r.fail(o.at("url"), "credentials in the file", elsewhere)
	}
}

func (r *reader) log(n ast.Node, path string) *jobs.Log {
	o, ok := r.object(n, path, "message")
	if !ok {
		return nil
	}
	o.need("message")
	return &jobs.Log{Message: o.filled("message")}
}

// values reads a field that maps names to texts or secrets.
func (o object) values(name string) map[string]jobs.Value {
	n, ok := o.fields[name]
	if !ok {
		return nil
	}
	all := map[string]jobs.Value{}
	in := object{where: o.at(name)}
	o.r.entries(n, o.at(name), func(name string, _, value ast.Node) {
		all[name] = o.r.value(value, in.at(name))
	})
	return all
}

// value reads a text or a secret.
func (r *reader) value(n ast.Node, path string) jobs.Value {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return jobs.Value{Literal: r.scalarText(n, path)}
	}
	o, ok := r.object(n, path, "env", "file")
	if !ok {
		return jobs.Value{}
	}
	if _, ok := o.one("place of a secret", "env", "file"); !ok {
		return jobs.Value{}
	}
	return jobs.Value{Env: o.filled("env"), File: o.path("file")}
}
