package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/plan"
)

// A file is read as the planner reads it: what it names relatively is beside it, and its queries are judged.
func TestPlanReadsAFileAsThePlannerDoes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ballast.yaml")
	head := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	fixture.MustDo(t, os.WriteFile(file, []byte(head+"poll: {prometheus: {http: {authorization: {credentials_file: token}}}}\n"), 0o600))
	o := &Source{config: file}
	cfg, err := o.loadConfig(t.Context(), nil, io.Discard, false)
	fixture.MustDo(t, err)
	if got, want := cfg.Poll.Prometheus.HTTP.Authorization.CredentialsFile, filepath.Join(dir, "token"); got != want {
		t.Errorf("the token is read from %q, want %q, which is beside the file", got, want)
	}
	fixture.MustDo(t, os.WriteFile(file, []byte(head+`index: {pNorm: {weights: {apps: "1"}}}`+"\n"), 0o600))
	if _, err := o.loadConfig(t.Context(), nil, io.Discard, false); err == nil || !strings.Contains(err.Error(), "the default metric has no weight") {
		t.Errorf("weights that leave default metrics out: %v", err)
	}
}

// TestPlanGoesByTheInstalledConfiguration where no file is named, and says so; a Prometheus that a person names is asked
// without the planner's credentials, which are for another one, and the planner's without those that are files of its pod.
func TestPlanGoesByTheInstalledConfiguration(t *testing.T) {
	const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	installed := head + "mode: Enforce\ndiscover: {selector: {matchLabels: {team: a}}}\n" +
		"poll: {prometheus: {url: 'http://thanos:9090', matchers: {cluster: prod}, http: {authorization: {credentials_file: /var/run/token}}}}\n"
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "ballast-config", errors.New("you may not"))
	for name, test := range map[string]struct {
		data       map[string]string // of ballast-config; nil: there is none
		denied     error
		prometheus string
		says, fail string
		url, token string
		mode       plan.Mode
		team       string
	}{
		"as installed": {map[string]string{"config.yaml": installed}, nil, "", "by the configuration of ConfigMap ballast-config, as the planner\n" +
			"note: the planner's configuration names files for its Prometheus, which are in the planner's pod: none is read here, and the Prometheus is " +
			"asked without its settings of HTTP; where it takes credentials give a file with --config\n", "", "http://thanos:9090", "", plan.Enforce, "a"},
		"a token in it":       {map[string]string{"config.yaml": strings.Replace(installed, "credentials_file: /var/run/token", "credentials: t0ken", 1)}, nil, "", "by the configuration of ConfigMap ballast-config, as the planner\n", "", "http://thanos:9090", "t0ken", plan.Enforce, "a"},
		"another Prometheus":  {map[string]string{"config.yaml": installed}, nil, "http://localhost:1", "by the configuration of ConfigMap ballast-config, as the planner\n", "", "http://localhost:1", "", plan.Enforce, "a"},
		"nothing installed":   {nil, nil, "", "", "", config.Default().Poll.Prometheus.URL, "", plan.Observe, ""},
		"no right to read it": {nil, forbidden, "", "note: without the right to read ConfigMap \"ballast-config\", the installed planner's configuration is not known, and every setting is at its default\n", "", config.Default().Poll.Prometheus.URL, "", plan.Observe, ""},
		"another key":         {map[string]string{"x": "y"}, nil, "", "note: ConfigMap \"ballast-config\" has no config.yaml, and every setting is at its default\n", "", config.Default().Poll.Prometheus.URL, "", plan.Observe, ""},
		"a mistake":           {map[string]string{"config.yaml": head + "mode: hold\n"}, nil, "", "", `reading the configuration of ConfigMap "ballast-config", as the planner does: mode: Unsupported value: "hold"`, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			built := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if test.data != nil {
				built = built.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"}, Data: test.data})
			}
			c := interceptor.NewClient(built.Build(), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if test.denied != nil {
					return test.denied
				}
				return c.Get(ctx, key, object, options...)
			}})
			o := &Source{installed: "ballast-config", prometheus: test.prometheus}
			o.cluster.Namespace = "argocd"
			var said bytes.Buffer
			cfg, err := o.loadConfig(t.Context(), c, &said, false)
			if test.fail != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fail) {
					t.Errorf("it ends with %v, want %q", err, test.fail)
				}
				return
			}
			fixture.MustDo(t, err)
			token := ""
			if a := cfg.Poll.Prometheus.HTTP.Authorization; a != nil {
				token = a.CredentialsFile + string(a.Credentials)
			}
			got := []string{said.String(), cfg.Poll.Prometheus.URL, token, string(cfg.Mode), cfg.Discover.Selector.MatchLabels["team"]}
			if diff := cmp.Diff([]string{test.says, test.url, test.token, string(test.mode), test.team}, got); diff != "" {
				t.Errorf("says, URL, token, mode, selector (-want +got):\n%s", diff)
			}
		})
	}
}

// What is no file of inputs is named with the mend, and runs nothing.
func TestInputsThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	for text, want := range map[string]string{
		"":                                       "is no file that ballast plan --save-inputs wrote: unexpected end of JSON input",
		`{"config": {}}`:                         "it has no time, or no configuration",
		`{"workload": {"replicas": 2000000000}}`: "a workload of 2000000000 replicas is written as one of 2000",
		`[1]`:                                    "is no file that ballast plan --save-inputs wrote: json: cannot unmarshal array",
	} {
		fixture.MustDo(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := readInputs(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := readInputs(file + "x"); err == nil || !strings.HasPrefix(err.Error(), "--inputs: ") {
		t.Errorf("no file: %v", err)
	}
}
