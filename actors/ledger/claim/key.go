package claim

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxKey is the longest text of a key in bytes, as [Key.String] writes it.
const MaxKey = 1024

// Kind says what a key stands for.
type Kind uint8

// The kinds of a key.
const (
	KindFree    Kind = iota + 1 // the caller's own text (Do, Submit)
	KindSlot                    // an instant of a schedule
	KindOrdinal                 // the n-th run of a fixed-delay schedule, which has no grid
	KindManual                  // a run asked for by hand, named by the caller's request id
)

var kindNames = [...]string{KindFree: "free", KindSlot: "slot", KindOrdinal: "ordinal", KindManual: "manual"}

// String gives the kind's name as keys and the history show it.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Key names one piece of work. It is made from what the work is for (the slot, the ordinal, the caller's id) and
// never from the time of day at which somebody asks, so that a replay has the same name.
type Key struct {
	Namespace string // always set
	Trigger   string // the trigger's id; empty for KindFree

	// Incarnation, Version and Epoch tell definitions of one trigger id apart: made anew, edited, re-anchored after
	// a step of the wall clock. All 0 for KindFree.
	Incarnation, Version, Epoch uint32

	Kind    Kind
	Slot    time.Time // KindSlot: the slot, UTC, to the millisecond or finer as the schedule gives it
	Ordinal int64     // KindOrdinal
	ID      string    // KindFree: the caller's key; KindManual: the caller's request id
}

// Free returns the key of a free piece of work.
func Free(namespace, id string) Key { return Key{Namespace: namespace, Kind: KindFree, ID: id} }

// String writes the key in its one canonical form, which is also how a store keeps it:
// namespace/trigger/incarnation.version.epoch/kind/what. Parts are path-escaped (RFC 3986), so none holds a slash.
func (k Key) String() string {
	var b strings.Builder
	b.Grow(64)
	b.WriteString(url.PathEscape(k.Namespace))
	b.WriteByte('/')
	b.WriteString(url.PathEscape(k.Trigger))
	b.WriteByte('/')
	b.WriteString(strconv.FormatUint(uint64(k.Incarnation), 10))
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(uint64(k.Version), 10))
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(uint64(k.Epoch), 10))
	b.WriteByte('/')
	b.WriteString(k.Kind.String())
	b.WriteByte('/')
	switch k.Kind {
	case KindSlot:
		b.WriteString(k.Slot.UTC().Format(time.RFC3339Nano))
	case KindOrdinal:
		b.WriteString(strconv.FormatInt(k.Ordinal, 10))
	default:
		b.WriteString(url.PathEscape(k.ID))
	}
	return b.String()
}

// ParseKey reads what [Key.String] wrote. Any other text is ErrBadKey.
func ParseKey(s string) (Key, error) {
	bad := func(why string) (Key, error) { return Key{}, fmt.Errorf("%w: %.80q: %s", ErrBadKey, s, why) }
	p := strings.Split(s, "/")
	if len(p) != 5 {
		return bad("want namespace/trigger/incarnation.version.epoch/kind/what")
	}
	var k Key
	var err error
	if k.Namespace, err = url.PathUnescape(p[0]); err != nil {
		return bad("namespace: " + err.Error())
	}
	if k.Trigger, err = url.PathUnescape(p[1]); err != nil {
		return bad("trigger: " + err.Error())
	}
	n := strings.Split(p[2], ".")
	if len(n) != 3 {
		return bad("want incarnation.version.epoch")
	}
	for i, to := range []*uint32{&k.Incarnation, &k.Version, &k.Epoch} {
		v, err := strconv.ParseUint(n[i], 10, 32)
		if err != nil {
			return bad("incarnation.version.epoch: " + err.Error())
		}
		*to = uint32(v)
	}
	for i, name := range kindNames {
		if name != "" && name == p[3] {
			k.Kind = Kind(i)
		}
	}
	switch k.Kind {
	case KindSlot:
		k.Slot, err = time.Parse(time.RFC3339Nano, p[4])
	case KindOrdinal:
		k.Ordinal, err = strconv.ParseInt(p[4], 10, 64)
	case KindFree, KindManual:
		k.ID, err = url.PathUnescape(p[4])
	default:
		return bad("unknown kind " + strconv.Quote(p[3]))
	}
	if err != nil {
		return bad(err.Error())
	}
	if k.String() != s {
		return bad("not in its canonical form")
	}
	return k, k.Validate()
}

// Canonical gives the key with its slot in UTC and without a monotonic reading, so that equal keys are ==.
func (k Key) Canonical() Key {
	k.Slot = k.Slot.Round(0).UTC()
	return k
}

// Validate says whether the key can be stored: ErrBadKey names the part, what was given and what is allowed.
func (k Key) Validate() error {
	part := func(name, v string, need bool) error {
		switch {
		case need && v == "":
			return fmt.Errorf("%w: %s is empty", ErrBadKey, name)
		case !utf8.ValidString(v):
			return fmt.Errorf("%w: %s %.40q is not UTF-8", ErrBadKey, name, v)
		case strings.IndexByte(v, 0) >= 0:
			return fmt.Errorf("%w: %s %.40q holds a NUL byte", ErrBadKey, name, v)
		}
		return nil
	}
	free := k.Kind == KindFree
	for _, p := range []struct {
		name, v string
		need    bool
	}{
		{"namespace", k.Namespace, true},
		{"trigger", k.Trigger, !free},
		{"id", k.ID, free || k.Kind == KindManual},
	} {
		if err := part(p.name, p.v, p.need); err != nil {
			return err
		}
	}
	switch k.Kind {
	case KindFree, KindOrdinal, KindManual:
	case KindSlot:
		if k.Slot.IsZero() || k.Slot.Year() < 1 || k.Slot.Year() > 9999 {
			return fmt.Errorf("%w: slot %v is not within the years 1 to 9999", ErrBadKey, k.Slot)
		}
	default:
		return fmt.Errorf("%w: unknown %v", ErrBadKey, k.Kind)
	}
	if n := len(k.String()); n > MaxKey {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed (%.40q…)", ErrBadKey, n, MaxKey, k.String())
	}
	return nil
}
