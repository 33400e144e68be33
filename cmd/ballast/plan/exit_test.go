package plan

import (
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/resize"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestTheExitCodeSaysWhetherSomethingWouldChange: each change by itself, on a fleet where nothing would.
func TestTheExitCodeSaysWhetherSomethingWouldChange(t *testing.T) {
	settled := func() (input.Inputs, cycle.Outcome) {
		in := fixture.SeenCycle(t, "elected-move")
		in.Config.Mode = plan.Observe
		out := cycle.Run(in)
		out.Candidate.Moves, out.Candidate.Replicas = nil, out.Now
		out.Next.ControllerReplicas = out.Next.MaxReplicas
		for i := range out.Fleet.Clusters {
			out.Fleet.Clusters[i].Explicit.State = discover.ShardValid
		}
		return in, out
	}
	blocked := func(resource string, reason change.BlockReason) func(*cycle.Outcome) {
		return func(out *cycle.Outcome) {
			out.Sizing = &resize.Sizing{Blocked: []resize.Blocked{{Resource: resource, Reason: reason}}}
		}
	}
	for name, test := range map[string]struct {
		change func(*cycle.Outcome)
		want   string
	}{
		"nothing":             {change: func(*cycle.Outcome) {}},
		"no evidence":         {change: func(out *cycle.Outcome) { out.Candidate = nil }},
		"a size that fits":    {change: func(out *cycle.Outcome) { out.Sizing = &resize.Sizing{} }},
		"too small a change":  {change: blocked("requests.cpu", change.TooSmall)},
		"an input is away":    {change: blocked("requests.cpu", change.StaleInput)},
		"replicas of weights": {change: blocked(resize.ResourceReplicas, change.RateLimit)},
		"a move":              {func(out *cycle.Outcome) { out.Candidate.Moves = []cycle.Move{{Cluster: "c000", To: 1}} }, "would change: 1 move"},
		"a replica": {func(out *cycle.Outcome) {
			out.Candidate.Replicas = append(out.Now[:len(out.Now):len(out.Now)], plan.Replica{ID: len(out.Now)})
		},
			"would change: 3 -> 4 replicas"},
		"a size":            {func(out *cycle.Outcome) { out.Sizing = &resize.Sizing{Resized: 2} }, "would change: sizes"},
		"a size that waits": {blocked("requests.cpu", change.StabilizationWindow), "would change: sizes"},
		"the one restart":   {func(out *cycle.Outcome) { out.Next.ControllerReplicas = 3 }, "would change: ARGOCD_CONTROLLER_REPLICAS becomes 16 by one restart"},
		"an unstamped Secret": {func(out *cycle.Outcome) { out.Fleet.Clusters[1].Explicit.State = discover.ShardAbsent },
			"would change: 1 Secret without a shard"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := settled()
			test.change(&out)
			got, code := "", 0
			if err := exitCode(in, out); err != nil {
				got, code = err.Error(), say.ExitCode(err)
			}
			if got != test.want || (code == 2) != (test.want != "") {
				t.Errorf("exit code %d and %q, want %q", code, got, test.want)
			}
		})
	}
}
