package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/config"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// small is what a kubelet says of a node that is too small.
const small = "Node didn't have enough capacity: memory, requested: 5268045824, capacity: 4294967296"

// infeasible is a fleet of two whose second replica is to have 5024Mi, on a node that has no room beside its 2024Mi.
func infeasible(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(2)
	f.runs(3, 10, 10)
	has, _ := f.Plan.SizeOf(1)
	f.Pods = []observed.Pod{{Replica: 1, Name: "c-1", Size: &observed.Size{Has: has}}}
	f.Change.Down.StabilizationWindow = config.Duration(2 * time.Hour)
	f.run(10, 40)
	f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodInfeasible, Short: true, Words: small}}
	wants(t, f, "as it is to be", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
	return f
}

// A size that a node never has room for goes back to what the pod has: a pod that is made anew with it might find no node. It is
// tried again a day later.
func TestASizeThatNoNodeHasDoesNotStay(t *testing.T) {
	f := infeasible(t)
	back := [2]string{"2024Mi", "4048Mi"}
	f.runs(30, 10, 40)
	f.Unmet[0].State = diff.PodAsked // it is asked once more
	f.run(10, 40)
	f.Unmet[0].State = diff.PodInfeasible
	f.runs(28, 10, 40)
	wants(t, f, "within an hour", back, [2]string{"5024Mi", "10048Mi"})
	f.runs(2, 10, 40)
	wants(t, f, "after it", back, [2]string{"2024Mi", "10048Mi"})
	f.Unmet = nil
	f.runs(60, 10, 40)
	wants(t, f, "later", back, [2]string{"2024Mi", "10048Mi"})
	if diff := cmp.Diff([]string{"1 up UpdatePolicy 2024Mi->5Gi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	if at, full := f.Memory.NoRoom[1]; !full || !at.Equal(f.Now) {
		t.Errorf("nothing keeps what levels away from it: %v", f.Memory.NoRoom)
	}
	if len(f.last.Problems) != 1 || f.last.Problems[0].Kind != "NodeFull" {
		t.Errorf("problems %v", f.last.Problems)
	}
	f.Now = f.Now.Add(wish.UnfitFor)
	f.run(10, 40)
	wants(t, f, "a day later", back, [2]string{"5024Mi", "10048Mi"})
}

// TestNoStatusMakesTheLimitOfAReplicaThatFitsNowhereLarger than what is wanted, however much it says that the pod has.
func TestNoStatusMakesTheLimitOfAReplicaThatFitsNowhereLarger(t *testing.T) {
	f := newFleet(2)
	f.Template = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "1Gi"}}
	f.runs(3, 10, 10)
	has, _ := f.Plan.SizeOf(1)
	has = plan.Resources{Requests: has.Requests, Limits: map[string]string{"memory": "100Ti"}}
	f.Pods = []observed.Pod{{Replica: 1, Name: "c-1", Size: &observed.Size{Has: has}}}
	f.Change.Down.StabilizationWindow = config.Duration(2 * time.Hour)
	f.run(10, 40)
	wants(t, f, "as it is to be", [2]string{"2024Mi", "2024Mi"}, [2]string{"5024Mi", "5024Mi"})
	f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodInfeasible, Short: true, Words: small}}
	f.runs(62, 10, 40)
	wants(t, f, "after an hour", [2]string{"2024Mi", "2024Mi"}, [2]string{"2024Mi", "5024Mi"})
}

// Where the nodes are known to have such room it waits for a pod that is made anew.
func TestASizeThatANodeHasWaitsForAnotherPod(t *testing.T) {
	f := infeasible(t)
	f.NodeCap = map[string]resource.Quantity{size.Memory: resource.MustParse("8Gi")}
	f.runs(120, 10, 40)
	wants(t, f, "two hours later", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
}

// What is Infeasible for another reason has its size in a pod that is made anew.
func TestASizeThatACPUManagerRefusesWaitsForAnotherPod(t *testing.T) {
	f := infeasible(t)
	f.Unmet[0].Words = "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy"
	f.runs(120, 10, 40)
	wants(t, f, "two hours later", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
}

// A replica that grew meanwhile is none of those.
func TestASizeThatWasGivenIsKept(t *testing.T) {
	f := infeasible(t)
	f.runs(50, 10, 40)
	f.Unmet = nil
	f.run(10, 40)
	f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: diff.PodInfeasible, Short: true, Words: small}}
	f.runs(30, 10, 40)
	wants(t, f, "with room in between", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"})
}

func TestWithinWhatANodeHas(t *testing.T) {
	amounts := func(text string) map[string]resource.Quantity {
		return map[string]resource.Quantity{size.Memory: resource.MustParse(text)}
	}
	has := size.Resources{Requests: amounts("2Gi"), Limits: amounts("2Gi")}
	for name, test := range map[string]struct {
		wanted, want size.Resources
		nodes        map[string]resource.Quantity
	}{
		"what is equal":         {size.Resources{Requests: amounts("4Gi"), Limits: amounts("4Gi")}, has, nil},
		"a limit above it":      {size.Resources{Requests: amounts("4Gi"), Limits: amounts("6Gi")}, size.Resources{Requests: amounts("2Gi"), Limits: amounts("6Gi")}, nil},
		"never below the pod's": {size.Resources{Requests: amounts("6Gi"), Limits: amounts("6Gi")}, size.Resources{Requests: amounts("2Gi"), Limits: amounts("4Gi")}, nil},
		"what is less":          {size.Resources{Requests: amounts("1Gi"), Limits: amounts("1Gi")}, size.Resources{Requests: amounts("1Gi"), Limits: amounts("1Gi")}, nil},
		"what nodes have":       {size.Resources{Requests: amounts("4Gi"), Limits: amounts("4Gi")}, size.Resources{Requests: amounts("4Gi"), Limits: amounts("4Gi")}, amounts("8Gi")},
	} {
		has := has
		if name == "never below the pod's" {
			has.Limits = amounts("4Gi")
		}
		if diff := cmp.Diff(quantity.Resources(test.want), quantity.Resources(wish.Within(test.wanted, has, test.nodes)), cmp.AllowUnexported(plan.Resources{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
