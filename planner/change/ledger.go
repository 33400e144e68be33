package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Record is that many clusters that changed their replica at one time, for one cause.
type Record struct {
	At    time.Time
	Moves int
	Cause Cause
}

// Ledger is the moves that still count, oldest first. It is a value: nothing here changes the one it was given. Its
// JSON is a list of [unix seconds, cause, moves].
type Ledger []Record

const (
	// remembered is how long moves are kept at least: rates may become stricter after a reload.
	remembered = 24 * time.Hour
	// fineAge is how long each minute's moves have a record of their own; older ones share one of coarse. It bounds
	// seven days and a half to 1,188 records a cause, and makes an old move count 10 minutes too long in windows of
	// more than 2 h.
	fineAge = 2 * time.Hour
	fine    = time.Minute
	coarse  = 10 * time.Minute
)

// Add remembers moves that were made.
func (l Ledger) Add(now time.Time, cause Cause, moves int) Ledger {
	l = l.shifted(now)
	if moves <= 0 {
		return l
	}
	// Whole seconds, never earlier than the move: a window may become longer by a second, never shorter.
	return append(slices.Clip(l), Record{At: wholeSecond(now), Moves: moves, Cause: cause}).merged(now)
}

// Before is what moves of a cause wait for.
func (l Ledger) Before(cause Cause) Ledger {
	if !slices.ContainsFunc(l, func(r Record) bool { return !cause.WaitsFor(r.Cause) }) {
		return l
	}
	return slices.DeleteFunc(slices.Clone(l), func(r Record) bool { return !cause.WaitsFor(r.Cause) })
}

// With is both ledgers' moves.
func (l Ledger) With(other Ledger) Ledger {
	if len(other) == 0 {
		return l
	}
	all := slices.Concat(l, other)
	slices.SortFunc(all, compareRecords)
	return all
}

// ahead is by how much a clock may be wrong and nothing is forgotten too soon: once it is right again, a window sees
// what it saw.
const ahead = 12 * time.Hour

// Kept is the ledger at another time: what no window can see any more is forgotten, and what is old is merged. Asked
// once a cycle it also sees each time the clock went back.
func (l Ledger) Kept(now time.Time, rates []Rate) Ledger {
	keep := remembered
	for _, r := range rates {
		keep = max(keep, r.Period)
	}
	return slices.DeleteFunc(slices.Clone(l.shifted(now)), func(r Record) bool { return now.Sub(r.At) >= keep+ahead }).merged(now)
}

// shifted is the ledger after the clock went back: what lies ahead is taken as made now, and counts for its whole time
// from here. Merely to wait until the clock has caught up would stop every move for as long as it was ahead; what lies
// behind stays where it is, or its time would be over too soon.
func (l Ledger) shifted(now time.Time) Ledger {
	now = wholeSecond(now)
	if len(l) == 0 || !l[len(l)-1].At.After(now) {
		return l
	}
	l = slices.Clone(l)
	for i := range l {
		if l[i].At.After(now) {
			l[i].At = now
		}
	}
	return l
}

// merged has one record for each cause and stretch of time. Its time is the latest of those in it, so that none counts
// less long than it should.
func (l Ledger) merged(now time.Time) Ledger {
	type key struct {
		stretch int64
		cause   Cause
	}
	at := make(map[key]int, len(l))
	var out Ledger
	for _, r := range l {
		width := fine
		if now.Sub(r.At) >= fineAge {
			width = coarse
		}
		k := key{r.At.Truncate(width).Unix(), r.Cause}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			out = append(out, r)
			continue
		}
		out[i].Moves += r.Moves
		out[i].At = later(out[i].At, r.At)
	}
	slices.SortFunc(out, compareRecords)
	return out
}

// Joined has what either of two ledgers has that went on from the same one: of what both have of a cause and a time,
// the more.
func (l Ledger) Joined(other Ledger) Ledger {
	out := slices.Clone(l)
	for _, r := range other {
		at := slices.IndexFunc(out, func(o Record) bool { return o.At.Equal(r.At) && o.Cause == r.Cause })
		if at < 0 {
			out = append(out, r)
			continue
		}
		out[at].Moves = max(out[at].Moves, r.Moves)
	}
	slices.SortFunc(out, compareRecords)
	return out
}

func compareRecords(a, b Record) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause))
}

// MarshalJSON writes the compact list.
func (l Ledger) MarshalJSON() ([]byte, error) {
	rows := make([][3]any, len(l))
	for i, r := range l {
		rows[i] = [3]any{r.At.Unix(), r.Cause, r.Moves}
	}
	return json.Marshal(rows)
}

// UnmarshalJSON reads what MarshalJSON writes; the order does not matter.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var rows [][]json.RawMessage
	if err := json.Unmarshal(data, &rows); err != nil {
		return fmt.Errorf("reading the moves that count: %w", err)
	}
	var records Ledger
	for i, row := range rows {
		r, err := readRecord(row)
		if err != nil {
			return fmt.Errorf("reading the moves that count, entry %d: %w", i, err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, compareRecords)
	*l = records
	return nil
}

// The bounds of a record that can be believed: times that time.Time and its differences carry, and moves that add up.
const (
	maxUnix  = 1 << 33 // the year 2242
	maxMoves = 1 << 30
)

func readRecord(row []json.RawMessage) (Record, error) {
	if len(row) != 3 {
		return Record{}, fmt.Errorf("it has %d fields instead of seconds, cause and moves", len(row))
	}
	var seconds int64
	var r Record
	for i, field := range []any{&seconds, &r.Cause, &r.Moves} {
		if err := json.Unmarshal(row[i], field); err != nil {
			return Record{}, err
		}
	}
	if seconds < 0 || seconds > maxUnix || r.Moves < 1 || r.Moves > maxMoves || !r.Cause.known() {
		return Record{}, fmt.Errorf("%d moves for %q at %d s are no record", r.Moves, r.Cause, seconds)
	}
	r.At = time.Unix(seconds, 0).UTC()
	return r, nil
}

// wholeSecond rounds up.
func wholeSecond(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
