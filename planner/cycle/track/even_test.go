package track

import (
	"testing"
	"time"

	"ballast/planner/plan"
)

func TestAnEvenShareIsHeld(t *testing.T) {
	at := func(hours int) time.Time { return time.Date(2026, 11, 20, hours, 0, 0, 0, time.UTC) }
	e := Even{}.Next(3, 100, at(0))
	for name, test := range map[string]struct {
		got, want plan.Load
	}{
		"now":                    {e.Held(3, at(0)), 100},
		"a day later":            {e.Held(3, at(24)), 50},
		"two days later":         {e.Held(3, at(48)), 25},
		"of another number":      {e.Held(4, at(0)), 0},
		"a clock that went back": {e.Held(3, at(-5)), 100},
		"less":                   {e.Next(3, 10, at(24)).Held(3, at(24)), 50},
		"more":                   {e.Next(3, 200, at(24)).Held(3, at(24)), 200},
		"less, of another":       {e.Next(4, 10, at(0)).Held(4, at(0)), 10},
		"nothing yet":            {Even{}.Held(0, at(0)), 0},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", name, test.got, test.want)
		}
	}
}
