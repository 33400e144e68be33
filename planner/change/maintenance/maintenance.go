// Package maintenance has the times of day at which changes are let through.
package maintenance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the image has no zones
)

// Window is a time of day, each day or on some. Both ends belong to it, by the whole second. It may go past
// midnight; then it belongs to the day on which it begins. Build it with Parse or ParseHVPAWindow.
type Window struct {
	begin, end int // seconds of the day
	zone       *time.Location
	days       []time.Weekday // none: each day
}

var clockPattern = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?$`)

// Parse reads two times of day, 22:00 or 22:00:30, an IANA zone (empty: UTC), and English weekdays (none: each).
func Parse(begin, end, zone string, days []string) (Window, error) {
	var w Window
	var err error
	if w.begin, err = parseClock(begin); err != nil {
		return w, fmt.Errorf("reading the window's begin: %w", err)
	}
	if w.end, err = parseClock(end); err != nil {
		return w, fmt.Errorf("reading the window's end: %w", err)
	}
	if w.zone, err = parseZone(zone); err != nil {
		return w, err
	}
	if w.days, err = parseDays(days); err != nil {
		return w, err
	}
	return w, w.empty(begin, end)
}

func (w Window) empty(begin, end string) error {
	if w.begin == w.end {
		return fmt.Errorf("the window from %s to %s is either nothing or a whole day: for a whole day write 00:00 to 23:59:59", begin, end)
	}
	return nil
}

func parseClock(text string) (int, error) {
	m := clockPattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%.40q is no time of day: write it like 22:00 or 22:00:30", text)
	}
	seconds := 0
	for _, part := range m[1:] {
		n, _ := strconv.Atoi(part) // empty: no seconds
		seconds = seconds*60 + n
	}
	return seconds, nil
}

// maxZone is longer than any zone's name: America/Argentina/ComodRivadavia has 32 characters.
const maxZone = 64

func parseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if len(name) > maxZone || name == "Local" {
		return nil, fmt.Errorf("%.40q is no time zone: write an IANA name like Europe/Berlin, or UTC", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no time zone: write an IANA name like Europe/Berlin, or UTC", name)
	}
	return zone, nil
}

func parseDays(names []string) (days []time.Weekday, err error) {
	for _, name := range names {
		day := slices.IndexFunc(weekdays(), func(d string) bool {
			return strings.EqualFold(name, d) || strings.EqualFold(name, d[:3])
		})
		if day < 0 {
			return nil, fmt.Errorf("%.40q is no weekday: write Monday or Mon", name)
		}
		if slices.Contains(days, time.Weekday(day)) {
			return nil, fmt.Errorf("the weekday %s is named twice", time.Weekday(day))
		}
		days = append(days, time.Weekday(day))
	}
	return days, nil
}

func weekdays() []string {
	names := make([]string, 7)
	for d := range names {
		names[d] = time.Weekday(d).String()
	}
	return names
}

// ParseHVPAWindow reads HVPA's form: 220000-0000 is 22:00 in a zone of that offset. Each end has its own.
func ParseHVPAWindow(begin, end string) (Window, error) {
	w := Window{zone: time.UTC}
	for _, one := range []struct {
		name, text string
		at         *int
	}{{"begin", begin, &w.begin}, {"end", end, &w.end}} {
		t, err := time.Parse("150405-0700", one.text)
		if err != nil || len(one.text) != len("150405-0700") {
			return w, fmt.Errorf("reading the window's %s: %.40q is not written like 220000-0000", one.name, one.text)
		}
		t = t.UTC()
		*one.at = t.Hour()*3600 + t.Minute()*60 + t.Second()
	}
	return w, w.empty(begin, end)
}

// String is for people: 22:00 to 02:00 Europe/Berlin on Monday, Friday.
func (w Window) String() string {
	s := fmt.Sprintf("%s to %s %s", clock(w.begin), clock(w.end), w.Zone())
	if len(w.days) == 0 {
		return s
	}
	names := make([]string, len(w.days))
	for i, d := range w.days {
		names[i] = d.String()
	}
	return s + " on " + strings.Join(names, ", ")
}

func clock(seconds int) string {
	if seconds%60 == 0 {
		return fmt.Sprintf("%02d:%02d", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// Begin and End are the window's times of day, Zone and Days the rest of what ParseWindow reads.
func (w Window) Begin() string { return clock(w.begin) }

// End is the last second of it.
func (w Window) End() string { return clock(w.end) }

// Zone is its time zone.
func (w Window) Zone() string { return w.location().String() }

func (w Window) location() *time.Location {
	if w.zone == nil {
		return time.UTC
	}
	return w.zone
}

// Equal compares two windows.
func (w Window) Equal(o Window) bool {
	return w.begin == o.begin && w.end == o.end && w.Zone() == o.Zone() && slices.Equal(w.days, o.days)
}

// Length is how long it is on a day without a change of clocks.
func (w Window) Length() time.Duration {
	return time.Duration((w.end-w.begin+day)%day) * time.Second
}

const day = 24 * 3600

// Contains reports whether a time is in the window.
func (w Window) Contains(t time.Time) bool {
	y, m, d := t.In(w.location()).Date()
	for after := -2; after <= 1; after++ {
		if begin, end := w.on(y, m, d+after); !begin.IsZero() && !t.Before(begin) && !t.After(end) {
			return true
		}
	}
	return false
}

// Next is the first time from t on that is in the window.
func (w Window) Next(t time.Time) time.Time {
	y, m, d := t.In(w.location()).Date()
	var next time.Time
	for after := -2; after <= 8; after++ { // a window of one weekday comes within eight days
		begin, end := w.on(y, m, d+after)
		if begin.IsZero() || t.After(end) {
			continue
		}
		if begin = slices.MaxFunc([]time.Time{begin, t}, time.Time.Compare); next.IsZero() || begin.Before(next) {
			next = begin
		}
	}
	return next
}

// on is the window that begins on a date: to the end of its last second. It is zero where none does.
func (w Window) on(y int, m time.Month, d int) (begin, end time.Time) {
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if len(w.days) > 0 && !slices.Contains(w.days, date.Weekday()) {
		return time.Time{}, time.Time{}
	}
	last := date
	if w.end < w.begin {
		last = date.AddDate(0, 0, 1)
	}
	begin, _ = w.instants(date.Add(time.Duration(w.begin) * time.Second))
	_, end = w.instants(last.Add(time.Duration(w.end) * time.Second))
	return begin, end.Add(time.Second - 1)
}

// instants are when a clock on the wall shows a time, given in UTC: twice where clocks go back. Where they go forward
// and leave it out, the first is that change, and the last as long after midnight as on any day.
func (w Window) instants(wall time.Time) (first, last time.Time) {
	_, before := wall.AddDate(0, 0, -1).In(w.location()).Zone()
	_, after := wall.AddDate(0, 0, 1).In(w.location()).Zone()
	one, other := wall.Add(time.Duration(-before)*time.Second), wall.Add(time.Duration(-after)*time.Second)
	shows := func(t time.Time) bool {
		_, offset := t.In(w.location()).Zone()
		return t.Add(time.Duration(offset) * time.Second).Equal(wall)
	}
	switch {
	case shows(one) && shows(other):
		both := []time.Time{one, other}
		return slices.MinFunc(both, time.Time.Compare), slices.MaxFunc(both, time.Time.Compare)
	case shows(one):
		return one, one
	case shows(other):
		return other, other
	}
	if gap, _ := one.In(w.location()).ZoneBounds(); one.Sub(gap) < 24*time.Hour {
		return gap, one
	}
	return one, one
}

// NextOf is the first time from t on that is in one of the windows; zero without windows.
func NextOf(windows []Window, t time.Time) time.Time {
	var next time.Time
	for _, w := range windows {
		if at := w.Next(t); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
