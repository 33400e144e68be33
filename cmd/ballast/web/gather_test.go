package web

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/measure"
	"ballast/planner/page"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
	"ballast/planner/store/history"
	"ballast/planner/trend"
)

func looked(t *testing.T, c client.Client) page.Fleet {
	t.Helper()
	s := &Source{Live: c, Secrets: c, Now: func() time.Time { return fixture.Noon },
		Config: func(context.Context) (config.PlannerConfig, []string) {
			cfg := config.Default()
			cfg.Target.Namespace = "argocd"
			return cfg, nil
		}}
	f, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestALookReadsWhatThePageShows, and of Secrets nothing but names and servers.
func TestALookReadsWhatThePageShows(t *testing.T) {
	w := fixture.QuietWorld()
	w.People[plan.AnnotationPaused], w.People[plan.AnnotationPausedBy], w.People[plan.AnnotationPausedReason] = "true", "alice", "an upgrade"
	c := w.Client(t)
	kept := store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})
	before := fixture.Revision(16, fixture.Four)
	text, err := codec.Encode(before)
	fixture.MustDo(t, err)
	h, _, err := kept.ReadHistory(t.Context())
	fixture.MustDo(t, err)
	h.Plans = []history.Record{{Revision: 16, Text: text, Meta: configmap.Meta{DecidedAt: fixture.Noon.Add(-time.Hour), Reason: "four replicas"}}}
	levels := trend.Trend{}.Take(trend.Level{At: fixture.Noon, Fullest: 3 * plan.LoadUnit, Mean: plan.LoadUnit, Replicas: 3}, "u")
	part, err := levels.MarshalBinary()
	fixture.MustDo(t, err)
	values := measure.LastGood{IDs: []string{"dev"}, Columns: []measure.LastColumn{
		{ID: "apps", Values: []float64{12}, At: []int64{fixture.Noon.Unix()}, Measured: []bool{true}}}}
	h.Parts, _ = memory.Memory{LastGood: values}.Parts(map[string][]byte{trend.HistoryPart: part})
	_, err = kept.WriteHistory(t.Context(), h, fixture.Noon)
	fixture.MustDo(t, err)

	f := looked(t, c)
	if diff := cmp.Diff(levels, f.Trend); diff != "" {
		t.Errorf("load over time (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(values, f.Values); diff != "" {
		t.Errorf("what was measured (-want +got):\n%s", diff)
	}
	if f.Document.Plan == nil || f.Document.Plan.Revision != 17 || f.Status == nil {
		t.Fatalf("the plan is %+v, the leader says %+v", f.Document.Plan, f.Status)
	}
	names := map[string]string{}
	for _, cluster := range f.Clusters {
		names[cluster.ID] = cluster.Server
	}
	want := map[string]string{"dev": "https://dev", "in-cluster": plan.InClusterServer, "lab": "https://lab", "prod-ap": "https://prod-ap",
		"prod-eu": "https://prod-eu", "prod-us": "https://prod-us", "stage-eu": "https://stage-eu", "stage-us": "https://stage-us"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"in-cluster": "it has no Secret, and stays where Argo CD keeps it"}, f.Apart); diff != "" {
		t.Errorf("clusters that are left alone (-want +got):\n%s", diff)
	}
	var revisions []int64
	for _, k := range f.Kept {
		revisions = append(revisions, k.Plan.Revision)
	}
	if diff := cmp.Diff([]int64{17, 16}, revisions); diff != "" || f.Kept[1].Reason != "four replicas" {
		t.Errorf("plans that are kept (-want +got):\n%s %+v", diff, f.Kept[1].Decided)
	}
	if len(f.Pods) != 3 || f.Pods[0].Name == "" {
		t.Errorf("pods are %+v", f.Pods)
	}
	if want := (page.Pause{By: "alice", Why: "an upgrade"}); f.Pause != want || !f.Document.Paused {
		t.Errorf("it is paused by %+v", f.Pause)
	}
	if len(f.Unseen) > 0 {
		t.Errorf("not seen: %q", f.Unseen)
	}
}

// TestWhatMayNotBeReadIsSaid: the rows stand for Secrets that may not be listed.
func TestWhatMayNotBeReadIsSaid(t *testing.T) {
	w := fixture.QuietWorld()
	w.Forbidden = []string{"pods", "secrets", "ballast-history", "ballast-plan-status"}
	f := looked(t, w.Client(t))
	want := []string{
		"what the leader says (ConfigMap ballast-plan-status): the rights to read that are missing",
		"the history (ConfigMap ballast-history): the rights to read that are missing",
		"cluster Secrets: the rights to read that are missing",
		"the application-controller's pods: the rights to read that are missing",
	}
	if diff := cmp.Diff(want, f.Unseen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v := page.Of(f); len(v.Clusters.Rows) != len(f.Document.Plan.Clusters) || v.Clusters.Rows[0].Name != "dev" || len(v.Clusters.Rows[0].Marks) > 0 {
		t.Errorf("clusters are %+v", v.Clusters.Rows)
	}
}
