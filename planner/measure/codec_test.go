package measure

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/gz"
	"ballast/planner/poll"
)

func overCodec(t *rapid.T, l LastGood) LastGood {
	stored, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var back LastGood
	if err := back.UnmarshalBinary(stored); err != nil {
		t.Fatal(err)
	}
	return back
}

// bigFleet is n clusters with names as people give them, and answers with lognormal values.
func bigFleet(n, metrics int) ([]poll.Metric, discover.Fleet, []poll.Fetched) {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	secrets := make([]discover.Secret, n)
	for i := range secrets {
		name := fmt.Sprintf("cluster-%06x.team-%d.example.com-%d", r.Uint32()>>8, r.IntN(40), i)
		secrets[i] = discover.Secret{UID: fmt.Sprintf("%016x", r.Uint64()), Name: name, Cluster: name, Server: "https://" + name + ":6443", HasData: true}
	}
	fleet, _, err := discover.Discover(discover.Input{Secrets: secrets}, discover.Known{}, discover.Options{}, noon)
	if err != nil {
		panic(err)
	}
	var ms []poll.Metric
	var fetched []poll.Fetched
	for k := range metrics {
		m := poll.Metric{ID: fmt.Sprintf("metric-%d", k), Query: "q", Match: poll.Match{Label: "server"}}
		f := poll.Fetched{Metric: m.ID}
		for _, s := range secrets {
			f.Samples = append(f.Samples, poll.Sample{Key: s.Server, Value: math.Exp(r.NormFloat64()) * 100, At: noon.Add(-time.Duration(r.IntN(60_000)) * time.Millisecond)})
		}
		ms, fetched = append(ms, m), append(fetched, f)
	}
	return ms, fleet, fetched
}

// byNames has the first metric go by the names of the clusters.
func byNames(asked []poll.Metric, fleet discover.Fleet, fetched []poll.Fetched) {
	asked[0].Match = poll.Match{Label: "name", To: poll.ToName}
	names := make(map[string]string, len(fleet.Clusters))
	for _, c := range fleet.Clusters {
		names[c.Shard.Server] = c.Shard.Name
	}
	for i := range fetched[0].Samples {
		fetched[0].Samples[i].Key = names[fetched[0].Samples[i].Key]
	}
}

func TestFiveThousandClustersFitIntoTheHistory(t *testing.T) {
	for name, test := range map[string]struct {
		metrics int
		named   bool
		most    int
	}{
		"4 metrics":                  {4, false, 150 << 10},
		"6 metrics":                  {6, false, 200 << 10},
		"4 metrics, one by the name": {4, true, 200 << 10},
		"6 metrics, one by the name": {6, true, 250 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			metrics, most := test.metrics, test.most
			asked, fleet, fetched := bigFleet(5000, metrics)
			if test.named {
				byNames(asked, fleet, fetched)
			}
			table, err := Join(asked, fleet, fetched, LastGood{}, usual, noon)
			if err != nil {
				t.Fatal(err)
			}
			last := NewLastGood(table, LastGood{})
			stored, err := last.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if len(stored) > most {
				t.Errorf("they take %d bytes, want at most %d", len(stored), most)
			}
			t.Logf("5,000 clusters with %d metrics take %d bytes", metrics, len(stored))
			if again, err := last.MarshalBinary(); !bytes.Equal(stored, again) {
				t.Errorf("a second writing differs: %v", err)
			}
			var back LastGood
			if err := back.UnmarshalBinary(stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(last, back); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for c := range last.Columns {
				if diff := cmp.Diff(table.Columns[c].Values, last.Columns[c].Values, cmpopts.EquateApprox(5e-7, 0)); diff != "" {
					t.Fatalf("what is kept differs by more than 5e-7 (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestTheLargestFleetsValuesAreWithinTheBoundsOfTheHistory: all of them held, and one metric by the name.
func TestTheLargestFleetsValuesAreWithinTheBoundsOfTheHistory(t *testing.T) {
	asked, fleet, fetched := bigFleet(20_000, 6)
	byNames(asked, fleet, fetched)
	table, err := Join(asked, fleet, fetched, LastGood{}, usual, noon)
	if err != nil {
		t.Fatal(err)
	}
	last := NewLastGood(table, LastGood{})
	for c := range last.Columns {
		for i := range last.IDs {
			last.Columns[c].hold(i, int64(60+i))
		}
	}
	stored, err := last.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := gz.Unpack(stored, codecBounds().Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 clusters with 6 metrics take %d bytes of JSON, and %d packed", len(text), len(stored))
	if most := 5 << 20; len(text) > most {
		t.Errorf("they take %d bytes of JSON, want at most %d", len(text), most)
	}
}

func TestRoundingKeepsValuesFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64Range(0, math.MaxFloat64), rapid.SampledFrom([]float64{0, math.MaxFloat64, math.SmallestNonzeroFloat64})).Draw(t, "v")
		got := round(v)
		if math.IsInf(got, 0) || got < 0 || round(got) != got || v > 1e-300 && math.Abs(got-v) > 5e-7*v {
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
	want := LastGood{IDs: []string{"a", "b", "c"}, Columns: []LastColumn{{
		ID: "apps", Values: []float64{1.5, 0, 1e21}, At: []int64{1767225540, 0, 1767225600},
		Measured: []bool{true, false, true}, DroppedSince: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		DropsFirst: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC), Held: []int64{0, 0, 3600},
		Low: Low{First: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Since: time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC), To: 2}}}}
	var got LastGood
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
	of := func(value float64) LastGood {
		return LastGood{IDs: []string{"a"}, Columns: []LastColumn{{ID: "m", Values: []float64{value}, At: []int64{1}, Measured: []bool{true}}}}
	}
	for name, test := range map[string]struct {
		l    LastGood
		want string
	}{
		"a column without values": {LastGood{IDs: []string{"a"}, Columns: []LastColumn{{ID: "m"}}}, "0 values, 0 times and 0 marks for 1 IDs"},
		"IDs out of order":        {LastGood{IDs: []string{"b", "a"}}, `ID "a" follows "b"`},
		"a value below 0":         {of(-1), "below 0"},
		"too few names":           {LastGood{IDs: []string{"a"}, Names: []string{"", ""}}, "2 names for 1 IDs"},
		"no number":               {of(math.NaN()), "NaN"},
		"an infinite value":       {of(math.Inf(1)), "+Inf"},
		"too many columns":        {LastGood{Columns: make([]LastColumn, 2600)}, "arrays and objects, and at most 5125"},
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
			err := new(LastGood).UnmarshalBinary(stored)
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
	for _, l := range []LastGood{{}, lastly(), {Columns: []LastColumn{{ID: "m", DroppedSince: noon}}}} {
		stored, err := l.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		var l LastGood
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
		var l LastGood
		if l.UnmarshalBinary(zipped(plain)) == nil {
			checkStored(t, l)
		}
	})
}

func checkStored(t *testing.T, l LastGood) {
	written, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again LastGood
	if err := again.UnmarshalBinary(written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
