package jobs

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTailKeepsTheEndInBoundedMemory(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	out := newTail(nil)
	var all []byte
	for len(all) < 5*MaxOutput {
		p := make([]byte, rnd.IntN(MaxOutput/3))
		if rnd.IntN(10) == 0 {
			p = make([]byte, MaxOutput+rnd.IntN(100))
		}
		for i := range p {
			p[i] = byte('a' + rnd.IntN(26))
		}
		n, err := out.Write(p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
		all = append(all, p...)
		require.Equal(t, string(all[max(0, len(all)-MaxOutput):]), string(out.bytes()), "seed %d, after %d bytes", seed, len(all))
		require.LessOrEqual(t, cap(out.buf), 2*MaxOutput)
	}
}

func TestTailOfNothing(t *testing.T) {
	require.Nil(t, newTail([]string{"", "x"}).bytes())
}

func TestTailStartsWithAWholeCharacter(t *testing.T) {
	out := newTail(nil)
	_, _ = out.Write([]byte("é" + strings.Repeat("a", MaxOutput-1)))
	require.Equal(t, strings.Repeat("a", MaxOutput-1), string(out.bytes()))

	out = newTail(nil) // what is no text is left as it is
	_, _ = out.Write(bytes.Repeat([]byte{0x80}, MaxOutput+1))
	require.Len(t, out.bytes(), MaxOutput)
}

func TestTailMasksSecrets(t *testing.T) {
	fill := func(n int) string { return strings.Repeat(".", n) }
	const secret = "tiger-42"
	for name, c := range map[string]struct {
		hide     []string
		in, want string
	}{
		"nothing to hide":                  {nil, "tiger-42", "tiger-42"},
		"in the middle":                    {[]string{secret}, "a tiger-42 b", "a *** b"},
		"twice, and next to each other":    {[]string{secret}, "tiger-42tiger-42, tiger-42", "***, ***"},
		"one in the other":                 {[]string{"42", secret}, "tiger-42 42", "*** ***"},
		"overlapping":                      {[]string{"abc", "bcd"}, "xabcdx", "x***x"},
		"overlapping itself":               {[]string{"aba"}, "xababax", "x***x"},
		"an ordinary start":                {[]string{secret}, "tiger-4", "tiger-4"},
		"across the cut":                   {[]string{secret}, "tiger-42" + fill(MaxOutput-3), "***" + fill(MaxOutput-3)},
		"only its end after the cut":       {[]string{secret}, "tiger-42" + fill(MaxOutput-1), "***" + fill(MaxOutput-1)},
		"before the cut":                   {[]string{secret}, "tiger-42" + fill(MaxOutput), fill(MaxOutput)},
		"its start is lost already":        {[]string{secret}, "tiger-42" + fill(MaxOutput+3), fill(MaxOutput)},
		"a short one does not make it big": {[]string{"."}, fill(MaxOutput - 1), "***"},
	} {
		t.Run(name, func(t *testing.T) {
			out := newTail(c.hide)
			for _, b := range []byte(c.in) {
				_, _ = out.Write([]byte{b})
			}
			got := string(out.bytes())
			require.LessOrEqual(t, len(got), MaxOutput)
			require.Equal(t, c.want[max(0, len(c.want)-MaxOutput):], got)
		})
	}
}

func TestQuoteIsShort(t *testing.T) {
	require.Equal(t, `"short"`, Quote("short"))
	require.Equal(t, `"`+strings.Repeat("é", 30)+`"…`, Quote(strings.Repeat("é", 40)))
	require.Equal(t, `"a`+strings.Repeat("é", 29)+`"…`, Quote("a"+strings.Repeat("é", 40)))
}
