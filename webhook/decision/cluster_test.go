package decision

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
)

// cluster is a cluster Secret with a shard; "" for none.
func cluster(shard string) objects.Secret {
	return objects.Secret{Cluster: true, HasData: true, HasShard: shard != "", Shard: shard, Server: "https://new.example"}
}

func changed(s objects.Secret, change func(*objects.Secret)) objects.Secret { change(&s); return s }

// noted is a Secret with one of ballast's annotations, as it is decoded.
func noted(s objects.Secret, key, value string) objects.Secret {
	s.Notes = map[string]string{key: value}
	s.Unmanaged = s.Notes[plan.AnnotationUnmanaged] == "true"
	s.Pin, s.Pinned = s.Notes[plan.AnnotationPin]
	return s
}

func TestDecideClusterAnswersByThePlan(t *testing.T) {
	update := Request{Kind: "", Namespace: "argocd", Name: "prod-eu", User: person}
	named := func(name string) Request { r := update; r.Name = name; return r }
	made := func(name string) Request { r := named(name); r.Create = true; return r }
	replace := func(shard string) []Op { return []Op{{"replace", "/data/shard", base64Of(shard)}} }
	add := func(shard string) []Op { return []Op{{"add", "/data/shard", base64Of(shard)}} }
	const pinHint = `to pin, add "prod-eu: 1" to data.pins of ConfigMap ballast-plan`
	for name, tc := range map[string]struct {
		state       *inforce.State
		request     Request
		object, old objects.Secret
		want        Verdict
	}{
		"a shard as planned passes": {withPlan(nil, nil), update, cluster("3"), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"another shard is put back, with a word to the writer": {withPlan(nil, nil), update, cluster("1"), cluster("3"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs("1"), Enforced: shardIs("3"), Patches: replace("3"),
				Warnings: []string{"ballast: shard 1 was asked, 3 stays (plan 17); " + pinHint}}},
		"a shard that is dropped is put back": {withPlan(nil, nil), update, cluster(""), cluster("3"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs(""), Enforced: shardIs("3"), Patches: add("3"),
				Warnings: []string{`ballast: no shard was asked, 3 stays (plan 17); to pin, add "prod-eu: 3" to data.pins of ConfigMap ballast-plan`}}},
		"a shard that was never there is added without a word": {withPlan(nil, nil), update, cluster(""), cluster(""),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs(""), Enforced: shardIs("3"), Patches: add("3")}},
		"a Secret without data gets data": {withPlan(nil, nil), update, objects.Secret{Cluster: true}, objects.Secret{Cluster: true},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs(""), Enforced: shardIs("3"),
				Patches: []Op{{"add", "/data", map[string]string{"shard": base64Of("3")}}}}},
		"a pasted token is not printed": {withPlan(nil, nil), update, cluster(printable.Invalid), cluster("3"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs(printable.Invalid), Enforced: shardIs("3"), Patches: replace("3"),
				Warnings: []string{`ballast: shard invalid was asked, 3 stays (plan 17); to pin, add "prod-eu: 3" to data.pins of ConfigMap ballast-plan`}}},
		"a pin below the replicas decides": {withPlan(plan.Pins{"prod-eu": 2}, nil), update, cluster("3"), cluster("2"),
			Verdict{Reason: plan.Pinned, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("2"), Patches: replace("2"),
				Warnings: []string{"ballast: shard 3 was asked, pin 2 stays; change the pin: data.pins of ConfigMap ballast-plan, or its annotation"}}},
		"a pin above the replicas waits, and the row decides": {withPlan(plan.Pins{"prod-eu": 7}, nil), update, cluster("3"), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"a pin waits for the end of an x0y rollout": {
			withPlan(plan.Pins{"prod-eu": 2}, func(p *plan.Plan) { p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y} }), update, cluster("3"), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"the Secret's own pin decides": {withPlan(nil, nil), update, changed(cluster("1"), func(s *objects.Secret) { s.Pinned, s.Pin = true, "1" }), cluster("3"),
			Verdict{Reason: plan.Pinned, Revision: 17, Requested: shardIs("1"), Enforced: shardIs("1")}},
		"data.pins wins over the Secret's own": {withPlan(plan.Pins{"prod-eu": 2}, nil), update, changed(cluster("2"), func(s *objects.Secret) { s.Pinned, s.Pin = true, "1" }), cluster("2"),
			Verdict{Reason: plan.Pinned, Revision: 17, Requested: shardIs("2"), Enforced: shardIs("2")}},
		"the Secret's own pin above the replicas waits": {withPlan(nil, nil), update, changed(cluster("3"), func(s *objects.Secret) { s.Pinned, s.Pin = true, "4" }), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"the Secret's own pin that cannot be is told and passed over": {withPlan(nil, nil), update, noted(cluster("3"), plan.AnnotationPin, "-1"), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: append(shardIs("3"), Field{"pin", "-1"}), Enforced: append(shardIs("3"), Field{"pin", ""}),
				Warnings: []string{`ballast: annotation ballast.argoproj.io/pin: "-1" is passed over; a pin is a whole number from 0 to 15`}}},
		"which is not told again by another write": {withPlan(nil, nil), update, noted(cluster("3"), plan.AnnotationPin, "-1"), noted(cluster("3"), plan.AnnotationPin, "-1"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"a pin of the Secret's own is noted": {withPlan(nil, nil), update, noted(cluster("1"), plan.AnnotationPin, "1"), cluster("3"),
			Verdict{Reason: plan.Pinned, Revision: 17, Requested: append(shardIs("1"), Field{"pin", "1"}), Enforced: append(shardIs("1"), Field{"pin", "1"})}},
		"and that it is taken away": {withPlan(nil, nil), update, cluster("3"), noted(cluster("1"), plan.AnnotationPin, "1"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: append(shardIs("3"), Field{"pin", ""}), Enforced: append(shardIs("3"), Field{"pin", ""})}},
		"a new cluster with a known server gets its replica": {withPlan(nil, nil), made("renamed"), changed(cluster("2"), func(s *objects.Secret) { s.Server = "https://us.example/" }), objects.Secret{},
			Verdict{Reason: plan.Assigned, Revision: 17, Requested: shardIs("2"), Enforced: shardIs("0"), Patches: replace("0"),
				Warnings: []string{`ballast: shard 2 was asked, 0 stays (plan 17); to pin, add "renamed: 2" to data.pins of ConfigMap ballast-plan`}}},
		"an unknown cluster keeps the valid shard it had": {withPlan(nil, nil), named("unknown"), cluster("1"), cluster("2"),
			Verdict{Reason: plan.Assigned, Revision: 17, Requested: shardIs("1"), Enforced: shardIs("2"), Patches: replace("2"),
				Warnings: []string{`ballast: shard 1 was asked, 2 stays (plan 17); to pin, add "unknown: 1" to data.pins of ConfigMap ballast-plan`}}},
		"an unknown cluster without a server keeps its shard": {withPlan(nil, nil), named("unknown"), changed(cluster("2"), func(s *objects.Secret) { s.Server = "" }), cluster("2"),
			Verdict{Reason: plan.Assigned, Revision: 17, Requested: shardIs("2"), Enforced: shardIs("2")}},
		"an unknown cluster keeps its shard while every replica is stopped": {withPlan(nil, stopped), named("unknown"), cluster("1"), cluster("2"),
			Verdict{Reason: plan.Assigned, Revision: 17, Requested: shardIs("1"), Enforced: shardIs("2"), Patches: replace("2"),
				Warnings: []string{`ballast: shard 1 was asked, 2 stays (plan 17); to pin, add "unknown: 1" to data.pins of ConfigMap ballast-plan`}}},
		"and so does one without a server": {withPlan(nil, stopped), named("unknown"), changed(cluster("2"), func(s *objects.Secret) { s.Server = "" }), cluster("2"),
			Verdict{Reason: plan.Assigned, Revision: 17, Requested: shardIs("2"), Enforced: shardIs("2")}},
		"a shard that goes with a rollout is not kept without a server": {withPlan(nil, shrinking), named("unknown"), changed(cluster("3"), func(s *objects.Secret) { s.Server = "" }), cluster("3"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("3"),
				Warnings: []string{"ballast: data.server is missing or too long, so no replica can be assigned; the shard is left as written"}}},
		"a negative shard is no example of a pin": {withPlan(nil, nil), update, cluster("-1"), cluster("3"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs("-1"), Enforced: shardIs("3"), Patches: replace("3"),
				Warnings: []string{`ballast: shard -1 was asked, 3 stays (plan 17); to pin, add "prod-eu: 3" to data.pins of ConfigMap ballast-plan`}}},
		"a shard at maxReplicas is no example of a pin": {withPlan(nil, nil), update, cluster("16"), cluster("3"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs("16"), Enforced: shardIs("3"), Patches: replace("3"),
				Warnings: []string{`ballast: shard 16 was asked, 3 stays (plan 17); to pin, add "prod-eu: 3" to data.pins of ConfigMap ballast-plan`}}},
		"an unknown cluster without a server and a shard is left alone": {withPlan(nil, nil), named("unknown"), changed(cluster("4"), func(s *objects.Secret) { s.Server = "" }), cluster("4"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("4"),
				Warnings: []string{"ballast: data.server is missing or too long, so no replica can be assigned; the shard is left as written"}}},
		"an immutable Secret stays as it is": {withPlan(nil, nil), update, cluster("1"), changed(cluster("1"), func(s *objects.Secret) { s.Immutable = true }),
			Verdict{Reason: plan.Immutable, Revision: 17, Requested: shardIs("1"),
				Warnings: []string{"ballast: the Secret is immutable: shard 1 stays, plan 17 has 3; re-create it to change that"}}},
		"an immutable Secret that agrees passes": {withPlan(nil, nil), update, changed(cluster("3"), func(s *objects.Secret) { s.Immutable = true }), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"a Secret that loses its label leaves with its shard": {withPlan(nil, nil), update, changed(cluster("1"), func(s *objects.Secret) { s.Cluster = false }), cluster("3"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: append(shardIs("1"), Field{"secret-type", ""}), Enforced: []Field{{"secret-type", ""}}}},
		"the write that opts out passes": {withPlan(nil, nil), update, noted(cluster("1"), plan.AnnotationUnmanaged, "true"), cluster("3"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: append(shardIs("1"), Field{"unmanaged", "true"}), Enforced: []Field{{"unmanaged", "true"}}}},
		"a write of what has opted out passes": {withPlan(nil, nil), update, noted(cluster("1"), plan.AnnotationUnmanaged, "true"), noted(cluster("3"), plan.AnnotationUnmanaged, "true"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("1")}},
		"what has opted out keeps the shard of no replica": {withPlan(nil, nil), update, noted(cluster("-1"), plan.AnnotationUnmanaged, "true"), noted(cluster("3"), plan.AnnotationUnmanaged, "true"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("-1")}},
		"but not beside another's Secret": {withPlan(nil, nil), made("twin"), beside("-1"), objects.Secret{},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs("-1"), Field{"unmanaged", "true"}), Enforced: append(shardIs("0"), Field{"unmanaged", "true"}), Patches: replace("0"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard -1 is no replica's, and nobody would have it; 0 stays"}}},
		"nor one that is made anew, without a shard, beside it": {withPlan(nil, nil), made("twin"),
			changed(beside("-1"), func(s *objects.Secret) { s.HasShard, s.Shard = false, "" }), objects.Secret{},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs(""), Field{"unmanaged", "true"}), Enforced: append(shardIs("0"), Field{"unmanaged", "true"}),
				Patches:  []Op{{"add", "/data/shard", base64.StdEncoding.EncodeToString([]byte("0"))}},
				Warnings: []string{"ballast: this server is another cluster's, too: shard - is no replica's, and nobody would have it; 0 stays"}}},
		"nor one beyond the replicas": {withPlan(nil, nil), made("twin"), beside("7"), objects.Secret{},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs("7"), Field{"unmanaged", "true"}), Enforced: append(shardIs("0"), Field{"unmanaged", "true"}), Patches: replace("0"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard 7 is no replica's, and nobody would have it; 0 stays"}}},
		"beside it a replica's shard stands": {withPlan(nil, nil), made("twin"), beside("2"), objects.Secret{},
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: append(shardIs("2"), Field{"unmanaged", "true"}), Enforced: []Field{{"unmanaged", "true"}}}},
		"and what discover.selector leaves out is no way around": {withPlan(nil, nil), made("twin"), changed(beside("-1"), func(s *objects.Secret) { s.LeftOut = true }), objects.Secret{},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs("-1"), Field{"unmanaged", "true"}), Enforced: append(shardIs("0"), Field{"unmanaged", "true"}), Patches: replace("0"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard -1 is no replica's, and nobody would have it; 0 stays"}}},
		"what stood at no replica before another came is left": {withPlan(nil, nil), named("first"), beside("-1"), beside("-1"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("-1"),
				Warnings: []string{"ballast: this server is another cluster's, too, and shard -1 is no replica's: Argo CD goes by either; it is left"}}},
		"and what discover.selector left out": {withPlan(nil, nil), named("first"), leftOut("7"), leftOut("7"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("7"),
				Warnings: []string{"ballast: this server is another cluster's, too, and shard 7 is no replica's: Argo CD goes by either; it is left"}}},
		"and from one of those to another": {withPlan(nil, nil), named("first"), beside("7"), beside("-1"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("7"),
				Warnings: []string{"ballast: this server is another cluster's, too, and shard 7 is no replica's: Argo CD goes by either; it is left"}}},
		"what leaves a replica stays there": {withPlan(nil, nil), named("first"), beside("-1"), beside("2"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs("-1"), Enforced: shardIs("2"), Patches: replace("2"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard -1 is no replica's, and nobody would have it; 2 stays"}}},
		"but what comes to the server by this write has the other's": {withPlan(nil, nil), named("first"), beside("-1"),
			changed(beside("-1"), func(s *objects.Secret) { s.Server = "https://elsewhere.example" }),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: shardIs("-1"), Enforced: shardIs("0"), Patches: replace("0"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard -1 is no replica's, and nobody would have it; 0 stays"}}},
		"the in-cluster behind a slash is another's": {withPlan(nil, nil), made("aside"), changed(beside("-1"), func(s *objects.Secret) { s.Server = plan.InClusterServer + "/" }), objects.Secret{},
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs("-1"), Field{"unmanaged", "true"}), Enforced: append(shardIs("0"), Field{"unmanaged", "true"}), Patches: replace("0"),
				Warnings: []string{"ballast: this server is another cluster's, too: shard -1 is no replica's, and nobody would have it; 0 stays"}}},
		"and without one it may be its own": {withPlan(nil, nil), made("aside"), changed(beside("-1"), func(s *objects.Secret) { s.Server = plan.InClusterServer }), objects.Secret{},
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: append(shardIs("-1"), Field{"unmanaged", "true"}), Enforced: []Field{{"unmanaged", "true"}}}},
		"a write that means to opt out is told how": {withPlan(nil, nil), update, noted(cluster("3"), plan.AnnotationUnmanaged, "True"), cluster("3"),
			Verdict{Reason: plan.InPlan, Revision: 17, Requested: append(shardIs("3"), Field{"unmanaged", printable.Invalid}), Enforced: append(shardIs("3"), Field{"unmanaged", ""}),
				Warnings: []string{`ballast: annotation ballast.argoproj.io/unmanaged: "True" is passed over; write "true" to opt out`}}},
		"the write that opts in again is enforced": {withPlan(nil, nil), update, cluster("1"), noted(cluster("1"), plan.AnnotationUnmanaged, "true"),
			Verdict{Reason: plan.Restored, Revision: 17, Requested: append(shardIs("1"), Field{"unmanaged", ""}), Enforced: append(shardIs("3"), Field{"unmanaged", ""}), Patches: replace("3"),
				Warnings: []string{"ballast: shard 1 was asked, 3 stays (plan 17); " + pinHint}}},
		"a Secret of another namespace is not ours": {withPlan(nil, nil), Request{Namespace: "other", Name: "prod-eu"}, cluster("1"), cluster("3"),
			Verdict{Reason: plan.Unmanaged, Revision: 17, Requested: shardIs("1")}},
		"without a plan every write passes":    {inforce.Of(identity(), nil), update, cluster("1"), cluster("3"), Verdict{Reason: plan.NoPlan, Requested: shardIs("1")}},
		"without a state every write passes":   {nil, update, cluster("1"), cluster("3"), Verdict{Reason: plan.NoPlan, Requested: shardIs("1")}},
		"in Observe every write passes":        {withPlan(nil, func(p *plan.Plan) { p.Mode = plan.Observe }), update, cluster("1"), cluster("3"), Verdict{Reason: plan.Observing, Revision: 17, Requested: shardIs("1")}},
		"an unknown mode is Observe":           {withPlan(nil, func(p *plan.Plan) { p.Mode = "Enforced" }), update, cluster("1"), cluster("3"), Verdict{Reason: plan.Observing, Revision: 17, Requested: shardIs("1")}},
		"with break-glass every write passes":  {broken(withPlan(nil, nil), func(s *inforce.State) { s.BreakGlass = true }), update, cluster("1"), cluster("3"), Verdict{Reason: plan.Observing, Revision: 17, Requested: shardIs("1")}},
		"in Hold what is stays":                {withPlan(nil, func(p *plan.Plan) { p.Mode = plan.Hold }), update, cluster("3"), cluster("3"), Verdict{Reason: plan.InPlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
		"a stale plan is enforced and says so": {broken(withPlan(nil, nil), func(s *inforce.State) { s.Stale = true }), update, cluster("3"), cluster("3"), Verdict{Reason: plan.StalePlan, Revision: 17, Requested: shardIs("3"), Enforced: shardIs("3")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Cluster(tc.state, tc.request, tc.object, tc.old)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func leftOut(shard string) objects.Secret {
	return changed(beside(shard), func(s *objects.Secret) { s.LeftOut = true })
}

// beside is a Secret that opted out, of the server of another one that is at 0.
func beside(shard string) objects.Secret {
	return changed(noted(cluster(shard), plan.AnnotationUnmanaged, "true"), func(s *objects.Secret) { s.Server = "https://us.example//" })
}

// stopped is the plan of an x0y rollout from 4 to 5 replicas while none runs.
func stopped(p *plan.Plan) {
	p.Replicas, p.Rollout = 0, &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, From: plan.Count{Replicas: 4}, Replicas: 5}
}

// shrinking is the plan of a rollout to 3 replicas before the fourth goes.
func shrinking(p *plan.Plan) {
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, From: plan.Count{Replicas: 4}, Replicas: 3}
}

func broken(s *inforce.State, change func(*inforce.State)) *inforce.State { change(s); return s }

func TestANewClusterIsAssignedTheSameByEveryReplicaAndRetry(t *testing.T) {
	create := Request{Create: true, Namespace: "argocd"} // generateName: no name yet
	var first Verdict
	for i := range 3 {
		v := Cluster(withPlan(nil, nil), create, cluster(""), objects.Secret{})
		if i == 0 {
			first = v
		}
		if diff := cmp.Diff(first, v); diff != "" {
			t.Errorf("another answer at try %d:\n%s", i, diff)
		}
	}
	want := placement.NewArrivals(withPlan(nil, nil).View).Place("https://new.example", -1, nil)
	if diff := cmp.Diff(shardIs(string(rune('0'+want))), first.Enforced); diff != "" || first.Reason != plan.Assigned {
		t.Errorf("assigned for reason %s:\n%s", first.Reason, diff)
	}
}

func TestTheShardAskedForInACreationDoesNotCount(t *testing.T) {
	for _, asked := range []string{"", "0", "1", "2", "3", "-1", "99"} {
		v := Cluster(withPlan(nil, nil), Request{Create: true, Namespace: "argocd", Name: "new"}, cluster(asked), objects.Secret{})
		want := Cluster(withPlan(nil, nil), Request{Create: true, Namespace: "argocd", Name: "new"}, cluster(""), objects.Secret{})
		if diff := cmp.Diff(want.Enforced, v.Enforced); diff != "" {
			t.Errorf("asking for shard %q changed the assignment:\n%s", asked, diff)
		}
	}
}

func TestAWarningAlwaysFits(t *testing.T) {
	long := strings.Repeat("very-long-name-", 16)
	p := withPlan(nil, func(p *plan.Plan) { p.Clusters[long] = plan.Row{Replica: 1}; p.Revision = 9_000_000_000_000_000_000 })
	v := Cluster(p, Request{Namespace: "argocd", Name: long}, cluster("-99999"), cluster("1"))
	want := []string{"ballast: shard -99999 was asked, 1 stays (plan 9000000000000000000); to pin, add it to data.pins of ConfigMap ballast..."}
	if diff := cmp.Diff(want, v.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A Secret's own pin counts where it is its server's only one; of several the planner knows which was there first.
func TestAPinBesideAnothersSecretWaitsForThePlanner(t *testing.T) {
	s := inforce.Of(identity(), plan.NewView(plan.Plan{Revision: 3, Mode: plan.Enforce, Target: withPlan(nil, nil).View.Plan.Target, Replicas: 4, MaxReplicas: 16,
		Clusters: map[string]plan.Row{"old": {Replica: 3, Server: plan.ServerHash("https://one")}, "alone": {Replica: 2, Server: plan.ServerHash("https://two")}}}, nil))
	pinnedAt := func(name, server string) objects.Secret {
		return objects.Secret{Name: name, Cluster: true, Pinned: true, Pin: "0", HasData: true, Server: server}
	}
	for name, tc := range map[string]struct {
		object objects.Secret
		want   string
	}{
		"beside another's":       {pinnedAt("new", "https://one"), "3"},
		"of the one that has it": {pinnedAt("alone", "https://two"), "0"},
		"of a new server":        {pinnedAt("newer", "https://three"), "0"},
		"of the row's own":       {pinnedAt("old", "https://one"), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Cluster(s, Request{Create: true, Namespace: "argocd", Name: tc.object.Name}, tc.object, objects.Secret{})
			if diff := cmp.Diff(Field{plan.ShardKey, tc.want}, v.Enforced[0]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
