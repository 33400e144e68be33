package poll

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ballast/planner/discover"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
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
func bigFleet(n, metrics int) ([]Metric, discover.Fleet, []Fetched) {
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
	var ms []Metric
	var fetched []Fetched
	for k := range metrics {
		m := Metric{ID: fmt.Sprintf("metric-%d", k), Query: "q", Match: Match{Label: "server"}}
		f := Fetched{Metric: m.ID}
		for _, s := range secrets {
			f.Samples = append(f.Samples, Sample{s.Server, math.Exp(r.NormFloat64()) * 100, noon.Add(-time.Duration(r.IntN(60_000)) * time.Millisecond)})
		}
		ms, fetched = append(ms, m), append(fetched, f)
	}
	return ms, fleet, fetched
}

func TestFiveThousandClustersFitIntoTheHistory(t *testing.T) {
	metrics, fleet, fetched := bigFleet(5000, 4)
	table, err := Join(metrics, fleet, fetched, LastGood{}, usual, noon)
	if err != nil {
		t.Fatal(err)
	}
	last := NewLastGood(table, LastGood{})
	stored, err := last.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) > 150<<10 {
		t.Errorf("they take %d bytes, want at most 150 KiB", len(stored))
	}
	t.Logf("5,000 clusters with 4 metrics take %d bytes", len(stored))
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

func zipped(raw string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte(raw))
	_ = zip.Close()
	return out.Bytes()
}

func TestWhatTheCodecRefuses(t *testing.T) {
	tests := map[string]struct {
		stored []byte
		want   string
	}{
		"no gzip":                {[]byte("plain"), "reading the last good values: "},
		"nothing":                {zipped(""), "they end too early"},
		"another version":        {zipped("\x02\x00\x00"), "their version is 2, and this ballast reads 1"},
		"more rows than bytes":   {zipped("\x01\xff\xff\x3f"), "they end too early"},
		"too many rows":          {zipped("\x01\xff\xff\xff\x7f"), "a number is out of bounds"},
		"IDs out of order":       {zipped("\x01\x02\x00\x01b\x00\x01a\x00"), "the IDs are not in order"},
		"more than there is":     {zipped("\x01\x00\x00\x00"), "there is more than there should be"},
		"a value that is no one": {zipped("\x01\x01\x00\x01a\x01\x01m\x00\x01\x02\x7f\xf8\x00\x00"), "a number is out of bounds"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kept := lastly()
			err := kept.UnmarshalBinary(test.stored)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if diff := cmp.Diff(lastly(), kept); diff != "" {
				t.Errorf("the receiver has changed (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := (LastGood{IDs: []string{"a"}, Columns: []LastColumn{{ID: "m"}}}).MarshalBinary(); err == nil {
		t.Error("a column without values is written")
	}
}

func FuzzLastGood(f *testing.F) {
	for _, l := range []LastGood{{}, lastly(), {Columns: []LastColumn{{ID: "m", DroppedSince: noon}}}} {
		stored, err := l.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stored)
	}
	f.Add(zipped("\x01\x02\x00\x01b\x00\x01a\x00"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		var l, again LastGood
		if l.UnmarshalBinary(stored) != nil {
			return
		}
		written, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(written); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
