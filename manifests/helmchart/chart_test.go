package helmchart

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/planner/config/configfile"
)

var update = flag.Bool("update", false, "write the chart's templates and schema anew")

const chart = "../chart"

func source(t *testing.T) Source {
	t.Helper()
	s, err := Open("..")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written are the templates that people write.
var written = []string{"NOTES.txt", "_helpers.tpl"}

func TestTheTemplatesAreMadeOfTheBase(t *testing.T) {
	want, err := source(t).Templates()
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := Schema(values)
	if err != nil {
		t.Fatal(err)
	}
	want["../values.schema.json"] = string(schema)
	if *update {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(chart, "templates", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]string{}
	found, err := filepath.Glob(chart + "/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(found, chart+"/values.schema.json") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(chart+"/templates", f)
		if !slices.Contains(written, name) {
			got[filepath.ToSlash(name)] = string(text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-made of the base +in the chart (go test ./manifests/helmchart -update writes):\n%s", diff)
	}
}

// helm is Helm's own command, built of its module.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	h, err := assets.BuildHelm(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), h, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String() + errs.String(), err
}

func TestHelmLintFindsNothing(t *testing.T) {
	for _, values := range [][]string{nil, everything} {
		out, err := helm(t, slices.Concat([]string{"lint", "--strict", "--namespace=argocd", chart}, values)...)
		if err != nil || !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") {
			t.Errorf("%v: %v\n%s", values, err, out)
		}
	}
}

var everything = []string{"--set=alerts.enabled=true,dashboard=true,sizeNodes=true,clientAuth.enabled=true,failClosed=true,floor=true,networkPolicy.narrow=true,nudge=any-namespace," +
	"prometheusToken.enabled=true,recordingRules=true,watch.enabled=true,watch.alerts=true,certificates=self-signed"}

// What Helm renders is what kustomize builds, object by object, for each of these values and components.
func TestHelmAndKustomizeInstallTheSame(t *testing.T) {
	shipped := Settings{"argocd", "argocd-application-controller", "ballast-planner", "ballast-webhook"}
	components := func(names ...string) []string {
		var out []string
		for _, name := range names {
			out = append(out, "components/"+name)
		}
		return out
	}
	for name, c := range map[string]struct {
		settings              Settings
		release               string
		values                []string
		resources, components []string
	}{
		"as shipped":       {shipped, "ballast", nil, nil, components("cert-manager", "nudge")},
		"self-signed":      {shipped, "b", []string{"--set=certificates=self-signed"}, nil, components("self-signed", "nudge")},
		"without nudges":   {shipped, "b", []string{"--set=nudge=none"}, nil, components("cert-manager")},
		"alerts":           {shipped, "b", []string{"--set=alerts.enabled=true"}, nil, components("cert-manager", "nudge", "alerts")},
		"recording rules":  {shipped, "b", []string{"--set=recordingRules=true"}, nil, components("cert-manager", "nudge", "recording-rules")},
		"fail-closed":      {shipped, "b", []string{"--set=failClosed=true"}, nil, components("cert-manager", "nudge", "fail-closed")},
		"floor":            {shipped, "b", []string{"--set=floor=true"}, nil, components("cert-manager", "nudge", "floor")},
		"network policies": {shipped, "b", []string{"--set=networkPolicy.narrow=true"}, nil, components("cert-manager", "nudge", "network-policy")},
		"client auth":      {shipped, "b", []string{"--set=clientAuth.enabled=true"}, nil, components("cert-manager", "nudge", "client-auth")},
		"prometheus token": {shipped, "b", []string{"--set=prometheusToken.enabled=true"}, nil, components("cert-manager", "nudge", "prometheus-token")},
		"any namespace":    {shipped, "b", []string{"--set=nudge=any-namespace"}, nil, components("cert-manager", "nudge-any-namespace")},
		"watch":            {shipped, "b", []string{"--set=watch.enabled=true"}, []string{"watch"}, components("cert-manager", "nudge")},
		"watch and alerts": {shipped, "b", []string{"--set=watch.enabled=true,watch.alerts=true"}, []string{"watch"}, append(components("cert-manager", "nudge"), "watch/alerts")},
		"everything": {shipped, "b", everything, []string{"watch"}, append(components("self-signed", "nudge-any-namespace", "alerts", "client-auth",
			"dashboard", "size-nodes", "fail-closed", "floor", "network-policy", "prometheus-token", "recording-rules"), "watch/alerts")},
		"beside argo-helm's chart, with everything": {Settings{"gitops", "my-argo-argocd-application-controller", "p-planner", "p-webhook"}, "some-release",
			append([]string{"--set=workload=my-argo-argocd-application-controller,planner.serviceAccount=p-planner,webhook.serviceAccount=p-webhook"}, everything...),
			[]string{"watch"}, append(components("self-signed", "nudge-any-namespace", "alerts", "client-auth",
				"dashboard", "size-nodes", "fail-closed", "floor", "network-policy", "prometheus-token", "recording-rules"), "watch/alerts")},
		"a namespace of digits": {Settings{"123", "true", "1e3", "null"}, "456",
			[]string{"--set-string=workload=true,planner.serviceAccount=1e3,webhook.serviceAccount=null"}, nil, components("cert-manager", "nudge")},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := helm(t, slices.Concat([]string{"template", c.release, chart, "--namespace=" + c.settings.Namespace}, c.values)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			built, err := source(t).Build(c.settings, c.resources, c.components)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byID(t, built), byID(t, documents(t, out))); diff != "" {
				t.Errorf("-kustomize +helm:\n%s", diff)
			}
		})
	}
}

func documents(t *testing.T, text string) []Object {
	t.Helper()
	var objects []Object
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var o Object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// byID reads each configuration, so that its texts may differ; nothing else may.
func byID(t *testing.T, objects []Object) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, o := range objects {
		raw, err := yaml.Marshal(o) // kustomize's numbers are of other types
		if err != nil {
			t.Fatal(err)
		}
		var same map[string]any
		if err := yaml.Unmarshal(raw, &same); err != nil {
			t.Fatal(err)
		}
		if data, ok := same["data"].(map[string]any); ok && o.text("metadata", "name") == "ballast-config" {
			c, err := configfile.Parse([]byte(data["config.yaml"].(string)))
			if err != nil {
				t.Fatal(err)
			}
			same["data"] = c
		}
		if _, twice := out[o.ID()]; twice {
			t.Errorf("%s stands twice", o.ID())
		}
		out[o.ID()] = same
	}
	return out
}

// What has no default in kustomize: each value arrives where it belongs.
func TestValuesArrive(t *testing.T) {
	for name, c := range map[string]struct {
		set  string
		want []string
	}{
		"image by tag":    {"image.repository=r.example/ballast,image.tag=v1", []string{`image: "r.example/ballast:v1"`}},
		"image by digest": {"image.digest=sha256:" + strings.Repeat("a", 64), []string{`image: "ballast@sha256:` + strings.Repeat("a", 64) + `"`}},
		"pulling":         {"image.pullPolicy=Always,image.pullSecrets[0].name=x", []string{"        imagePullPolicy: Always", "      imagePullSecrets:\n      - name: x"}},
		"replicas":        {"planner.replicas=3,webhook.replicas=5", []string{"  replicas: 3", "  replicas: 5"}},
		"resources":       {"planner.resources.limits.memory=1Gi", []string{"            memory: 1Gi"}},
		"node selector":   {"webhook.nodeSelector.pool=infra", []string{"      nodeSelector:\n        pool: infra"}},
		"tolerations":     {"planner.tolerations[0].key=infra", []string{"      tolerations:\n        - key: infra"}},
		"affinity":        {"planner.affinity.nodeAffinity.x=y", []string{"      affinity:\n        nodeAffinity:\n          x: \"y\""}},
		"annotations":     {"planner.podAnnotations.x=y", []string{"      annotations:\n        x: \"y\""}},
		"priority":        {"priorityClassName=system-cluster-critical", []string{`priorityClassName: "system-cluster-critical"`}},
		"API servers":     {"networkPolicy.apiServers={10.0.0.1/32,10.0.0.2/32}", []string{"    from:\n    - ipBlock:\n        cidr: \"10.0.0.1/32\"\n    - ipBlock:\n        cidr: \"10.0.0.2/32\""}},
		"Prometheus":      {"networkPolicy.narrow=true,networkPolicy.prometheusNamespace=obs", []string{`kubernetes.io/metadata.name: "obs"`}},
		"audience":        {"prometheusToken.enabled=true,prometheusToken.audience=thanos", []string{`audience: "thanos"`}},
		"client's name":   {"clientAuth.enabled=true,clientAuth.name=apiserver", []string{"- --client-name=apiserver"}},
		"runbooks":        {"alerts.enabled=true,alerts.runbooks=https://wiki.example/ballast", []string{"runbook_url: https://wiki.example/ballast#ballastnoleader"}},
		"labels":          {"alerts.enabled=true,monitoringLabels.release=kps", []string{"    release: kps"}},
		"configuration":   {"config.mode=Hold,config.interval=2m,config.target.container=c", []string{"    mode: Hold", "    interval: 2m", "      container: c", "      namespace: ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := helm(t, "template", "r", chart, "--namespace=ns", "--set="+c.set)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want+"\n") {
					t.Errorf("%q is not in what --set=%s renders", want, c.set)
				}
			}
		})
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for _, set := range []string{"certifcates=self-signed", "nudge=all", "planner.replica=3", "planner.replicas=0", "workload=A", "config.mode=Enforced", "image.digest=latest",
		"clientAuth.name=a\n---\nkind: ClusterRoleBinding", "alerts.runbooks=a\n---\nkind: ClusterRoleBinding"} {
		out, err := helm(t, "template", "r", chart, "--set="+set)
		if err == nil || !strings.Contains(out, "values don't meet the specifications of the schema") {
			t.Errorf("%s: %v\n%s", set, err, out[:min(len(out), 300)])
		}
	}
}

func TestPartsThatChangeTheSameLinesAreRefused(t *testing.T) {
	base := []string{"a\n", "b\n", "c\n"}
	both := text{lines: base, edits: slices.Concat(edits("one", base, []string{"a\n", "x\n", "c\n"}), edits("two", base, []string{"a\n", "y\n", "c\n"}))}
	if _, err := both.merged(); err == nil {
		t.Error("both were taken")
	}
	one := text{lines: base, edits: edits("one", base, []string{"a\n", "x\n", "c\n", "d\n"})}
	got, err := one.merged()
	if want := "a\n{{- if one }}\nx\n{{- else }}\nb\n{{- end }}\nc\n{{- if one }}\nd\n{{- end }}\n"; err != nil || got != want {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
}

func TestEveryComponentIsAPart(t *testing.T) {
	folders, err := filepath.Glob("../components/*")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, f := range folders {
		want[filepath.Base(f)] = true
	}
	delete(want, "retarget") // by which the markers are put
	got := map[string]bool{}
	for _, p := range parts() {
		for _, c := range p.components {
			if name, ok := strings.CutPrefix(c, "components/"); ok {
				got[name] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("-components +parts:\n%s", diff)
	}
}
