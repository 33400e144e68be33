package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/store"
	"ballast/webhook/auditlog"
)

// TestAuditOnARealAPIServer compares what the command prints, in each of its forms, of what a real API server has just logged.
func TestAuditOnARealAPIServer(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Truncate(time.Second)
	log, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	fixture.MustDo(t, os.WriteFile(policy, []byte(auditlog.Policy), 0o600))
	s := hooked.Start(t, hooked.Options{APIServer: map[string]string{"audit-policy-file": policy, "audit-log-path": log, "audit-log-mode": "blocking"}})
	populate(t, s)
	peopleWrite(t, s)

	people := []string{"--user", "alice", "--user", "bob", log}
	t.Run("table", func(t *testing.T) {
		out, notes, failure := runAudit(t, nil, people...)
		want := [][]string{
			{"TIME", "USER", "VERB", "NAMESPACE", "OBJECT", "REQUESTED", "ENFORCED", "REASON", "REVISION", "RESULT"},
			{"alice", "patch", "argocd", "secret/prod-eu", "shard=1", "shard=3", "Restored", "1", "written"},
			{"alice", "patch", "argocd", "secret/prod-eu", "shard=2", "shard=3", "Restored", "1", "dry run"},
			{"bob", "update scale", "argocd", "statefulset/argocd-application-controller", "replicas=9", "replicas=4", "Restored", "1", "written"},
			{"bob", "patch", "argocd", "configmap/ballast-plan", "pins.prod-eu=99", "-", "PinRefused", "1", "failed 422"},
			{"bob", "patch", "argocd", "configmap/ballast-plan", "pins.prod-eu=3", "pins.prod-eu=3", "InPlan", "1", "written"},
			{"alice", "patch", "argocd", "secret/prod-eu", "-", "-", "FailedOpen", "-", "written"},
		}
		if diff := cmp.Diff(want, cellsOf(t, out, began)); diff != "" || failure != "" {
			t.Errorf("%s rows (-want +got):\n%s", failure, diff)
		}
		if want := "not shown: 1 write that agreed with the plan or that a rule let pass (--all shows them)\n"; notes != want {
			t.Errorf("notes %q, want %q", notes, want)
		}
	})
	t.Run("json", func(t *testing.T) {
		out, _, failure := runAudit(t, nil, append([]string{"-o", "json"}, people...)...)
		secret := func(requested string, more map[string]any) map[string]any {
			return over(map[string]any{"user": "alice", "account": map[string]any{"kind": "person"}, "verb": "patch", "kind": "secret", "namespace": "argocd", "name": "prod-eu",
				"effect": "Rewritten", "reason": "Restored", "revision": 1.0, "requested": requested, "enforced": "shard=3", "code": 200.0}, more)
		}
		want := []map[string]any{
			secret("shard=1", nil),
			secret("shard=2", map[string]any{"dryRun": true}),
			secret("replicas=9", map[string]any{"user": "bob", "verb": "update", "kind": "statefulset", "name": fixture.ControllerName, "subresource": "scale", "enforced": "replicas=4"}),
			secret("pins.prod-eu=99", map[string]any{"user": "bob", "kind": "configmap", "name": "ballast-plan", "effect": "Refused", "reason": "PinRefused", "enforced": "-", "code": 422.0}),
			secret("pins.prod-eu=3", map[string]any{"user": "bob", "kind": "configmap", "name": "ballast-plan", "effect": "Steered", "reason": "InPlan", "enforced": "pins.prod-eu=3"}),
			secret("-", map[string]any{"effect": "Bypassed", "reason": "FailedOpen", "revision": nil, "enforced": "-"}),
		}
		if diff := cmp.Diff(want, objectsOf(t, out)); diff != "" || failure != "" {
			t.Errorf("%s objects (-want +got):\n%s", failure, diff)
		}
	})
	t.Run("totals", func(t *testing.T) {
		out, _, failure := runAudit(t, nil, append([]string{"-o", "totals"}, people...)...)
		want := [][]string{
			{"USER", "IMPERSONATED BY", "ACCOUNT", "WRITES", "REWRITTEN", "REFUSED", "ACTS", "FAULTED", "FAILED OPEN", "FAILED CLOSED", "DRY RUNS", "LAST"},
			{"bob", "-", "person", "3", "1", "1", "1", "0", "0", "0", "0"},   // more of his did not agree
			{"alice", "-", "person", "3", "1", "0", "0", "0", "1", "0", "1"}, // a dry run is no write
		}
		if diff := cmp.Diff(want, cellsOf(t, out, began)); diff != "" || failure != "" {
			t.Errorf("%s rows (-want +got):\n%s", failure, diff)
		}
	})
}

// TestAuditShowsThePowerfulActs compares what the command prints by default after each of them.
func TestAuditShowsThePowerfulActs(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Truncate(time.Second)
	log, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	fixture.MustDo(t, os.WriteFile(policy, []byte(auditlog.Policy), 0o600))
	s := hooked.Start(t, hooked.Options{APIServer: map[string]string{"audit-policy-file": policy, "audit-log-path": log, "audit-log-mode": "blocking"}})
	populate(t, s)
	planMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: hooked.PlanConfigMap}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "prod-eu"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName}}
	fixture.MustDo(t, s.Admin.Patch(t.Context(), planMap, annotating("tripped", `"of 9 moves 4 came to nothing"`)))
	carol := s.As("carol")
	want := [][]string{{"TIME", "USER", "VERB", "NAMESPACE", "OBJECT", "REQUESTED", "ENFORCED", "REASON", "REVISION", "RESULT"}}
	// patches waits for what it wrote: a patch begins with what the API server has cached, and the audit tells of its
	// first attempt.
	patches := func(o client.Object, p client.Patch) {
		t.Helper()
		fixture.MustDo(t, carol.Patch(t.Context(), o, p))
		fixture.WaitFor(t, "the write in the API server's cache", func() bool {
			cached := o.DeepCopyObject().(client.Object)
			err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(o), cached, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
			return err == nil && cached.GetResourceVersion() == o.GetResourceVersion()
		})
	}
	does := func(o client.Object, p client.Patch, object, requested, enforced, reason string) {
		t.Helper()
		patches(o, p)
		want = append(want, []string{"carol", "patch", "argocd", object, requested, enforced, reason, "1", "written"})
	}
	steers := func(name, value, field string) {
		t.Helper()
		reason := "InPlan"
		if value == `"off"` {
			reason = "Observing"
		}
		does(planMap, annotating(name, value), "configmap/ballast-plan", field, field, reason)
	}
	steers("enforcement", `"off"`, "enforcement=off")
	steers("enforcement", `null`, "enforcement=-")
	fixture.WaitFor(t, "the end of break-glass at the webhook", func() bool { return !s.Source.State().BreakGlass })
	steers("paused", `"true"`, "paused=true")
	steers("cordon", `"3=2099-11-20T17:00:00Z"`, "cordon=3")
	steers("rollback-to", `"12"`, "rollback-to=12")
	steers("tripped", `null`, "tripped=-")
	steers("accept-discovery", `"12"`, "accept-discovery=12")
	does(planMap, client.RawPatch(types.MergePatchType, []byte(`{"data":{"pins":"prod-eu: 2\n"}}`)), "configmap/ballast-plan", "pins.prod-eu=2", "pins.prod-eu=2", "InPlan")
	does(secret, annotating("unmanaged", `"true"`), "secret/prod-eu", "shard=3 unmanaged=true", "unmanaged=true", "Unmanaged")
	does(secret, annotating("pin", `"1"`), "secret/prod-eu", "shard=3 pin=1", "pin=1", "Unmanaged")
	does(secret, labelling(`null`), "secret/prod-eu", "shard=3 secret-type=-", "secret-type=-", "Unmanaged")
	patches(secret, annotating("pin", `"2"`)) // which no webhook is asked about
	does(secret, labelling(`"cluster"`), "secret/prod-eu", "shard=3 pin=2 unmanaged=true secret-type=cluster", "pin=2 unmanaged=true secret-type=cluster", "Unmanaged")
	does(set, annotating("unmanaged", `"true"`), "statefulset/"+fixture.ControllerName, "replicas=4 ARGOCD_CONTROLLER_REPLICAS=4 unmanaged=true", "unmanaged=true", "Unmanaged")
	deletes := func(o client.Object, cells ...string) {
		t.Helper()
		fixture.MustDo(t, carol.Delete(t.Context(), o))
		want = append(want, append(append([]string{"carol", "delete"}, cells...), "-", "-", "NotAsked", "-", "written"))
	}
	deletes(secret, "argocd", "secret/prod-eu")
	deletes(set, "argocd", "statefulset/"+fixture.ControllerName)
	deletes(planMap, "argocd", "configmap/ballast-plan")
	out, notes, failure := runAudit(t, nil, "--user", "carol", log)
	if diff := cmp.Diff(want, cellsOf(t, out, began)); diff != "" || failure != "" || notes != "" {
		t.Errorf("%s %s rows (-want +got):\n%s", failure, notes, diff)
	}
	t.Run("changes of the webhook configuration", func(t *testing.T) {
		var list admissionregistration.MutatingWebhookConfigurationList
		fixture.MustDo(t, s.Admin.List(t.Context(), &list))
		fixture.MustDo(t, carol.Delete(t.Context(), &list.Items[0]))
		out, _, _ := runAudit(t, nil, "-o", "json", "--user", "carol", "--object", "mutatingwebhookconfiguration/*", log)
		want := []map[string]any{{"user": "carol", "account": map[string]any{"kind": "person"}, "verb": "delete", "kind": "mutatingwebhookconfiguration", "namespace": "",
			"name": list.Items[0].Name, "effect": "Unasked", "reason": "NotAsked", "requested": "-", "enforced": "-", "code": 200.0}}
		if diff := cmp.Diff(want, objectsOf(t, out)); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// annotating is a patch of one of ballast's annotations to a JSON value.
func annotating(name, value string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+plan.Group+`/`+name+`":`+value+`}}}`))
}

// labelling is a patch of Argo CD's label for cluster Secrets to a JSON value.
func labelling(value string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+plan.SecretTypeLabel+`":`+value+`}}}`))
}

// populate makes a fleet under a plan in force.
func populate(t *testing.T, s *hooked.Site) {
	t.Helper()
	planner := s.As(hooked.Planner)
	st := store.New(store.Options{Client: planner, Reader: planner, Namespace: "argocd", Plan: hooked.PlanConfigMap, History: "ballast-history"})
	_, err := st.WritePlan(t.Context(), store.Snapshot{}, plan.Plan{Mode: plan.Enforce, PlannerUser: hooked.Planner, Replicas: 4, ControllerReplicas: 4, MaxReplicas: 16,
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: fixture.ControllerName, Container: "application-controller"},
		Clusters: map[string]plan.Row{"prod-eu": {Replica: 3}}}, 0, configmap.Meta{})
	fixture.MustDo(t, err)
	fixture.WaitFor(t, "the plan at the webhook", func() bool { return s.Source.State().View != nil })
	labels := map[string]string{"app": "controller"}
	fixture.MustDo(t, s.Admin.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd"}}}}}}))
	fixture.MustDo(t, s.Admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "prod-eu", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		Data:       map[string][]byte{"name": []byte("prod-eu"), "server": []byte("https://eu")}}))
}

// peopleWrite has alice and bob write this and that, the last of it without a webhook.
func peopleWrite(t *testing.T, s *hooked.Site) {
	t.Helper()
	alice, bob := s.As("alice"), s.As("bob")
	secret := func(c client.Client, shard string, opts ...client.PatchOption) error {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "prod-eu"}}
		return c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"`+shard+`"}}`)), opts...)
	}
	pins := func(pins string) error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: hooked.PlanConfigMap}}
		return bob.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"data":{"pins":"`+pins+`\n"}}`)))
	}
	fixture.MustDo(t, secret(alice, "1"))
	fixture.MustDo(t, secret(alice, "2", client.DryRunAll))
	fixture.MustDo(t, secret(alice, "3"))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName}}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName}, Spec: autoscalingv1.ScaleSpec{Replicas: 9}}
	fixture.MustDo(t, bob.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	if err := pins("prod-eu: 99"); !apierrors.IsInvalid(err) {
		t.Errorf("a pin above maxReplicas: %v", err)
	}
	fixture.MustDo(t, pins("prod-eu: 3"))
	s.Webhooks(func(w *admissionregistration.MutatingWebhook) { w.ClientConfig.CABundle = nil })
	nobody := s.As("nobody-here")
	fixture.WaitFor(t, "a write that no webhook answers", func() bool {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "prod-eu"}}
		fixture.MustDo(t, nobody.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"0"}}`)), client.DryRunAll))
		return string(o.Data[plan.ShardKey]) == "0"
	})
	fixture.MustDo(t, secret(alice, "1"))
}

var auditTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// cellsOf reads a table's cells but for its times, which have to be now, and makes sure that its columns line up.
func cellsOf(t *testing.T, out string, began time.Time) [][]string {
	t.Helper()
	gap := regexp.MustCompile(`   +`)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var rows [][]string
	for _, line := range lines {
		for _, found := range auditTime.FindAllString(line, -1) {
			if at, err := time.Parse(time.RFC3339, found); err != nil || at.Before(began) || at.After(time.Now()) {
				t.Errorf("%s is not when it was", found)
			}
		}
		for i, column := range gap.FindAllStringIndex(lines[0], -1) {
			if at := column[1]; at > len(line) || line[at-3:at] != "   " || line[at] == ' ' {
				t.Errorf("column %d begins elsewhere in %q", i+1, line)
			}
		}
		rows = append(rows, slices.DeleteFunc(gap.Split(line, -1), auditTime.MatchString))
	}
	return rows
}

// objectsOf reads JSON, a line an object, without when and under which id it was logged.
func objectsOf(t *testing.T, out string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if at, id := fmt.Sprint(o["time"]), fmt.Sprint(o["auditID"]); !strings.HasPrefix(at, "20") || len(id) != 36 {
			t.Errorf("time %s, audit ID %s", at, id)
		}
		delete(o, "time")
		delete(o, "auditID")
		list = append(list, o)
	}
	return list
}

// over is a map with others' values; nil takes a key away.
func over(m, others map[string]any) map[string]any {
	for key, value := range others {
		if m[key] = value; value == nil {
			delete(m, key)
		}
	}
	return m
}
