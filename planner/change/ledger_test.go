package change

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// start lies within a minute and within ten of them.
var start = time.Date(2026, 11, 20, 17, 3, 20, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func TestMovesOfOneMinuteAndCauseShareARecord(t *testing.T) {
	var l Ledger
	l = l.Add(at(0), Balance, 2).Add(at(10), Failover, 5).Add(at(39), Balance, 1).Add(at(40), Balance, 7).Add(at(41), Balance, 0)
	want := Ledger{{at(10), 5, Failover}, {at(39), 3, Balance}, {at(40), 7, Balance}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMovesOlderThanTwoHoursShareTenMinutes(t *testing.T) {
	var l Ledger
	l = l.Add(at(0), Balance, 1).Add(at(300), Balance, 2).Add(at(600), Balance, 4)
	if diff := cmp.Diff(l, l.Kept(at(7199), nil)); diff != "" {
		t.Errorf("before two hours:\n%s", diff)
	}
	want := Ledger{{at(300), 3, Balance}, {at(600), 4, Balance}}
	if diff := cmp.Diff(want, l.Kept(at(7800), nil)); diff != "" {
		t.Errorf("after two hours -want +got:\n%s", diff)
	}
}

func TestWhatNoWindowSeesIsForgotten(t *testing.T) {
	l := Ledger(nil).Add(at(0), Balance, 1)
	day, week := at(24*3600).Add(ahead), []Rate{{10, 7 * 24 * time.Hour}}
	if got := l.Kept(day.Add(-time.Second), nil); len(got) != 1 {
		t.Errorf("a day is kept without rates: %v", got)
	}
	if got := l.Kept(day, nil); got != nil {
		t.Errorf("after a day: %v", got)
	}
	if diff := cmp.Diff(l, l.Kept(day, week)); diff != "" {
		t.Errorf("a window of a week still sees it:\n%s", diff)
	}
}

func TestAfterAClockThatWentBackWhatLiesAheadIsNow(t *testing.T) {
	l := Ledger(nil).Add(at(0), Balance, 1).Add(at(1800), Failover, 2)
	aYearBack := at(1800).AddDate(-1, 0, 0)
	want := Ledger{{aYearBack, 1, Balance}, {aYearBack, 2, Failover}}
	if diff := cmp.Diff(want, l.Kept(aYearBack, nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	rates := []Rate{{10, time.Hour}}
	if got := Left(l, rates, 50, aYearBack); got != 2 {
		t.Errorf("%d moves are left, want 2 of 5", got)
	}
	if when, _ := When(l, rates, 50, aYearBack, 5); !when.Equal(aYearBack.Add(time.Hour)) {
		t.Errorf("all 5 fit at %s, want an hour from then", when)
	}
	if got := Left(l, []Rate{{10, 29 * time.Minute}}, 50, aYearBack); got != 2 {
		t.Errorf("%d moves are left of 29 minutes, want 2 of 5", got)
	}
	if got := Left(l.Kept(aYearBack, rates), rates, 50, aYearBack.Add(time.Hour)); got != 5 {
		t.Errorf("an hour later %d moves are left, want all 5", got)
	}
}

func TestNothingChangesTheLedgerItWasGiven(t *testing.T) {
	l := append(make(Ledger, 0, 8), Record{at(0), 1, Balance}, Record{at(60), 1, Balance})
	before := append(Ledger(nil), l...)
	l.Add(at(61), Balance, 3)
	l.Add(at(-600), Balance, 3)
	l.Kept(at(-600), nil)
	l.Kept(at(100_000), nil)
	Look(l, []Rate{{1, time.Minute}}, 100, at(-600))
	if diff := cmp.Diff(before, l); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if diff := cmp.Diff(Ledger{{}, {}}, l[2:4]); diff != "" {
		t.Errorf("something was written behind the ledger's end:\n%s", diff)
	}
}

func TestTheLedgersJSONIsCompact(t *testing.T) {
	l := Ledger(nil).Add(at(0), Balance, 12).Add(at(60), Healing, 1)
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[[1795194200,"Balance",12],[1795194260,"Healing",1]]`, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, err := json.Marshal(Ledger(nil)); err != nil || string(got) != "[]" {
		t.Errorf("an empty one is %s (%v)", got, err)
	}
}

func TestTheOrderOfTheLedgersJSONDoesNotMatter(t *testing.T) {
	var l Ledger
	if err := json.Unmarshal([]byte(`[[1795194260,"Healing",1],[1795194200,"Drain",3],[1795194200,"Balance",12]]`), &l); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Ledger{{at(0), 12, Balance}, {at(0), 3, Drain}, {at(60), 1, Healing}}, l); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestALedgerThatCannotBeIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown cause": {`[[1,"Boredom",1]]`, `reading the moves that count, entry 0: 1 moves for "Boredom" at 1 s are no record`},
		"no moves":         {`[[1,"Pin",0]]`, `reading the moves that count, entry 0: 0 moves for "Pin" at 1 s are no record`},
		"before 1970":      {`[[-1,"Pin",1]]`, `reading the moves that count, entry 0: 1 moves for "Pin" at -1 s are no record`},
		"after 2242":       {`[[1,"Pin",1],[9999999999,"Pin",1]]`, `reading the moves that count, entry 1: 1 moves for "Pin" at 9999999999 s are no record`},
		"a short entry":    {`[[1,"Pin"]]`, `reading the moves that count, entry 0: it has 2 fields instead of seconds, cause and moves`},
		"no list":          {`{}`, `reading the moves that count: json: cannot unmarshal object into Go value of type [][]json.RawMessage`},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			err := json.Unmarshal([]byte(test.text), &l)
			if err == nil {
				t.Fatalf("it was read as %v", l)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// FuzzLedger: what is read can be used, and is written so that it reads the same again.
func FuzzLedger(f *testing.F) {
	for _, s := range []string{"[]", "null", `[[1795194200,"Balance",12],[1795194260,"Healing",1]]`, `[[5,"Pin",1],[1,"Drain",1073741824]]`, `[[1,"Pin",1,2]]`, `[[1.5,"Pin",1]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var l, again Ledger
		if json.Unmarshal(data, &l) != nil {
			return
		}
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, again); diff != "" {
			t.Fatalf("-first +again:\n%s", diff)
		}
		for _, now := range []time.Time{start, start.AddDate(-50, 0, 0), start.AddDate(200, 0, 0)} {
			if left := Left(l.Kept(now, nil), []Rate{{10, time.Hour}}, 100, now); left < 0 || left > 10 {
				t.Fatalf("%d moves are left of 10", left)
			}
		}
	})
}

func TestTheLedgerIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := []Rate{{100, 7 * 24 * time.Hour}}
		step := rapid.IntRange(1, 3600).Draw(t, "seconds between moves")
		var l Ledger
		now := start
		for range rapid.IntRange(0, 20_000).Draw(t, "moves") {
			now = now.Add(time.Duration(step) * time.Second)
			l = append(l, Record{now, 1, Balance})
		}
		const most = 121 + 997 + 72 // minutes of two hours, and tens of them of a week and half a day
		if l = l.Kept(now, rates); len(l) > most {
			t.Fatalf("%d records", len(l))
		}
	})
}

// TestAClockThatWasAheadForALittleGivesNothingBack: four moves of a day, and, while the clock was six hours ahead, one that took the day
// for over.
func TestAClockThatWasAheadForALittleGivesNothingBack(t *testing.T) {
	const hour = 3600
	rates := []Rate{{10, 24 * time.Hour}}
	l := Ledger(nil).Add(at(0), Balance, 4).Kept(at(24*hour), rates).Add(at(24*hour+1), Balance, 1)
	now := at(18*hour + 600)
	if got := Left(l.Kept(now, rates), rates, 40, now); got != 0 {
		t.Errorf("%d moves are left of 4 a day, of which four were made 18 hours ago", got)
	}
}
