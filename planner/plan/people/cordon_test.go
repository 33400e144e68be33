package people

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }

func TestCordonsAreRead(t *testing.T) {
	const example = ": write it like 3=2026-11-20T17:00:00Z"
	long := strings.Repeat("é", 70)
	for name, test := range map[string]struct {
		text string
		want []Cordon
		err  string
	}{
		"nothing":                     {" \n", nil, ""},
		"one":                         {"3=2026-11-20T17:00:00Z", []Cordon{{3, start}}, ""},
		"several, in any order":       {"3=2026-11-20T17:00:00Z, 0=2026-11-20T17:30:00Z ", []Cordon{{0, at(30)}, {3, start}}, ""},
		"another zone, and fractions": {"1=2026-11-20T19:00:00.9+02:00", []Cordon{{1, start}}, ""},
		"one that is over long since": {"1=1999-12-31T23:59:59Z", []Cordon{{1, time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)}}, ""},
		"no time":                     {"3", nil, `reading the cordon "3": it has no time` + example},
		"an end without an entry":     {"3=2026-11-20T17:00:00Z,", []Cordon{{3, start}}, `reading the cordon "": it has no time` + example},
		"a length of time":            {"3=2h", nil, `reading the cordon "3=2h": what stands behind = is not a time with its zone` + example},
		"no zone":                     {"3=2026-11-20T17:00:00", nil, `reading the cordon "3=2026-11-20T17:00:00": what stands behind = is not a time with its zone` + example},
		"a name":                      {"controller-3=2026-11-20T17:00:00Z", nil, `reading the cordon "controller-3=2026-11-20T17:00:00Z": what stands before = is not the number of a replica` + example},
		"below 0":                     {"-1=2026-11-20T17:00:00Z", nil, `reading the cordon "-1=2026-11-20T17:00:00Z": what stands before = is not the number of a replica` + example},
		"beyond any replica":          {"1000000=2026-11-20T17:00:00Z", nil, `reading the cordon "1000000=2026-11-20T17:00:00Z": what stands before = is not the number of a replica` + example},
		"a year no zone may change":   {"1=9999-12-31T23:59:59-01:00", nil, `reading the cordon "1=9999-12-31T23:59:59-01:00": what stands behind = is not a time with its zone` + example},
		"a replica that stands twice": {"3=2026-11-20T17:00:00Z,3=2026-11-20T18:00:00Z", []Cordon{{3, start}}, `reading the cordon "3=2026-11-20T18:00:00Z": replica 3 stands twice: delete one of them`},
		"all mistakes at once, short": {"x=1," + long + ",2=2026-11-20T17:00:00Z", []Cordon{{2, start}}, `reading the cordon "x=1": what stands before = is not the number of a replica` + example +
			"\n" + `reading the cordon "` + long[:2*62] + `…": it has no time` + example},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCordons(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(test.err, said); diff != "" {
				t.Errorf("the mistake -want +got:\n%s", diff)
			}
		})
	}
}

func TestCordonsAreWrittenInOneWay(t *testing.T) {
	zone := time.FixedZone("", 3600)
	got := FormatCordons([]Cordon{{3, at(60)}, {1, at(30).In(zone)}, {3, start}})
	if diff := cmp.Diff("1=2026-11-20T17:30:00Z,3=2026-11-20T18:00:00Z", got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := FormatCordons(nil); got != "" {
		t.Errorf("none are %q", got)
	}
}

func TestACordonEndsAtItsTime(t *testing.T) {
	cordons := []Cordon{{7, at(2)}, {3, at(1)}, {0, at(0)}}
	for minute, want := range map[float64][]int{-1: {0, 3, 7}, 0: {3, 7}, 0.5: {3, 7}, 1: {7}, 2: nil} {
		if diff := cmp.Diff(want, Cordoned(cordons, at(minute))); diff != "" {
			t.Errorf("after %v minutes -want +got:\n%s", minute, diff)
		}
	}
}

func TestCordonsSurviveTheAnnotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		until := rapid.Map(rapid.Int64Range(0, 253402300799), func(s int64) time.Time { return time.Unix(s, 0).UTC() })
		times := rapid.MapOf(rapid.IntRange(0, 999_999), until).Draw(t, "cordons")
		var cordons []Cordon
		for replica, at := range times {
			cordons = append(cordons, Cordon{replica, at})
		}
		got, err := ParseCordons(FormatCordons(cordons))
		if err != nil {
			t.Fatal(err)
		}
		read := map[int]time.Time{}
		for _, c := range got {
			read[c.Replica] = c.Until
		}
		if diff := cmp.Diff(times, read); diff != "" {
			t.Fatalf("-written +read:\n%s", diff)
		}
	})
}

// FuzzParseCordons: what is read is written so that it reads the same again, without a mistake.
func FuzzParseCordons(f *testing.F) {
	for _, s := range []string{"", "3=2026-11-20T17:00:00Z", "3=2026-11-20T17:00:00Z,1=2026-11-20T19:00:00.5+02:00", "3=,=3,,", "3=2026-11-20T17:00:00Z,3=2026-11-20T17:00:00Z",
		"1=9999-12-31T23:59:59-23:59", "1=0000-01-01T00:00:00+23:59", "01=2026-11-20T17:00:00Z", "+1=2026-11-20T17:00:00Z", "3=2026-11-20T17:00:60Z", "\xff=\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cordons, err := ParseCordons(text)
		if err != nil && err.Error() == "" {
			t.Fatal("a mistake without a word")
		}
		again, err := ParseCordons(FormatCordons(cordons))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cordons, again); diff != "" {
			t.Fatalf("-first +again:\n%s", diff)
		}
	})
}
