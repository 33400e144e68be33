package cycle

import (
	"os"
	"strings"
	"testing"

	"ballast/planner/plan"
)

// docExample is the example of weights in docs/sizing.md.
func docExample(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## How many replicas, and how large")
	_, block, fenced := strings.Cut(section, "```yaml\n")
	text, _, ended := strings.Cut(block, "```")
	if !found || !fenced || !ended {
		t.Fatal("docs/sizing.md has no example of weights")
	}
	return text
}

// What docs/sizing.md says of its example holds.
func TestTheExampleOfWeightsInTheDocs(t *testing.T) {
	text := docExample(t)
	head, _, _ := strings.Cut(weighedFile, "partition:")
	text = strings.Replace(head, "%%", "%", 1) + strings.Replace(text, "change:\n", "change:\n  moves: {rate: []}\n", 1) + "rollout: {default: {}}\n"
	for _, step := range []struct {
		each, fullest float64
		replicas      int
	}{{0.1, 1, 4}, {0.4, 2, 8}} {
		w := weighedWorld(t, text, 2, alike(40, 0.05)...)
		w.slowly(2)
		if w.in.InForce.Replicas != 2 {
			t.Fatalf("%d replicas for a load of 2", w.in.InForce.Replicas)
		}
		for _, s := range w.in.Discovered.Secrets {
			w.setLoad(s.Name, step.each)
		}
		w.slowly(60)
		if got := w.in.InForce.Replicas; got != step.replicas {
			t.Errorf("%d replicas for a load of %v, want %d: %v", got, 40*step.each, step.replicas, w.last.Waiting())
		}
		if got := w.fullest(); got > step.fullest*1.12 {
			t.Errorf("the fullest carries %v, want about %v", got, step.fullest)
		}
		for replica := range w.in.InForce.Replicas {
			held, _ := w.in.InForce.SizeOf(replica)
			if q, err := plan.ReadQuantity(held.Requests["cpu"]); err != nil || q.AsApproximateFloat64() > w.fullest()+1e-6 {
				t.Errorf("replica %d requests %v", replica, held.Requests)
			}
		}
	}
}
