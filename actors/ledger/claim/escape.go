package claim

import (
	"errors"
	"strings"
)

const upperHex = "0123456789ABCDEF"

// plain says whether c stands for itself in a part of a key: what RFC 3986 allows in a path's segment, without "!*'(),;".
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~$&+=:@", c) >= 0
}

// appendEscaped writes s with %XX for each byte that is not plain.
func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b
}

// unescape reads what appendEscaped wrote.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("an escape is cut short")
		}
		hi, lo := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if hi < 0 || lo < 0 {
			return "", errors.New("an escape is not %XX")
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}
