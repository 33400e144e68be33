package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// kindly is a fleet of eight pods whose memory is 200 MB, 2 kB an object and 300 kB a kind, but for 3 % of noise: clusters of 40 kinds and
// up to so many more, lognormal in their objects, of which two change their pod each hour. Its metrics are the objects alone, or the kinds, too.
func kindly(seed uint64, more int, withKinds bool) Samples {
	const pods, clusters = 8, 80
	r := rand.New(rand.NewPCG(seed, 31))
	s := Samples{Metrics: []string{"objects"}, References: map[string]float64{"objects": 1e6, "api_resources": 1e4}, Limits: map[Resource]float64{Memory: 4 << 30}}
	if withKinds {
		s.Metrics = append(s.Metrics, "api_resources")
	}
	var objects, kinds [clusters]float64
	var on [clusters]int
	for i := range clusters {
		objects[i], kinds[i], on[i] = math.Round(20_000*math.Exp(0.7*r.NormFloat64())), float64(40+r.IntN(more+1)), i%pods
	}
	for hour := range 72 {
		on[r.IntN(clusters)], on[r.IntN(clusters)] = r.IntN(pods), r.IntN(pods)
		var sums [pods][2]float64
		for i, p := range on {
			sums[p][0], sums[p][1] = sums[p][0]+objects[i], sums[p][1]+kinds[i]
		}
		for p, sum := range sums {
			memory := (2e8 + 2000*sum[0] + 3e5*sum[1]) * (1 + 0.03*(2*r.Float64()-1))
			s.Rows = append(s.Rows, Row{Pod: fmt.Sprintf("pod-%d", p), At: noon.Add(time.Duration(hour) * time.Hour), Values: sum[:len(s.Metrics)], Memory: &memory})
		}
	}
	return s
}

// TestKindsExplainMemoryWhereTheyDiffer: what docs/planning.md says of argocd_cluster_api_resources.
func TestKindsExplainMemoryWhereTheyDiffer(t *testing.T) {
	fit := func(s Samples) Fit {
		t.Helper()
		f, err := Of(s, Memory)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for seed := range uint64(5) {
		alone, both := fit(kindly(seed, 360, false)), fit(kindly(seed, 360, true))
		t.Logf("40 to 400 kinds: R2 %.3f (on pods left out %.3f) by objects, which make %.0f bytes each; %.3f (%.3f) with kinds: %.0f, and %.0f a kind",
			alone.R2, *alone.HeldOut, alone.Per["objects"], both.R2, *both.HeldOut, both.Per["objects"], both.Per["api_resources"])
		if alone.R2 > 0.9 || *alone.HeldOut > 0.85 || alone.Per["objects"] < 2500 {
			t.Errorf("objects alone explain %.3f of the memory, which leaves nothing for kinds", alone.R2)
		}
		wrong := math.Abs(both.Per["objects"]-2000) > 100 || math.Abs(both.Per["api_resources"]-3e5) > 1.5e4
		if both.R2 < 0.98 || *both.HeldOut < 0.98 || wrong {
			t.Errorf("with the kinds it is %+v", both)
		}
		if like, also := fit(kindly(seed, 4, false)), fit(kindly(seed, 4, true)); also.R2-like.R2 > 0.05 {
			t.Errorf("where clusters have 40 to 44 kinds, these explain %.3f instead of %.3f", also.R2, like.R2)
		} else {
			t.Logf("40 to 44 kinds: R2 %.3f by objects, %.3f with kinds", like.R2, also.R2)
		}
	}
}
