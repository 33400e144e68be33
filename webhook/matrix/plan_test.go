package matrix

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/plan"
)

// planFields are the rules' fields: the plan by its digest, the pins, and the annotations.
func planFields(u *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	out := map[string]string{"plan": plan.Digest(data[plan.KeyPlan])[:12], "pins": data[plan.KeyPins]}
	if immutable, _, _ := unstructured.NestedBool(u.Object, "immutable"); immutable {
		out["immutable"] = "true"
	}
	for key, value := range u.GetAnnotations() {
		if name, ok := strings.CutPrefix(key, plan.Group+"/"); ok && name != "digest" {
			out[name] = value
		}
	}
	return out
}

func quote(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (s *site) planCells(t *testing.T) map[string]cell {
	const pins = "# the giant\nknown: 1 # ask ada\n"
	stands := document(t, fleet(plan.StatefulSet, 1), pins)
	text, _, _ := unstructured.NestedString(stands.Object, "data", "plan")
	digest := plan.Digest(text)[:12]
	row := strings.Replace(text, "c-00: {replica: 3", "c-00: {replica: 1", 1)
	rowDigest := plan.Digest(row)[:12]
	backup := fleet(plan.StatefulSet, 9)
	backup.Replicas = 2
	older := document(t, backup, pins)
	olderText, _, _ := unstructured.NestedString(older.Object, "data", "plan")
	fields := func(pins string) map[string]string {
		return map[string]string{"plan": digest, "pins": pins, "revision": "1", "reason": "the test says so"}
	}
	pinned := outcome{Fields: fields(pins + "c-00: 1\n"), Audit: audit("PinAdded", "1", "plan="+rowDigest+" clusters.c-00=1", "plan="+digest+" pins.c-00=1"),
		Warnings: []string{"ballast: these rows became pins in data.pins: c-00: 1"}}
	restored := outcome{Fields: fields(pins), Audit: audit("PlanKept", "1", "plan="+plan.Digest(olderText)[:12], "plan="+digest),
		Warnings: []string{"ballast: data.plan is the planner's, revision 1 stays: this is a backup; the planner goes on from there"}}
	forged := outcome{Fields: fields(pins), Audit: audit("PlanKept", "1", "-", "-"), Warnings: []string{"ballast: the plan's annotations are the planner's and were put back"}}
	mutable := outcome{Fields: fields(pins), Audit: audit("PlanKept", "1", "immutable=true", "immutable=-"),
		Warnings: []string{`ballast: immutable was taken out: the planner writes here; to stop it, annotate ballast.argoproj.io/paused: "true"`}}
	refused := outcome{Audit: audit("PinRefused", "1", "pins.c-00=16", "-"),
		Error: `admission webhook "plan.ballast.argoproj.io" denied the request: ballast: pins line 3: c-00: replica 16 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas`}
	set := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { with("data", key, value)(u.Object) }
	}
	note := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			notes := u.GetAnnotations()
			notes[key] = value
			u.SetAnnotations(notes)
		}
	}
	applied := func(key, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace}, "data": map[string]any{key: value}}}
	}
	return map[string]cell{
		"a row by PUT":                   {before: stands, write: put(set("plan", row)), want: pinned},
		"a row by JSON patch":            {before: stands, write: patch(types.JSONPatchType, `[{"op":"replace","path":"/data/plan","value":`+quote(t, row)+`}]`), want: pinned},
		"a row by merge patch":           {before: stands, write: patch(types.MergePatchType, `{"data":{"plan":`+quote(t, row)+`}}`), want: pinned},
		"a row by strategic merge patch": {before: stands, write: patch(types.StrategicMergePatchType, `{"data":{"plan":`+quote(t, row)+`}}`), want: pinned},
		"a row by apply with force":      {before: stands, write: apply("gitops", true, applied("plan", row)), want: pinned},
		"a row by apply without force": {before: stands, write: apply("gitops", false, applied("plan", row)), stored: fields(pins),
			want: outcome{Error: `Apply failed with 1 conflict: conflict with "setup" using v1: .data.plan`}},
		"immutable by PUT":         {before: stands, write: put(func(u *unstructured.Unstructured) { u.Object["immutable"] = true }), want: mutable},
		"immutable by merge patch": {before: stands, write: patch(types.MergePatchType, `{"immutable":true}`), want: mutable},
		"a pin by merge patch": {before: stands, write: patch(types.MergePatchType, `{"data":{"pins":"c-00: 2\n"}}`),
			want: outcome{Fields: fields("c-00: 2\n"), Audit: audit("InPlan", "1", "pins.c-00=2 pins.known=-", "pins.c-00=2 pins.known=-")}},
		"a pin of a cluster to come": {before: stands, write: patch(types.MergePatchType, `{"data":{"pins":"knwon: 2\n"}}`),
			want: outcome{Fields: fields("knwon: 2\n"), Audit: audit("InPlan", "1", "pins.known=- pins.knwon=2", "pins.known=- pins.knwon=2"), Warnings: []string{"ballast: pin knwon: no such cluster in the plan yet"}}},
		"a bad pin by PUT":         {before: stands, write: put(set("pins", pins+"c-00: 16\n")), want: refused, stored: fields(pins)},
		"a bad pin by merge patch": {before: stands, write: patch(types.MergePatchType, `{"data":{"pins":`+quote(t, pins+"c-00: 16\n")+`}}`), want: refused, stored: fields(pins)},
		"a bad pin by apply":       {before: stands, write: apply("gitops", true, applied("pins", pins+"c-00: 16\n")), want: refused, stored: fields(pins)},
		"a backup by PUT": {before: stands, write: put(func(u *unstructured.Unstructured) {
			u.Object["data"] = older.Object["data"]
			u.SetAnnotations(older.GetAnnotations())
		}), want: restored},
		"a backup by apply": {before: stands, write: apply("velero", true, older), want: restored},
		"a backup where the plan was deleted": {write: create(older),
			want: outcome{Fields: map[string]string{"plan": plan.Digest("")[:12], "pins": pins}, Audit: audit("PlanKept", "1", "plan="+plan.Digest(olderText)[:12]+" pins.known=1", "plan=- pins.known=1"),
				Warnings: []string{"ballast: data.plan is the planner's alone and was left out; the planner writes it anew; pins go to data.pins"}}},
		"a forged revision":     {before: stands, write: put(note(plan.AnnotationRevision, "99")), want: forged},
		"a forged digest":       {before: stands, write: put(note(plan.AnnotationDigest, "99")), want: forged},
		"an invented stage":     {before: stands, write: put(note(plan.AnnotationStage, "Draining")), want: forged},
		"all annotations taken": {before: stands, write: put(func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), want: forged},
		"all data taken": {before: stands, write: put(func(u *unstructured.Unstructured) { delete(u.Object, "data") }),
			want: outcome{Fields: fields(""), Audit: audit("PlanKept", "1", "plan=- pins.known=-", "plan="+digest+" pins.known=-"),
				Warnings: []string{"ballast: data.plan is the planner's, revision 1 stays: what was written is no plan; write pins into data.pins"}}},
		"paused": {before: stands, write: put(note(plan.AnnotationPaused, "true")),
			want: outcome{Fields: map[string]string{"plan": digest, "pins": pins, "revision": "1", "reason": "the test says so", "paused": "true"}, Audit: audit("InPlan", "1", "paused=true", "paused=true")}},
		"paused, mistyped": {before: stands, write: put(note(plan.AnnotationPaused, "yes")),
			want: outcome{Fields: map[string]string{"plan": digest, "pins": pins, "revision": "1", "reason": "the test says so", "paused": "yes"}, Audit: audit("InPlan", "1", "paused=invalid", "paused=-"),
				Warnings: []string{`ballast: annotation ballast.argoproj.io/paused: "yes" is read as not paused; write "true" to freeze`}}},
		"break-glass": {before: stands, write: put(func(u *unstructured.Unstructured) {
			note(plan.AnnotationEnforcement, "off")(u)
			set("plan", row)(u)
		}), want: outcome{Fields: map[string]string{"plan": digest, "pins": pins, "revision": "1", "reason": "the test says so", "enforcement": "off"},
			Audit:    audit("Observing", "1", "plan="+rowDigest+" enforcement=off", "plan="+digest+" enforcement=off"),
			Warnings: []string{"ballast: data.plan is the planner's alone and stays as it was; pins go to data.pins"}}},
	}
}

// plans runs the plan's cells; each begins with the plan in force, or with one that was just deleted.
func (s *site) plans(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	cells := s.planCells(t)
	s.run(t, table{
		resource: configMaps, webhook: "plan.ballast.argoproj.io", fields: planFields, cells: cells, names: func(int) string { return planName }, owner: s.planner,
		reset: func(t *testing.T, _ string) {
			s.decide(t, fleet(plan.StatefulSet, 1), "")
			s.remove(configMaps)(t, planName)
			eventually(t, "the deletion at the webhook", s.planAway)
		},
		settle: func(t *testing.T) {
			eventually(t, "the plan at the webhook", func() bool { return !s.planAway() })
		},
	})
}

// plannersWrites are never turned back: its plan, and its writes by a plan that the webhook has not seen yet.
func (s *site) plannersWrites(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-00")
	if _, err := s.dynamic(t, s.admin).Resource(secrets).Namespace(namespace).Create(t.Context(), named(secret(""), "c-00"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.replica.stopWatch() // the watch is held back
	defer s.replica.watch()
	next := fleet(plan.StatefulSet, 2)
	next.Clusters["c-00"] = plan.Row{Replica: 0}
	client := s.dynamic(t, quiet(s.planner))
	changed := document(t, next, "")
	if _, err := client.Resource(configMaps).Namespace(namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if seen := s.source.State().View.Plan.Revision; seen != 1 {
		t.Fatalf("the webhook has seen revision %d, so the test shows nothing", seen)
	}
	got, err := client.Resource(secrets).Namespace(namespace).Patch(t.Context(), "c-00", types.MergePatchType, []byte(`{"data":{"shard":"MA=="}}`), metav1.PatchOptions{})
	if err != nil || shardOf(got)["shard"] != "0" {
		t.Errorf("the planner's write was turned back to %v: %v", shardOf(got), err)
	}
	// A probe of the planner with a wrong value is enforced all the same.
	got, err = client.Resource(secrets).Namespace(namespace).Patch(t.Context(), "c-00", types.MergePatchType, []byte(`{"data":{"shard":"Mg=="}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || shardOf(got)["shard"] != "0" {
		t.Errorf("the planner's probe got %v: %v", shardOf(got), err)
	}
}
