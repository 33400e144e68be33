package status

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/status/overview"
	"ballast/planner/cycle"
	"ballast/planner/plan"
	"ballast/planner/status"
	"ballast/planner/store"
)

// showsWhatIsUnderWay: status reads a real API server with the rights of whoever asks, and names what those do not reach.
func showsWhatIsUnderWay(t *testing.T, s *fixture.Site) {
	p := fixture.Wave(17, 1, map[string]int{"dev": 0}, map[string]int{"dev": 0})
	p.Rollout.Since = time.Now().UTC().Truncate(time.Second)
	s.Plans(t, p, fixture.CordonAnnotation("2=2126-11-20T17:00:00Z"))
	s.Keeps(t, fixture.Steered(nil))
	s.Fleet(t, p)
	said := fixture.Well()
	said.LookedAt = time.Now().UTC().Truncate(time.Second)
	said.Rollout = &status.Rollout{Stage: plan.Moving, Since: p.Rollout.Since, Waits: "replica 0 is not ready", Deadline: p.Rollout.Since.Add(10 * time.Minute), After: 1}
	kept := store.New(store.Options{Client: s.Planner, Reader: s.Planner, Namespace: "argocd", Plan: "ballast-plan"})
	fixture.MustDo(t, kept.WriteStatus(t.Context(), *said))
	out, _ := works(t, s.Alice, "", "status", "-o", "json")
	var got overview.Overview
	fixture.MustDo(t, json.Unmarshal([]byte(out), &got))
	want := &overview.UnderWay{Mode: plan.ModeLive, Stage: plan.Moving, Since: p.Rollout.Since, Deadline: p.Rollout.Since.Add(10 * time.Minute), From: plan.Count{Replicas: 3, ControllerReplicas: 16},
		To: plan.Count{Replicas: 3, ControllerReplicas: 16}, Wave: 1, Waves: 2, Moves: []cycle.Move{{Cluster: "dev", From: 2, To: 0}}, After: 1, Waits: "replica 0 is not ready"}
	if diff := cmp.Diff(want, got.Rollout); diff != "" {
		t.Errorf("the rollout (-want +got):\n%s", diff)
	}
	two := map[string]string{"memory": "2Gi"}
	wantPods := []overview.PodStatus{{Replica: 0, Name: fixture.ControllerName + "-0", Claimed: true, MemoryLimit: 2 << 30, Clusters: 2, Load: "0.51",
		Asked: plan.Resources{Requests: two, Limits: two}}} // the API server's default of a request is the limit
	if diff := cmp.Diff(wantPods, got.Pods); diff != "" {
		t.Errorf("the pods (-want +got):\n%s", diff)
	}
	if len(got.Cordons) != 1 || got.Cordons[0].Replica != 2 || got.Cordons[0].Clusters != 3 || len(got.Conflicts) != 1 || len(got.Unseen) > 0 {
		t.Errorf("cordons %v, neighbours %v, unseen %v", got.Cordons, got.Conflicts, got.Unseen)
	}
	erin := s.Granted("erin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: []string{"get", "list"}})
	fixture.Holds(t, fixture.First(works(t, erin, "", "status")), "Rollout  live, Moving, wave 1 of about 2 since ", "dev: 2 -> 0", "Cordon   replica 2 until 2126-11-20T17:00:00Z", "3 clusters still there",
		"Budget   1 more cluster may move now", "  Planning     True ", "it waits: replica 0 is not ready", "Unseen   not visible to you: leases.coordination.k8s.io, pods, horizontalpodautoscalers.autoscaling, poddisruptionbudgets.policy")
}

// TestStatusOnARealAPIServer: status shows what is under way, and names what it hides.
func TestStatusOnARealAPIServer(t *testing.T) { showsWhatIsUnderWay(t, fixture.StartSite(t)) }
