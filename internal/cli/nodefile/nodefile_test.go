package nodefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	qj "github.com/quarterjack/quarterjack"
	"github.com/quarterjack/quarterjack/actors/trigger/firing"
	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
	"github.com/quarterjack/quarterjack/internal/cli/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const examples = "../../../examples/node"

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	for _, file := range files {
		f, err := Load(file)
		require.NoError(t, err)
		require.NotEmpty(t, f.Triggers)
		require.NoError(t, f.Close())
	}
}

func TestLoadFillsInEverything(t *testing.T) {
	path := filepath.Join(examples, "full.yaml")
	f, err := Load(path)
	require.NoError(t, err)
	dir, err := filepath.Abs(examples)
	require.NoError(t, err)

	require.Equal(t, path, f.Name)
	require.Equal(t, "default", f.Namespace)
	require.Equal(t, "file:full.yaml", f.Owner)
	require.Empty(t, f.Node.ID(), "it is the store's, which nobody has opened")
	require.Equal(t, Store{Kind: "sqlite", Dir: filepath.Join(dir, "data"), Path: filepath.Join(dir, "data", "quarterjack.db")}, f.Store)
	require.Equal(t, 16, f.Workers)
	require.Len(t, f.Triggers, 3)

	report := f.Triggers[0]
	require.True(t, strings.HasPrefix(report.Pos, path+":"), report.Pos)
	require.Equal(t, "exec sh with 2 arguments", report.Job.String())
	report.Job, report.Pos = nil, ""
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	require.Equal(t, Trigger{
		ID:       "report",
		Schedule: schedule.Every(10 * time.Second).From(day(2026)).Until(day(2036)).Times(1_000_000),
		Misfire:  "smart", Threshold: time.Minute, Overlap: "buffer_all", Limit: 100, Timeout: time.Hour, Attempts: 5,
		Backoff: qj.Backoff{Initial: time.Second, Max: 5 * time.Minute}, Data: []byte("hello from the node\n"),
	}, report)

	require.Equal(t, schedule.Delay(30*time.Second), f.Triggers[1].Schedule)
	require.Equal(t, "http POST http://127.0.0.1:8080/hook", f.Triggers[1].Job.String())
	require.Equal(t, schedule.Once(time.Date(2026, 1, 31, 14, 4, 5, 500_000_000, time.UTC)), f.Triggers[2].Schedule)
	require.Equal(t, `log "it is time"`, f.Triggers[2].Job.String())

	require.Len(t, f.Groups, 1)
	group := f.Groups[0]
	require.True(t, strings.HasPrefix(group.Pos, path+":"), group.Pos)
	require.Equal(t, `log "added"`, group.Job.String())
	group.Job, group.Pos = nil, ""
	require.Equal(t, Group{
		Name: "changes", Merge: "sum", Delay: time.Second, BatchItems: 10_000, MaxItems: 1_000_000, Workers: 16,
		Timeout: time.Minute, Attempts: 5, Backoff: qj.Backoff{Initial: time.Second, Max: 5 * time.Minute},
		Input: Input{Path: filepath.Join(dir, "..", "..", "testdata", "changes.ndjson.gz"), Key: "key", Value: "added"},
	}, group)
	require.FileExists(t, group.Input.Path)
}

func TestParseLeavesTheRestToTheRuntime(t *testing.T) {
	f, err := Parse("some/where/node.yaml", []byte("store: {kind: memory}\ntriggers:\n- {id: a, schedule: {every: 1s}, job: {log: {message: m}}}"))
	require.NoError(t, err)
	require.Equal(t, &File{
		Name: "some/where/node.yaml", Namespace: "default", Owner: "file:node.yaml", Node: new(jobs.Node), Store: Store{Kind: "memory"},
		Triggers: []Trigger{{ID: "a", Schedule: schedule.Every(time.Second), Job: &jobs.Log{Message: "m"}, Pos: "some/where/node.yaml:3:3"}},
	}, f)
}

func TestParseTakesEveryWayToWriteYAML(t *testing.T) {
	const want = "store: {kind: memory}\ntriggers: [{id: a, data: \"x y\\n\", schedule: {every: 1s}, job: {log: {message: m}}}]\n"
	plain, err := Parse("node.yaml", []byte(want))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"a byte order mark and CRLF": "\ufeff" + strings.ReplaceAll(want, "\n", "\r\n"),
		"without a last line break":  strings.TrimSuffix(want, "\n"),
		"a document's start and end": "---\n" + want + "...\n",
		"comments":                   "# hello\n" + strings.Replace(want, "\n", " # kind\n# more\n\n", 1) + "# end\n",
		"folded":                     "triggers:\n- id: a\n  data: >\n    x\n    y\n  schedule:\n    every: 1s\n  job:\n    log:\n      message: m\nstore:\n  kind: memory\n",
		"folded in the last line":    "store: {kind: memory}\ntriggers:\n- id: a\n  schedule: {every: 1s}\n  job: {log: {message: m}}\n  data: >\n    x\n    y",
		"literal":                    "store: {kind: 'memory'}\n\"triggers\":\n  -\n    id: a\n    schedule: {every: 1s}\n    job: {log: {message: m}}\n    data: |\n      x y\n",
		"JSON":                       `{"store": {"kind": "memory"}, "triggers": [{"id": "a", "data": "x y\n", "schedule": {"every": "1s"}, "job": {"log": {"message": "m"}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("node.yaml", []byte(text))
			require.NoError(t, err)
			f.Triggers[0].Pos = plain.Triggers[0].Pos
			require.Equal(t, plain, f)
		})
	}
}

func TestPathsStartFromTheFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("x"), 0o600))
	file := filepath.Join(dir, "node.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
store: {kind: sqlite, dir: ledger}
triggers:
- id: here
  schedule: {every: 1s}
  job: {exec: {argv: [pwd]}}
- id: there
  schedule: {every: 1s}
  job: {exec: {argv: [env], dir: /, env: {TOKEN: {file: token}}}}
groups:
- {name: g, merge: last, input: {path: "-", key: k}, job: {log: {message: m}}}
- {name: h, merge: list, input: {path: in.ndjson, key: k}, job: {log: {message: m}}}
`), 0o600))
	f, err := Load(file)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "ledger", "quarterjack.db"), f.Store.Path)
	require.Equal(t, "-", f.Groups[0].Input.Path)
	require.Equal(t, filepath.Join(dir, "in.ndjson"), f.Groups[1].Input.Path)

	f.Node.SetID("n1")
	out, err := f.Triggers[0].Job.Do(t.Context(), jobs.Work{})
	require.NoError(t, err)
	require.Equal(t, dir+"\n", string(out))
	out, err = f.Triggers[1].Job.Do(t.Context(), jobs.Work{})
	require.NoError(t, err)
	require.Contains(t, string(out), "TOKEN=***\n")
	require.Contains(t, string(out), "QJ_NODE=n1\n")
}

func TestLoadOfWhatIsNotThere(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "node.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(t.TempDir())
	require.Error(t, err)
}

func TestLoadStopsAtTheLargestSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, make([]byte, MaxSize+10), 0o600))
	_, err := Load(file)
	require.ErrorIs(t, err, ErrBad)
	require.ErrorContains(t, err, "too large")
}

func TestTheWordsAreThoseOfTheRuntime(t *testing.T) {
	require.Len(t, Misfires, len(firing.Instructions))
	for i, m := range firing.Instructions {
		require.Equal(t, m.String(), Misfires[i])
	}
	for i, o := range []firing.Overlap{firing.Skip, firing.BufferAll, firing.Allow} {
		require.Equal(t, o.String(), Overlaps[i])
	}
}

func TestParseOfAThousandTriggersIsQuick(t *testing.T) {
	var b strings.Builder
	b.WriteString("store: {kind: memory}\ntriggers:\n")
	for i := range 1000 {
		b.WriteString("- id: t" + strings.Repeat("x", i%50) + time.Duration(i).String() + "\n  schedule: {every: 1s}\n  job: {exec: {argv: [echo, hi]}}\n")
	}
	f, err := Parse("node.yaml", []byte(b.String()))
	require.NoError(t, err)
	require.Len(t, f.Triggers, 1000)
}

func TestParseOfManyBracketsIsQuick(t *testing.T) {
	for _, s := range []string{"[", "{a: ", "- ", "? "} { // left to the parser, each takes minutes when it is long
		_, err := Parse("node.yaml", []byte(strings.Repeat(s, 20_000)))
		require.ErrorContains(t, err, "nested too deep")
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(examples + "/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, c := range refused {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse("node.yaml", data)
		if (got == nil) == (err == nil) {
			t.Fatalf("file %v, error %v", got, err)
		}
		if err == nil {
			for _, trigger := range got.Triggers {
				if trigger.ID == "" || trigger.Job == nil || trigger.Schedule.Validate() != nil {
					t.Fatalf("let through: %+v", trigger)
				}
				_ = trigger.Job.String()
			}
			for _, g := range got.Groups {
				if g.Name == "" || g.Job == nil || g.Merge == "" || g.Input.Path == "" || g.Input.Key == "" {
					t.Fatalf("let through: %+v", g)
				}
			}
		}
	})
}
