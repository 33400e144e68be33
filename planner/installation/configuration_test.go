package installation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func names() Names {
	return Names{Namespace: "gitops", Workload: "my-controller", Plan: "my-plan", Planner: "system:serviceaccount:gitops:my-planner"}
}

// aside is the condition by which an account's writes ask nobody.
func aside(account string) []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "not-the-planner",
		Expression: `request.userInfo.username != "system:serviceaccount:gitops:" + "` + account + `" || request.dryRun == true`}}
}

// own is the condition by which writes of ballast's own Secrets ask nobody, with other names in the first ones' place.
func own(first string) admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-ballasts-own",
		Expression: `!(request.?name.orValue('') in ['` + first + `', 'ballast-plan-key', 'ballast-webhook-ca', 'ballast-webhook-tls'])`}
}

func shipped(t *testing.T) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	c, err := Shipped(names())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// of is the webhook with that short name.
func of(c *admissionv1.MutatingWebhookConfiguration, name string) *admissionv1.MutatingWebhook {
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == name+".ballast.argoproj.io" {
			return &c.Webhooks[i]
		}
	}
	return nil
}

func TestShippedIsOfThisInstallation(t *testing.T) {
	got := map[string]string{}
	for _, w := range shipped(t).Webhooks {
		said := fmt.Sprintf("%s %s/%s", w.NamespaceSelector.MatchExpressions[0].Values, w.ClientConfig.Service.Namespace, w.ClientConfig.Service.Name)
		for _, condition := range w.MatchConditions {
			said += " " + condition.Expression
		}
		got[strings.TrimSuffix(w.Name, ".ballast.argoproj.io")] = said
	}
	want := map[string]string{
		"clusters":    `[gitops] gitops/ballast-webhook`,
		"controllers": `[gitops] gitops/ballast-webhook request.name == "my-controller"`,
		"scale":       `[gitops] gitops/ballast-webhook request.name == "my-controller"`,
		"plan":        `[gitops] gitops/ballast-webhook request.name == "my-plan"`,
		"pods": `[gitops] gitops/ballast-webhook ["my-controller"].exists(name, object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'StatefulSet' && o.name == name ` +
			`|| o.kind == 'ReplicaSet' && o.name == name + '-' + object.metadata.?labels[?'pod-template-hash'].orValue('')))`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

// TestEachDifferenceFromWhatIsShippedIsFound by its webhook and field.
func TestEachDifferenceFromWhatIsShippedIsFound(t *testing.T) {
	const plan, clusters = "plan.ballast.argoproj.io", "clusters.ballast.argoproj.io"
	type configuration = admissionv1.MutatingWebhookConfiguration
	for name, test := range map[string]struct {
		change func(*configuration)
		want   []string
	}{
		"none": {func(*configuration) {}, nil},
		"a certificate of its own": {func(c *configuration) {
			c.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "x"}
			of(c, "plan").ClientConfig.CABundle = []byte("x")
		}, nil},
		"a certificate of its own for the one that is not asked": {func(c *configuration) { of(c, "pods").ClientConfig.CABundle = []byte("x") },
			[]string{"pods.ballast.argoproj.io caBundle"}},
		"the one that is not asked alone as it was": {func(c *configuration) {
			for i := range c.Webhooks {
				c.Webhooks[i].ClientConfig.CABundle = []byte("x")
			}
			of(c, "pods").ClientConfig.CABundle = nil
		}, []string{"pods.ballast.argoproj.io caBundle"}},
		"fail-closed for clusters., the planner's writes but for its probe aside": {func(c *configuration) {
			of(c, "clusters").FailurePolicy, of(c, "clusters").MatchConditions = ptr.To(admissionv1.Fail), aside("my-planner")
		}, nil},
		"fail-closed for clusters., ballast's own Secrets aside, too": {func(c *configuration) {
			of(c, "clusters").FailurePolicy, of(c, "clusters").MatchConditions = ptr.To(admissionv1.Fail), append(aside("my-planner"), own("ballast-ca', 'ballast-client-ca"))
		}, nil},
		"another Secret aside": {func(c *configuration) {
			of(c, "clusters").FailurePolicy, of(c, "clusters").MatchConditions = ptr.To(admissionv1.Fail), append(aside("my-planner"), own("prod-eu', 'ballast-client-ca"))
		}, []string{clusters + " matchConditions"}},
		"ballast's own Secrets aside, though nothing fails closed": {func(c *configuration) {
			of(c, "clusters").MatchConditions = []admissionv1.MatchCondition{own("ballast-ca', 'ballast-client-ca")}
		}, []string{clusters + " matchConditions"}},
		"another's aside": {func(c *configuration) {
			of(c, "clusters").FailurePolicy, of(c, "clusters").MatchConditions = ptr.To(admissionv1.Fail), aside("default")
		}, []string{clusters + " matchConditions"}},
		"the planner's aside, though nothing fails closed": {func(c *configuration) { of(c, "clusters").MatchConditions = aside("my-planner") }, []string{clusters + " matchConditions"}},
		"the planner's aside of the plan":                  {func(c *configuration) { of(c, "plan").MatchConditions = aside("my-planner") }, []string{plan + " matchConditions"}},
		"fail-closed for clusters.":                        {func(c *configuration) { of(c, "clusters").FailurePolicy = ptr.To(admissionv1.Fail) }, nil},
		"another order":                                    {func(c *configuration) { c.Webhooks[0], c.Webhooks[3] = c.Webhooks[3], c.Webhooks[0] }, nil},
		"operations in another order":                      {func(c *configuration) { o := of(c, "plan").Rules[0].Operations; o[0], o[1] = o[1], o[0] }, nil},
		"the API server's own defaults":                    {func(c *configuration) { of(c, "plan").ObjectSelector = &metav1.LabelSelector{} }, nil},
		"fail-closed for the plan":                         {func(c *configuration) { of(c, "plan").FailurePolicy = ptr.To(admissionv1.Fail) }, []string{plan + " failurePolicy"}},
		"a webhook that went":                              {func(c *configuration) { c.Webhooks = slices.Delete(c.Webhooks, 3, 4) }, []string{plan}},
		"one more": {func(c *configuration) {
			c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{Name: "my.own.example"})
		}, []string{"my.own.example"}},
		"no operation UPDATE": {func(c *configuration) { of(c, "plan").Rules[0].Operations = []admissionv1.OperationType{"CREATE"} }, []string{plan + " rules"}},
		"other resources":     {func(c *configuration) { of(c, "plan").Rules[0].Resources = []string{"secrets"} }, []string{plan + " rules"}},
		"another group":       {func(c *configuration) { of(c, "plan").Rules[0].APIGroups = []string{"apps"} }, []string{plan + " rules"}},
		"another scope":       {func(c *configuration) { of(c, "plan").Rules[0].Scope = ptr.To(admissionv1.AllScopes) }, []string{plan + " rules"}},
		"no rules":            {func(c *configuration) { of(c, "plan").Rules = nil }, []string{plan + " rules"}},
		"another namespace": {func(c *configuration) {
			of(c, "clusters").NamespaceSelector.MatchExpressions[0].Values = []string{"elsewhere"}
		}, []string{clusters + " namespaceSelector"}},
		"all namespaces":        {func(c *configuration) { of(c, "clusters").NamespaceSelector = nil }, []string{clusters + " namespaceSelector"}},
		"all Secrets":           {func(c *configuration) { of(c, "clusters").ObjectSelector = nil }, []string{clusters + " objectSelector"}},
		"no Secrets but theirs": {func(c *configuration) { of(c, "clusters").ObjectSelector.MatchLabels["mine"] = "yes" }, []string{clusters + " objectSelector"}},
		"no match conditions":   {func(c *configuration) { of(c, "plan").MatchConditions = nil }, []string{plan + " matchConditions"}},
		"a narrower condition":  {func(c *configuration) { of(c, "plan").MatchConditions[0].Expression += " && false" }, []string{plan + " matchConditions"}},
		"a condition more": {func(c *configuration) {
			of(c, "clusters").MatchConditions = []admissionv1.MatchCondition{{Name: "x", Expression: "false"}}
		}, []string{clusters + " matchConditions"}},
		"exact matches only":  {func(c *configuration) { of(c, "plan").MatchPolicy = ptr.To(admissionv1.Exact) }, []string{plan + " matchPolicy"}},
		"a Service elsewhere": {func(c *configuration) { of(c, "plan").ClientConfig.Service.Namespace = "elsewhere" }, []string{plan + " clientConfig.service"}},
		"another Service":     {func(c *configuration) { of(c, "plan").ClientConfig.Service.Name = "mine" }, []string{plan + " clientConfig.service"}},
		"another path":        {func(c *configuration) { of(c, "plan").ClientConfig.Service.Path = ptr.To("/scale") }, []string{plan + " clientConfig.service"}},
		"another port":        {func(c *configuration) { of(c, "plan").ClientConfig.Service.Port = ptr.To(int32(8443)) }, []string{plan + " clientConfig.service"}},
		"a URL": {func(c *configuration) {
			of(c, "plan").ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To("https://mine.example")}
		}, []string{plan + " clientConfig.service"}},
		"never asked again":      {func(c *configuration) { of(c, "plan").ReinvocationPolicy = ptr.To(admissionv1.NeverReinvocationPolicy) }, []string{plan + " reinvocationPolicy"}},
		"side effects":           {func(c *configuration) { of(c, "plan").SideEffects = ptr.To(admissionv1.SideEffectClassNoneOnDryRun) }, []string{plan + " sideEffects"}},
		"another timeout":        {func(c *configuration) { of(c, "plan").TimeoutSeconds = ptr.To(int32(30)) }, []string{plan + " timeoutSeconds"}},
		"another review version": {func(c *configuration) { of(c, "plan").AdmissionReviewVersions = []string{"v1beta1"} }, []string{plan + " admissionReviewVersions"}},
		"two at once": {func(c *configuration) {
			of(c, "plan").TimeoutSeconds, of(c, "clusters").MatchPolicy = ptr.To(int32(30)), ptr.To(admissionv1.Exact)
		}, []string{clusters + " matchPolicy", plan + " timeoutSeconds"}},
		"none that is shipped": {func(c *configuration) { c.Webhooks = nil }, []string{clusters, "controllers.ballast.argoproj.io", "scale.ballast.argoproj.io", plan, "pods.ballast.argoproj.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			installed := shipped(t)
			test.change(installed)
			var got []string
			for _, f := range Compare(shipped(t), Opened(names(), installed)) {
				got = append(got, f.Subject)
				if f.Kind != Changed || !strings.Contains(f.Message, "kubectl apply -k") || !strings.Contains(f.Message, strings.Fields(f.Subject)[0]) {
					t.Errorf("%s says %q", f.Kind, f.Message)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheMessageNamesWebhookFieldAndMend(t *testing.T) {
	installed := shipped(t)
	of(installed, "plan").TimeoutSeconds = ptr.To(int32(30))
	want := []Finding{{Changed, "plan.ballast.argoproj.io timeoutSeconds", fmt.Sprintf("MutatingWebhookConfiguration %q: timeoutSeconds of the webhook plan.ballast.argoproj.io "+
		"is not what is shipped; `kubectl diff -k` with your overlay shows what differs, `kubectl apply -k` puts it back", installed.Name)}}
	if diff := cmp.Diff(want, Compare(shipped(t), installed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFloodOfDifferencesIsCut(t *testing.T) {
	installed := shipped(t)
	for i := range 100 {
		installed.Webhooks = append(installed.Webhooks, admissionv1.MutatingWebhook{Name: fmt.Sprintf("w%d.my.example", i)})
	}
	got := Compare(shipped(t), installed)
	if len(got) != mostDifferences+1 || !strings.Contains(got[mostDifferences].Message, "80 more differences") {
		t.Errorf("%d findings, the last is %q", len(got), got[len(got)-1].Message)
	}
}

// TestWhatAnOlderReleaseLeftIsFound, and another installation's is not touched.
func TestWhatAnOlderReleaseLeftIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		newName   string
		want      []Finding
	}{
		"ours": {"gitops", "ballast.gitops", []Finding{{LeftBehind, "ballast",
			`MutatingWebhookConfiguration "ballast" is an older release's, whose place "ballast.gitops" takes: kubectl delete mutatingwebhookconfiguration ballast`}}},
		"of an installation elsewhere": {"argocd", "ballast.argocd", nil},
		"the one in use":               {"gitops", "ballast", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := shipped(t), shipped(t)
			old.Name, now.Name = OldName, test.newName
			if diff := cmp.Diff(test.want, Left(now, old, test.namespace)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
