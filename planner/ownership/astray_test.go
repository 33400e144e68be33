package ownership

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestNothingIsAstrayWithoutProof: every look of more than AstrayAfter, in which all pods answered at the end, had it elsewhere alone.
func TestNothingIsAstrayWithoutProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet, now := drawFleet(t), noon()
		intended := drawPlan(t, fleet)
		elsewhere := map[string]time.Time{} // since when, by the looks
		var memory Memory
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "later")) * time.Second)
			o := Join(drawReports(t, now), fleet, drawApps(t))
			judged, verdict := Judge(memory, o, intended, now, Grace{})
			before := judged.clone()
			next, astray := judged.Stray(o, verdict.Owned, intended, now)
			if diff := cmp.Diff(before, judged.clone()); diff != "" {
				t.Fatalf("the memory changed:\n%s", diff)
			}
			for name, c := range o.Clusters {
				replica, planned := intended(name)
				if away := planned && len(c.Owners) > 0 && !slices.Contains(c.Owners, replica); !away {
					delete(elsewhere, name)
				} else if _, known := elsewhere[name]; !known {
					elsewhere[name] = now
				}
			}
			for _, a := range astray {
				since, is := elsewhere[a.Cluster]
				if !is || now.Sub(since)+time.Minute < AstrayAfter || !o.Asked {
					t.Fatalf("%v at %s, elsewhere since %s, asked: %t", a, now, since, o.Asked)
				}
			}
			if len(next.Astray) != len(elsewhere) {
				t.Fatalf("remembered: %v, elsewhere: %v", next.Astray, elsewhere)
			}
			memory = next
		}
	})
}
