package nodefile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxNesting is how deep lists and mappings may be written into each other on a line. A node file needs three; the
// parser takes minutes for a hundred thousand.
const maxNesting = 32

// parseYAML gives the file's one document as a tree.
func parseYAML(name string, data []byte) (ast.Node, error) {
	bad := func(line, col int, given, allowed string) (ast.Node, error) {
		return nil, join([]*Error{{File: name, Line: line, Col: col, Given: given, Allowed: allowed}})
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxSize {
		return bad(0, 0, "the file is too large", fmt.Sprintf("want at most %d bytes", MaxSize))
	}
	if line, col := invalid(data); line > 0 {
		return bad(line, col, "the text is not UTF-8", "want UTF-8 without control characters")
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(slices.Clip(data), '\n') // else the parser does not fold a folded text in the last line
	}

	tokens := lexer.Tokenize(string(data))
	if at := nested(tokens); at != nil {
		return bad(at.Line, at.Column, "lists and mappings are nested too deep", fmt.Sprintf("want at most %d", maxNesting))
	}
	// Twice the same field is told by the reader, together with all else.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil {
			return bad(syntax.Token.Position.Line, syntax.Token.Position.Column, "not YAML: "+syntax.Message, "")
		}
		return bad(0, 0, "not YAML: "+err.Error(), "")
	}

	var root ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case doc.Body.Type() == ast.DirectiveType:
			line, col := place(doc.Body)
			return bad(line, col, "a directive", "want none")
		case root != nil:
			line, col := place(doc.Body)
			return bad(line, col, "a second document", "want one")
		default:
			root = doc.Body
		}
	}
	if root == nil {
		return bad(0, 0, "the file is empty", "want triggers or groups (triggers: [] retires all of its owner's)")
	}
	return root, nil
}

// invalid finds the first character that no YAML file may have. All is well if line is 0.
func invalid(data []byte) (line, col int) {
	line, col = 1, 1
	for len(data) > 0 {
		c, n := utf8.DecodeRune(data)
		switch {
		case c == utf8.RuneError && n == 1, c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return line, col
		case c == '\n':
			line, col = line+1, 0
		}
		data, col = data[n:], col+1
	}
	return 0, 0
}

// nested finds where more than maxNesting lists and mappings are open that were opened within brackets or on one line;
// nil if nowhere. (Those that are nested by indentation take a line each, and ever longer ones.)
func nested(tokens token.Tokens) *token.Position {
	brackets, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			onLine++
		default:
		}
		if max(brackets, onLine) > maxNesting {
			return t.Position
		}
	}
	return nil
}

// place tells where a node begins.
func place(n ast.Node) (line, col int) {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return place(m.Values[0])
		}
	case *ast.MappingValueNode:
		if m.Key != nil {
			return place(m.Key)
		}
	}
	if n == nil {
		return 0, 0
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 0, 0
}
