package nodefile

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml/ast"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

const (
	mostWorkers  = 100_000
	mostAttempts = 1_000_000
	mostLimit    = 100_000
	mostItems    = 1_000_000_000
)

func (r *reader) file(root ast.Node) *File {
	o, ok := r.object(root, "", "namespace", "owner", "store", "workers", "triggers", "groups")
	if !ok {
		return nil
	}
	f := &File{Name: r.name, Namespace: qj.DefaultNamespace, Owner: "file:" + filepath.Base(r.name), Node: new(jobs.Node)}
	if o.has("namespace") {
		f.Namespace = o.name("namespace")
	}
	if o.has("owner") {
		f.Owner = o.name("owner")
	}
	f.Workers = int(o.number("workers", mostWorkers))
	o.need("store")
	if o.has("store") {
		f.Store = r.store(o.fields["store"])
	}
	if !o.has("triggers") && !o.has("groups") {
		r.failAt(root, "triggers", "missing, and so is groups", "want one of them (triggers: [] retires all of its owner's)")
	}

	items, paths := o.list("triggers")
	ids := map[string]string{}
	for i, n := range items {
		t := r.trigger(n, paths[i], f.Node)
		r.unique(ids, paths[i], "id", t.ID)
		f.Triggers = append(f.Triggers, t)
	}
	items, paths = o.list("groups")
	names, inputs := map[string]string{}, map[string]string{}
	for i, n := range items {
		g := r.group(n, paths[i], f.Node)
		r.unique(names, paths[i], "name", g.Name)
		if g.Input.Path == "-" {
			r.unique(inputs, paths[i]+".input", "path", g.Input.Path)
		}
		f.Groups = append(f.Groups, g)
	}
	return f
}

// unique notes a value that another field has already. An empty one is missing, which is wrong in itself.
func (r *reader) unique(seen map[string]string, path, field, value string) {
	path += "." + field
	if first, twice := seen[value]; twice && value != "" {
		line, _ := place(r.nodes[first])
		r.fail(path, jobs.Quote(value), fmt.Sprintf("it is in line %d already", line))
		return
	}
	seen[value] = path
}

func (r *reader) store(n ast.Node) Store {
	o, ok := r.object(n, "store", "kind", "dir")
	if !ok {
		return Store{}
	}
	o.need("kind")
	s := Store{Kind: o.word("kind", Stores)}
	switch s.Kind {
	case "sqlite":
		o.need("dir")
		if s.Dir = o.path("dir"); s.Dir != "" {
			s.Path = filepath.Join(s.Dir, "quarterjack.db")
		}
	case "memory":
		if o.has("dir") {
			r.fail(o.at("dir"), "a directory for a memory store", "want none, or kind: sqlite")
		}
	}
	return s
}

func (r *reader) trigger(n ast.Node, path string, node *jobs.Node) Trigger {
	o, ok := r.object(n, path, "id", "schedule", "misfire", "threshold", "overlap", "limit", "timeout", "attempts", "backoff", "data", "job")
	if !ok {
		return Trigger{}
	}
	o.need("id", "schedule", "job")
	t := Trigger{
		ID:        o.name("id"),
		Misfire:   o.word("misfire", Misfires),
		Threshold: o.duration("threshold"),
		Overlap:   o.word("overlap", Overlaps),
		Limit:     int(o.number("limit", mostLimit)),
		Timeout:   o.duration("timeout"),
		Attempts:  int(o.number("attempts", mostAttempts)),
		Backoff:   r.backoff(o),
		Pos:       r.position(path),
	}
	if s := o.text("data"); s != "" {
		t.Data = []byte(s)
	}
	if t.Limit > 0 && (t.Overlap == "" || t.Overlap == "skip") {
		r.fail(o.at("limit"), fmt.Sprint(t.Limit), "want none, or overlap: buffer_all or allow")
	}
	if n, ok := o.fields["schedule"]; ok {
		t.Schedule = r.schedule(n, o.at("schedule"))
	}
	if n, ok := o.fields["job"]; ok {
		t.Job = r.job(n, o.at("job"), node)
	}
	return t
}

func (r *reader) schedule(n ast.Node, path string) schedule.Schedule {
	o, ok := r.object(n, path, "at", "every", "delay", "cron", "zone", "from", "until", "times")
	if !ok {
		return schedule.Schedule{}
	}
	kind, ok := o.one("kind of schedule", "at", "every", "delay", "cron")
	if !ok {
		return schedule.Schedule{}
	}
	var s schedule.Schedule
	fits := []string{"from", "until", "times"}
	switch kind {
	case "at":
		s, fits = schedule.Once(o.instant("at")), nil
	case "every":
		s = schedule.Every(o.duration("every"))
	case "delay":
		s = schedule.Delay(o.duration("delay"))
	case "cron":
		s, fits = schedule.Cron(o.filled("cron"), o.filled("zone")), append(fits, "zone")
	}
	for _, name := range []string{"zone", "from", "until", "times"} {
		if o.has(name) && !slices.Contains(fits, name) {
			r.fail(o.at(name), name+" beside "+kind, "want none")
		}
	}
	if t := o.instant("from"); !t.IsZero() {
		s = s.From(t)
	}
	if t := o.instant("until"); !t.IsZero() {
		s = s.Until(t)
	}
	if times := o.number("times", 1<<53); times > 0 {
		s = s.Times(times)
	}
	if err := s.Validate(); err != nil && !r.failed(path) {
		at := path
		if kind == "cron" {
			at = o.at(kind)
		}
		r.fail(at, err.Error(), "")
		r.errs[len(r.errs)-1].cause = err
	}
	return s
}

func (r *reader) backoff(in object) qj.Backoff {
	n, ok := in.fields["backoff"]
	if !ok {
		return qj.Backoff{}
	}
	o, ok := r.object(n, in.at("backoff"), "initial", "max")
	if !ok {
		return qj.Backoff{}
	}
	b := qj.Backoff{Initial: o.duration("initial"), Max: o.duration("max")}
	if full := b.WithDefaults(); full.Max < full.Initial {
		r.fail(o.at("max"), b.Max.String(), "want at least initial, which is "+full.Initial.String())
	}
	return b
}

func (r *reader) group(n ast.Node, path string, node *jobs.Node) Group {
	o, ok := r.object(n, path, "name", "merge", "delay", "batch_items", "max_items", "workers", "timeout", "attempts", "backoff", "input", "job")
	if !ok {
		return Group{}
	}
	o.need("name", "merge", "input", "job")
	g := Group{
		Name:       o.name("name"),
		Merge:      o.word("merge", Merges),
		Delay:      o.duration("delay"),
		BatchItems: int(o.number("batch_items", mostItems)),
		MaxItems:   int(o.number("max_items", mostItems)),
		Workers:    int(o.number("workers", mostWorkers)),
		Timeout:    o.duration("timeout"),
		Attempts:   int(o.number("attempts", mostAttempts)),
		Backoff:    r.backoff(o),
		Pos:        r.position(path),
	}
	if g.MaxItems > 0 && g.BatchItems > g.MaxItems {
		r.fail(o.at("batch_items"), fmt.Sprint(g.BatchItems), fmt.Sprintf("want at most max_items, which is %d", g.MaxItems))
	}
	if n, ok := o.fields["input"]; ok {
		g.Input = r.input(n, o.at("input"))
	}
	if n, ok := o.fields["job"]; ok {
		g.Job = r.job(n, o.at("job"), node)
	}
	return g
}

func (r *reader) input(n ast.Node, path string) Input {
	o, ok := r.object(n, path, "path", "key", "value")
	if !ok {
		return Input{}
	}
	o.need("path", "key")
	in := Input{Path: "-", Key: o.filled("key"), Value: o.filled("value")}
	if o.text("path") != "-" {
		in.Path = o.path("path")
	}
	return in
}
