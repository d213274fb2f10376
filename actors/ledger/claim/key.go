package claim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxKey is the longest text of a key in bytes, as [Key.String] writes it.
const MaxKey = 1024

// Resolution is how finely instants are kept; what is finer is cut off. It is what every store can hold.
const Resolution = time.Microsecond

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
	Slot    time.Time // KindSlot: the slot, UTC, as fine as Resolution
	Ordinal int64     // KindOrdinal
	ID      string    // KindFree: the caller's key; KindManual: the caller's request id
}

// Free returns the key of a free piece of work.
func Free(namespace, id string) Key { return Key{Namespace: namespace, Kind: KindFree, ID: id} }

// String writes the key in its one canonical form, which is also how a store keeps it:
// namespace/trigger/incarnation.version.epoch/kind/what. Parts are path-escaped (RFC 3986), so none holds a slash.
func (k Key) String() string {
	b := append(k.appendOwner(make([]byte, 0, 96)), '/')
	b = append(append(b, k.Kind.String()...), '/')
	switch k.Kind {
	case KindSlot:
		b = instant(k.Slot).AppendFormat(b, time.RFC3339Nano)
	case KindOrdinal:
		b = strconv.AppendInt(b, k.Ordinal, 10)
	default:
		b = appendEscaped(b, k.ID)
	}
	return string(b)
}

// Prefix gives the text with which the keys of a namespace begin, and the names of its ranges; of one trigger in it where
// that is not empty. It ends with a slash.
func Prefix(namespace, trigger string) string {
	b := append(appendEscaped(nil, namespace), '/')
	if trigger != "" {
		b = append(appendEscaped(b, trigger), '/')
	}
	return string(b)
}

// appendOwner writes what is the same in all keys of one definition: namespace/trigger/incarnation.version.epoch.
func (k *Key) appendOwner(b []byte) []byte {
	b = append(appendEscaped(b, k.Namespace), '/')
	b = append(appendEscaped(b, k.Trigger), '/')
	b = append(strconv.AppendUint(b, uint64(k.Incarnation), 10), '.')
	b = append(strconv.AppendUint(b, uint64(k.Version), 10), '.')
	return strconv.AppendUint(b, uint64(k.Epoch), 10)
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
	if k.Namespace, err = unescape(p[0]); err != nil {
		return bad("namespace: " + err.Error())
	}
	if k.Trigger, err = unescape(p[1]); err != nil {
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
		k.ID, err = unescape(p[4])
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

// Canonical gives the key as the ledger keeps it, so that keys of one text are ==: the slot in UTC, without a monotonic
// reading and cut to [Resolution], and nothing in the fields that the kind does not use.
func (k Key) Canonical() Key {
	k.Slot = instant(k.Slot)
	if k.Kind != KindSlot {
		k.Slot = time.Time{}
	}
	if k.Kind != KindOrdinal {
		k.Ordinal = 0
	}
	if k.Kind != KindFree && k.Kind != KindManual {
		k.ID = ""
	}
	return k
}

// instant gives t as the ledger keeps it.
func instant(t time.Time) time.Time { return t.UTC().Truncate(Resolution) }

// storable says whether t can be kept: it is the zero time, or within the years 1 to 9999.
func storable(t time.Time) bool {
	y := t.UTC().Year()
	return t.IsZero() || y >= 1 && y <= 9999
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
	if free && (k.Trigger != "" || k.Incarnation|k.Version|k.Epoch != 0) {
		return fmt.Errorf("%w: a free key has no trigger, got %.40q %d.%d.%d", ErrBadKey, k.Trigger, k.Incarnation, k.Version, k.Epoch)
	}
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
		if k.Slot.IsZero() || !storable(k.Slot) {
			return fmt.Errorf("%w: slot %v is not within the years 1 to 9999", ErrBadKey, k.Slot)
		}
	default:
		return fmt.Errorf("%w: unknown %v", ErrBadKey, k.Kind)
	}
	const rest, escaped = 96, 3 // what the other parts need at most, and what a byte becomes at most
	if rest+escaped*(len(k.Namespace)+len(k.Trigger)+len(k.ID)) <= MaxKey {
		return nil
	}
	if s := k.String(); len(s) > MaxKey {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed (%.40q…)", ErrBadKey, len(s), MaxKey, s)
	}
	return nil
}
