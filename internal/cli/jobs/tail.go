package jobs

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// tail keeps the end of what is written to it, in bounded memory, and shows it without the secrets that it was told
// of. It is for one writer.
type tail struct {
	hide [][]byte
	buf  []byte
	size int // most that buf holds
	at   int // where the oldest byte is, once buf is full
	lost bool
}

// newTail makes a tail of MaxOutput bytes that masks what hide holds wherever it stands verbatim. It keeps as many
// bytes more as the longest secret has, less one: so a secret is always seen whole, and never its end alone.
func newTail(hide []string) *tail {
	t := &tail{size: MaxOutput}
	for _, s := range hide {
		if s != "" {
			t.hide = append(t.hide, []byte(s))
			t.size = max(t.size, MaxOutput+len(s)-1)
		}
	}
	return t
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.lost = t.lost || len(t.buf)+n > t.size
	p = p[max(0, n-t.size):]
	if room := t.size - len(t.buf); room > 0 {
		k := min(room, len(p))
		t.buf = append(t.buf, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(t.buf[t.at:], p)
		t.at = (t.at + k) % t.size
		p = p[k:]
	}
	return n, nil
}

// bytes gives the end of the output, masked, from the start of a character on, at most MaxOutput bytes; nil if
// nothing was written.
func (t *tail) bytes() []byte {
	if len(t.buf) == 0 {
		return nil
	}
	b := slices.Concat(t.buf[t.at:], t.buf[:t.at])
	from := max(0, len(b)-MaxOutput)
	out := mask(b, t.hide, from)
	cut := max(0, len(out)-MaxOutput) // a mask may be longer than what it hides
	out = out[cut:]
	for i := 0; (t.lost || from+cut > 0) && i < min(utf8.UTFMax, len(out)); i++ {
		if utf8.RuneStart(out[i]) {
			return out[i:]
		}
	}
	return out
}

var masked = []byte("***")

// mask copies b from the given index on, with *** for every stretch that is part of a secret, even where secrets
// overlap or the stretch began before the index.
func mask(b []byte, hide [][]byte, from int) []byte {
	var hidden []bool
	for _, s := range hide {
		for start, end := 0, 0; len(s) > 0; start++ {
			i := bytes.Index(b[start:], s)
			if i < 0 {
				break
			}
			if hidden == nil {
				hidden = make([]bool, len(b))
			}
			start += i
			for end = max(end, start); end < start+len(s); end++ {
				hidden[end] = true
			}
		}
	}
	if hidden == nil {
		return b[from:]
	}
	out := make([]byte, 0, len(b)-from)
	for i := from; i < len(b); i++ {
		switch {
		case !hidden[i]:
			out = append(out, b[i])
		case i == from || !hidden[i-1]:
			out = append(out, masked...)
		}
	}
	return out
}

// maskText is mask for a message.
func maskText(s string, hide []string) string {
	h := make([][]byte, len(hide))
	for i := range hide {
		h[i] = []byte(hide[i])
	}
	return string(mask([]byte(s), h, 0))
}
