package page

import (
	"fmt"
	"strings"
	"time"

	"ballast/planner/printable"
)

const (
	longText = 600 // characters of a message
	nameText = 253 // of a name: as long as any of Kubernetes'
)

// line is a text that anybody may have written, as one harmless line.
func line(s string) string { return printable.Text(strings.ReplaceAll(s, "\n", "; "), longText) }

func name(s string) string { return printable.Text(s, nameText) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", count(n), noun)
}

// count is a number with a comma at each thousand.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// moment is a time for people; "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// span is a time span in its two largest units.
func span(d time.Duration) string {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	switch d = max(d, 0); {
	case d > 100*year: // times that somebody made up
		return "over 100 years"
	case d >= day:
		return units(int64(d/day), "d", int64(d%day/time.Hour), "h")
	case d >= time.Hour:
		return units(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "m")
	case d >= time.Minute:
		return units(int64(d/time.Minute), "m", int64(d%time.Minute/time.Second), "s")
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

func units(large int64, a string, small int64, b string) string {
	if small == 0 {
		return fmt.Sprint(large, a)
	}
	return fmt.Sprint(large, a, " ", small, b)
}

// since is how long ago a time was; "" for none.
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t)) + " ago"
}

// lastedFor is lasted as people read it beside a name.
func lastedFor(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return "for " + lasted(since, now)
}

// lasted is for how long something has been so; "" where nobody knows.
func lasted(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return span(now.Sub(since))
}
