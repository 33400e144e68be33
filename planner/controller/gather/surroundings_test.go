package gather

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// TestSurroundingsAreAskedForAsOftenAsTheyChange: once an interval, those of large clusters less often, at once where other things
// are wanted, and never where nothing is. A look that fails leaves what was seen.
func TestSurroundingsAreAskedForAsOftenAsTheyChange(t *testing.T) {
	var asked []inputs.Wants
	answer, failure := inputs.Surroundings{}, error(nil)
	a := &Asker{Options: &wiring.Options{Log: logr.Discard(), Surround: func(_ context.Context, _ plan.Target, w inputs.Wants) (inputs.Surroundings, error) {
		asked = append(asked, w)
		return answer, failure
	}}}
	in := input.Inputs{Now: epoch, Config: config.Default()}
	look := func(after time.Duration) inputs.Surroundings {
		in.Now = in.Now.Add(after)
		return a.Surroundings(t.Context(), in)
	}
	wants := func(names ...string) {
		p := config.SizePolicy{Name: "a"}
		for _, name := range names {
			p.Rules = append(p.Rules, config.SizeRule{Input: name})
		}
		in.Config.Size.Policies = []config.SizePolicy{p}
	}
	few, many := inputs.Surroundings{Nodes: &inputs.Nodes{Count: 3}}, inputs.Surroundings{Nodes: &inputs.Nodes{Count: 5000}}

	wants("apps")
	look(0)
	if len(asked) > 0 {
		t.Fatalf("nothing reads them: %v", asked)
	}
	wants("cores")
	answer = few
	look(0)
	look(59 * time.Second)
	if diff := cmp.Diff([]inputs.Wants{{Nodes: true}}, asked); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	answer = many
	if got := look(time.Second); len(asked) != 2 || got.Nodes.Count != 5000 {
		t.Fatalf("%d looks, %v", len(asked), got)
	}
	look(4*time.Minute + 59*time.Second)
	if len(asked) != 2 {
		t.Fatalf("%d looks at 5,000 nodes in five minutes", len(asked))
	}
	answer, failure = inputs.Surroundings{}, errors.New("the API server is away")
	if got := look(time.Second); len(asked) != 3 || got.Nodes != many.Nodes {
		t.Fatalf("%d looks, %v", len(asked), got)
	}
	wants("hpaReplicas")
	if got := look(time.Second); len(asked) != 4 || asked[3] != (inputs.Wants{HPA: true}) || got.Nodes != nil {
		t.Fatalf("%v, %v", asked, got)
	}
}
