package source

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/controller/archive"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/poll"
	"ballast/planner/store/history"
)

// shows is a Prometheus that has what each pod showed a moment ago: dev is the second's, prod-eu the first's.
type shows struct{ silent string }

func (s shows) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) (all []poll.Fetched) {
	for _, m := range metrics {
		f := poll.Fetched{Metric: m.ID}
		for i, server := range []string{"https://prod-eu", "https://dev", ""} {
			pod := fmt.Sprint(fixture.ControllerName, "-", i)
			switch {
			case pod == s.silent:
			case m.ID == "sampled":
				f.Samples = append(f.Samples, poll.Sample{Key: pod, Value: float64(time.Now().Unix())})
			case m.ID == "argocd_app_info" && server != "":
				f.Samples = append(f.Samples, poll.Sample{Key: pod + "|" + server, Value: 2})
			}
		}
		all = append(all, f)
	}
	return all
}

// TestThePlanSeesThePodsAsALeaderDoes: who is ready, and by Prometheus who really has which cluster.
func TestThePlanSeesThePodsAsALeaderDoes(t *testing.T) {
	for name, test := range map[string]struct {
		silent    string
		forbidden []string
		known     bool
		asked     bool
		owners    map[string]string
		note      string
	}{
		"all are seen": {known: true, asked: true, owners: map[string]string{"prod-eu": "[0]", "dev": "[1]"}},
		"one is not scraped": {silent: fixture.ControllerName + "-1", known: true, owners: map[string]string{"prod-eu": "[0]"},
			note: "note: not all that a leader sees of the pods is known: nothing is known of what " + fixture.ControllerName + "-1 owns"},
		"pods may not be listed": {forbidden: []string{"pods"}, note: "note: not all that a leader sees of the pods is known: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture.QuietWorld()
			w.Pods[2] = fixture.ControllerPod(w.Pods[2].Name, fixture.NotReady)
			w.Forbidden = test.forbidden
			c := w.Client(t)
			in := input.Inputs{Now: time.Now().UTC(), Config: config.Default()}
			in.Config.Target.Kind, in.Config.Target.Name = plan.StatefulSet, fixture.ControllerName
			var err error
			in.Discovered, in.Workload, err = gather.Look(t.Context(), c, in.Config, discover.Known{}, &w.Plan)
			fixture.MustDo(t, err)
			var said bytes.Buffer
			seen := lookAtPods(t.Context(), c, shows{test.silent}, in, &said)
			owners := map[string]string{}
			for cluster, o := range seen.Reported.Clusters {
				if len(o.Holders) > 0 {
					owners[cluster] = fmt.Sprint(o.Holders)
				}
			}
			sees := seen.Known == test.known && seen.Reported.Asked == test.asked
			if !sees || len(seen.Trouble) > 0 || !strings.HasPrefix(said.String(), test.note) {
				t.Errorf("known %t, asked %t, trouble %v, said %q", seen.Known, seen.Reported.Asked, seen.Trouble, said.String())
			}
			var ready []bool
			for _, p := range seen.Pods {
				ready = append(ready, p.Ready)
			}
			if diff := cmp.Diff([]bool{true, true, false}, ready); test.known && diff != "" {
				t.Errorf("which pods are ready (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.owners, owners); test.known && diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARollbackIsOfThePlansThatAreKept, and what else is asked for is told.
func TestARollbackIsOfThePlansThatAreKept(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Mode = plan.Enforce
	p := cycle.Run(in).Next.Clone()
	p.Rollout, p.Revision = nil, 5
	text, err := codec.Encode(p)
	fixture.MustDo(t, err)
	kept := []history.Record{{Revision: 5, Text: text}}
	for asked, want := range map[string]string{"5": "", "4": "revision 4 is not kept any more; `ballast rollback` lists those that are",
		"x": `annotation ballast.argoproj.io/rollback-to: "x" is not a revision; ` + "`ballast rollback` lists those that are kept"} {
		r := archive.RollbackTo(kept, asked)
		if r == nil || r.Problem != want || (r.Plan != nil) != (want == "") {
			t.Errorf("%q is %+v, want %q", asked, r, want)
		}
	}
	if r := archive.RollbackTo(kept, ""); r != nil {
		t.Errorf("nobody asked, and it is %+v", r)
	}
}
