package people

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
	"ballast/planner/printable"
)

// Cordon is a person's word that a replica is to be emptied and receives nothing until a time.
type Cordon struct {
	Replica int
	Until   time.Time
}

// ParseCordons reads the annotation AnnotationCordon, such as "3=2026-11-20T17:00:00Z,1=2026-11-20T18:30:00Z", in any
// order and with any offset. Entries that cannot be are left out and reported, all at once; expired ones are read like
// any other.
func ParseCordons(text string) ([]Cordon, error) {
	switch {
	case len(text) > plan.MaxNoteBytes:
		return nil, fmt.Errorf("reading the cordon: it has %d KiB, and at most %d are read: cordon fewer replicas",
			len(text)>>10, plan.MaxNoteBytes>>10)
	case strings.TrimSpace(text) == "":
		return nil, nil
	}
	var cordons []Cordon
	var errs []error
	seen := map[int]bool{}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		c, err := parseCordon(entry)
		if err == nil && seen[c.Replica] {
			err = fmt.Errorf("replica %d stands twice: delete one of them", c.Replica)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the cordon %q: %w", printable.Short(entry), err))
			continue
		}
		seen[c.Replica] = true
		cordons = append(cordons, c)
	}
	slices.SortFunc(cordons, compareCordons)
	return cordons, errors.Join(errs...)
}

func parseCordon(entry string) (Cordon, error) {
	const example = "write it like 3=2026-11-20T17:00:00Z"
	number, until, found := strings.Cut(entry, "=")
	if !found {
		return Cordon{}, fmt.Errorf("it has no time: %s", example)
	}
	replica, ok := plan.ParsePin(number)
	if !ok || BadPin(replica, 0) != "" {
		return Cordon{}, fmt.Errorf("what stands before = is not the number of a replica: %s", example)
	}
	at, err := time.Parse(time.RFC3339, until)
	if at = at.UTC().Truncate(time.Second); err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return Cordon{}, fmt.Errorf("what stands behind = is not a time with its zone: %s", example)
	}
	return Cordon{Replica: replica, Until: at}, nil
}

func compareCordons(a, b Cordon) int {
	return cmp.Or(cmp.Compare(a.Replica, b.Replica), a.Until.Compare(b.Until))
}

// FormatCordons writes what ParseCordons reads, by replica, in UTC and whole seconds. Of two for one replica the later
// time counts.
func FormatCordons(cordons []Cordon) string {
	var entries []string
	ordered := slices.SortedFunc(slices.Values(cordons), compareCordons)
	for i, c := range ordered {
		if i+1 < len(ordered) && ordered[i+1].Replica == c.Replica {
			continue
		}
		entries = append(entries, fmt.Sprintf("%d=%s", c.Replica, c.Until.UTC().Format(time.RFC3339)))
	}
	return strings.Join(entries, ",")
}

// Cordoned lists the replicas whose cordon is not over.
func Cordoned(cordons []Cordon, now time.Time) []int {
	var replicas []int
	for _, c := range cordons {
		if c.Until.After(now) {
			replicas = append(replicas, c.Replica)
		}
	}
	slices.Sort(replicas)
	return slices.Compact(replicas)
}
