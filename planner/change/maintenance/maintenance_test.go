package maintenance

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func window(t testing.TB, begin, end, zone string, days ...string) Window {
	t.Helper()
	w, err := Parse(begin, end, zone, days)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAWindowIsOpen(t *testing.T) {
	for name, test := range map[string]struct {
		begin, end, zone string
		days             []string
		open, shut       []string
	}{
		"both ends, by the second": {"22:00", "23:00", "", nil,
			[]string{"2026-03-01T22:00:00Z", "2026-03-01T23:00:00.999Z"}, []string{"2026-03-01T21:59:59.999Z", "2026-03-01T23:00:01Z"}},
		"across midnight, on its first day": {"23:00", "01:00", "Europe/Berlin", []string{"Sat"},
			[]string{"2026-03-07T23:00:00+01:00", "2026-03-08T01:00:00+01:00"}, []string{"2026-03-07T00:30:00+01:00", "2026-03-08T23:30:00+01:00"}},
		"a day that clocks make shorter": {"02:00", "02:30", "America/New_York", nil, // 02:00 to 02:59 do not exist
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"}, []string{"2026-03-08T01:59:59-05:00", "2026-03-08T03:30:01-04:00"}},
		"a day that clocks make longer": {"01:00", "01:59:59", "America/New_York", nil, // comes twice
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:59:59-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:59:59-05:00"},
			[]string{"2026-11-01T00:59:59-04:00", "2026-11-01T02:00:00-05:00"}},
		"the same hour in winter and summer": {"22:00", "23:00", "Europe/Berlin", nil,
			[]string{"2026-01-10T21:30:00Z", "2026-07-10T20:30:00Z"}, []string{"2026-01-10T20:30:00Z", "2026-07-10T21:30:00Z"}},
		"into the day that begins with a gap": {"23:30", "00:30", "America/Sao_Paulo", nil, // 2018-11-04 began at 01:00
			[]string{"2018-11-03T23:30:00-03:00", "2018-11-04T01:30:00-02:00"}, []string{"2018-11-04T01:30:01-02:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := window(t, test.begin, test.end, test.zone, test.days...)
			for i, texts := range [][]string{test.shut, test.open} {
				for _, text := range texts {
					when, err := time.Parse(time.RFC3339Nano, text)
					if err != nil {
						t.Fatal(err)
					}
					if w.Contains(when) != (i == 1) {
						t.Errorf("%s is open at %s: %t", w, text, w.Contains(when))
					}
				}
			}
		})
	}
}

func TestAWindowOpensNext(t *testing.T) {
	w := window(t, "23:00", "01:00", "Europe/Berlin", "Saturday")
	for from, want := range map[string]string{
		"2026-03-03T12:00:00Z": "2026-03-07T22:00:00Z",
		"2026-03-08T00:00:00Z": "2026-03-08T00:00:00Z", // it is open
		"2026-03-08T00:00:01Z": "2026-03-14T22:00:00Z",
		"2026-03-25T00:00:01Z": "2026-03-28T22:00:00Z",
		"2026-03-29T12:00:00Z": "2026-04-04T21:00:00Z", // summer
	} {
		when, _ := time.Parse(time.RFC3339, from)
		if got := w.Next(when).UTC().Format(time.RFC3339); got != want {
			t.Errorf("from %s next at %s, want %s", from, got, want)
		}
	}
}

func TestNoWindow(t *testing.T) {
	for _, test := range []struct {
		begin, end, zone string
		days             []string
		want             string
	}{
		{"22:00", "22:00", "", nil, "the window from 22:00 to 22:00 is either nothing or a whole day: for a whole day write 00:00 to 23:59:59"},
		{"24:00", "01:00", "", nil, `reading the window's begin: "24:00" is no time of day: write it like 22:00 or 22:00:30`},
		{"22:00", "1:00", "", nil, `reading the window's end: "1:00" is no time of day: write it like 22:00 or 22:00:30`},
		{"22:00", "23:00", "Berlin", nil, `"Berlin" is no time zone: write an IANA name like Europe/Berlin, or UTC`},
		{"22:00", "23:00", "Local", nil, `"Local" is no time zone: write an IANA name like Europe/Berlin, or UTC`},
		{"22:00", "23:00", "../../etc/passwd", nil, `"../../etc/passwd" is no time zone: write an IANA name like Europe/Berlin, or UTC`},
		{"22:00", "23:00", "", []string{"Mo"}, `"Mo" is no weekday: write Monday or Mon`},
		{"22:00", "23:00", "", []string{"Mon", "monday"}, "the weekday Monday is named twice"},
	} {
		if _, err := Parse(test.begin, test.end, test.zone, test.days); err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if _, err := ParseHVPAWindow("000000+0000", "010000+0100"); err == nil || !strings.Contains(err.Error(), "nothing or a whole day") {
		t.Errorf("two ends at one instant: %v", err)
	}
}

// TestNextIsTheFirstTimeInTheWindow compares with every minute of some days, with clock changes among them.
func TestNextIsTheFirstTimeInTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute := rapid.Custom(func(t *rapid.T) string { return clock(60 * rapid.IntRange(0, 24*60-1).Draw(t, "minute")) })
		w, err := Parse(minute.Draw(t, "begin"), minute.Draw(t, "end"), rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone"),
			rapid.SliceOfNDistinct(rapid.SampledFrom(weekdays()), 0, 3, rapid.ID[string]).Draw(t, "days"))
		if err != nil {
			t.Skip(err)
		}
		day := rapid.SampledFrom([]time.Time{
			time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}).Draw(t, "day")
		from := day.Add(time.Duration(rapid.IntRange(0, 36*60).Draw(t, "from")) * time.Minute)
		next := w.Next(from)
		if next.Before(from) || !w.Contains(next) {
			t.Fatalf("%s: from %s next is %s", w, from, next)
		}
		if last := next.Add(-time.Second); !last.Before(from) && w.Contains(last) {
			t.Fatalf("%s: from %s next is %s, but it is open a second before", w, from, next)
		}
		for m := from; m.Before(next); m = m.Add(17 * time.Minute) {
			if w.Contains(m) {
				t.Fatalf("%s: from %s next is %s, but it is open at %s", w, from, next, m)
			}
		}
		if next.Sub(from) > 8*24*time.Hour {
			t.Fatalf("%s: from %s next is %s", w, from, next)
		}
	})
}

func FuzzParseWindow(f *testing.F) {
	f.Add("22:00", "02:00:30", "Europe/Berlin", "Mon,Tuesday", int64(1_770_000_000))
	f.Add("00:00", "23:59:59", "", "", int64(0))
	f.Fuzz(func(t *testing.T, begin, end, zone, days string, at int64) {
		var names []string
		if days != "" {
			names = strings.Split(days, ",")
		}
		w, err := Parse(begin, end, zone, names)
		if err != nil {
			return
		}
		again, err := Parse(w.Begin(), w.End(), w.Zone(), names)
		if err != nil || !w.Equal(again) {
			t.Errorf("%s reads back as %s: %v", w, again, err)
		}
		at %= 1 << 33
		if next := w.Next(time.Unix(at, 0)); !w.Contains(next) || next.Unix() < at {
			t.Errorf("%s: from %d next is %s", w, at, next)
		}
	})
}

func FuzzParseHVPAWindow(f *testing.F) {
	f.Add("220000-0000", "230000+0100")
	f.Fuzz(func(t *testing.T, begin, end string) {
		w, err := ParseHVPAWindow(begin, end)
		if err == nil && (w.Length() <= 0 || w.Length() >= 24*time.Hour) {
			t.Errorf("%q to %q is %s long", begin, end, w.Length())
		}
	})
}
