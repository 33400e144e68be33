package evaluate_test

import (
	"bytes"
	"compress/gzip"
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
)

// busy is a vote in which no two samples agree: the most a history can hold.
func busy(clusters, samples, replicas int) evaluate.History {
	r := rand.New(rand.NewPCG(1, uint64(clusters)))
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-team-%02d-region-%d-%08x", i%40, i%7, r.Uint32())
	}
	h := evaluate.History{Basis: "5f1d7a84db00d2fc", Candidates: map[string]evaluate.Candidate{}}
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

func TestAFullHistoryFitsAConfigMap(t *testing.T) {
	h := busy(5_000, 60, 128)
	data, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("60 distinct candidates of 5,000 clusters on 128 replicas: %d bytes", len(data))
	if len(data) > 400_000 {
		t.Errorf("%d bytes, want at most 400,000", len(data))
	}
	if again, err := h.MarshalBinary(); !bytes.Equal(data, again) {
		t.Errorf("a second packing differs: %v", err)
	}
	var got evaluate.History
	if err := got.UnmarshalBinary(data); err != nil || !reflect.DeepEqual(h, got) {
		t.Errorf("what was packed does not come back: %v", err)
	}
}

func TestHistoryAsJSONIsTheSame(t *testing.T) {
	h := busy(20, 3, 4)
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var got evaluate.History
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestCandidatesOfDifferentClustersArePackedTogether(t *testing.T) {
	checkRoundTrip(t, evaluate.History{
		Basis:   "v1",
		Ballots: []evaluate.Ballot{{At: noon, Key: "dropped"}, {At: time.Time{}, Key: "a"}, {At: noon.Add(-time.Nanosecond), Key: "a"}},
		Candidates: map[string]evaluate.Candidate{
			"a": {Replicas: 300, Of: map[string]int{"eu": 299, "eu-west": 0, "us": 7}},
			"b": {Replicas: 1, Of: map[string]int{"": 0, "eu-west": 0}},
			"c": {},
		},
	})
	checkRoundTrip(t, evaluate.History{})
}

func TestWhatCannotBeUnpackedIsNotPacked(t *testing.T) {
	with := func(c evaluate.Candidate) evaluate.History {
		return evaluate.History{Candidates: map[string]evaluate.Candidate{"k": c}}
	}
	for name, tc := range map[string]struct {
		h    evaluate.History
		want string
	}{
		"a replica that is not there": {with(evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": 2}}), `cluster "eu" on replica 2 of 2`},
		"a replica below 0":           {with(evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": -1}}), `cluster "eu" on replica -1`},
		"a negative count":            {with(evaluate.Candidate{Replicas: -1}), "-1 replicas"},
		"a name no Secret has":        {with(evaluate.Candidate{Replicas: 1, Of: map[string]int{strings.Repeat("x", 254): 0}}), "254 bytes"},
		"a long basis":                {evaluate.History{Basis: strings.Repeat("x", 257)}, "257 bytes"},
		"a year without a form":       {evaluate.History{Ballots: []evaluate.Ballot{{At: noon.AddDate(9000, 0, 0)}}}, "year 11026"},
		"too many ballots":            {evaluate.History{Ballots: make([]evaluate.Ballot, 10_001)}, "10001 ballots"},
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
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(plain))
	_ = z.Close()
	return out.Bytes()
}

// hostile are documents that lie about their sizes, by what is wrong with them.
func hostile() map[string][]byte {
	const head = "ballast history\x01"
	huge := "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
	good, err := busy(3, 2, 2).MarshalBinary()
	if err != nil {
		panic(err)
	}
	return map[string][]byte{
		"EOF":                                       nil,
		"gzip: invalid header":                      []byte("not packed at all"),
		"unexpected EOF":                            good[:len(good)/2],
		"something follows":                         append(good[:len(good):len(good)], 0),
		"at most 1048576":                           make([]byte, 1<<20+1),
		"unpacks to more than":                      zipped(strings.Repeat("\x00", 17<<20)),
		"another version":                           zipped("ballast history\x02\x00\x00\x00\x00\x00"),
		"ends too early":                            zipped(head),
		"the length of a text is":                   zipped(head + huge),
		"the number of clusters is":                 zipped(head + "\x00" + huge),
		"the number of keys is":                     zipped(head + "\x00\x00" + huge),
		"the number of ballots is":                  zipped(head + "\x00\x00\x00" + huge),
		"the number of candidates is":               zipped(head + "\x00\x00\x00\x00" + huge),
		"what a name shares":                        zipped(head + "\x00\x02\x00\x01a\x02\x01b"),
		`cluster "a" follows "b"`:                   zipped(head + "\x00\x02\x00\x01b\x00\x01a\x00\x00\x00"),
		`key "a" follows "b"`:                       zipped(head + "\x00\x00\x02\x01b\x01a\x00\x00"),
		"it has no keys":                            zipped(head + "\x00\x00\x00\x01\x00\x00\x00\x00"),
		"a nanosecond is":                           zipped(head + "\x00\x00\x01\x01a\x01\x00\x00\xff\xff\xff\xff\x0f\x00"),
		"a ballot is of the year":                   zipped(head + "\x00\x00\x01\x01a\x01\x00\xff\xff\xff\xff\xff\xff\x0f\x00\x00"),
		"a replica is 3, and at most 2":             zipped(head + "\x00\x01\x00\x01c\x01\x01a\x00\x01\x00\x02\x03"),
		"is out of order":                           zipped(head + "\x00\x00\x02\x01a\x01b\x00\x02\x01\x00\x00\x00"),
		"1 bytes are left over":                     zipped(head + "\x00\x00\x00\x00\x00\x00"),
		"candidates of 2000 clusters are more than": zipped(head + "\x00" + manyNames(2000) + manyKeys(1001) + "\x00\xe9\x07" + strings.Repeat("\x00", 1001*2002)),
	}
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(string([]byte{byte(n&0x7f | 0x80), byte(n >> 7)}))
	for i := range n {
		fmt.Fprintf(&b, "\x00\x04%04d", i)
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteString(string([]byte{byte(n&0x7f | 0x80), byte(n >> 7)}))
	for i := range n {
		fmt.Fprintf(&b, "\x04%04d", i)
	}
	return b.String()
}

func TestADamagedOrHostileHistoryIsRefused(t *testing.T) {
	for want, data := range hostile() {
		t.Run(want, func(t *testing.T) {
			h := evaluate.History{Basis: "as before"}
			err := h.UnmarshalBinary(data)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "unpacking the history") {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff(evaluate.History{Basis: "as before"}, h); d != "" {
				t.Errorf("a refused document changed the history\n%s", d)
			}
		})
	}
}

// A count that the rest of the document cannot hold must be refused before anything is made of its size.
func TestACountThatLiesTakesNoMemory(t *testing.T) {
	const head = "ballast history\x01\x00"
	for name, data := range map[string][]byte{
		"clusters":   zipped(head + "\xc0\x9a\x0c"),                                   // 200,000
		"keys":       zipped(head + "\x00\xa0\x9c\x01"),                               // 20,000
		"candidates": zipped(head + manyNames(2000) + manyKeys(900) + "\x00\x84\x07"), // 900 x 2,000
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := new(evaluate.History).UnmarshalBinary(data)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "ends too early") {
				t.Errorf("got %v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 300_000 {
				t.Errorf("refusing %d bytes took %d", len(data), n)
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
	for _, h := range []evaluate.History{{}, busy(3, 2, 2), busy(40, 5, 300)} {
		data, err := h.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h evaluate.History
		if h.UnmarshalBinary(data) == nil {
			checkPacked(t, h)
		}
	})
}

// twoPlans is a history by hand: basis "v1", clusters eu and us, keys a and b with a ballot each.
const twoPlans = "\x02v1" + "\x02\x00\x02eu\x00\x02us" + "\x02\x01a\x01b" + "\x02\x00\x80\x01\x05\x01\x02\x06" + "\x02\x00\x02\x01\x02\x01\x01\x01\x00"

func TestTheFormIsWhatItsDocSays(t *testing.T) {
	var got evaluate.History
	if err := got.UnmarshalBinary(zipped("ballast history\x01" + twoPlans)); err != nil {
		t.Fatal(err)
	}
	want := evaluate.History{
		Basis:   "v1",
		Ballots: []evaluate.Ballot{{At: time.Unix(64, 5).UTC(), Key: "a"}, {At: time.Unix(65, 6).UTC(), Key: "b"}},
		Candidates: map[string]evaluate.Candidate{
			"a": {Replicas: 2, Of: map[string]int{"eu": 0, "us": 1}},
			"b": {Replicas: 1, Of: map[string]int{"eu": 0}},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// FuzzHistoryPlain packs its input first, or gzip's checksum would keep the fuzzer out.
func FuzzHistoryPlain(f *testing.F) {
	f.Add("\x00\x00\x00\x00\x00")
	f.Add(twoPlans)
	f.Fuzz(func(t *testing.T, plain string) {
		var h evaluate.History
		if h.UnmarshalBinary(zipped("ballast history\x01"+plain)) == nil {
			checkPacked(t, h)
		}
	})
}

func checkPacked(t *testing.T, h evaluate.History) {
	data, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again evaluate.History
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, again, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-unpacked +packed again)\n%s", d)
	}
}
