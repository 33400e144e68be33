package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

func drawState(t *rapid.T) *inforce.State {
	p := fleet()
	p.Mode = rapid.SampledFrom([]plan.Mode{plan.Enforce, plan.Enforce, plan.Hold, plan.Observe, ""}).Draw(t, "mode")
	p.Replicas = rapid.IntRange(0, 8).Draw(t, "replicas")
	p.ControllerReplicas = rapid.IntRange(0, 16).Draw(t, "controllerReplicas")
	p.FreeReplicas = rapid.Bool().Draw(t, "freeReplicas")
	p.Target.Kind = rapid.SampledFrom([]string{plan.StatefulSet, plan.Deployment}).Draw(t, "kind")
	switch rapid.IntRange(0, 3).Draw(t, "sized") {
	case 0:
		p.Resources = &plan.Resources{Requests: map[string]string{"cpu": "250m", "memory": "1Gi"}, Limits: map[string]string{"example.com/gpu": "1"}}
	case 1, 2:
		p.Sizes = &plan.Sizes{Default: plan.Resources{Requests: map[string]string{"cpu": "250m", "memory": "1Gi"}},
			Replicas: map[int]plan.Resources{2: {Limits: map[string]string{"cpu": "2", "memory": "2Gi"}}, 3: {Requests: map[string]string{"cpu": "100m"}}}}
	}
	p.MaxReplicas = rapid.IntRange(1, 20).Draw(t, "maxReplicas")
	p.Unmanaged = rapid.IntRange(0, 3).Draw(t, "unmanaged") == 0
	if rapid.Bool().Draw(t, "under way") {
		p.Rollout = drawRollout(t)
	}
	pins := plan.Pins{}
	for range rapid.IntRange(0, 2).Draw(t, "pins") {
		pins[drawName(t)] = rapid.IntRange(0, 15).Draw(t, "pin")
	}
	s := inforce.Of(identity(), plan.NewView(p, pins))
	s.BreakGlass = rapid.IntRange(0, 9).Draw(t, "glass") == 0
	s.Stale = rapid.Bool().Draw(t, "stale")
	return s
}

func drawRollout(t *rapid.T) *plan.Rollout {
	return &plan.Rollout{
		Mode:  rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y, plan.ModeDefault}).Draw(t, "rollout"),
		Stage: rapid.SampledFrom([]plan.Stage{plan.Assigning, plan.Scaling, plan.Draining, plan.Restoring, plan.Moving, plan.Shrinking}).Draw(t, "stage"),
		From:  plan.Count{Replicas: rapid.IntRange(0, 8).Draw(t, "from"), ControllerReplicas: 16}, Replicas: rapid.IntRange(0, 8).Draw(t, "to"), ControllerReplicas: 16,
		Moves: map[string]int{"prod-us": rapid.IntRange(0, 8).Draw(t, "moves")},
	}
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"prod-eu", "prod-us", "new", "other", ""}).Draw(t, "name")
}

func drawRequest(t *rapid.T) decision.Request {
	return decision.Request{
		Create: rapid.Bool().Draw(t, "create"), Namespace: "argocd", User: rapid.SampledFrom([]string{person, plannerUser}).Draw(t, "user"),
		Kind: rapid.SampledFrom([]string{plan.StatefulSet, plan.Deployment}).Draw(t, "requestKind"),
		Name: rapid.SampledFrom([]string{workload, "prod-eu", "new", ""}).Draw(t, "requestName"),
	}
}

// maybe puts a member into an object, sometimes.
func maybe(t *rapid.T, object map[string]any, key string, value any) {
	if rapid.Bool().Draw(t, "with "+key) {
		object[key] = value
	}
}

func drawSecret(t *rapid.T) map[string]any {
	metadata := map[string]any{"name": drawName(t), "labels": map[string]any{plan.SecretTypeLabel: "cluster"}}
	notes := map[string]any{"other": "note"}
	maybe(t, notes, plan.AnnotationPin, rapid.SampledFrom([]string{"0", "3", "12", "-1", "x", "99"}).Draw(t, "annotated"))
	maybe(t, metadata, "annotations", notes)
	data := map[string]any{"config": base64Of("token")}
	maybe(t, data, "server", base64Of(rapid.SampledFrom([]string{"https://us.example", "https://a", "https://b/"}).Draw(t, "server")))
	maybe(t, data, "shard", base64Of(rapid.SampledFrom([]string{"0", "3", "7", "-1", "auto", ""}).Draw(t, "shard")))
	s := map[string]any{"kind": "Secret", "metadata": metadata}
	maybe(t, s, "data", data)
	maybe(t, s, "immutable", rapid.Bool().Draw(t, "immutable"))
	return s
}

func drawWorkload(t *rapid.T) map[string]any {
	var containers []any
	for range rapid.IntRange(0, 3).Draw(t, "containers") {
		c := map[string]any{"name": rapid.SampledFrom([]string{"application-controller", "sidecar", "x"}).Draw(t, "container")}
		var env []any
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			e := map[string]any{"name": rapid.SampledFrom([]string{plan.EnvReplicas, "A"}).Draw(t, "entry")}
			if rapid.Bool().Draw(t, "reference") {
				e["valueFrom"] = map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}
			} else {
				maybe(t, e, "value", rapid.SampledFrom([]string{"1", "16", "x", ""}).Draw(t, "value"))
			}
			env = append(env, e)
		}
		maybe(t, c, "env", env)
		maybe(t, c, "command", []any{rapid.SampledFrom([]string{"argocd-application-controller", "sh -c argocd-application-controller", "run"}).Draw(t, "command")})
		section := map[string]any{"cpu": rapid.SampledFrom([]string{"250m", "0.25", "2"}).Draw(t, "cpu")}
		resources := map[string]any{}
		maybe(t, resources, "requests", section)
		maybe(t, resources, "limits", section)
		maybe(t, c, "resources", resources)
		containers = append(containers, c)
	}
	spec := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
	maybe(t, spec, "replicas", rapid.IntRange(0, 9).Draw(t, "asked"))
	return map[string]any{"metadata": map[string]any{"name": workload}, "spec": spec}
}

func drawPlanObject(t *rapid.T, stands objects.Plan) map[string]any {
	metadata := map[string]any{"name": "ballast-plan"}
	notes := map[string]any{"mine": "note"}
	for _, key := range append(plan.PlannersAnnotations(), plan.AnnotationEnforcement) {
		maybe(t, notes, key, rapid.SampledFrom([]string{stands.Annotations[key], "99"}).Draw(t, key))
	}
	if rapid.Bool().Draw(t, "whole") {
		notes[plan.AnnotationDigest] = stands.Annotations[plan.AnnotationDigest]
	}
	maybe(t, metadata, "annotations", notes)
	text := stands.Plan
	for range rapid.IntRange(0, 2).Draw(t, "edits") {
		text = strings.Replace(text, rapid.SampledFrom([]string{"replica: 3", "replica: 0", "17", "Enforce", "\n"}).Draw(t, "from"),
			rapid.SampledFrom([]string{"replica: 1", "replica: 15", "replica: 16", "replica: -1", "17", "\n  zz: {replica: 1}\n"}).Draw(t, "to"), 1)
	}
	data := map[string]any{}
	maybe(t, data, plan.KeyPlan, text)
	maybe(t, data, plan.KeyPins, rapid.SampledFrom([]string{"prod-eu: 1\n", "# none\n", "prod-eu: 99", "{prod-eu: 2, new: 3}", "- a", ""}).Draw(t, "pins"))
	o := map[string]any{"metadata": metadata}
	maybe(t, o, "data", data)
	maybe(t, o, "immutable", rapid.Bool().Draw(t, "immutable"))
	return o
}

func document(t *rapid.T, v any) rawjson.Node {
	doc, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return rawjson.Node(doc)
}

// holds checks what every verdict keeps to, and that a second pass over the patched object finds nothing to do.
func holds(t *rapid.T, webhook string, decide func(*inforce.State, *review) (decision.Verdict, error), s *inforce.State, rv review) {
	v, err := decide(s, &rv)
	if err != nil {
		t.Fatalf("deciding on %s: %v", rv.object, err)
	}
	for _, op := range v.Patches {
		if err := fits(webhook, op); err != nil {
			t.Error(err)
		}
	}
	for _, w := range v.Warnings {
		if len(w) > decision.MaxWarning || !strings.HasPrefix(w, "ballast: ") {
			t.Errorf("warning of %d bytes: %s", len(w), w)
		}
	}
	if v.Denied != "" {
		if v.Reason != plan.PinRefused || len(v.Patches) > 0 {
			t.Errorf("denied for reason %s with %d patches", v.Reason, len(v.Patches))
		}
		return
	}
	again := rv
	again.object = rawjson.Node(apply(t, string(rv.object), v.Patches))
	second, err := decide(s, &again)
	if err != nil {
		t.Fatalf("deciding again on %s: %v", again.object, err)
	}
	if len(second.Patches) > 0 || second.Denied != "" {
		t.Errorf("a second pass over %s patches %v, denies %q; the first patched %v", again.object, second.Patches, second.Denied, v.Patches)
	}
	if diff := cmp.Diff(foreign(t, rv.object), foreign(t, again.object)); diff != "" {
		t.Errorf("the patch changed what is not ours (-before +after):\n%s", diff)
	}
}

// foreign is an object without anything that ballast may write.
func foreign(t *rapid.T, doc rawjson.Node) any {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return strip(v)
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["name"] == plan.EnvReplicas {
			return nil
		}
		out := map[string]any{}
		for key, value := range v {
			switch key {
			case "shard", "replicas", "immutable", plan.KeyPlan, plan.KeyPins, "cpu", "memory", "example.com/gpu":
				continue
			}
			if strings.HasPrefix(key, plan.Group+"/") {
				continue
			}
			if kept := strip(value); kept != nil {
				out[key] = kept
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			if kept := strip(item); kept != nil {
				out = append(out, kept)
			}
		}
		if out == nil {
			return nil
		}
		return out
	}
	return v
}

func TestASecondPassNeverPatches(t *testing.T) {
	t.Run("clusters", rapid.MakeCheck(func(t *rapid.T) {
		rv := review{Request: drawRequest(t), object: document(t, drawSecret(t))}
		if !rv.Create {
			rv.old = document(t, drawSecret(t))
		}
		holds(t, "clusters", reviewCluster, drawState(t), rv)
	}))
	t.Run("controllers", rapid.MakeCheck(func(t *rapid.T) {
		holds(t, "controllers", reviewController, drawState(t), review{Request: drawRequest(t), object: document(t, drawWorkload(t))})
	}))
	t.Run("scale", rapid.MakeCheck(func(t *rapid.T) {
		scale, spec := map[string]any{"kind": "Scale"}, map[string]any{}
		maybe(t, spec, "replicas", rapid.IntRange(0, 9).Draw(t, "asked"))
		maybe(t, scale, "spec", spec)
		holds(t, "scale", reviewScale, drawState(t), review{Request: drawRequest(t), object: document(t, scale)})
	}))
	t.Run("pods", rapid.MakeCheck(func(t *rapid.T) {
		holds(t, "pods", reviewPod, drawState(t), review{Request: drawRequest(t), object: document(t, drawPod(t))})
	}))
	stands := object(t, fleet(), "# mine\nprod-us: 1\n")
	t.Run("plan", rapid.MakeCheck(func(t *rapid.T) {
		s := inforce.Of(identity(), nil)
		if rapid.Bool().Draw(t, "seen") {
			s = s.Next(map[string]string{plan.KeyPlan: stands.Plan, plan.KeyPins: stands.Pins}, stands.Annotations)
		}
		rv := review{Request: drawRequest(t), object: document(t, drawPlanObject(t, stands))}
		if !rv.Create {
			old := map[string]any{"metadata": map[string]any{"annotations": stands.Annotations}, "data": map[string]any{"plan": stands.Plan, "pins": stands.Pins}}
			if rapid.IntRange(0, 2).Draw(t, "broken") == 0 {
				old = drawPlanObject(t, stands) // the webhook was away when somebody wrote it
			}
			rv.old = document(t, old)
		}
		holds(t, kindPlan, reviewPlan, s, rv)
	}))
}

func TestFiftyNewClustersLeaveNoReplicaAboveTwiceTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := fleet()
		p.Replicas = rapid.IntRange(2, 8).Draw(t, "replicas")
		p.Clusters = map[string]plan.Row{}
		count := make([]int, p.Replicas)
		for i := range p.Replicas * 25 {
			p.Clusters[fmt.Sprintf("c-%d", i)] = plan.Row{Replica: i % p.Replicas}
			count[i%p.Replicas]++
		}
		s := inforce.Of(identity(), plan.NewView(p, nil))
		salt := rapid.StringMatching(`[a-z]{8}`).Draw(t, "salt")
		for i := range 50 {
			v := decision.Cluster(s, decision.Request{Create: true, Namespace: "argocd", Name: fmt.Sprintf("n-%d", i)},
				objects.Secret{Cluster: true, HasData: true, Server: fmt.Sprintf("https://%s-%d.example", salt, i)}, objects.Secret{})
			count[int(v.Enforced[0].Value[0]-'0')]++
		}
		mean := float64(p.Replicas*25+50) / float64(p.Replicas)
		for replica, n := range count {
			if float64(n) > 2*mean {
				t.Errorf("replica %d has %d of %.0f clusters: %v", replica, n, mean, count)
			}
		}
	})
}
