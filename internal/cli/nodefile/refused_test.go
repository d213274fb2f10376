package nodefile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quarterjack/quarterjack/actors/trigger/schedule"
)

// refused lists files that are wrong, with all that is told of each.
var refused = []struct {
	name, file string
	want       []string // without "node.yaml:"
}{
	{"empty", "", []string{" the file is empty: want triggers or groups (triggers: [] retires all of its owner's)"}},
	{"only a comment", "# soon\n", []string{" the file is empty: want triggers or groups (triggers: [] retires all of its owner's)"}},
	{"not YAML", "store: {kind: memory\n", []string{"1:8: not YAML: could not find flow mapping end token '}'"}},
	{"a tab", "store:\n\tkind: memory\n", []string{"2:1: not YAML: found character '\t' that cannot start any token"}},
	{"not UTF-8", "store:\n  kind: \xff\n", []string{"2:9: the text is not UTF-8: want UTF-8 without control characters"}},
	{"a control character", "store: {kind: memory}\x00", []string{"1:22: the text is not UTF-8: want UTF-8 without control characters"}},
	{"two documents", "store: {kind: memory}\n---\ntriggers: []\n", []string{"3:1: a second document: want one"}},
	{"a directive", "%YAML 1.2\n---\ntriggers: []\n", []string{"1:1: a directive: want none"}},
	{"nested too deep", "triggers: " + strings.Repeat("[", 40), []string{"1:43: lists and mappings are nested too deep: want at most 32"}},
	{"nested too deep on a line", "triggers:\n" + strings.Repeat("- ", 40) + "x\n", []string{"2:65: lists and mappings are nested too deep: want at most 32"}},
	{"a list", "- id: a\n", []string{"1:1: a list: want a mapping"}},
	{"a text", "hello\n", []string{"1:1: a text: want a mapping"}},

	{"nothing to do", "store: {kind: memory}\n", []string{"1:1: triggers: missing, and so is groups: want one of them (triggers: [] retires all of its owner's)"}},
	{"no store", "triggers: []\n", []string{"1:1: store: missing: it must be given"}},
	{"an unknown field", "stroe: {kind: memory}\nstore: {kind: memory}\ntriggers: []\n",
		[]string{"1:1: stroe: unknown field: want one of namespace, owner, store, workers, triggers, groups"}},
	{"a field given twice", "store: {kind: memory}\ntriggers: []\nstore: {kind: sqlite}\n", []string{"3:1: store: given twice: it is in line 1 already"}},
	{"no such store", "store: {kind: postgres}\ntriggers: []\n", []string{`1:15: store.kind: "postgres": want one of memory, sqlite`}},
	{"sqlite without a place", "store: {kind: sqlite}\ntriggers: []\n", []string{"1:8: store.dir: missing: it must be given"}},
	{"memory with a place", "store: {kind: memory, dir: x}\ntriggers: []\n", []string{"1:28: store.dir: a directory for a memory store: want none, or kind: sqlite"}},
	{"an empty place", "store: {kind: sqlite, dir: ''}\ntriggers: []\n", []string{"1:28: store.dir: an empty text: want at least one character"}},
	{"a place with NUL", "store: {kind: sqlite, dir: \"a\\0\"}\ntriggers: []\n", []string{`1:28: store.dir: "a\x00": want a path without NUL`}},
	{"bad names", "namespace: \"a\\tb\"\nowner: " + strings.Repeat("o", 201) + "\nworkers: 0\nstore: {kind: memory}\ntriggers: []\n", []string{
		`1:12: namespace: "a\tb": want a text without control characters`,
		`2:8: owner: "` + strings.Repeat("o", 60) + `"…, 201 bytes: want at most 200 bytes`,
		"3:10: workers: the number 0: want a whole number from 1 to 100000",
	}},
	{"wrong types", "namespace: 5\nowner: true\nworkers: many\nstore: []\ntriggers: {}\ngroups:\n", []string{
		"1:12: namespace: the number 5: want a text: put it in quotes",
		"2:8: owner: true: want a text: put it in quotes",
		`3:10: workers: "many": want a whole number from 1 to 100000`,
		"4:8: store: a list: want a mapping",
		"5:11: triggers: a mapping: want a list",
		"6:1: groups: nothing: want a list",
	}},
	{"anchors and the like", "namespace: &n x\nowner: *n\nstore: !!map {kind: memory}\n<<: {workers: 1}\n5: 6\ntriggers: [&t {}]\n", []string{
		"1:12: namespace: an anchor: want a text (anchors, aliases and tags are not supported)",
		"2:8: owner: an alias: want a text (anchors, aliases and tags are not supported)",
		"3:8: store: a tag: want a mapping",
		"4:1: the name of a field is a merge: want a text (anchors, aliases and tags are not supported)",
		"5:1: the name of a field is the number 5: want a text (anchors, aliases and tags are not supported)",
		"6:12: triggers[0]: an anchor: want a mapping",
	}},

	{"a trigger without anything", "store: {kind: memory}\ntriggers:\n- {}\n- 7\n", []string{
		"3:3: triggers[0].id: missing: it must be given",
		"3:3: triggers[0].schedule: missing: it must be given",
		"3:3: triggers[0].job: missing: it must be given",
		"4:3: triggers[1]: the number 7: want a mapping",
	}},
	{"an id given twice", triggers("id: a", "id: b", "id: a"), []string{`9:9: triggers[2].id: "a": it is in line 3 already`}},
	{"bad values of a trigger", triggers(`{id: "", misfire: SMART, threshold: 60, overlap: sometimes, timeout: 5 parsecs, attempts: 1.5, ` +
		`backoff: {initial: 0s, max: -1s, factor: 2}, data: 5, limit: 100001}`), []string{
		"3:10: triggers[0].id: an empty text: want at least one character",
		`3:23: triggers[0].misfire: "SMART": want one of smart, ignore, fire_now, now_existing, now_remaining, next_remaining, next_existing`,
		"3:41: triggers[0].threshold: the number 60 without a unit: " + wantDuration,
		`3:54: triggers[0].overlap: "sometimes": want one of skip, buffer_all, allow`,
		`3:74: triggers[0].timeout: "5 parsecs": ` + wantDuration,
		"3:95: triggers[0].attempts: the number 1.5: want a whole number from 1 to 1000000",
		`3:119: triggers[0].backoff.initial: "0s": ` + wantDuration,
		`3:128: triggers[0].backoff.max: "-1s": ` + wantDuration,
		"3:133: triggers[0].backoff.factor: unknown field: want one of initial, max",
		"3:151: triggers[0].data: the number 5: want a text: put it in quotes",
		"3:161: triggers[0].limit: the number 100001: want a whole number from 1 to 100000",
	}},
	{"fields that do not fit together", triggers("{id: a, limit: 5, backoff: {initial: 1m, max: 1s}}", "{id: b, limit: 5, overlap: skip, backoff: {max: 1ms}}"), []string{
		"3:20: triggers[0].limit: 5: want none, or overlap: buffer_all or allow",
		"3:51: triggers[0].backoff.max: 1s: want at least initial, which is 1m0s",
		"4:20: triggers[1].limit: 5: want none, or overlap: buffer_all or allow",
		"4:53: triggers[1].backoff.max: 1ms: want at least initial, which is 1s",
	}},

	{"no schedule at all", schedules("{}"), []string{"3:21: triggers[0].schedule: no kind of schedule: want one of at, every, delay, cron"}},
	{"a misspelt schedule", schedules("{evry: 5s}"), []string{"3:22: triggers[0].schedule.evry: unknown field: want one of at, every, delay, cron, zone, from, until, times"}},
	{"two schedules", schedules("{every: 5s, delay: 5s}"), []string{"3:21: triggers[0].schedule: more than one kind of schedule: every, delay: want one of them"}},
	{"no duration", schedules("{every: 5}"), []string{"3:29: triggers[0].schedule.every: the number 5 without a unit: " + wantDuration}},
	{"too short", schedules("{every: 100us}"), []string{"3:21: triggers[0].schedule: bad schedule: period is 100µs, want at least 1ms"}},
	{"no time", schedules("{at: noon}"), []string{`3:26: triggers[0].schedule.at: "noon": want a time such as 2026-01-31T15:04:05Z or 2026-01-31T15:04:05.5+01:00`}},
	{"what a schedule does not take", schedules("{at: 2026-01-01T00:00:00Z, until: 2026-01-02T00:00:00Z, zone: UTC}", "{every: 1s, zone: UTC, times: 0}"), []string{
		"3:55: triggers[0].schedule.until: until beside at: want none",
		"3:83: triggers[0].schedule.zone: zone beside at: want none",
		"4:39: triggers[1].schedule.zone: zone beside every: want none",
		"4:51: triggers[1].schedule.times: the number 0: want a whole number from 1 to 9007199254740992",
	}},
	{"an end before its start", schedules("{every: 1s, from: 2026-01-02T00:00:00Z, until: 2026-01-01T00:00:00Z}"),
		[]string{"3:21: triggers[0].schedule: bad schedule: end is 2026-01-01T00:00:00Z, want it after the start, 2026-01-02T00:00:00Z"}},
	{"cron", schedules(`{cron: "0 0 3 * * ?", zone: Europe/Berlin}`), []string{`3:28: triggers[0].schedule.cron: cron schedules come with the next release: "0 0 3 * * ?"`}},

	{"no job", jobList("{}"), []string{"3:16: triggers[0].job: no kind of job: want one of exec, http, log"}},
	{"an unknown job", jobList("{mail: {}}"), []string{"3:17: triggers[0].job.mail: unknown field: want one of exec, http, log"}},
	{"two jobs", jobList("{log: {message: x}, exec: {argv: [x]}}"), []string{"3:16: triggers[0].job: more than one kind of job: exec, log: want one of them"}},
	{"a log without a message", jobList("{log: {}}", "{log: {message: ''}}", "{log: hello}"), []string{
		"3:22: triggers[0].job.log.message: missing: it must be given",
		"4:32: triggers[1].job.log.message: an empty text: want at least one character",
		"5:22: triggers[2].job.log: a text: want a mapping",
	}},
	{"a bad exec", jobList("{exec: {}}", "{exec: {argv: echo hi}}", "{exec: {argv: [echo, 5, \"a\\0\"], dir: '', grace: 10, retry_codes: [75, 0, x], drop_codes: 65, retry_after: 0s}}",
		"{exec: {argv: [''], env: {QJ_KEY: x, PORT: 8080, A: {env: ''}, B: {file: f, env: e}, C: {}, D: {vault: x}, A: y}}}"), []string{
		"3:23: triggers[0].job.exec.argv: missing: it must be given",
		"4:30: triggers[1].job.exec.argv: a text: want a list",
		"5:37: triggers[2].job.exec.argv[1]: the number 5: want a text: put it in quotes",
		`5:40: triggers[2].job.exec.argv[2]: "a\x00": want a text without NUL`,
		"5:53: triggers[2].job.exec.dir: an empty text: want at least one character",
		"5:64: triggers[2].job.exec.grace: the number 10 without a unit: " + wantDuration,
		"5:86: triggers[2].job.exec.retry_codes[1]: 0: want an exit code from 1 to 255",
		"5:89: triggers[2].job.exec.retry_codes[2]: a text: want a whole number",
		"5:105: triggers[2].job.exec.drop_codes: the number 65: want a list",
		`5:122: triggers[2].job.exec.retry_after: "0s": ` + wantDuration,
		"6:30: triggers[3].job.exec.argv: no program: want the program and its arguments",
		`6:50: triggers[3].job.exec.env.QJ_KEY: "QJ_KEY": names with QJ_ are the node's own`,
		"6:59: triggers[3].job.exec.env.PORT: the number 8080: want a text: put it in quotes",
		"6:74: triggers[3].job.exec.env.A.env: an empty text: want at least one character",
		"6:82: triggers[3].job.exec.env.B: more than one place of a secret: env, file: want one of them",
		"6:104: triggers[3].job.exec.env.C: no place of a secret: want one of env, file",
		"6:112: triggers[3].job.exec.env.D.vault: unknown field: want one of env, file",
		"6:123: triggers[3].job.exec.env.A: given twice: it is in line 6 already",
	}},
	{"a bad http", jobList("{http: {}}", "{http: {url: 'ftp://user:sesame@example.org/?sesame', method: get, follow_redirects: yes, timeout: 1}}",
		"{http: {url: 'http://example.org', headers: {Host: x, X: \"sesame\\n\"}, done_status: [], retry_status: [5xx, 1xx, 404, 404.5], content_type: ''}}"), []string{
		"3:23: triggers[0].job.http.url: missing: it must be given",
		"4:29: triggers[1].job.http.url: a URL that is of another kind: want http:// or https:// and a host",
		`4:78: triggers[1].job.http.method: "get": want one of POST, PUT, PATCH, DELETE, GET, HEAD`,
		`4:101: triggers[1].job.http.follow_redirects: "yes": want true or false`,
		"4:115: triggers[1].job.http.timeout: the number 1 without a unit: " + wantDuration,
		`5:67: triggers[2].job.http.headers.Host: "Host": the header is set by the job itself`,
		"5:73: triggers[2].job.http.headers.X: a value with a line break or another control character: want one line",
		"5:99: triggers[2].job.http.done_status: an empty list: want at least one status",
		`5:123: triggers[2].job.http.retry_status[1]: "1xx": want a status from 200 to 599, or 2xx, 3xx, 4xx or 5xx`,
		"5:133: triggers[2].job.http.retry_status[3]: the number 404.5: want a text: put it in quotes",
		"5:155: triggers[2].job.http.content_type: an empty text: want at least one character",
	}},

	{"credentials in the file", jobList("{http: {url: 'http://user:sesame@example.org/', headers: {AUTHORIZATION: Bearer sesame, cookie: sesame, Proxy-Authorization: {env: X}, X-Team: a}}}"), []string{
		"3:29: triggers[0].job.http.url: credentials in the file: want a secret from elsewhere: {env: NAME} or {file: PATH}",
		"3:89: triggers[0].job.http.headers.AUTHORIZATION: credentials in the file: want a secret from elsewhere: {env: NAME} or {file: PATH}",
		"3:112: triggers[0].job.http.headers.cookie: credentials in the file: want a secret from elsewhere: {env: NAME} or {file: PATH}",
	}},

	{"bad groups", "store: {kind: memory}\ngroups:\n- {}\n- {name: g, merge: max, input: {}, job: {}}\n" +
		"- {name: g, merge: sum, batch_items: 11, max_items: 10, input: {path: '-', key: k}, job: {log: {message: m}}}\n" +
		"- {name: h, merge: sum, input: {path: '-', key: 5, value: ''}, job: {log: {message: m}}}\n", []string{
		"3:3: groups[0].name: missing: it must be given",
		"3:3: groups[0].merge: missing: it must be given",
		"3:3: groups[0].input: missing: it must be given",
		"3:3: groups[0].job: missing: it must be given",
		`4:20: groups[1].merge: "max": want one of sum, last, list`,
		"4:32: groups[1].input.path: missing: it must be given",
		"4:32: groups[1].input.key: missing: it must be given",
		"4:41: groups[1].job: no kind of job: want one of exec, http, log",
		`5:10: groups[2].name: "g": it is in line 4 already`,
		"5:38: groups[2].batch_items: 11: want at most max_items, which is 10",
		`6:39: groups[3].input.path: "-": it is in line 5 already`,
		"6:49: groups[3].input.key: the number 5: want a text: put it in quotes",
		"6:59: groups[3].input.value: an empty text: want at least one character",
	}},
}

const wantDuration = "want a duration of more than 0 such as 500ms, 10s, 5m or 24h"

// triggers makes a file of triggers from their other fields. One in braces stays on one line.
func triggers(fields ...string) string {
	b := "store: {kind: memory}\ntriggers:\n"
	for _, f := range fields {
		if in, ok := strings.CutPrefix(f, "{"); ok {
			b += "  - {" + strings.TrimSuffix(in, "}") + ", schedule: {every: 1s}, job: {log: {message: m}}}\n"
		} else {
			b += "  - " + f + "\n    {}\n"
		}
	}
	return strings.ReplaceAll(b, "{}", "schedule: {every: 1s}\n    job: {log: {message: m}}")
}

// schedules makes a file of triggers with these schedules, from line 3 on.
func schedules(all ...string) string {
	b := "store: {kind: memory}\ntriggers:\n"
	for i, s := range all {
		b += "- {id: " + string(rune('a'+i)) + ", schedule: " + s + ", job: {log: {message: m}}}\n"
	}
	return b
}

// jobList makes a file of triggers with these jobs, from line 3 on.
func jobList(all ...string) string {
	b := "store: {kind: memory}\ntriggers:\n"
	for i, s := range all {
		b += "- {id: " + string(rune('a'+i)) + ", job: " + s + ", schedule: {every: 1s}}\n"
	}
	return b
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse("node.yaml", []byte(c.file))
			require.Nil(t, f)
			require.ErrorIs(t, err, ErrBad)
			want := "node.yaml:" + strings.Join(c.want, "\nnode.yaml:")
			require.Equal(t, want, err.Error())
			require.NotContains(t, err.Error(), "sesame")
		})
	}
}

func TestRefusedSchedulesSayWhy(t *testing.T) {
	_, err := Parse("node.yaml", []byte(schedules(`{cron: "0 0 3 * * ?"}`)))
	require.ErrorIs(t, err, schedule.ErrCron)
	_, err = Parse("node.yaml", []byte(schedules("{every: 1us}")))
	require.ErrorIs(t, err, schedule.ErrBad)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "triggers[0].schedule", e.Field)
	require.Equal(t, 3, e.Line)
}
