// Package wording words figures, times and names for a page.
package wording

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

// Line is a text that anybody may have written, as one harmless line.
func Line(s string) string { return printable.Text(strings.ReplaceAll(s, "\n", "; "), longText) }

// Name is a name that anybody may have chosen, as one harmless line.
func Name(s string) string { return printable.Text(s, nameText) }

// Plural is so many of a thing, with a comma at each thousand.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", Count(n), noun)
}

// Count is a number with a comma at each thousand.
func Count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Moment is a time for people; "" for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Span is a time span in its two largest units.
func Span(d time.Duration) string {
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

// Since is how long ago a time was; "" for none.
func Since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(now.Sub(t)) + " ago"
}

// LastedFor is Lasted as people read it beside a name.
func LastedFor(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return "for " + Lasted(since, now)
}

// Lasted is for how long something has been so; "" where nobody knows.
func Lasted(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return Span(now.Sub(since))
}
