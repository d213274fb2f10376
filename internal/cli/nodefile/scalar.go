package nodefile

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

// describe says what a node is, for a message about what it should have been. It does not show a text, which may be a
// secret in the wrong place.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.BoolNode:
		return n.GetToken().Value
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode:
		return "an anchor"
	case *ast.AliasNode:
		return "an alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.MergeKeyNode:
		return "a merge"
	}
	return "no plain value"
}

// scalarText reads a text. Without one it is "", and what there is instead has been noted.
func (r *reader) scalarText(n ast.Node, path string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		r.fail(path, describe(n), "want a text: put it in quotes")
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.fail(path, describe(n), "want a text (anchors, aliases and tags are not supported)")
	default:
		r.fail(path, describe(n), "want a text")
	}
	return ""
}

// text reads a field that is a text; "" if it is not given.
func (o object) text(name string) string {
	n, ok := o.fields[name]
	if !ok {
		return ""
	}
	return o.r.scalarText(n, o.at(name))
}

// filled is text for a field that may not be empty.
func (o object) filled(name string) string {
	s := o.text(name)
	if o.has(name) && s == "" {
		o.r.fail(o.at(name), "an empty text", "want at least one character")
	}
	return s
}

// name reads a field that becomes part of keys.
func (o object) name(name string) string {
	s := o.filled(name)
	if len(s) > qj.MaxID {
		o.r.fail(o.at(name), fmt.Sprintf("%s, %d bytes", jobs.Quote(s), len(s)), fmt.Sprintf("want at most %d bytes", qj.MaxID))
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		o.r.fail(o.at(name), jobs.Quote(s), "want a text without control characters")
	}
	return s
}

// path reads a field that is the path of a file, which starts from the node file's directory; "" if it is not given.
func (o object) path(name string) string {
	s := o.filled(name)
	if strings.ContainsRune(s, 0) {
		o.r.fail(o.at(name), jobs.Quote(s), "want a path without NUL")
	}
	if s == "" || filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(o.r.dir, s)
}

// word reads a field that is one of some words; "" if it is not given.
func (o object) word(name string, words []string) string {
	s := o.text(name)
	if o.has(name) && !slices.Contains(words, s) {
		o.r.fail(o.at(name), jobs.Quote(s), "want "+oneOf(words))
		return ""
	}
	return s
}

// duration reads a field that is a duration of more than 0; 0 if it is not given.
func (o object) duration(name string) time.Duration {
	const want = "want a duration of more than 0 such as 500ms, 10s, 5m or 24h"
	n, ok := o.fields[name]
	if !ok {
		return 0
	}
	if _, ok := n.(*ast.IntegerNode); ok {
		o.r.fail(o.at(name), describe(n)+" without a unit", want)
		return 0
	}
	s := o.text(name)
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		o.r.fail(o.at(name), jobs.Quote(s), want)
		return 0
	}
	return d
}

// instant reads a field that is a point in time; zero if it is not given.
func (o object) instant(name string) time.Time {
	if !o.has(name) {
		return time.Time{}
	}
	s := o.text(name)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		o.r.fail(o.at(name), jobs.Quote(s), "want a time such as 2026-01-31T15:04:05Z or 2026-01-31T15:04:05.5+01:00")
	}
	return t
}

// number reads a field that is a whole number, at least 1; 0 if it is not given.
func (o object) number(name string, most int64) int64 {
	n, ok := o.fields[name]
	if !ok {
		return 0
	}
	v, ok := integer(n)
	if !ok || v < 1 || v > most {
		given := describe(n)
		if s, isText := n.(*ast.StringNode); isText {
			given = jobs.Quote(s.Value)
		}
		o.r.fail(o.at(name), given, fmt.Sprintf("want a whole number from 1 to %d", most))
		return 0
	}
	return v
}

func integer(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := i.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// flag reads a field that is true or false; false if it is not given.
func (o object) flag(name string) bool {
	n, ok := o.fields[name]
	if !ok {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		given := describe(n)
		if s, isText := n.(*ast.StringNode); isText {
			given = jobs.Quote(s.Value)
		}
		o.r.fail(o.at(name), given, "want true or false")
		return false
	}
	return b.Value
}

// texts reads a field that is a list of texts; with numbers, whole numbers are taken as they are written.
func (o object) texts(name string, numbers bool) []string {
	items, paths := o.list(name)
	all := make([]string, 0, len(items))
	for i, item := range items {
		if n, ok := integer(item); ok && numbers {
			all = append(all, strconv.FormatInt(n, 10))
			continue
		}
		all = append(all, o.r.scalarText(item, paths[i]))
	}
	return all
}

// integers reads a field that is a list of whole numbers.
func (o object) integers(name string) []int {
	items, paths := o.list(name)
	all := make([]int, 0, len(items))
	for i, item := range items {
		n, ok := integer(item)
		if !ok || n != int64(int32(n)) {
			o.r.fail(paths[i], describe(item), "want a whole number")
		}
		all = append(all, int(n))
	}
	return all
}
