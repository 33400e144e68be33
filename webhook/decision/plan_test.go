package decision

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// object is a plan ConfigMap as the planner wrote it.
func object(t testing.TB, p plan.Plan, pins string) objects.Plan {
	t.Helper()
	data, annotations := written(t, p, pins)
	return objects.Plan{HasData: true, HasPlan: true, Plan: data[plan.KeyPlan], HasPins: pins != "", Pins: pins, HasAnnotations: true, Annotations: annotations}
}

func edited(o objects.Plan, change func(*objects.Plan)) objects.Plan {
	o.Annotations = maps.Clone(o.Annotations)
	change(&o)
	return o
}

// knowing is the state of a webhook that has seen this object.
func knowing(t testing.TB, o objects.Plan) *inforce.State {
	t.Helper()
	s := inforce.Of(identity(), nil).Next(map[string]string{plan.KeyPlan: o.Plan, plan.KeyPins: o.Pins}, o.Annotations)
	if s.View == nil || s.Stale {
		t.Fatal("the fixture's plan is not enforced")
	}
	return s
}

// without takes ballast's annotations out.
func without(o objects.Plan) []Op {
	var ops []Op
	for _, key := range sortedKeys(inforce.PlannersOf(o.Annotations)) {
		ops = append(ops, Op{Op: "remove", Path: "/metadata/annotations/" + patchable.Pointer(key)})
	}
	return ops
}

const (
	oneWriterSays = "ballast: data.plan is the planner's alone and stays as it was; pins go to data.pins"
	keptSays      = "ballast: data.plan is the planner's, revision 17 stays: "
	immutableSays = "ballast: immutable was taken out: the planner writes here; to stop it, annotate ballast.argoproj.io/paused: \"true\""
	rowSays       = keptSays + "only a row's replica can be edited; it becomes a pin"
)

func TestDecidePlanHasOneWriter(t *testing.T) {
	const comments = "# why: the giant\nprod-us: 1 # ask ada\n"
	stands := object(t, fleet(), comments)
	digest, other := short(stands.Plan), func(text string) string { return short(text) }
	state := knowing(t, stands)
	swap := func(old, new string) string {
		text := strings.Replace(stands.Plan, old, new, 1)
		if text == stands.Plan {
			t.Fatalf("%q is not in the plan", old)
		}
		return text
	}
	movedRow := swap(`prod-eu: {replica: 3`, `prod-eu: {replica: 1`)
	newRow := swap("clusters:\n", "clusters:\n  dev: {replica: 2}\n")
	newRevision := swap("revision: 17", "revision: 16")
	replicas := swap("replicas: 4", "replicas: 9")
	tooHigh := swap(`prod-eu: {replica: 3`, `prod-eu: {replica: 16`)
	older := fleet()
	older.Revision, older.Replicas = 12, 2
	backup := object(t, older, comments)
	putBack := []Op{{"replace", "/data/plan", stands.Plan}}
	kept := func(requested string) Verdict {
		return Verdict{Reason: plan.PlanKept, Revision: 17, Requested: []Field{{"plan", other(requested)}}, Enforced: []Field{{"plan", digest}}, Patches: putBack}
	}
	with := func(v Verdict, change func(*Verdict)) Verdict { change(&v); return v }
	for name, tc := range map[string]struct {
		state       *inforce.State
		user        string
		object, old objects.Plan
		want        Verdict
	}{
		"the planner writes what it decided": {state, plannerUser, object(t, older, comments), stands, Verdict{Reason: plan.InPlan, Revision: 17}},
		"the shipped planner may take over":  {state, shippedUser, object(t, older, comments), stands, Verdict{Reason: plan.InPlan, Revision: 17}},
		"whom a stored plan names is nobody to a webhook that knows none": {inforce.Of(identity(), nil), plannerUser, object(t, older, comments), stands,
			Verdict{Reason: plan.PlanKept, Requested: []Field{{"plan", short(backup.Plan)}}, Enforced: []Field{{"plan", digest}},
				Patches: append(putBack, Op{"replace", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]},
					Op{"replace", "/metadata/annotations/ballast.argoproj.io~1revision", "17"}),
				Warnings: []string{keptSays + "this is a backup; the planner goes on from there"}}},
		"the planner is not judged by its pins": {state, plannerUser, edited(stands, func(o *objects.Plan) { o.Pins = "a: -1" }), stands,
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: []Field{{"pins.prod-us", ""}}, Enforced: []Field{{"pins.prod-us", ""}}}},
		"break-glass lets everything pass but another plan": {state, person, edited(stands, func(o *objects.Plan) {
			o.Annotations[plan.AnnotationEnforcement], o.Annotations[plan.AnnotationDigest] = "off", plan.Digest(replicas)
			o.Plan, o.Pins, o.Immutable = replicas, "prod-eu: 99\n", true
		}), stands,
			Verdict{Reason: plan.Observing, Revision: 17, Requested: []Field{{"plan", short(replicas)}, {"enforcement", "off"}, {"pins.prod-eu", "99"}, {"pins.prod-us", ""}},
				Enforced: []Field{{"plan", digest}, {"enforcement", "off"}, {"pins.prod-eu", "99"}, {"pins.prod-us", ""}},
				Patches:  append(putBack, Op{"replace", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]}),
				Warnings: []string{oneWriterSays}}},
		"break-glass alone passes": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationEnforcement] = "off" }), stands,
			Verdict{Reason: plan.Observing, Revision: 17, Requested: []Field{{"enforcement", "off"}}, Enforced: []Field{{"enforcement", "off"}}}},
		"break-glass that drops the plan": {state, person, edited(stands, func(o *objects.Plan) {
			*o = objects.Plan{HasAnnotations: true, Annotations: map[string]string{plan.AnnotationEnforcement: "off"}}
		}), stands,
			Verdict{Reason: plan.Observing, Revision: 17, Requested: []Field{{"plan", ""}, {"enforcement", "off"}, {"pins.prod-us", ""}},
				Enforced: []Field{{"plan", digest}, {"enforcement", "off"}, {"pins.prod-us", ""}},
				Patches: append([]Op{{"add", "/data", map[string]string{"plan": stands.Plan}}},
					Op{"add", "/metadata/annotations/ballast.argoproj.io~1decided-at", stands.Annotations[plan.AnnotationDecidedAt]},
					Op{"add", "/metadata/annotations/ballast.argoproj.io~1decided-by", stands.Annotations[plan.AnnotationDecidedBy]},
					Op{"add", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]},
					Op{"add", "/metadata/annotations/ballast.argoproj.io~1reason", stands.Annotations[plan.AnnotationReason]},
					Op{"add", "/metadata/annotations/ballast.argoproj.io~1revision", "17"}),
				Warnings: []string{oneWriterSays}}},
		"a forged plan that comes with its digest, its revision and a MAC": {state, person, edited(stands, func(o *objects.Plan) {
			o.Plan = replicas
			o.Annotations[plan.AnnotationDigest], o.Annotations[plan.AnnotationMAC] = plan.Digest(replicas), "00"
		}), stands,
			with(kept(replicas), func(v *Verdict) {
				v.Patches = append(putBack, Op{"replace", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]},
					Op{Op: "remove", Path: "/metadata/annotations/ballast.argoproj.io~1mac"})
				v.Warnings = []string{keptSays + "this is a backup; the planner goes on from there"}
			})},
		"a forged plan where no webhook ever saw one, over one that nobody can read": {inforce.Of(identity(), nil), person,
			object(t, older, ""), edited(stands, func(o *objects.Plan) { o.Plan, o.Annotations = "broken", nil; o.HasPins, o.Pins = false, "" }),
			Verdict{Reason: plan.PlanKept, Requested: []Field{{"plan", short(backup.Plan)}}, Enforced: []Field{{"plan", short("broken")}},
				Patches:  append([]Op{{"replace", "/data/plan", "broken"}}, without(backup)...),
				Warnings: []string{oneWriterSays}}},
		"a forged digest of an immutable one": {state, person, edited(stands, func(o *objects.Plan) { o.Immutable, o.Annotations[plan.AnnotationDigest] = true, "00" }),
			edited(stands, func(o *objects.Plan) { o.Immutable = true }),
			Verdict{Reason: plan.Immutable, Revision: 17, Patches: []Op{{"replace", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]}},
				Warnings: []string{"ballast: ConfigMap ballast-plan is immutable and the planner locked out; delete it: the planner makes it anew"}}},
		"a person's annotation passes": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationPaused] = "true" }), stands,
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: []Field{{"paused", "true"}}, Enforced: []Field{{"paused", "true"}}}},
		"a mistyped one passes, and is told": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationPaused] = "yes" }), stands,
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: []Field{{"paused", printable.Invalid}}, Enforced: []Field{{"paused", ""}},
				Warnings: []string{`ballast: annotation ballast.argoproj.io/paused: "yes" is read as not paused; write "true" to freeze`}}},
		"a write that is denied does nothing, and is told nothing else": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationPaused], o.Pins = "yes", "prod-eu: -1" }), stands,
			Verdict{Reason: plan.PinRefused, Revision: 17, Requested: []Field{{"pins.prod-eu", "-1"}},
				Denied: "ballast: pins line 1: prod-eu: replica -1 is below 0: a negative shard leaves the cluster without an owner"}},
		"an edited row becomes a pin; comments and order survive": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = movedRow }), stands,
			Verdict{Reason: plan.PinAdded, Revision: 17, Requested: []Field{{"plan", short(movedRow)}, {"clusters.prod-eu", "1"}}, Enforced: []Field{{"plan", digest}, {"pins.prod-eu", "1"}},
				Patches:  []Op{{"replace", "/data/pins", comments + "prod-eu: 1\n"}, {"replace", "/data/plan", stands.Plan}},
				Warnings: []string{"ballast: these rows became pins in data.pins: prod-eu: 1"}}},
		"an edited row of a pinned cluster changes its pin": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = swap(`prod-us: {replica: 0`, `prod-us: {replica: 2`) }), stands,
			Verdict{Reason: plan.PinAdded, Revision: 17, Requested: []Field{{"plan", short(swap(`prod-us: {replica: 0`, `prod-us: {replica: 2`))}, {"clusters.prod-us", "2"}},
				Enforced: []Field{{"plan", digest}, {"pins.prod-us", "2"}},
				Patches:  []Op{{"replace", "/data/pins", "# why: the giant\nprod-us: 2 # ask ada\n"}, {"replace", "/data/plan", stands.Plan}},
				Warnings: []string{"ballast: these rows became pins in data.pins: prod-us: 2"}}},
		"a row of a new cluster becomes a pin and names the nearest": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = newRow }), stands,
			Verdict{Reason: plan.PinAdded, Revision: 17, Requested: []Field{{"plan", short(newRow)}, {"clusters.dev", "2"}}, Enforced: []Field{{"plan", digest}, {"pins.dev", "2"}},
				Patches:  []Op{{"replace", "/data/pins", comments + "dev: 2\n"}, {"replace", "/data/plan", stands.Plan}},
				Warnings: []string{"ballast: these rows became pins in data.pins: dev: 2", "ballast: pin dev: no such cluster in the plan yet"}}},
		"an edited row above the limit is refused": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = tooHigh }), stands,
			Verdict{Reason: plan.PinRefused, Revision: 17, Requested: []Field{{"clusters.prod-eu", "16"}},
				Denied: "ballast: row prod-eu: replica 16 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas"}},
		"an edited row below 0 is refused as a pin below 0 is": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = swap(`prod-eu: {replica: 3`, `prod-eu: {replica: -1`) }), stands,
			Verdict{Reason: plan.PinRefused, Revision: 17, Requested: []Field{{"clusters.prod-eu", "-1"}},
				Denied: "ballast: row prod-eu: replica -1 is below 0: a negative shard leaves the cluster without an owner"}},
		"an edited row that is no replica at all is refused": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = swap(`prod-eu: {replica: 3`, `prod-eu: {replica: 1234567`) }), stands,
			Verdict{Reason: plan.PinRefused, Revision: 17, Requested: []Field{{"clusters.prod-eu", printable.Invalid}},
				Denied: "ballast: row prod-eu: replica 1234567 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas"}},
		"immutable is taken out": {state, person, edited(stands, func(o *objects.Plan) { o.Immutable = true }), stands,
			Verdict{Reason: plan.PlanKept, Revision: 17, Requested: []Field{{"immutable", "true"}}, Enforced: []Field{{"immutable", ""}},
				Patches: []Op{{Op: "remove", Path: "/immutable"}}, Warnings: []string{immutableSays}}},
		"immutable is taken out where nobody knows a plan": {inforce.Of(identity(), nil), person, objects.Plan{Immutable: true}, objects.Plan{},
			Verdict{Reason: plan.PlanKept, Requested: []Field{{"immutable", "true"}}, Enforced: []Field{{"immutable", ""}},
				Patches: []Op{{Op: "remove", Path: "/immutable"}}, Warnings: []string{immutableSays}}},
		"immutable is taken out of a write that is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Immutable, o.Plan = true, replicas }), stands,
			with(kept(replicas), func(v *Verdict) {
				v.Requested, v.Enforced = append(v.Requested, Field{"immutable", "true"}), append(v.Enforced, Field{"immutable", ""})
				v.Patches, v.Warnings = append(putBack, Op{Op: "remove", Path: "/immutable"}), []string{rowSays, immutableSays}
			})},
		"where it stands already nothing can be put back, and the mend is told": {state, person,
			edited(stands, func(o *objects.Plan) { o.Immutable, o.Plan = true, replicas }), edited(stands, func(o *objects.Plan) { o.Immutable, o.Plan = true, replicas }),
			Verdict{Reason: plan.Immutable, Revision: 17,
				Warnings: []string{"ballast: ConfigMap ballast-plan is immutable and the planner locked out; delete it: the planner makes it anew"}}},
		"another field is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = replicas }), stands,
			with(kept(replicas), func(v *Verdict) { v.Warnings = []string{rowSays} })},
		"another revision is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = newRevision }), stands,
			with(kept(newRevision), func(v *Verdict) {
				v.Warnings = []string{keptSays + "the edit is of revision 16, so edit again"}
			})},
		"what does not parse is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = "clusters: [" }), stands,
			with(kept("clusters: ["), func(v *Verdict) {
				v.Warnings = []string{keptSays + "what was written is no plan; write pins into data.pins"}
			})},
		"an unknown field is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = movedRow + "surprise: 1\n" }), stands,
			with(kept(movedRow+"surprise: 1\n"), func(v *Verdict) {
				v.Warnings = []string{keptSays + "what was written is no plan; write pins into data.pins"}
			})},
		"a dropped plan is put back": {state, person, edited(stands, func(o *objects.Plan) { o.HasPlan, o.Plan = false, "" }), stands,
			with(kept(""), func(v *Verdict) {
				v.Patches = []Op{{"add", "/data/plan", stands.Plan}}
				v.Warnings = []string{keptSays + "what was written is no plan; write pins into data.pins"}
			})},
		"dropped data is put back, and the pins are people's to drop": {state, person, edited(stands, func(o *objects.Plan) { *o = objects.Plan{HasAnnotations: true, Annotations: o.Annotations} }), stands,
			with(kept(""), func(v *Verdict) {
				v.Requested, v.Enforced = append(v.Requested, Field{"pins.prod-us", ""}), append(v.Enforced, Field{"pins.prod-us", ""})
				v.Patches = []Op{{"add", "/data", map[string]string{"plan": stands.Plan}}}
				v.Warnings = []string{keptSays + "what was written is no plan; write pins into data.pins"}
			})},
		"a backup makes no pins and is put back": {state, person, backup, stands,
			with(kept(backup.Plan), func(v *Verdict) {
				v.Patches = append(putBack, Op{"replace", "/metadata/annotations/ballast.argoproj.io~1digest", stands.Annotations[plan.AnnotationDigest]},
					Op{"replace", "/metadata/annotations/ballast.argoproj.io~1revision", "17"})
				v.Warnings = []string{keptSays + "this is a backup; the planner goes on from there"}
			})},
		"a backup into a deleted ConfigMap is left out, for what was kept is nothing to tell": {state.Gone(), person, backup, objects.Plan{},
			Verdict{Reason: plan.PlanKept, Requested: []Field{{"plan", short(backup.Plan)}, {"pins.prod-us", "1"}}, Enforced: []Field{{"plan", ""}, {"pins.prod-us", "1"}},
				Patches:  append([]Op{{Op: "remove", Path: "/data/plan"}}, without(backup)...),
				Warnings: []string{"ballast: data.plan is the planner's alone and was left out; the planner writes it anew; pins go to data.pins"}}},
		"a backup where nobody knows a plan is left out too": {inforce.Of(identity(), nil), person, object(t, older, ""), objects.Plan{},
			Verdict{Reason: plan.PlanKept, Requested: []Field{{"plan", short(backup.Plan)}}, Enforced: []Field{{"plan", ""}},
				Patches:  append([]Op{{Op: "remove", Path: "/data/plan"}}, without(backup)...),
				Warnings: []string{"ballast: data.plan is the planner's alone and was left out; the planner writes it anew; pins go to data.pins"}}},
		"a forged revision is put back": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationRevision] = "99" }), stands,
			Verdict{Reason: plan.PlanKept, Revision: 17, Patches: []Op{{"replace", "/metadata/annotations/ballast.argoproj.io~1revision", "17"}},
				Warnings: []string{"ballast: the plan's annotations are the planner's and were put back"}}},
		"dropped annotations are put back": {state, person, edited(stands, func(o *objects.Plan) { o.HasAnnotations, o.Annotations = false, nil }), stands,
			Verdict{Reason: plan.PlanKept, Revision: 17, Patches: []Op{{"add", "/metadata/annotations", stands.Annotations}},
				Warnings: []string{"ballast: the plan's annotations are the planner's and were put back"}}},
		"an invented stage is taken out": {state, person, edited(stands, func(o *objects.Plan) { o.Annotations[plan.AnnotationStage] = "Draining" }), stands,
			Verdict{Reason: plan.PlanKept, Revision: 17, Patches: []Op{{Op: "remove", Path: "/metadata/annotations/ballast.argoproj.io~1stage"}},
				Warnings: []string{"ballast: the plan's annotations are the planner's and were put back"}}},
		"a plan that is broken already waits for the planner": {state, person,
			edited(stands, func(o *objects.Plan) { o.Plan = "broken"; o.Pins = "" }), edited(stands, func(o *objects.Plan) { o.Plan = "broken"; o.Pins = "" }),
			Verdict{Reason: plan.InPlan, Revision: 17}},
		"nor does anybody else mend it": {state, person, edited(stands, func(o *objects.Plan) { o.Plan = replicas }), edited(stands, func(o *objects.Plan) { o.Plan = "broken" }),
			Verdict{Reason: plan.PlanKept, Revision: 17, Requested: []Field{{"plan", short(replicas)}}, Enforced: []Field{{"plan", short("broken")}},
				Patches: []Op{{"replace", "/data/plan", "broken"}}, Warnings: []string{oneWriterSays}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plan(tc.state, Request{Namespace: "argocd", Name: "ballast-plan", User: tc.user}, tc.object, tc.old)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEditIsJudgedByTheStoredPlanNotByAnOlderOne(t *testing.T) {
	earlier := fleet()
	earlier.Revision, earlier.MaxReplicas = 16, 32
	behind := knowing(t, object(t, earlier, ""))
	stands := object(t, fleet(), "")
	row := edited(stands, func(o *objects.Plan) {
		o.Plan = strings.Replace(o.Plan, "prod-eu: {replica: 3", "prod-eu: {replica: 1", 1)
	})
	if got := Plan(behind, Request{User: person}, row, stands); got.Reason != plan.PinAdded {
		t.Errorf("a row of the stored revision: reason %s, warnings %q", got.Reason, got.Warnings)
	}
	pin := edited(stands, func(o *objects.Plan) { o.HasPins, o.Pins = true, "prod-eu: 20\n" })
	if got := Plan(behind, Request{User: person}, pin, stands); got.Reason != plan.PinRefused {
		t.Errorf("a pin above the stored maxReplicas: reason %s", got.Reason)
	}
}

func TestAtMostTwentyEditedRowsBecomePins(t *testing.T) {
	for rows, want := range map[int]plan.Reason{20: plan.PinAdded, 21: plan.PlanKept} {
		p := fleet()
		for i := range 30 {
			p.Clusters[fmt.Sprintf("c-%02d", i)] = plan.Row{Replica: 0}
		}
		stands := object(t, p, "")
		for i := range rows {
			p.Clusters[fmt.Sprintf("c-%02d", i)] = plan.Row{Replica: 1}
		}
		text := encode(t, p)
		got := Plan(knowing(t, stands), Request{User: person}, edited(stands, func(o *objects.Plan) { o.Plan = text }), stands)
		if got.Reason != want || got.Patches[len(got.Patches)-1] != (Op{"replace", "/data/plan", stands.Plan}) {
			t.Errorf("%d rows: reason %s, want %s", rows, got.Reason, want)
		}
	}
}

func TestOnlyPinsThatAWriteAddsOrChangesAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after string
		reason        plan.Reason
		denied        string
		warnings      []string
		requested     []Field
	}{
		"a good pin":                        {"", "prod-eu: 2\n", plan.InPlan, "", nil, []Field{{"pins.prod-eu", "2"}}},
		"a pin above the replicas":          {"", "prod-eu: 15\n", plan.InPlan, "", nil, []Field{{"pins.prod-eu", "15"}}},
		"a pin that goes":                   {"prod-eu: 2\n", "", plan.InPlan, "", nil, []Field{{"pins.prod-eu", ""}}},
		"a pin at maxReplicas":              {"# a\n", "# a\nprod-eu: 16\n", plan.PinRefused, "ballast: pins line 2: prod-eu: replica 16 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas", nil, []Field{{"pins.prod-eu", "16"}}},
		"a pin below 0":                     {"", "prod-eu: -1\n", plan.PinRefused, "ballast: pins line 1: prod-eu: replica -1 is below 0: a negative shard leaves the cluster without an owner", nil, []Field{{"pins.prod-eu", "-1"}}},
		"a pin that is no number":           {"", "prod-eu: three\n", plan.PinRefused, "ballast: pins line 1: prod-eu: a replica is a whole number, like 3", nil, []Field{{"pins.prod-eu", printable.Invalid}}},
		"pins that are no mapping":          {"", "- a\n", plan.PinRefused, "ballast: pins line 1: is not a mapping; write one `cluster-secret: replica` a line", nil, []Field{{"pins." + printable.Invalid, printable.Invalid}}},
		"a bad pin of two on a line":        {"", "{prod-us: 1, prod-eu: 99}\n", plan.PinRefused, "ballast: pins line 1: prod-eu: replica 99 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas", nil, []Field{{"pins.prod-eu", "99"}}},
		"a pin that stands twice":           {"", "prod-eu: 1\nprod-eu: 2\n", plan.PinRefused, "ballast: pins line 2: prod-eu: is pinned twice: delete one of the lines", nil, []Field{{"pins.prod-eu", "2"}}},
		"a pin of seven digits":             {"", "prod-eu: 1234567\n", plan.PinRefused, "ballast: pins line 1: prod-eu: replica 1234567 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas", nil, []Field{{"pins.prod-eu", printable.Invalid}}},
		"a pasted token":                    {"", "prod-eu: eyJhbGciOiJSUzI1NiJ9\n", plan.PinRefused, "ballast: pins line 1: prod-eu: a replica is a whole number, like 3", nil, []Field{{"pins.prod-eu", printable.Invalid}}},
		"a list of pins":                    {"", "prod-eu: [1, 2]\n", plan.PinRefused, "ballast: pins line 1: prod-eu: a replica is a whole number, like 3", nil, []Field{{"pins.prod-eu", printable.Invalid}}},
		"a bad pin that stood before":       {"prod-eu: 99\n", "# moved down\nprod-eu: 99\nprod-us: 1\n", plan.InPlan, "", nil, []Field{{"pins.prod-us", "1"}}},
		"a bad pin that becomes another":    {"prod-eu: 99\n", "prod-eu: 98\n", plan.PinRefused, "ballast: pins line 1: prod-eu: replica 98 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas", nil, []Field{{"pins.prod-eu", "98"}}},
		"a word that becomes another":       {"prod-eu: abc\n", "prod-eu: def\n", plan.PinRefused, "ballast: pins line 1: prod-eu: a replica is a whole number, like 3", nil, []Field{{"pins.prod-eu", printable.Invalid}}},
		"a cluster that is misspelt":        {"", "prod-eo: 1\n", plan.InPlan, "", []string{"ballast: pin prod-eo: no such cluster in the plan yet; did you mean prod-eu?"}, []Field{{"pins.prod-eo", "1"}}},
		"a cluster that is still to come":   {"", "brand-new: 1\n", plan.InPlan, "", []string{"ballast: pin brand-new: no such cluster in the plan yet"}, []Field{{"pins.brand-new", "1"}}},
		"an unknown cluster pinned already": {"brand-new: 1\n", "brand-new: 1\n\nprod-eu: 0\n", plan.InPlan, "", nil, []Field{{"pins.prod-eu", "0"}}},
		"a name that is none":               {"", "\"a b\": 1\n", plan.InPlan, "", []string{"ballast: pin invalid: no such cluster in the plan yet"}, []Field{{"pins." + printable.Invalid, "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			old := object(t, fleet(), tc.before)
			old.HasPins = true
			got := Plan(knowing(t, old), Request{User: person}, edited(old, func(o *objects.Plan) { o.Pins = tc.after }), old)
			want := Verdict{Reason: tc.reason, Revision: 17, Requested: tc.requested, Enforced: got.Enforced, Warnings: tc.warnings, Denied: tc.denied}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStateFollowsThePlanConfigMap(t *testing.T) {
	first := fleet()
	second := fleet()
	second.Revision = 18
	data1, notes1 := written(t, first, "prod-eu: 1\n")
	data2, notes2 := written(t, second, "")
	third := fleet()
	third.Revision, third.PlannerUser = 19, "mallory"
	third.Clusters["prod-eu"] = plan.Row{Replica: 0}
	theirs, theirNotes := written(t, third, "")
	forged := maps.Clone(notes1)
	opened := maps.Clone(notes1)
	opened[plan.AnnotationEnforcement] = "off"
	type seen struct {
		Revision   int64
		Stale      bool
		BreakGlass bool
		ProdEU     int
		Known      bool
		Kept       string
	}
	look := func(s *inforce.State) seen {
		out := seen{Revision: s.Revision(), Stale: s.Stale, BreakGlass: s.BreakGlass}
		if s.View != nil {
			out.ProdEU, _, out.Known = s.View.Effective("prod-eu")
		}
		if s.Kept != nil {
			out.Kept = s.Kept.Annotations[plan.AnnotationRevision]
		}
		return out
	}
	s := inforce.Of(identity(), nil)
	for _, step := range []struct {
		name string
		next func(*inforce.State) *inforce.State
		want seen
	}{
		{"an empty ConfigMap", func(s *inforce.State) *inforce.State { return s.Next(nil, nil) }, seen{}},
		{"a broken plan at first", func(s *inforce.State) *inforce.State { return s.Next(data2, forged) }, seen{Stale: true}},
		{"a plan", func(s *inforce.State) *inforce.State { return s.Next(data1, notes1) }, seen{Revision: 17, ProdEU: 1, Known: true, Kept: "17"}},
		{"another pin", func(s *inforce.State) *inforce.State {
			return s.Next(map[string]string{plan.KeyPlan: data1[plan.KeyPlan], plan.KeyPins: "prod-eu: 2"}, notes1)
		}, seen{Revision: 17, ProdEU: 2, Known: true, Kept: "17"}},
		{"a plan that is not its digest's", func(s *inforce.State) *inforce.State { return s.Next(data2, forged) }, seen{Revision: 17, Stale: true, ProdEU: 3, Known: true, Kept: "17"}},
		{"an emptied ConfigMap", func(s *inforce.State) *inforce.State { return s.Next(nil, nil) }, seen{Revision: 17, Stale: true, ProdEU: 3, Known: true, Kept: "17"}},
		{"break-glass", func(s *inforce.State) *inforce.State { return s.Next(data1, opened) }, seen{Revision: 17, BreakGlass: true, ProdEU: 1, Known: true, Kept: "17"}},
		{"the next plan", func(s *inforce.State) *inforce.State { return s.Next(data2, notes2) }, seen{Revision: 18, ProdEU: 3, Known: true, Kept: "18"}},
		{"a plan of somebody who calls themselves the planner", func(s *inforce.State) *inforce.State { return s.Next(theirs, theirNotes) }, seen{Revision: 18, Stale: true, ProdEU: 3, Known: true, Kept: "18"}},
		{"no ConfigMap", (*inforce.State).Gone, seen{Kept: "18"}},
		{"one made anew without a plan", func(s *inforce.State) *inforce.State { return s.Next(nil, nil) }, seen{Revision: 18, Stale: true, ProdEU: 3, Known: true, Kept: "18"}},
		{"one made anew from a backup without its digest", func(s *inforce.State) *inforce.State { return s.Gone().Next(data1, nil) }, seen{Revision: 18, Stale: true, ProdEU: 1, Known: true, Kept: "18"}},
	} {
		s = step.next(s)
		if diff := cmp.Diff(step.want, look(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
