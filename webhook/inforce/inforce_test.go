package inforce

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/webhook/fixture"
)

// decided is when the decisions of these tests are made, and lapsed is since when a stop has lasted too long then.
var (
	decided = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lapsed  = decided.Add(-plan.StopHeld - time.Second)
)

// TestAStopIsCountedFromItsSince, and no later than from when it was seen first: whatever its time, it ends.
func TestAStopIsCountedFromItsSince(t *testing.T) {
	const late = 10 * time.Minute
	for name, test := range map[string]struct {
		plan func(*plan.Plan)
		then func(s *State, data, notes map[string]string) *State // what becomes of it 10 minutes later
		want time.Time
	}{
		"a plan that stops nothing":           {func(*plan.Plan) {}, nil, time.Time{}},
		"replicas that are people's":          {func(p *plan.Plan) { fixture.StopAll(p, lapsed); p.FreeReplicas = true }, nil, time.Time{}},
		"as the rollout says":                 {func(p *plan.Plan) { fixture.StopAll(p, lapsed) }, nil, lapsed},
		"in years":                            {func(p *plan.Plan) { fixture.StopAll(p, decided.AddDate(99, 0, 0)) }, nil, decided},
		"without a time":                      {func(p *plan.Plan) { fixture.StopAll(p, time.Time{}) }, nil, decided},
		"without a rollout":                   {func(p *plan.Plan) { p.Replicas = 0 }, nil, decided},
		"in years, and a pin is written":      {func(p *plan.Plan) { fixture.StopAll(p, decided.AddDate(99, 0, 0)) }, andPinned, decided},
		"in years, and the digest is broken":  {func(p *plan.Plan) { fixture.StopAll(p, decided.AddDate(99, 0, 0)) }, andBroken, decided},
		"the ConfigMap is deleted":            {func(p *plan.Plan) { fixture.StopAll(p, lapsed) }, andGone, time.Time{}},
		"the ConfigMap is deleted and remade": {func(p *plan.Plan) { fixture.StopAll(p, lapsed) }, andRemade, lapsed},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.Fleet()
			test.plan(&p)
			data, notes := fixture.Written(t, p, "")
			before := &State{Identity: Identity{Namespace: "argocd", ConfigMap: "ballast-plan", Planner: fixture.ShippedUser}}
			s := before.Next(data, notes)
			s.NoteStop(before, decided)
			if test.then != nil {
				next := test.then(s, data, notes)
				next.NoteStop(s, decided.Add(late))
				s = next
			}
			if diff := cmp.Diff(test.want, s.Stopped); diff != "" {
				t.Errorf("stopped since (-want +got):\n%s", diff)
			}
		})
	}
}

func andPinned(s *State, data, notes map[string]string) *State {
	return s.Next(map[string]string{plan.KeyPlan: data[plan.KeyPlan], plan.KeyPins: "prod-eu: 1\n"}, notes)
}

func andBroken(s *State, data, notes map[string]string) *State {
	return s.Next(map[string]string{plan.KeyPlan: data[plan.KeyPlan] + "#"}, notes)
}

func andGone(s *State, _, _ map[string]string) *State { return s.Gone() }

func andRemade(s *State, data, notes map[string]string) *State {
	return s.Gone().Next(data, notes)
}
