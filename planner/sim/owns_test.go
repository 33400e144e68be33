package sim_test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"ballast/planner/sim"
)

// TestOwnsIsArgoCDsOwn: each replica of each size of fleet owns the clusters with a shard that Argo CD's own code gives it
// (planner/sharding/testdata), whatever the algorithm is.
func TestOwnsIsArgoCDsOwn(t *testing.T) {
	file, err := os.Open("../sharding/testdata/owners.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var fleets []struct {
		Seed    int
		Secrets []struct {
			Name  string
			Shard *string
		}
		Owners map[string][][]int
	}
	if err := json.NewDecoder(unzipped).Decode(&fleets); err != nil {
		t.Fatal(err)
	}
	seen, beyond := 0, 0
	for _, f := range fleets {
		for i, s := range f.Secrets {
			if s.Shard == nil {
				continue
			}
			shard, err := strconv.Atoi(*s.Shard)
			if err != nil || shard < 0 {
				continue // Argo CD's algorithm places it
			}
			for algorithm, byReplicas := range f.Owners {
				for n, owners := range byReplicas {
					if seen++; shard > n {
						beyond++
					}
					for ordinal := range n + 1 {
						if got := sim.Owns(ordinal, n+1, shard); got != (ordinal == owners[i]) {
							t.Errorf("fleet %d, %s, shard %d, %s: replica %d of %d owns it %t, and Argo CD gives it to %d",
								f.Seed, s.Name, shard, algorithm, ordinal, n+1, got, owners[i])
						}
					}
				}
			}
		}
	}
	if t.Logf("%d answers, of which %d are of shards beyond the replicas", seen, beyond); seen < 1000 || beyond < 100 {
		t.Errorf("%d answers and %d beyond the replicas; the test reads the vectors wrongly", seen, beyond)
	}
}
