package auditlog_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"ballast/planner/plan"
	"ballast/webhook/auditlog"
)

// TestPowerfulActsOnARealAPIServer: under the policy that we recommend, each act is in the log with who did it and what was
// asked, and the filter's default shows it.
func TestPowerfulActsOnARealAPIServer(t *testing.T) {
	s := startSite(t)
	admin, alice := s.client(t, s.admin), s.client(t, s.user(t, "alice"))
	patched(t, admin.CoreV1().ConfigMaps(namespace), planName, note("tripped", `"`+canary+`"`))
	s.must(t)(admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-history"}}, metav1.CreateOptions{}))
	want := append(s.steerThePlan(t, alice), s.leave(t, alice)...)
	want = append(want, s.posesAsThePlanner(t)...)
	want = append(want, s.takeAway(t, alice)...)
	for i := range want {
		if want[i].User == "" {
			want[i].User, want[i].Account = "alice", auditlog.Account{Kind: auditlog.Person}
		}
		if want[i].Code == 0 {
			want[i].Code = 200
		}
		if want[i].Revision == 0 && want[i].Effect != auditlog.Unasked {
			want[i].Revision = 7
		}
		if want[i].Kind == "serviceaccount" || want[i].Kind == "secret" || want[i].Kind == "configmap" || want[i].Kind == "statefulset" {
			want[i].Namespace = namespace
		}
	}
	got := s.read(t, len(want))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(auditlog.Write{}, "Time", "AuditID")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, w := range got {
		if !(auditlog.Filter{}).Shows(w) {
			t.Errorf("not shown: %+v", w)
		}
	}
}

// note is a patch of one of ballast's annotations to a JSON value.
func note(name, value string) []byte {
	return []byte(`{"metadata":{"annotations":{"` + plan.Group + `/` + name + `":` + value + `}}}`)
}

// patched writes a patch and waits until it stands in the API server's cache: the next patch begins with what is there, and the
// audit tells of its first attempt.
func patched[T metav1.Object](t *testing.T, c interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}, name string, patch []byte) {
	t.Helper()
	written, err := c.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the write in the API server's cache", func() bool {
		cached, err := c.Get(t.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
		return err == nil && cached.GetResourceVersion() == written.GetResourceVersion()
	})
}

// steerThePlan does what people do to the plan ConfigMap, and answers what is to stand in the log.
func (s *site) steerThePlan(t *testing.T, c kubernetes.Interface) (want []auditlog.Write) {
	for _, act := range []struct {
		patch             []byte
		reason            plan.Reason
		requested, passes string // passes: enforced, where it differs
	}{
		{[]byte(`{"data":{"pins":"prod-eu: 3\n"}}`), plan.InPlan, "pins.prod-eu=3", ""},
		{note("enforcement", `"off"`), plan.Observing, "enforcement=off", ""},
		{note("enforcement", `null`), plan.InPlan, "enforcement=-", ""},
		{note("paused", `"true"`), plan.InPlan, "paused=true", ""},
		{note("paused", `"`+canary+`"`), plan.InPlan, "paused=invalid", "paused=-"},
		{note("cordon", `"3=2026-11-20T17:00:00Z"`), plan.InPlan, "cordon=3", ""},
		{note("rollback-to", `"5"`), plan.InPlan, "rollback-to=5", ""},
		{note("tripped", `null`), plan.InPlan, "tripped=-", ""},
		{note("accept-discovery", `"12"`), plan.InPlan, "accept-discovery=12", ""},
	} {
		patched(t, c.CoreV1().ConfigMaps(namespace), planName, act.patch)
		if act.passes == "" {
			act.passes = act.requested
		}
		want = append(want, auditlog.Write{Verb: "patch", Kind: "configmap", Name: planName, Effect: auditlog.Steered, Reason: string(act.reason), Requested: act.requested, Enforced: act.passes})
	}
	eventually(t, "the end of break-glass at the webhook", func() bool {
		state := s.source.State()
		return !state.BreakGlass && state.View != nil
	})
	return want
}

// leave takes Secrets and the workload out of ballast's hands.
func (s *site) leave(t *testing.T, c kubernetes.Interface) (want []auditlog.Write) {
	secret := func(name string, patch []byte, effect auditlog.Effect, reason, requested, enforced string) {
		patched(t, c.CoreV1().Secrets(namespace), name, patch)
		want = append(want, auditlog.Write{Verb: "patch", Kind: "secret", Name: name, Effect: effect, Reason: reason, Requested: requested, Enforced: enforced})
	}
	secret("prod-eu", note("unmanaged", `"true"`), auditlog.Steered, "Unmanaged", "shard=3 unmanaged=true", "unmanaged=true")
	secret("prod-eu", note("unmanaged", `null`), auditlog.Steered, "Pinned", "shard=3 unmanaged=-", "shard=3 unmanaged=-")
	secret("prod-us", note("pin", `"2"`), auditlog.Steered, "Pinned", "shard=2 pin=2", "shard=2 pin=2")
	secret("prod-us", note("pin", `"1"`), auditlog.Rewritten, "Pinned", "shard=2 pin=1", "shard=1 pin=1")
	label := func(value string) []byte {
		return []byte(`{"metadata":{"labels":{"` + plan.SecretTypeLabel + `":` + value + `}}}`)
	}
	secret("prod-us", label(`null`), auditlog.Steered, "Unmanaged", "shard=1 secret-type=-", "secret-type=-")
	patched(t, c.CoreV1().Secrets(namespace), "prod-us", note("unmanaged", `"true"`)) // which nobody is asked about
	secret("prod-us", label(`"cluster"`), auditlog.Steered, "Unmanaged", "shard=1 pin=1 unmanaged=true secret-type=cluster", "pin=1 unmanaged=true secret-type=cluster")
	patched(t, c.AppsV1().StatefulSets(namespace), workload, note("unmanaged", `"true"`))
	s.must(t)(c.AppsV1().StatefulSets(namespace).Patch(t.Context(), workload, types.MergePatchType, note("unmanaged", `"yes"`), metav1.PatchOptions{}, "status"))
	return append(want,
		auditlog.Write{Verb: "patch", Kind: "statefulset", Name: workload, Effect: auditlog.Steered, Reason: "Unmanaged",
			Requested: "replicas=4 ARGOCD_CONTROLLER_REPLICAS=4 unmanaged=true", Enforced: "unmanaged=true"},
		auditlog.Write{Verb: "patch", Kind: "statefulset", Name: workload, Subresource: "status", Effect: auditlog.Unasked,
			Reason: auditlog.NotAsked, Requested: "-", Enforced: "-"})
}

// posesAsThePlanner has an account whose name ends as the planner's does write what is the planner's alone; the planner's own
// writes of the history and the key are no part of what is to stand there, and its write of the configuration is.
func (s *site) posesAsThePlanner(t *testing.T) (want []auditlog.Write) {
	must, admin := s.must(t), s.client(t, s.admin)
	must(admin.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ballast-plan-key"}}, metav1.CreateOptions{}))
	must(admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-config"}}, metav1.CreateOptions{}))
	eve, planner := s.account(t, "eve-ballast-planner"), s.account(t, "ballast-planner")
	shown := func(account, kind, name string) {
		a := auditlog.Account{Kind: auditlog.ServiceAccount}
		if account == "ballast-planner" {
			a.StandsFor = "ballast itself"
		}
		want = append(want, auditlog.Write{User: "system:serviceaccount:argocd:" + account, Account: a, Verb: "patch", Kind: kind, Name: name, Effect: auditlog.Unasked,
			Reason: auditlog.NotAsked, Requested: "-", Enforced: "-"})
	}
	for _, as := range []*rest.Config{eve, planner} {
		c := s.client(t, as)
		must(c.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "ballast-config", types.MergePatchType, []byte(`{"data":{"config.yaml":"mode: Observe"}}`), metav1.PatchOptions{}))
		must(c.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "ballast-history", types.MergePatchType, []byte(`{"data":{"plans":"forged"}}`), metav1.PatchOptions{}))
		must(c.CoreV1().Secrets(namespace).Patch(t.Context(), "ballast-plan-key", types.MergePatchType, []byte(`{"stringData":{"key":"`+canary+`"}}`), metav1.PatchOptions{}))
	}
	shown("eve-ballast-planner", "configmap", "ballast-config")
	shown("eve-ballast-planner", "configmap", "ballast-history")
	shown("eve-ballast-planner", "secret", "ballast-plan-key")
	shown("ballast-planner", "configmap", "ballast-config")
	return want
}

// takeAway does what no webhook is asked about.
func (s *site) takeAway(t *testing.T, c kubernetes.Interface) (want []auditlog.Write) {
	registered, must := c.AdmissionregistrationV1(), s.must(t)
	done := func(code int, verb, kind, name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, auditlog.Write{Verb: verb, Kind: kind, Name: name, Effect: auditlog.Unasked, Reason: auditlog.NotAsked, Requested: "-", Enforced: "-", Code: code})
	}
	must(c.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "ballast-planner", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	done(201, "create", "serviceaccount", "ballast-planner", nil)
	want[len(want)-1].Subresource = "token"
	s.putsToken(t, c)
	done(200, "patch", "secret", "made-for-a-token", nil)
	want[len(want)-1].User, want[len(want)-1].Account = kubernetesUser, auditlog.Account{Kind: auditlog.ControlPlane}
	must(c.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "ballast-history", types.MergePatchType, []byte(`{"data":{"plans":"forged"}}`), metav1.PatchOptions{}))
	done(200, "patch", "configmap", "ballast-history", nil)
	none := metav1.ListOptions{LabelSelector: "none=such"}
	done(200, "delete", "secret", "prod-eu", c.CoreV1().Secrets(namespace).Delete(t.Context(), "prod-eu", metav1.DeleteOptions{}))
	done(200, "deletecollection", "secret", "", c.CoreV1().Secrets(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, none))
	done(200, "delete", "configmap", planName, c.CoreV1().ConfigMaps(namespace).Delete(t.Context(), planName, metav1.DeleteOptions{}))
	// The API server goes by the body where there is one, and the query stands in the log.
	path := "/api/v1/namespaces/" + namespace + "/configmaps/ballast-history"
	body := []byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`)
	done(200, "delete", "configmap", "ballast-history", c.CoreV1().RESTClient().Delete().AbsPath(path).Param("dryRun", "All").Body(body).SetHeader("Content-Type", "application/json").Do(t.Context()).Error())
	if _, err := c.CoreV1().ConfigMaps(namespace).Get(t.Context(), "ballast-history", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the history after a deletion whose query says dry run: %v", err)
	}
	done(200, "delete", "statefulset", workload, c.AppsV1().StatefulSets(namespace).Delete(t.Context(), workload, metav1.DeleteOptions{}))
	const policy = "ballast-planner.argocd"
	must(registered.ValidatingAdmissionPolicies().Create(t.Context(), policyNamed(policy), metav1.CreateOptions{}))
	done(201, "create", "validatingadmissionpolicy", policy, nil)
	must(registered.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistration.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistration.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy, ValidationActions: []admissionregistration.ValidationAction{admissionregistration.Audit}}}, metav1.CreateOptions{}))
	done(201, "create", "validatingadmissionpolicybinding", policy, nil)
	done(200, "delete", "validatingadmissionpolicybinding", policy, registered.ValidatingAdmissionPolicyBindings().Delete(t.Context(), policy, metav1.DeleteOptions{}))
	name := configuration(t).Name
	must(registered.MutatingWebhookConfigurations().Patch(t.Context(), name, types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0"}]`), metav1.PatchOptions{}))
	done(200, "patch", "mutatingwebhookconfiguration", name, nil)
	done(200, "delete", "mutatingwebhookconfiguration", name, registered.MutatingWebhookConfigurations().Delete(t.Context(), name, metav1.DeleteOptions{}))
	return want
}

const kubernetesUser = "system:kube-controller-manager"

// putsToken has somebody make a Secret for a token of the planner's account, and Kubernetes put it in: the log tells of neither type nor
// account, and of the second write who made it.
func (s *site) putsToken(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	must, name := s.must(t), "made-for-a-token"
	made := metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "ballast-planner"}}
	must(c.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: made},
		metav1.CreateOptions{}))
	manager := s.client(t, s.user(t, kubernetesUser))
	patch := []byte(`{"stringData":{"` + corev1.ServiceAccountTokenKey + `":"` + canary + `"}}`)
	must(manager.CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}))
}

func policyNamed(name string) *admissionregistration.ValidatingAdmissionPolicy {
	fail := admissionregistration.Fail
	return &admissionregistration.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistration.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail, Validations: []admissionregistration.Validation{{Expression: "true"}},
		MatchConstraints: &admissionregistration.MatchResources{ResourceRules: []admissionregistration.NamedRuleWithOperations{{RuleWithOperations: admissionregistration.RuleWithOperations{
			Operations: []admissionregistration.OperationType{admissionregistration.Create}, Rule: admissionregistration.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}}}}}},
	}}
}
