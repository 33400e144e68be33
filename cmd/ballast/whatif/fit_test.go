package whatif

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/cycle"
	"ballast/planner/cycle/problem"
	"ballast/planner/failover"
	"ballast/planner/plan"
)

// The last sentence answers, with its reason where it does not fit or nobody knows.
func TestTheLastSentenceAnswers(t *testing.T) {
	stand := func(settled bool, loads ...plan.Load) Stand {
		s := Stand{Settled: settled}
		for r, l := range loads {
			s.Replicas = append(s.Replicas, Carried{Replica: r, Clusters: 1, Load: l})
		}
		return s
	}
	half, one := plan.LoadUnit/2, plan.LoadUnit
	may, known := &cycle.Line{Load: one, Configured: true}, &cycle.Line{Load: one}
	lost := func(l Loss) func(*Answer) {
		return func(a *Answer) { a.Lost, a.With.Replicas[1].Lost = &l, true }
	}
	for want, test := range map[string]struct {
		with   Stand
		line   *cycle.Line
		change func(*Answer)
	}{
		"Yes, it fits: 2 replicas as now; the fullest, replica 1, would carry 1, 1.00 of what one may carry; 1 move.":                                                        {with: stand(true, half, one), line: may},
		"Yes, it fits: 3 replicas instead of 2; the fullest, replica 0, would carry 0.5, 0.50 of what one is known to bear; 1 move.":                                         {with: stand(true, half, half, 0), line: known},
		"Yes, it fits: 2 replicas as now, and 3 without it; the fullest, replica 0, would carry 0.5, 0.50 of what one may carry; 1 move.":                                    {stand(true, half, 0), may, func(a *Answer) { a.Without.Replicas = append(a.Without.Replicas, Carried{}) }},
		"Yes, it fits: 1 replica left of 2 now; the fullest, replica 0, would carry 1, 1.00 of what one may carry; 1 move.":                                                  {stand(true, one, 0), may, lost(Loss{AtOnce: 1})},
		"No, it does not fit: replica 1 would carry more than one may; 2 replicas as now; the fullest, replica 1, would carry 2, 2.00 of what one may carry; 1 move.":        {with: stand(true, half, 2*one), line: may},
		"No, it does not fit: 3 clusters would have no replica; 1 replica left of 2 now; the fullest, replica 0, would carry 0.5, 0.50 of what one may carry; 1 move.":       {stand(true, half, one), may, lost(Loss{Stay: 3})},
		"No, it does not fit: a replica would have too little memory; 1 replica left of 2 now; the fullest, replica 0, would carry 0.5, 0.50 of what one may carry; 1 move.": {stand(true, half, one), may, lost(Loss{Notes: []failover.Note{{Kind: failover.MemoryCrowded}}})},
		"No, it does not fit: there would be the problem partition/RulesClash; 2 replicas as now; the fullest, replica 0, would carry 0.5, 0.50 of what one may carry; 1 move.": {stand(true, half, half), may, func(a *Answer) {
			a.Problems = []Problem{{Phase: problem.PhasePartition, Kind: "RulesClash", Keeps: true}}
		}},
		"No, it does not fit: the fleet would not come to rest; 2 replicas as now; the fullest, replica 0, would carry 0.5, 0.50 of what one may carry; 1 move.":                                   {with: stand(false, half, half), line: may},
		"Whether it fits is not known: replica 0 would carry more than any is known to bear; 2 replicas as now; the fullest, replica 0, would carry 2, 2.00 of what one is known to bear; 1 move.": {with: stand(true, 2*one, half), line: known},
		"Whether it fits is not known: nothing says what a replica may carry (partition.capacity); 2 replicas as now; the fullest, replica 0, would carry 0.5; 1 move.":                            {with: stand(true, half, half)},
		"No, it does not fit: 2 clusters would have no replica; 0 replicas left of 2 now; 1 move.":                                                                                                 {stand(true, half, half), may, func(a *Answer) { a.Lost, a.With.Replicas[0].Lost, a.With.Replicas[1].Lost = &Loss{Stay: 2}, true, true }},
	} {
		a := &Answer{Now: stand(true, one, 0), Without: stand(true, one, 0), With: test.with, Moves: []cycle.Move{{Cluster: "a", From: 0, To: 1}}}
		if test.change != nil {
			test.change(a)
		}
		a.fit(test.line)
		if diff := cmp.Diff(want, a.Fit.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Whatever is supposed, the answer is of the same figures as the table, and a yes is one: every cluster has a replica that carries no
// more than one may.
func TestAYesIsOne(t *testing.T) {
	in := seen(t)
	rapid.Check(t, func(t *rapid.T) {
		c := change{add: rapid.IntRange(0, 40).Draw(t, "add"), capacity: rapid.SampledFrom([]string{"", "0.04", "0.3", "2"}).Draw(t, "capacity")}
		c.lose = rapid.SliceOfNDistinct(rapid.IntRange(0, 1), 0, 2, rapid.ID).Draw(t, "lose")
		if c.add > 0 {
			c.like = "c008"
		}
		if c.check() != nil {
			return // nothing is supposed
		}
		a, err := ask(in, c)
		if err != nil {
			t.Fatal(err)
		}
		f, most, left := a.Fit, plan.Load(0), 0
		for _, r := range a.With.Replicas {
			if !r.Lost {
				most, left = max(most, r.Load), left+1
			}
			if f.Fits == Yes && r.Lost && r.Clusters > 0 {
				t.Errorf("%s, though replica %d is lost with %d clusters", f, r.Replica, r.Clusters)
			}
		}
		if f.Load != most || f.After != left || f.Moves != len(a.Moves) || f.Fits == Yes && f.Share > 1 {
			t.Errorf("%s, want %s on the fullest of %d, and %d moves", f, most, left, len(a.Moves))
		}
		if last := f.String(); strings.Count(last, ".\n") > 0 || !strings.HasSuffix(last, ".") {
			t.Errorf("%q is not one sentence", last)
		}
	})
}
