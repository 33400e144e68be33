package placement

import (
	"testing"

	"ballast/planner/plan"
)

// TestAFullNodeComesLastOfWhatMayReceiveAlike: before another rule is broken for it, the replica on a full node receives.
func TestAFullNodeComesLastOfWhatMayReceiveAlike(t *testing.T) {
	unit := Unit{Names: []string{"a"}, Load: 1, Home: plan.NoReplica}
	open := func(b Bin) Bin { b.Open = true; return b }
	for name, test := range map[string]struct {
		bins   []Bin
		policy Policy
		want   int
	}{
		"another may, and carries more":            {[]Bin{open(Bin{Cramped: true}), open(Bin{Load: 9, Clusters: 9})}, Policy{}, 1},
		"the other has as many clusters as it may": {[]Bin{open(Bin{Cramped: true}), open(Bin{Load: 9, Clusters: 9})}, Policy{MaxClusters: 9}, 0},
		"the other is closed":                      {[]Bin{open(Bin{Cramped: true}), {}}, Policy{}, 0},
		"both are full":                            {[]Bin{open(Bin{Cramped: true, Load: 2, Clusters: 1}), open(Bin{Cramped: true})}, Policy{}, 1},
	} {
		if got := Place([]Unit{unit}, test.bins, test.policy)[0].To; got != test.want {
			t.Errorf("%s: it goes to replica %d, want %d", name, got, test.want)
		}
	}
}
