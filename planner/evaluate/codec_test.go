package evaluate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/evaluate"
	"ballast/planner/gz"
)

// busy is a vote in which no two samples agree: the most a history can hold.
func busy(clusters, samples, replicas int) evaluate.Vote {
	r := rand.New(rand.NewPCG(1, uint64(clusters)))
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-team-%02d-region-%d-%08x", i%40, i%7, r.Uint32())
	}
	h := evaluate.Vote{Basis: "5f1d7a84db00d2fc", Candidates: map[string]evaluate.Candidate{}}
	for i := range samples {
		c := evaluate.Candidate{Replicas: replicas, Of: make(map[string]int, clusters)}
		for _, name := range names {
			c.Of[name] = r.IntN(replicas)
		}
		key := evaluate.Key(c)
		h.Candidates[key] = c
		h.Ballots = append(h.Ballots, evaluate.Ballot{At: noon.Add(time.Duration(i)*time.Minute + 123456789), Key: key})
	}
	return h
}

// fullDay are the votes of a day, one a minute, for the candidates of a history.
func fullDay(h evaluate.Vote) evaluate.Vote {
	for i := len(h.Ballots); i < 24*60; i++ {
		b := h.Ballots[(i*7)%len(h.Ballots)]
		b.At = noon.Add(time.Duration(i)*time.Minute + 123456789)
		h.Ballots = append(h.Ballots, b)
	}
	return h
}

func TestAFullHistoryFitsAConfigMap(t *testing.T) {
	const kept = evaluate.DefaultMaxAssignments / 5_000
	for name, test := range map[string]struct {
		h    evaluate.Vote
		most int
	}{
		"no two candidates alike": {fullDay(busy(5_000, kept, 128)), 200 << 10},
		"all nearly alike":        {fullDay(seldom(5_000, kept, kept, 20)), 100_000},
		"the same few":            {fullDay(seldom(5_000, 5, kept, 20)), 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := test.h.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d candidates of 5,000 clusters: %d bytes", len(test.h.Candidates), len(data))
			if len(data) > test.most {
				t.Errorf("%d bytes, want at most %d", len(data), test.most)
			}
			if again, err := test.h.MarshalBinary(); !bytes.Equal(data, again) {
				t.Errorf("a second packing differs: %v", err)
			}
			var got evaluate.Vote
			if err := got.UnmarshalBinary(data); err != nil || !reflect.DeepEqual(test.h, got) {
				t.Errorf("what was packed does not come back: %v", err)
			}
		})
	}
}

// seldom is a vote as it is found: candidates that differ from each other in one of thirty clusters, wanted in turn.
func seldom(clusters, candidates, samples, replicas int) evaluate.Vote {
	r := rand.New(rand.NewPCG(3, uint64(clusters)))
	var first evaluate.Candidate
	for _, first = range busy(clusters, 1, replicas).Candidates {
		break
	}
	h := evaluate.Vote{Basis: "5f1d7a84db00d2fc", Candidates: map[string]evaluate.Candidate{}}
	names := slices.Sorted(maps.Keys(first.Of))
	var keys []string
	for range candidates {
		c := evaluate.Candidate{Replicas: replicas, Of: maps.Clone(first.Of)}
		for range clusters / 30 {
			c.Of[names[r.IntN(clusters)]] = r.IntN(replicas)
		}
		keys = append(keys, evaluate.Key(c))
		h.Candidates[keys[len(keys)-1]] = c
	}
	for i := range samples {
		h.Ballots = append(h.Ballots, evaluate.Ballot{At: noon.Add(time.Duration(i)*time.Minute + 123456789), Key: keys[i%candidates]})
	}
	return h
}

func TestHistoryAsJSONIsTheSame(t *testing.T) {
	h := busy(20, 3, 4)
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var got evaluate.Vote
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestCandidatesOfDifferentClustersArePackedTogether(t *testing.T) {
	checkRoundTrip(t, evaluate.Vote{
		Basis:   "v1",
		Ballots: []evaluate.Ballot{{At: noon, Key: "dropped"}, {At: time.Time{}, Key: "a"}, {At: noon.Add(-time.Nanosecond), Key: "a"}},
		Candidates: map[string]evaluate.Candidate{
			"a": {Replicas: 300, Of: map[string]int{"eu": 299, "eu-west": 0, "us": 7}},
			"b": {Replicas: 1, Of: map[string]int{"": 0, "eu-west": 0}},
			"c": {},
		},
	})
	checkRoundTrip(t, evaluate.Vote{})
}

func TestWhatCannotBeUnpackedIsNotPacked(t *testing.T) {
	with := func(c evaluate.Candidate) evaluate.Vote {
		return evaluate.Vote{Candidates: map[string]evaluate.Candidate{"k": c}}
	}
	for name, tc := range map[string]struct {
		h    evaluate.Vote
		want string
	}{
		"a replica that is not there": {with(evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": 2}}), `cluster "eu" is on replica 2 of 2`},
		"a replica below 0":           {with(evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": -1}}), `cluster "eu" is on replica -1`},
		"no replica's number":         {with(evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": -2}}), `cluster "eu" is on replica -2`},
		"a negative count":            {with(evaluate.Candidate{Replicas: -1}), "-1 replicas"},
		"a count beyond all":          {with(evaluate.Candidate{Replicas: 1<<20 + 1}), "1048577 replicas"},
		"a year without a form":       {evaluate.Vote{Ballots: []evaluate.Ballot{{At: noon.AddDate(9000, 0, 0)}}}, "year outside of range"},
		"more than is unpacked":       {evaluate.Vote{Basis: strings.Repeat("x", 8<<20)}, "larger than 8 MiB"},
		"too many ballots":            {evaluate.Vote{Ballots: make([]evaluate.Ballot, 10_001)}, "10001 ballots"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := tc.h.MarshalBinary()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %d bytes and %v, want %q", len(data), err, tc.want)
			}
		})
	}
}

func zipped(plain string) []byte {
	data, err := gz.Pack([]byte(plain))
	if err != nil {
		panic(err)
	}
	return data
}

// twoPlans is a history by hand.
const twoPlans = `{"version":1,"basis":"v1",
"ballots":[{"at":"2026-01-01T00:00:00.000000005Z","key":"a"},{"at":"2026-01-01T00:01:00Z","key":"c"}],
"clusters":["eu","us"],
"candidates":[{"key":"a","replicas":2,"of":[0,1]},{"key":"b","replicas":1,"of":[0,-1]}]}`

func TestTheFormIsWhatItsDocSays(t *testing.T) {
	var got evaluate.Vote
	if err := got.UnmarshalBinary(zipped(twoPlans)); err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := evaluate.Vote{
		Basis:   "v1",
		Ballots: []evaluate.Ballot{{At: midnight.Add(5), Key: "a"}, {At: midnight.Add(time.Minute), Key: "c"}},
		Candidates: map[string]evaluate.Candidate{
			"a": {Replicas: 2, Of: map[string]int{"eu": 0, "us": 1}},
			"b": {Replicas: 1, Of: map[string]int{"eu": 0}},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	data, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := gz.Unpack(data, 1<<20)
	if d := cmp.Diff(strings.ReplaceAll(twoPlans, "\n", ""), string(text)); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

func TestEqualHistoriesGiveEqualBytes(t *testing.T) {
	here := busy(20, 3, 4)
	there := evaluate.Vote{Basis: here.Basis, Candidates: maps.Clone(here.Candidates)}
	for _, b := range here.Ballots {
		there.Ballots = append(there.Ballots, evaluate.Ballot{At: b.At.In(time.FixedZone("there", 3600)), Key: b.Key})
	}
	a, errA := here.MarshalBinary()
	b, errB := there.MarshalBinary()
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the same history of another time zone has other bytes: %v, %v", errA, errB)
	}
}

// instead is twoPlans with one thing changed.
func instead(old, new string) []byte {
	if strings.Count(twoPlans, old) != 1 {
		panic(old)
	}
	return zipped(strings.Replace(twoPlans, old, new, 1))
}

// filled is a history whose field is an array with one element again and again, to as many bytes.
func filled(field, element string, size int) string {
	return fmt.Sprintf(`{"version":1,%q:[%s%s]}`, field, strings.Repeat(element+",", size/(len(element)+1)), element)
}

// hostile are documents that are no history, by what is wrong with them.
func hostile() map[string][]byte {
	good, err := busy(3, 2, 2).MarshalBinary()
	if err != nil {
		panic(err)
	}
	var wide strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&wide, `,"%04d"`, i)
	}
	var long strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&long, `,{"key":"%04d"}`, i)
	}
	return map[string][]byte{
		"EOF":                              nil,
		"gzip: invalid header":             []byte("not packed at all"),
		"unexpected EOF":                   good[:len(good)/2],
		"unpacking: unexpected EOF":        append(good[:len(good):len(good)], 0),
		"it is larger than 8 MiB":          zipped(strings.Repeat(" ", 8<<20+1)),
		"invalid character 'b'":            zipped("ballast history\x01\x00\x00\x00\x00\x00"), // as it was before it was JSON
		"after top-level value":            zipped(twoPlans + "{}"),
		"unexpected end of JSON input":     zipped(twoPlans[:len(twoPlans)-1]),
		"its version is 2":                 instead(`"version":1`, `"version":2`),
		"its version is 0":                 zipped("{}"),
		"its clusters are not in order":    instead(`["eu","us"]`, `["us","eu"]`),
		"clusters are not in order":        instead(`["eu","us"]`, `["eu","eu"]`),
		"its candidates are not in order":  instead(`"key":"b"`, `"key":"a"`),
		`"b": it places 1 of 2 clusters`:   instead(`[0,-1]`, `[0]`),
		`"b": it places 3 of 2 clusters`:   instead(`[0,-1]`, `[0,-1,-1]`),
		`"us" is on replica 2 of 2`:        instead(`[0,1]`, `[0,2]`),
		`"us" is on replica -2 of 1`:       instead(`[0,-1]`, `[0,-2]`),
		"cannot unmarshal number 0.5":      instead(`[0,-1]`, `[0,0.5]`),
		"it has -1 replicas":               instead(`"replicas":1`, `"replicas":-1`),
		"it has 1048577 replicas":          instead(`"replicas":1`, `"replicas":1048577`),
		"a ballot's time is not in UTC":    instead("00:01:00Z", "00:01:00+01:00"),
		"parsing time":                     instead("2026-01-01T00:01:00Z", "12026-01-01T00:01:00Z"),
		"it has 10001 ballots":             zipped(filled("ballots", "{}", 30_000)),
		"and at most 30004 are taken":      zipped(filled("candidates", "{}", 8<<20-100)),
		"1001 candidates of 2000 clusters": zipped(`{"version":1,"clusters":[` + wide.String()[1:] + `],"candidates":[` + long.String()[1:] + `]}`),
	}
}

func TestADamagedOrHostileHistoryIsRefused(t *testing.T) {
	for want, data := range hostile() {
		t.Run(want, func(t *testing.T) {
			h := evaluate.Vote{Basis: "as before"}
			err := h.UnmarshalBinary(data)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff(evaluate.Vote{Basis: "as before"}, h); d != "" {
				t.Errorf("a refused document changed the history\n%s", d)
			}
		})
	}
}

// Whatever some kilobytes unpack to, refusing it takes memory within the bounds.
func TestRefusingAHostileHistoryTakesLittleMemory(t *testing.T) {
	const whole = 8<<20 - 100
	for name, test := range map[string]struct {
		plain string
		most  uint64 // bytes, of all that was allocated on the way
	}{
		"more than is unpacked":   {strings.Repeat(" ", 64<<20), 48 << 20},
		"candidates, all empty":   {filled("candidates", "{}", whole), 48 << 20},
		"ballots, all empty":      {filled("ballots", "{}", whole), 48 << 20},
		"clusters without a name": {filled("clusters", `""`, whole), 320 << 20},
		"replicas":                {`{"version":1,"candidates":[` + filled("of", "0", whole-100) + `]}`, 320 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			data := zipped(test.plain)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := new(evaluate.Vote).UnmarshalBinary(data)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > test.most {
				t.Errorf("refusing %d bytes took %d MiB, want at most %d: %v", len(data), n>>20, test.most>>20, err)
			} else {
				t.Logf("%d bytes took %d MiB: %v", len(data), n>>20, err)
			}
		})
	}
}

// FuzzHistory: whatever is unpacked packs again and comes back the same; nothing else is taken.
func FuzzHistory(f *testing.F) {
	documents := hostile()
	for _, why := range slices.Sorted(maps.Keys(documents)) {
		f.Add(documents[why])
	}
	for _, h := range []evaluate.Vote{{}, busy(3, 2, 2), busy(40, 5, 300)} {
		data, err := h.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h evaluate.Vote
		if h.UnmarshalBinary(data) == nil {
			checkPacked(t, h)
		}
	})
}

// FuzzHistoryPlain packs its input first, or gzip's checksum would keep the fuzzer out.
func FuzzHistoryPlain(f *testing.F) {
	f.Add(`{"version":1}`)
	f.Add(twoPlans)
	f.Fuzz(func(t *testing.T, plain string) {
		var h evaluate.Vote
		if h.UnmarshalBinary(zipped(plain)) == nil {
			checkPacked(t, h)
		}
	})
}

func checkPacked(t *testing.T, h evaluate.Vote) {
	data, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again evaluate.Vote
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, again, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-unpacked +packed again)\n%s", d)
	}
}
