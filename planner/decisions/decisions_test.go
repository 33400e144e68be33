package decisions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestWhatAPlanChanged(t *testing.T) {
	small := plan.Resources{Requests: map[string]string{"cpu": "1"}}
	large := plan.Resources{Requests: map[string]string{"cpu": "2"}}
	base := plan.Plan{Mode: plan.Hold, Replicas: 2, Clusters: map[string]plan.Row{"a": {Replica: 0}, "b": {Replica: 1, Load: "0.2"}}}
	for name, test := range map[string]struct {
		change func(*plan.Plan)
		want   Change
		words  []string
	}{
		"nothing but a load": {change: func(p *plan.Plan) { p.Clusters["b"] = plan.Row{Replica: 1, Load: "0.3"} }},
		"the mode": {change: func(p *plan.Plan) { p.Mode = plan.Enforce },
			want: Change{Mode: &Modes{plan.Hold, plan.Enforce}}, words: []string{"mode Hold → Enforce"}},
		"fewer replicas, and what was on them": {
			change: func(p *plan.Plan) { p.Replicas, p.Clusters["b"] = 1, plan.Row{Replica: 0} },
			want:   Change{Replicas: &Replicas{2, 1}, Moves: []Move{{"b", 1, 0}}}, words: []string{"2 → 1 replica", "1 cluster moved"}},
		"clusters that came and went": {
			change: func(p *plan.Plan) {
				p.Clusters = map[string]plan.Row{"a": {Replica: 0}, "c": {Replica: 1}, "d": {Replica: 1}}
			},
			want: Change{Came: 2, Went: 1}, words: []string{"2 clusters new", "1 cluster gone"}},
		"sizes of pods": {change: func(p *plan.Plan) { p.Sizes = &plan.Sizes{Default: small} },
			want: Change{Sizes: true}, words: []string{"sizes changed"}},
		"the size of the template": {change: func(p *plan.Plan) { p.Resources = &large },
			want: Change{Sizes: true}, words: []string{"sizes changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := base.Clone(), base.Clone()
			test.change(&after)
			got := Between(before, after)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.words, got.Words()); diff != "" {
				t.Errorf("in words (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAChangeLeadsFromOnePlanToTheOther: what is applied to the one gives the other, and the way back is the same length.
func TestAChangeLeadsFromOnePlanToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(of string) plan.Plan {
			p := plan.Plan{Replicas: rapid.IntRange(0, 4).Draw(t, of), Clusters: map[string]plan.Row{}}
			for i := range 6 {
				if r := rapid.IntRange(-1, 3).Draw(t, fmt.Sprintf("%s %d", of, i)); r >= 0 {
					p.Clusters[fmt.Sprint(i)] = plan.Row{Replica: r}
				}
			}
			return p
		}
		before, after := draw("before"), draw("after")
		there, back := Between(before, after), Between(after, before)
		if len(before.Clusters)+there.Came-there.Went != len(after.Clusters) {
			t.Fatalf("%d clusters, %d new and %d gone do not make %d", len(before.Clusters), there.Came, there.Went, len(after.Clusters))
		}
		for _, m := range there.Moves {
			if before.Clusters[m.Cluster].Replica != m.From || after.Clusters[m.Cluster].Replica != m.To || m.From == m.To {
				t.Fatalf("%+v is no move from %v to %v", m, before.Clusters, after.Clusters)
			}
		}
		if len(there.Moves) != len(back.Moves) || there.Came != back.Went || there.Went != back.Came {
			t.Fatalf("there %+v, and back %+v", there, back)
		}
	})
}
