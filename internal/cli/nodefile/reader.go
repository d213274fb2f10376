package nodefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

// reader walks the tree of one file, remembers where each field stands, and gathers what is wrong.
type reader struct {
	name, dir string
	nodes     map[string]ast.Node // where each field stands, by its path
	errs      []*Error
}

func newReader(name, dir string) *reader {
	return &reader{name: name, dir: dir, nodes: map[string]ast.Node{}}
}

// err is all that was found wrong.
func (r *reader) err() error { return join(r.errs) }

// fail notes what is wrong with a field. A field that something is wrong with already, or with a part of which, is
// left at that: what was read from it is not what the user wrote.
func (r *reader) fail(path, given, allowed string) {
	if !r.failed(path) {
		r.failAt(r.nearest(path), path, given, allowed)
	}
}

// failAt notes something that is wrong at a node, whatever is wrong with its field already.
func (r *reader) failAt(at ast.Node, path, given, allowed string) {
	line, col := place(at)
	r.errs = append(r.errs, &Error{File: r.name, Line: line, Col: col, Field: path, Given: given, Allowed: allowed})
}

func (r *reader) failed(path string) bool {
	return slices.ContainsFunc(r.errs, func(e *Error) bool { return within(e.Field, path) || within(path, e.Field) })
}

// within says whether a field is another one or a part of it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// nearest gives the node of a field, or of what it would be in.
func (r *reader) nearest(path string) ast.Node {
	for {
		if n, ok := r.nodes[path]; ok || path == "" {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// failJob notes what a job's constructor found wrong.
func (r *reader) failJob(path string, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		if field, ok := errors.AsType[*jobs.FieldError](err); ok {
			r.fail(path+"."+field.Field, field.Given, field.Allowed)
		} else {
			r.fail(path, err.Error(), "")
		}
	}
}

// position tells where a field stands, as messages do.
func (r *reader) position(path string) string {
	line, col := place(r.nodes[path])
	return position(r.name, line, col)
}

// object is a mapping whose fields are known.
type object struct {
	r      *reader
	where  string // its path
	fields map[string]ast.Node
}

// object reads a mapping at path. A field that is not among the given ones is wrong, and so is one that is given twice.
// With ok false it is no mapping, which has been noted.
func (r *reader) object(n ast.Node, path string, allowed ...string) (o object, ok bool) {
	o = object{r, path, map[string]ast.Node{}}
	return o, r.entries(n, path, func(name string, key, value ast.Node) {
		if !slices.Contains(allowed, name) {
			r.failAt(key, o.at(name), "unknown field", "want "+oneOf(allowed))
			return
		}
		o.fields[name] = value
	})
}

// entries calls each with the entries of a mapping, in their order, those with a name that is no text or was there
// before left out. It is false if the node is no mapping, which has been noted.
func (r *reader) entries(n ast.Node, path string, each func(name string, key, value ast.Node)) bool {
	r.nodes[path] = n
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		r.fail(path, describe(n), "want a mapping")
		return false
	}
	seen := map[string]ast.Node{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.failAt(v.Key, path, "the name of a field is "+describe(v.Key), "want a text (anchors, aliases and tags are not supported)")
			continue
		}
		at := object{where: path}.at(key.Value)
		if first, twice := seen[key.Value]; twice {
			line, _ := place(first)
			r.failAt(v.Key, at, "given twice", fmt.Sprintf("it is in line %d already", line))
			continue
		}
		seen[key.Value] = v.Key
		r.nodes[at] = v.Value
		if _, nothing := v.Value.(*ast.NullNode); nothing {
			r.nodes[at] = v.Key
		}
		each(key.Value, v.Key, v.Value)
	}
	return true
}

// at is the path of a field of the object.
func (o object) at(name string) string {
	if o.where == "" {
		return name
	}
	return o.where + "." + name
}

// has says whether a field is given.
func (o object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

// need notes which of the fields are missing.
func (o object) need(names ...string) {
	for _, name := range names {
		if !o.has(name) {
			o.r.failAt(o.r.nodes[o.where], o.at(name), "missing", "it must be given")
		}
	}
}

// one gives the only one of the fields that is given. If there is none, or more than one, that has been noted.
func (o object) one(what string, names ...string) (name string, ok bool) {
	var given []string
	for _, n := range names {
		if o.has(n) {
			given = append(given, n)
		}
	}
	switch len(given) {
	case 0:
		o.r.fail(o.where, "no "+what, "want "+oneOf(names))
	case 1:
		return given[0], true
	default:
		o.r.fail(o.where, "more than one "+what+": "+strings.Join(given, ", "), "want one of them")
	}
	return "", false
}

// list gives the nodes of a field that is a list, with the path of each; none if it is not given.
func (o object) list(name string) (items []ast.Node, paths []string) {
	n, ok := o.fields[name]
	if !ok {
		return nil, nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		o.r.fail(o.at(name), describe(n), "want a list")
		return nil, nil
	}
	for i, item := range seq.Values {
		path := fmt.Sprintf("%s[%d]", o.at(name), i)
		o.r.nodes[path] = item
		items, paths = append(items, item), append(paths, path)
	}
	return items, paths
}

// oneOf lists words for a message.
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}
