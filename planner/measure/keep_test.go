package measure

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
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
			last.Columns[c].Hold(i, int64(60+i))
		}
	}
	stored, err := last.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := gz.Unpack(stored, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 clusters with 6 metrics take %d bytes of JSON, and %d packed", len(text), len(stored))
	if most := 5 << 20; len(text) > most {
		t.Errorf("they take %d bytes of JSON, want at most %d", len(text), most)
	}
}
