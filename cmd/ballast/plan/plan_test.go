package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/plan"
)

func TestPlanSaysWhatItWouldTake(t *testing.T) {
	three, sixteen, four := plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 16}, plan.Count{Replicas: 4, ControllerReplicas: 4}
	live := func(change func(*preview.Forecast)) preview.Forecast {
		a := preview.Forecast{Mode: plan.ModeLive, From: sixteen, To: sixteen, Moves: 17, PerWave: 5, Waves: 4, Limited: true, Done: fixture.Noon}
		change(&a)
		return a
	}
	for want, a := range map[string]preview.Forecast{
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget has room for all of it now.\n":          live(func(*preview.Forecast) {}),
		"Rollout live: at least 4 waves of at most 5 clusters, and nothing restarts for it; by the move budget it takes 1h20m at least.\n": live(func(a *preview.Forecast) { a.Done = fixture.Noon.Add(80 * time.Minute) }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n":                                                      live(func(a *preview.Forecast) { a.Limited = false }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget never has room for it.\n":               live(func(a *preview.Forecast) { a.Done = time.Time{} }),
		"Rollout live: 3 -> 4 replicas, 1 wave of at most 1 cluster, and nothing restarts for it.\n": live(func(a *preview.Forecast) {
			a.To.Replicas, a.Moves, a.Waves, a.PerWave, a.Limited = 4, 1, 1, 1, false
		}),
		"Rollout live: 3 -> 4 replicas, 4 waves of at most 5 clusters, and every pod restarts.\n":                                                            live(func(a *preview.Forecast) { a.To.Replicas, a.Restarts, a.Limited = 4, true, false }),
		"Rollout live: 4 waves of at most 5 clusters, 3 -> 2 replicas, and nothing restarts for it.\n":                                                       live(func(a *preview.Forecast) { a.To.Replicas, a.Limited = 2, false }),
		"Rollout live: 3 -> 2 replicas, and nothing restarts for it.\n":                                                                                      live(func(a *preview.Forecast) { a.To.Replicas, a.Moves, a.Waves = 2, 0, 0 }),
		"Rollout live: nothing moves.\n  Before that, once and for all: ARGOCD_CONTROLLER_REPLICAS becomes 16, which restarts the application-controller.\n": live(func(a *preview.Forecast) { a.Moves, a.Waves, a.Once = 0, 0, true }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: Secret \"a\" carries no shard.\n":                            live(func(a *preview.Forecast) { a.Limited, a.Missing = false, []string{`Secret "a" carries no shard`} }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: b; and 2 more like that.\n":                                  live(func(a *preview.Forecast) { a.Limited, a.Missing = false, []string{"b", "c", "d"} }),
		"Rollout x0y: every replica stops, 17 clusters move at once, 4 replicas come back.\n":                                                                {Mode: plan.ModeX0Y, From: three, To: four, Moves: 17, Restarts: true},
		"Rollout x0y: every replica stops, no cluster moves, 4 replicas come back.\n":                                                                        {Mode: plan.ModeX0Y, From: three, To: four, Restarts: true},
		"Rollout default: 3 -> 4 replicas, 17 clusters move at once, and every pod restarts.\n":                                                              {Mode: plan.ModeDefault, From: three, To: four, Moves: 17, Restarts: true},
		"Rollout default: 1 cluster moves, and nothing restarts for it.\n":                                                                                   {Mode: plan.ModeDefault, From: three, To: three, Moves: 1},
	} {
		var b bytes.Buffer
		writeAhead(&b, a, fixture.Noon)
		if diff := cmp.Diff("\n"+want, b.String()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", a, diff)
		}
	}
}

// A file is read as the planner reads it: what it names relatively is beside it, and its queries are judged.
func TestPlanReadsAFileAsThePlannerDoes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ballast.yaml")
	head := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	fixture.MustDo(t, os.WriteFile(file, []byte(head+"poll: {prometheus: {http: {authorization: {credentials_file: token}}}}\n"), 0o600))
	o := &options{config: file}
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
			o := &options{installed: "ballast-config", prometheus: test.prometheus}
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

// seenCycle is what a cycle saw, as a bug report has it; its rollouts are live, as they are by default.
func seenCycle(t *testing.T, name string) input.Inputs {
	t.Helper()
	text, err := os.ReadFile(fixture.Checkout(t, "planner", "cycle", "testdata", "cycles", name+".json"))
	fixture.MustDo(t, err)
	var in input.Inputs
	fixture.MustDo(t, json.Unmarshal(text, &in))
	in.Config.Rollout, in.Config.Change = config.Default().Rollout, config.Default().Change
	return in
}

func TestPlanGolden(t *testing.T) {
	for name, change := range map[string]func(*input.Inputs){
		"ahead": func(in *input.Inputs) { in.Config.Mode = plan.Observe },
		"under-way": func(in *input.Inputs) {
			in.InForce.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: in.Now, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 16, Wave: 1, Waves: 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := seenCycle(t, "elected-move")
			change(&in)
			var table, text bytes.Buffer
			out := cycle.Run(in)
			fixture.MustDo(t, writePlanTable(&table, in, out, false))
			fixture.MustDo(t, writePlanJSON(&text, in, out))
			var result struct {
				Ahead json.RawMessage `json:"ahead"`
			}
			fixture.MustDo(t, json.Unmarshal(text.Bytes(), &result))
			fixture.Golden(t, name, table.String()+"--- json, ahead\n"+strings.TrimSpace(string(result.Ahead))+"\n")
		})
	}
}

// TestThePlanDocumentGolden: what -o yaml prints is the document that would be written, before and after there is one.
func TestThePlanDocumentGolden(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"elected-move", "first-plan-of-legacy"} {
		in := seenCycle(t, name)
		var text bytes.Buffer
		fixture.MustDo(t, (&options{output: "yaml"}).write(&text, in, cycle.Run(in)))
		if _, err := plan.Decode(text.String()); err != nil {
			t.Errorf("%s: it is no plan: %v", name, err)
		}
		all.WriteString("--- " + name + "\n" + text.String())
	}
	fixture.Golden(t, "document", all.String())
}

// A cluster's values, its load, and what each replica would be to it; by its Secret, its name or its server, of a saved cycle.
func TestExplainGolden(t *testing.T) {
	in := seenCycle(t, "elected-move")
	in.Config.Partition, in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	in.Cordon = "0=" + in.Now.Add(time.Hour).Format(time.RFC3339)
	in.Pins = plan.Pins{"c003": 1}
	file := filepath.Join(t.TempDir(), "inputs.json")
	masked, err := saveInputs(file, in)
	fixture.MustDo(t, err)
	if masked != 0 {
		t.Errorf("%d servers had credentials", masked)
	}
	run := func(args ...string) string {
		cmd := NewExplainCommand()
		var out, notes bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		cmd.SilenceUsage = true
		cmd.SetArgs(append(args, "--inputs", file))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			return "error: " + strings.ReplaceAll(err.Error(), file, "FILE") + "\n"
		}
		return out.String()
	}
	var text strings.Builder
	for _, args := range [][]string{{"c001"}, {"c003"}, {"https://c001.example", "-o", "yaml"}, {"nobody"}, {"c001", "-o", "wide"}} {
		text.WriteString("$ ballast explain " + strings.Join(args, " ") + "\n" + run(args...) + "\n")
	}
	fixture.Golden(t, "explain", text.String())
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

// TestThePageOfAPlanSaysWhatTheTableDoes: as one file that loads nothing, with each move where it is from and where it goes.
func TestThePageOfAPlanSaysWhatTheTableDoes(t *testing.T) {
	in := seenCycle(t, "elected-move")
	in.Config.Mode = plan.Observe
	out := cycle.Run(in)
	var text bytes.Buffer
	fixture.MustDo(t, writePlanHTML(&text, in, out))
	fixture.Holds(t, text.String(), "What each replica carries now", "What each would carry", "Argo CD&#39;s legacy", "Nothing was changed.")
	if len(out.Candidate.Moves) == 0 {
		t.Fatal("nothing moves")
	}
	for _, m := range out.Candidate.Moves {
		fixture.Holds(t, text.String(), fmt.Sprintf(`<th scope="row">%s</th>`, m.Cluster), fmt.Sprintf(`<span class="mark moving">moving</span> replica %d to %d: %s `, m.From, m.To, m.Reason),
			fmt.Sprintf("replica %d · %s: load ", m.From, m.Cluster), fmt.Sprintf("replica %d · %s: load ", m.To, m.Cluster))
	}
	for _, loads := range []string{" src=", "<link", "@import"} {
		if strings.Contains(text.String(), loads) {
			t.Errorf("the file has %q", loads)
		}
	}
}
