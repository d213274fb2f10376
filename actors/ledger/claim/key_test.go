package claim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyText(t *testing.T) {
	for _, tt := range []struct {
		text string
		key  Key
	}{
		{"billing/invoice/1.1.0/slot/2026-03-08T02:30:00Z", slot0230},
		{"billing/invoice/2.3.4/slot/2026-03-08T02:30:00.25Z", Key{Namespace: "billing", Trigger: "invoice", Incarnation: 2, Version: 3, Epoch: 4, Kind: KindSlot, Slot: at("03-08 02:30:00.25")}},
		{"billing/invoice/1.1.0/slot/0001-01-01T00:00:01Z", Key{Namespace: "billing", Trigger: "invoice", Incarnation: 1, Version: 1, Kind: KindSlot, Slot: time.Time{}.Add(time.Second)}},
		{"billing/invoice/1.1.0/slot/9999-12-31T23:59:59.999999Z", Key{Namespace: "billing", Trigger: "invoice", Incarnation: 1, Version: 1, Kind: KindSlot, Slot: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)}},
		{"billing/pause/1.1.0/ordinal/-3", Key{Namespace: "billing", Trigger: "pause", Incarnation: 1, Version: 1, Kind: KindOrdinal, Ordinal: -3}},
		{"a%2Fb/c%20d/4294967295.0.0/manual/%25%2F%C3%A9", Key{Namespace: "a/b", Trigger: "c d", Incarnation: 1<<32 - 1, Kind: KindManual, ID: "%/é"}},
		{"fines//0.0.0/free/daily-fine@12", Free("fines", "daily-fine@12")},
		{"fines//0.0.0/free/..", Free("fines", "..")},
	} {
		t.Run(tt.text, func(t *testing.T) {
			require.NoError(t, tt.key.Validate())
			assert.Equal(t, tt.text, tt.key.String())
			back, err := ParseKey(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.key, back)
			assert.Equal(t, tt.key, back.Canonical())
		})
	}
}

func TestPrefix(t *testing.T) {
	assert.Equal(t, "a%2Fb/", Prefix("a/b", ""))
	assert.Equal(t, "a%2Fb/c%20d/", Prefix("a/b", "c d"))
	assert.True(t, strings.HasPrefix(slot0230.String(), Prefix("billing", "invoice")))
	assert.True(t, strings.HasPrefix(skippedRange().Name(), Prefix("billing", "invoice")))
}

func TestKeysThatAreRefused(t *testing.T) {
	long := strings.Repeat("k", 10_000)
	for _, tt := range []struct {
		name string
		key  Key
		says string
	}{
		{"nothing", Key{}, "namespace is empty"},
		{"no kind", Key{Namespace: "n", Trigger: "t"}, "unknown kind(0)"},
		{"a kind that does not exist", Key{Namespace: "n", Trigger: "t", Kind: 99}, "unknown kind(99)"},
		{"a slot without a trigger", Key{Namespace: "n", Kind: KindSlot, Slot: wall}, "trigger is empty"},
		{"a slot at no time", Key{Namespace: "n", Trigger: "t", Kind: KindSlot}, "years 1 to 9999"},
		{"a slot after the year 9999", Key{Namespace: "n", Trigger: "t", Kind: KindSlot, Slot: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "years 1 to 9999"},
		{"a free key of 0 bytes", Free("n", ""), "id is empty"},
		{"a free key of 10,000 bytes", Free("n", long), "10014 bytes, at most 1024 are allowed"},
		{"a free key that is too long once it is escaped", Free("n", strings.Repeat("/", 400)), "1214 bytes"},
		{"a free key that is not UTF-8", Free("n", "a\xffb"), "not UTF-8"},
		{"a free key with a NUL", Free("n", "a\x00b"), "NUL"},
		{"a free key with a trigger", Key{Namespace: "n", Trigger: "t", Kind: KindFree, ID: "x"}, "a free key has no trigger"},
		{"a free key with a version", Key{Namespace: "n", Version: 1, Kind: KindFree, ID: "x"}, "a free key has no trigger"},
		{"a manual key without a request id", Key{Namespace: "n", Trigger: "t", Kind: KindManual}, "id is empty"},
		{"a namespace of 10,000 bytes", Key{Namespace: long, Trigger: "t", Kind: KindManual, ID: "x"}, "at most 1024"},
		{"a namespace that is not UTF-8", Free("\xc3", "x"), "namespace"},
		{"a trigger that is not UTF-8", Key{Namespace: "n", Trigger: "\xc3", Kind: KindOrdinal}, "trigger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.key.Validate()
			require.ErrorIs(t, err, ErrBadKey)
			require.ErrorContains(t, err, tt.says)
			assert.Less(t, len(err.Error()), 400, "an error does not repeat a long key")
		})
	}
}

func TestKeyOf1024BytesIsKept(t *testing.T) {
	k := Free("n", strings.Repeat("k", MaxKey-len("n//0.0.0/free/")))
	require.Len(t, k.String(), MaxKey)
	require.NoError(t, k.Validate())
	k.ID += "k"
	require.ErrorIs(t, k.Validate(), ErrBadKey)
}

func TestParseKeyRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "a/b/c/d", "n/t/1.1.0/slot/2026-03-08T02:30:00Z/more",
		"n/t/1.1/slot/2026-03-08T02:30:00Z", "n/t/1.1.x/slot/2026-03-08T02:30:00Z", "n/t/1.1.4294967296/slot/2026-03-08T02:30:00Z",
		"n/t/01.1.0/slot/2026-03-08T02:30:00Z", "n/t/1.1.0/slot/2026-03-08T02:30:00+00:00", "n/t/1.1.0/slot/2026-03-08T03:30:00+01:00",
		"n/t/1.1.0/slot/2026-03-08T02:30:00.1234567Z", "n/t/1.1.0/slot/2026-02-30T02:30:00Z", "n/t/1.1.0/slot/tomorrow",
		"n/t/1.1.0/ordinal/+1", "n/t/1.1.0/ordinal/01", "n/t/1.1.0/lunch/1", "n/t/1.1.0//1",
		"n//0.0.0/free/%zz", "n//0.0.0/free/%61", "%zz//0.0.0/free/x", "n/%zz/0.0.0/manual/x", "n//0.0.0/free/", "//0.0.0/free/x", "n//1.0.0/free/x",
		"n//0.0.0/free/%00", "n//0.0.0/free/%FF",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := ParseKey(text)
			require.ErrorIs(t, err, ErrBadKey)
		})
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{
		slot0230.String(), Free("fines", "daily-fine@12").String(), "a%2Fb/c%20d/4294967295.0.0/manual/%25%2F%C3%A9",
		"billing/pause/1.1.0/ordinal/-3", "", "////", "n/t/1.1.0/slot/9999-12-31T23:59:59.999999Z", "n//0.0.0/free/" + strings.Repeat("%2F", 400),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			require.ErrorIs(t, err, ErrBadKey)
			return
		}
		require.Equal(t, s, k.String(), "a text that is accepted is the canonical one")
		require.NoError(t, k.Validate())
		require.Equal(t, k, k.Canonical())
		require.LessOrEqual(t, len(s), MaxKey)
	})
}
