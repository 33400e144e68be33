package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"ballast/planner/plan"
)

const (
	// reapplies is how often three field managers write wrong values, together.
	reapplies = 1000
	// rewrites are ten minutes of External Secrets, which writes a Secret at most about once a second: the API server
	// asks for no pause between them.
	rewrites = 600
)

// convergence: whoever re-applies a wrong value, and however often, changes nothing that is stored.
func (s *site) convergence(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(statefulSets)(t, workload)
	client := s.dynamic(t, quiet(s.person)).Resource(statefulSets).Namespace(namespace)
	if _, err := client.Create(t.Context(), named(controller(plan.StatefulSet, 4, "16"), workload), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, manager := range []string{"helm", "argocd-controller", "ada"} {
		version, generation := "", int64(0)
		for i := range reapplies / 3 {
			got, err := client.Apply(t.Context(), workload, named(controller(plan.StatefulSet, int64(5+i%9), fmt.Sprint(i%9)), workload), metav1.ApplyOptions{FieldManager: manager, Force: true})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				version, generation = got.GetResourceVersion(), got.GetGeneration()
			}
			if got.GetResourceVersion() != version || got.GetGeneration() != generation || got.GetGeneration() != 1 {
				t.Fatalf("apply %d of %s: resourceVersion %s after %s, generation %d after %d", i, manager, got.GetResourceVersion(), version, got.GetGeneration(), generation)
			}
		}
	}
}

// quiet is a client that tells nobody of warnings.
func quiet(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.WarningHandler = rest.NoWarnings{}
	return out
}

// rewriter is a writer like External Secrets: it wants a Secret's data to be its own and nothing else, and PUTs it
// whole, without a shard, each time it looks. Nothing is stored after the first time.
func (s *site) rewriter(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-01")
	client := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	stood, err := client.Create(t.Context(), named(secret(""), "c-01"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rewrites {
		object := named(secret(""), "c-01")
		got, err := client.Update(t.Context(), object, metav1.UpdateOptions{})
		if err != nil || shardOf(got)["shard"] != "3" || got.GetResourceVersion() != stood.GetResourceVersion() {
			t.Fatalf("PUT %d: shard %v, resourceVersion %s after %s: %v", i, shardOf(got), got.GetResourceVersion(), stood.GetResourceVersion(), err)
		}
	}
}

// pinsInForce measures how long after a pin was written a Secret's write is answered by it, on one replica.
func (s *site) pinsInForce(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-02")
	person := s.dynamic(t, quiet(s.person))
	if _, err := person.Resource(secrets).Namespace(namespace).Create(t.Context(), named(secret(""), "c-02"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	worst := time.Duration(0)
	for i := range 20 {
		pin := fmt.Sprint(i % 3)
		if _, err := person.Resource(configMaps).Namespace(namespace).Patch(t.Context(), planName, types.MergePatchType, []byte(`{"data":{"pins":"c-02: `+pin+`\n"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		eventually(t, "the pin", func() bool {
			got, err := person.Resource(secrets).Namespace(namespace).Patch(context.Background(), "c-02", types.MergePatchType, []byte(`{"data":{"shard":null}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && shardOf(got)["shard"] == pin
		})
		worst = max(worst, time.Since(start))
	}
	t.Logf("a pin was in force after %s at worst", worst)
	if worst > time.Second {
		t.Errorf("a pin was in force after %s only", worst)
	}
}

// recreated clusters keep their replica: by their name, or by their server under a new one.
func (s *site) recreated(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	client := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	for _, name := range []string{"known", "known-renamed", "known"} {
		object := secret("", with("data", "server", encoded("https://known.example")))
		got, err := client.Create(t.Context(), named(object, name), metav1.CreateOptions{})
		if err != nil || shardOf(got)["shard"] != "2" {
			t.Errorf("%s: shard %v, %v", name, shardOf(got), err)
		}
		s.remove(secrets)(t, name)
	}
}

// away: with the webhook gone and failurePolicy Ignore, every write passes as it is.
func (s *site) away(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-03")
	<-s.replica.stopping()
	client := s.dynamic(t, s.person)
	got, err := client.Resource(secrets).Namespace(namespace).Create(t.Context(), named(secret("1"), "c-03"), metav1.CreateOptions{})
	if err != nil || shardOf(got)["shard"] != "1" {
		t.Errorf("a Secret: shard %v, %v", shardOf(got), err)
	}
	s.remove(statefulSets)(t, workload)
	var stood *unstructured.Unstructured
	if stood, err = client.Resource(statefulSets).Namespace(namespace).Create(t.Context(), named(controller(plan.StatefulSet, 9, "9"), workload), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if fields := workloadFields(stood); fields["replicas"] != "9" {
		t.Errorf("a workload: %v", fields)
	}
}
