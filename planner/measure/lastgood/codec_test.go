package lastgood

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/gz"
)

// lastly are last good values of three clusters.
func lastly() Values {
	return Values{IDs: []string{"a", "b", "c"}, Columns: []Column{{
		ID: "apps", Values: []float64{10, 20, 30}, At: []int64{60, 60, 60}, Measured: []bool{true, true, true}}}}
}

func TestRoundingKeepsValuesFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64Range(0, math.MaxFloat64), rapid.SampledFrom([]float64{0, math.MaxFloat64, math.SmallestNonzeroFloat64})).Draw(t, "v")
		got := Round(v)
		if math.IsInf(got, 0) || got < 0 || Round(got) != got || v > 1e-300 && math.Abs(got-v) > 5e-7*v {
			t.Fatalf("%v is rounded to %v", v, got)
		}
	})
}

func zipped(plain string) []byte {
	stored, err := gz.Pack([]byte(plain))
	if err != nil {
		panic(err)
	}
	return stored
}

// byHand is a document of last good values: b has none, and a's is of a minute before c's.
const byHand = `{"version":1,"ids":["a","b","c"],"columns":[` +
	`{"id":"apps","values":[1.5,0,1e+21],"newest":1767225600,"age":[60,1767225600,0],"measured":[true,false,true],"droppedSince":"2026-01-01T00:00:00Z",` +
	`"dropsFirst":"2025-12-31T23:00:00Z","held":[0,0,3600],` +
	`"lowFirst":"2026-01-01T00:00:00Z","lowSince":"2026-01-01T00:10:00Z","lowTo":2}]}`

func TestTheFormOfTheLastGoodValues(t *testing.T) {
	want := Values{IDs: []string{"a", "b", "c"}, Columns: []Column{{
		ID: "apps", Values: []float64{1.5, 0, 1e21}, At: []int64{1767225540, 0, 1767225600},
		Measured: []bool{true, false, true}, DroppedSince: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		DropsFirst: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC), Held: []int64{0, 0, 3600},
		Low: Low{First: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Since: time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC), To: 2}}}}
	var got Values
	if err := got.UnmarshalBinary(zipped(byHand)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stored, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := gz.Unpack(stored, 1<<20)
	if diff := cmp.Diff(byHand, string(text)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// byHandWith is byHand with one thing changed.
func byHandWith(old, new string) []byte {
	if strings.Count(byHand, old) != 1 {
		panic(old)
	}
	return zipped(strings.Replace(byHand, old, new, 1))
}

// filled is a document whose field is an array with one element again and again, to as many bytes.
func filled(field, element string, size int) string {
	return fmt.Sprintf(`{"version":1,%q:[%s%s]}`, field, strings.Repeat(element+",", size/(len(element)+1)), element)
}

// hostile are documents that are no last good values, by what is wrong with them.
func hostile() map[string][]byte {
	return map[string][]byte{
		"gzip: invalid header":                 []byte("plain, and not packed"),
		"unexpected end of JSON input":         zipped(""),
		"larger than 8 MiB":                    zipped(strings.Repeat(" ", 8<<20+1)),
		`invalid character '\x01'`:             zipped("\x01\x00\x00"), // as they were before they were JSON
		"after top-level value":                zipped(byHand + "{}"),
		"their version is 2":                   byHandWith(`"version":1`, `"version":2`),
		"their version is 0":                   zipped("{}"),
		`ID "a" follows "b"`:                   byHandWith(`["a","b","c"]`, `["b","a","c"]`),
		`ID "a" follows "a"`:                   byHandWith(`["a","b","c"]`, `["a","a","c"]`),
		"2 values, 3 times and 3 marks":        byHandWith(`[1.5,0,1e+21]`, `[1.5,0]`),
		"3 values, 4 times and 3 marks":        byHandWith(`[60,`, `[60,0,`),
		"3 values, 3 times and 0 marks":        byHandWith(`[true,false,true]`, `null`),
		`"apps" has 2 times of being held`:     byHandWith(`[0,0,3600]`, `[0,0]`),
		"held for less than no time":           byHandWith(`[0,0,3600]`, `[0,0,-1]`),
		`"apps" has a value below 0`:           byHandWith(`1.5`, `-1.5`),
		"cannot unmarshal number 1e999":        byHandWith(`1.5`, `1e999`),
		"cannot unmarshal string":              byHandWith(`1.5`, `"NaN"`),
		"arrays and objects, and at most 5125": zipped(filled("columns", "{}", 8<<20-100)),
	}
}

func TestWhatTheCodecRefuses(t *testing.T) {
	for want, stored := range hostile() {
		t.Run(want, func(t *testing.T) {
			kept := lastly()
			err := kept.UnmarshalBinary(stored)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
			if diff := cmp.Diff(lastly(), kept); diff != "" {
				t.Errorf("the receiver has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	of := func(value float64) Values {
		return Values{IDs: []string{"a"}, Columns: []Column{{ID: "m", Values: []float64{value}, At: []int64{1}, Measured: []bool{true}}}}
	}
	for name, test := range map[string]struct {
		l    Values
		want string
	}{
		"a column without values": {Values{IDs: []string{"a"}, Columns: []Column{{ID: "m"}}}, "0 values, 0 times and 0 marks for 1 IDs"},
		"IDs out of order":        {Values{IDs: []string{"b", "a"}}, `ID "a" follows "b"`},
		"a value below 0":         {of(-1), "below 0"},
		"too few names":           {Values{IDs: []string{"a"}, Names: []string{"", ""}}, "2 names for 1 IDs"},
		"no number":               {of(math.NaN()), "NaN"},
		"an infinite value":       {of(math.Inf(1)), "+Inf"},
		"too many columns":        {Values{Columns: make([]Column, 2600)}, "arrays and objects, and at most 5125"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := test.l.MarshalBinary(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// Whatever some kilobytes unpack to, refusing it takes memory within the bounds.
func TestRefusingHostileValuesTakesLittleMemory(t *testing.T) {
	const whole = 8<<20 - 100
	for name, test := range map[string]struct {
		plain string
		most  uint64 // bytes, of all that was allocated on the way
	}{
		"more than is unpacked": {strings.Repeat(" ", 64<<20), 48 << 20},
		"columns, all empty":    {filled("columns", "{}", whole), 48 << 20},
		"IDs without a text":    {filled("ids", `""`, whole), 320 << 20},
		"values":                {`{"version":1,"columns":[` + filled("values", "0", whole-100) + `]}`, 320 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			stored := zipped(test.plain)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := new(Values).UnmarshalBinary(stored)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > test.most {
				t.Errorf("refusing %d bytes took %d MiB, want at most %d: %v", len(stored), n>>20, test.most>>20, err)
			} else {
				t.Logf("%d bytes took %d MiB: %v", len(stored), n>>20, err)
			}
		})
	}
}

func FuzzLastGood(f *testing.F) {
	documents := hostile()
	for _, why := range slices.Sorted(maps.Keys(documents)) {
		f.Add(documents[why])
	}
	for _, l := range []Values{{}, lastly(), {Columns: []Column{{ID: "m", DroppedSince: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}}}} {
		stored, err := l.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		var l Values
		if l.UnmarshalBinary(stored) == nil {
			checkStored(t, l)
		}
	})
}

// FuzzLastGoodPlain packs its input first, or gzip's checksum would keep the fuzzer out.
func FuzzLastGoodPlain(f *testing.F) {
	f.Add(`{"version":1}`)
	f.Add(byHand)
	f.Fuzz(func(t *testing.T, plain string) {
		var l Values
		if l.UnmarshalBinary(zipped(plain)) == nil {
			checkStored(t, l)
		}
	})
}

func checkStored(t *testing.T, l Values) {
	written, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again Values
	if err := again.UnmarshalBinary(written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
