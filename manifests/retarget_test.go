package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

const (
	namespace      = "gitops"
	workload       = "my-argo-argocd-application-controller"
	plannerAccount = "my-argo-ballast-planner"
	webhookAccount = "my-argo-ballast-webhook"
)

// withoutCommand is the manifests' text but for the command that the containers run, by which the planner's policy finds the
// controller's among them: its name stays whatever the workload is called.
func withoutCommand(manifests []byte) string {
	return strings.ReplaceAll(string(manifests), "'"+podspec.ControllerCommand+"'", "")
}

// TestRetargetedNothingOldIsLeft reads the text as a whole: what the base says of its target stands nowhere any more.
func TestRetargetedNothingOldIsLeft(t *testing.T) {
	text := withoutCommand(build(t, overlays()["retarget-example"]))
	for _, old := range []string{
		`\bargocd\n`, `"argocd"`, `\bargocd/`, `\.argocd\.`, // the namespace, wherever it stands; labels have argocd.argoproj.io
		`[^-]argocd-application-controller`, `ballast-argocd-application-controller`, // the workload and its Lease
	} {
		if found := regexp.MustCompile(`(?m).*`+old+`.*`).FindAllString(text, -1); len(found) > 0 {
			t.Errorf("%s is left in %q", old, found)
		}
	}
	// Without the replacements the same search finds the base's own words, so that it is worth something.
	base := string(build(t, overlays()["cert-manager"]))
	for _, old := range []string{`\bargocd\n`, `"argocd"`, `\bargocd/`, `\.argocd\.`, `[^-]argocd-application-controller`, `ballast-argocd-application-controller`} {
		if !regexp.MustCompile(`(?m)` + old).MatchString(base) {
			t.Errorf("%s is not in the base either", old)
		}
	}
}

func TestRetargetedRolesStillMatch(t *testing.T) {
	in := decode(t, build(t, overlays()["retarget-example"]))
	want := []string{
		`patch statefulsets,deployments,statefulsets/scale,deployments/scale of "apps" named ` + workload,
		`get,update leases of "coordination.k8s.io" named ballast-` + workload,
	}
	if diff := cmp.Diff(want, rules(in, "ballast-planner-target")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	base := decode(t, build(t, "base"))
	for _, role := range []string{"ballast-planner", "ballast-webhook"} {
		if diff := cmp.Diff(rules(base, role), rules(in, role)); diff != "" {
			t.Errorf("%s changed -base +retargeted:\n%s", role, diff)
		}
	}
}

func TestRetargetedEveryIdentityIsBoundAndUsed(t *testing.T) {
	in := decode(t, build(t, overlays()["retarget-example"]))
	for role, account := range map[string]string{
		"ballast-planner": plannerAccount, "ballast-planner-target": plannerAccount, "ballast-planner-nudge": plannerAccount, "ballast-webhook": webhookAccount,
	} {
		b, r := in.RoleBindings[role], in.Roles[role]
		if len(b.Subjects) != 1 || b.Subjects[0].Name != account || b.Subjects[0].Namespace != namespace || b.Subjects[0].Kind != "ServiceAccount" {
			t.Errorf("%s is bound to %v", role, b.Subjects)
		}
		if b.RoleRef.Name != role || b.Namespace != namespace || r.Namespace != namespace {
			t.Errorf("%s binds %s in %s, the Role is in %s", b.Name, b.RoleRef.Name, b.Namespace, r.Namespace)
		}
		if got := in.ServiceAccounts[account]; got.Namespace != namespace {
			t.Errorf("ServiceAccount %s is in %q", account, got.Namespace)
		}
	}
	for deployment, account := range map[string]string{"ballast-planner": plannerAccount, "ballast-webhook": webhookAccount} {
		if d := in.Deployments[deployment]; d.Spec.Template.Spec.ServiceAccountName != account || d.Namespace != namespace {
			t.Errorf("%s runs as %s in %s", deployment, d.Spec.Template.Spec.ServiceAccountName, d.Namespace)
		}
	}
	args := in.Deployments["ballast-webhook"].Spec.Template.Spec.Containers[0].Args
	want := slices.Clone(decode(t, build(t, "base")).Deployments["ballast-webhook"].Spec.Template.Spec.Containers[0].Args)
	want[2] = "--planner-user=system:serviceaccount:$(POD_NAMESPACE):" + plannerAccount // $(POD_NAMESPACE) is the namespace of the pod
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("the webhook's arguments -want +got:\n%s", diff)
	}
	if len(in.ServiceAccounts) != 2 {
		t.Errorf("there are %d ServiceAccounts", len(in.ServiceAccounts))
	}
}

func TestRetargetedEveryWebhookStillMatches(t *testing.T) {
	in := decode(t, build(t, overlays()["retarget-example"]))
	want := decode(t, build(t, overlays()["cert-manager"])).Webhooks["ballast.argocd"]
	want.Name = "ballast." + namespace
	want.Annotations["cert-manager.io/inject-ca-from"] = namespace + "/ballast-webhook"
	for i, w := range want.Webhooks {
		want.Webhooks[i].ClientConfig.Service.Namespace = namespace
		want.Webhooks[i].NamespaceSelector.MatchExpressions[0].Values = []string{namespace}
		if w.Name == "controllers.ballast.argoproj.io" || w.Name == "scale.ballast.argoproj.io" {
			want.Webhooks[i].MatchConditions[0].Expression = `request.name == "` + workload + `"`
		}
		if w.Name == "pods.ballast.argoproj.io" {
			of := &want.Webhooks[i].MatchConditions[0].Expression
			*of = strings.Replace(*of, `["argocd-application-controller"].`, `["`+workload+`"].`, 1)
		}
	}
	if diff := cmp.Diff(want, in.Webhooks["ballast."+namespace]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, ok := in.Services[want.Webhooks[0].ClientConfig.Service.Name]; !ok {
		t.Error("the webhooks call a Service that is not there")
	}
}

func TestRetargetedTheConfigurationNamesTheTarget(t *testing.T) {
	in := decode(t, build(t, overlays()["retarget-example"]))
	got, err := configfile.Parse([]byte(in.ConfigMaps["ballast-config"].Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Target = plan.Target{Namespace: namespace, Name: workload}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnesOwnConfigurationTakesThePlaceOfTheRetargetedOne(t *testing.T) {
	in := decode(t, build(t, "testdata/own-config"))
	got, err := configfile.Parse([]byte(in.ConfigMaps["ballast-config"].Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Mode, want.Target.Namespace = plan.Hold, namespace
	want.Poll.Prometheus.URL = "http://prometheus.observability:9090"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	mounted := mounts(in.Deployments["ballast-planner"].Spec.Template.Spec)
	if diff := cmp.Diff(map[string]string{"/etc/ballast/config": "ballast-config"}, mounted); diff != "" {
		t.Errorf("mounts -want +got:\n%s", diff)
	}
	if got := in.ConfigMaps["ballast-config"].Namespace; got != namespace {
		t.Errorf("it is in namespace %s", got)
	}
}

// TestTheReadmesConfigurationParses takes the file out of README.md, where it is indented by eight.
func TestTheReadmesConfigurationParses(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "      config.yaml: |\n")
	file, _, _ := strings.Cut(after, "\n\n")
	if !found {
		t.Fatal("README.md shows no config.yaml")
	}
	if _, err := configfile.Parse([]byte(file)); err != nil {
		t.Errorf("%v in:\n%s", err, file)
	}
}

func TestTheReadmeNamesEverySetting(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("base/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object corev1.ConfigMap
	if err := yaml.UnmarshalStrict(settings, &object); err != nil {
		t.Fatal(err)
	}
	for name, value := range object.Data {
		if row := "| `" + name + "` | `" + value + "` |"; !strings.Contains(string(text), row) {
			t.Errorf("README.md has no row %s", row)
		}
	}
	if len(object.Data) != 4 {
		t.Errorf("there are %d settings", len(object.Data))
	}
}

// TestRetargetSelectsWithoutPatterns: an older kustomize, which many a kubectl has, compares kinds and names of replacements
// literally, and a pattern would select nothing without an error.
func TestRetargetSelectsWithoutPatterns(t *testing.T) {
	files, err := filepath.Glob("components/retarget/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%q, %v", files, err)
	}
	literal, selects := regexp.MustCompile(`^[A-Za-z0-9.-]*$`), 0
	for _, f := range files {
		var replacements []types.Replacement
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		readStrict(t, f, &replacements)
		for _, r := range replacements {
			for _, target := range r.Targets {
				selects++
				if !literal.MatchString(target.Select.Kind) || !literal.MatchString(target.Select.Name) {
					t.Errorf("%s selects %q %q", f, target.Select.Kind, target.Select.Name)
				}
			}
		}
	}
	if selects < 30 {
		t.Errorf("only %d selectors were read", selects)
	}
}
