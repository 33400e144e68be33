package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"ballast/planner/plan"
)

const (
	// reapplies is how often three field managers write wrong values to an object, together.
	reapplies = 1000
	// rewrites are ten minutes of External Secrets, which writes a Secret at most about once a second: the API server
	// asks for no pause between them.
	rewrites = 600
)

// convergence: whoever re-applies a wrong value, and however often, changes nothing that is stored but who wrote last.
func (s *site) convergence(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	t.Run("workload", func(t *testing.T) {
		s.remove(statefulSets)(t, workload)
		s.reapply(t, statefulSets, named(controller(plan.StatefulSet, 4, "16"), workload), workloadFields, func(i int) *unstructured.Unstructured {
			return controller(plan.StatefulSet, int64(5+i%9), fmt.Sprint(i%9))
		})
	})
	t.Run("Secret", func(t *testing.T) {
		s.remove(secrets)(t, "c-60")
		s.reapply(t, secrets, named(secret("3"), "c-60"), shardOf, func(i int) *unstructured.Unstructured { return secret(fmt.Sprint(i%3 - 1)) })
	})
}

// reapply has three field managers apply wrong values by turns, each twice: the second time of the same manager changes
// no resourceVersion. Between managers the ownership of the fields goes to and fro, and nothing else does. The API server
// sorts managedFields by the second of each, so that it stores another order where a second ends between the two.
func (s *site) reapply(t *testing.T, resource schema.GroupVersionResource, right *unstructured.Unstructured, fields func(*unstructured.Unstructured) map[string]string, wrong func(int) *unstructured.Unstructured) {
	t.Helper()
	client := s.dynamic(t, quiet(s.person)).Resource(resource).Namespace(namespace)
	before, err := client.Create(t.Context(), right, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, generation, name := fields(before), before.GetGeneration(), before.GetName()
	managers := []string{"helm", "argocd-controller", "ada"}
	start, stored := time.Now(), 0
	for i := range reapplies {
		manager := managers[i/2%len(managers)]
		got, err := client.Apply(t.Context(), name, named(wrong(i), name), metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fields(got)); diff != "" || got.GetGeneration() != generation {
			t.Fatalf("apply %d of %s: generation %d after %d (-want +got):\n%s", i, manager, got.GetGeneration(), generation, diff)
		}
		if i%2 == 1 && got.GetResourceVersion() != before.GetResourceVersion() {
			if diff := cmp.Diff(unowned(before), unowned(got)); diff != "" {
				t.Fatalf("apply %d, again of %s (-before +after):\n%s", i, manager, diff)
			}
			stored++
		}
		before = got
	}
	if seconds := int(time.Since(start)/time.Second) + 1; stored > seconds {
		t.Errorf("%d of %d applies by the manager that had applied last were stored, in %d s", stored, reapplies/2, seconds)
	}
}

// unowned is an object without the traces of who wrote it.
func unowned(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	return out.Object
}

// quiet is a client that tells nobody of warnings.
func quiet(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.WarningHandler = rest.NoWarnings{}
	return out
}

// rewriter is a writer like External Secrets: it wants a Secret's data to be its own and nothing else. It watches the Secret
// and looks at it again by itself, compares a hash of all data, and PUTs its own, without a shard, where the hash differs,
// which it does each time. Nothing is stored, so that no event calls it again.
func (s *site) rewriter(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-01")
	client := s.dynamic(t, quiet(s.person)).Resource(secrets).Namespace(namespace)
	stood, err := client.Create(t.Context(), named(secret(""), "c-01"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := client.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=c-01", ResourceVersion: stood.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	wanted, puts := dataHash(t, secret("")), 0
	for i := range rewrites {
		got, err := client.Get(t.Context(), "c-01", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if dataHash(t, got) == wanted {
			t.Fatalf("look %d finds nothing to write, so the test shows nothing", i)
		}
		got.Object["data"] = secret("").Object["data"]
		if got, err = client.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil || shardOf(got)["shard"] != "3" || got.GetResourceVersion() != stood.GetResourceVersion() {
			t.Fatalf("PUT %d: shard %v, resourceVersion %s after %s: %v", i, shardOf(got), got.GetResourceVersion(), stood.GetResourceVersion(), err)
		}
		puts++
	}
	// The first event is of the first write that says something new, and that is this one.
	if _, err := client.Patch(t.Context(), "c-01", types.MergePatchType, []byte(`{"metadata":{"labels":{"marked":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	event := <-events.ResultChan()
	if u, ok := event.Object.(*unstructured.Unstructured); !ok || u.GetLabels()["marked"] != "yes" || puts != rewrites {
		t.Errorf("after %d PUTs the first event is %s of %v", puts, event.Type, event.Object)
	}
}

// dataHash is what such a writer compares: all of a Secret's data.
func dataHash(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(u.Object["data"]) // the keys are sorted
	if err != nil {
		t.Fatal(err)
	}
	return plan.Digest(string(text))
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
	if most := bar(t, time.Second); worst > most {
		t.Errorf("a pin was in force after %s only, want %s", worst, most)
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
