package firing

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// vector is one line of simple_misfire.jsonl: what the real Quartz 2.3.2 made of a simple trigger's state.
type vector struct {
	ID    string          `json:"id"`
	Instr int             `json:"instr"`
	Now   time.Time       `json:"now"`
	Cal   json.RawMessage `json:"cal"`
	In    vectorState     `json:"in"`
	Out   *vectorState    `json:"out"`
	Then  []*time.Time    `json:"then"`
	Throw *string         `json:"throws"`
}

type vectorState struct {
	Start     time.Time  `json:"start"`
	End       *time.Time `json:"end"`
	Next      *time.Time `json:"next"`
	Prev      *time.Time `json:"prev"`
	Repeat    int64      `json:"repeatCount"`
	Interval  int64      `json:"interval"`
	Triggered int64      `json:"timesTriggered"`
	MayFire   bool       `json:"mayFireAgain"`
}

func (v *vectorState) simple() Simple {
	or := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return t.UTC()
	}
	return Simple{Start: v.Start.UTC(), End: or(v.End), Next: or(v.Next), Prev: or(v.Prev),
		Interval: time.Duration(v.Interval) * time.Millisecond, Repeat: v.Repeat, Triggered: v.Triggered}
}

// TestSimpleMisfireVectors compares with what the real Quartz did, for every vector without a calendar (calendars are
// not part of this release). The lines that it covers are counted from the file, not typed in.
func TestSimpleMisfireVectors(t *testing.T) {
	byCode := map[int]Misfire{}
	for _, m := range Instructions {
		byCode[m.Code()] = m
	}
	checked, without := 0, 0
	for _, line := range lines(t, "simple_misfire.jsonl.gz") {
		if strings.Contains(line, `"cal":null`) {
			without++
		}
		var v vector
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		if string(v.Cal) != "null" && len(v.Cal) > 0 {
			continue
		}
		checked++
		s := v.In.simple()
		err := s.UpdateAfterMisfire(byCode[v.Instr], v.Now.UTC())
		if v.Throw != nil {
			require.Error(t, err, v.ID)
			continue
		}
		require.NoError(t, err, v.ID)
		if s.Triggered > math.MaxInt32 { // Quartz counts in 32 bits and wraps; ours must not
			require.EqualValues(t, int32(s.Triggered), v.Out.Triggered, "%s: not even modulo 2^32", v.ID)
			v.Out.Triggered = s.Triggered
		}
		require.Equal(t, v.Out.simple(), s, "%s %v at %v", v.ID, byCode[v.Instr], v.Now)
		require.Equal(t, v.Out.MayFire, !s.Next.IsZero(), v.ID)
		for i, want := range v.Then {
			if !s.Next.IsZero() {
				s.Fire()
			}
			if want == nil {
				require.True(t, s.Next.IsZero(), "%s then[%d]: got %v, want none", v.ID, i, s.Next)
				break
			}
			require.Equal(t, want.UTC(), s.Next, "%s then[%d]", v.ID, i)
		}
	}
	require.Equal(t, without, checked)
	require.NotZero(t, checked)
	t.Logf("%d vectors equal", checked)
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "testdata", "quartz", name))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var out []string
	sc := bufio.NewScanner(io.Reader(z))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		out = append(out, sc.Text())
	}
	require.NoError(t, sc.Err())
	return out
}
