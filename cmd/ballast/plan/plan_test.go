package plan

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
)

func TestPlanSaysWhatItWouldTake(t *testing.T) {
	three, sixteen, four := plan.Count{Replicas: 3, ControllerReplicas: 3}, plan.Count{Replicas: 3, ControllerReplicas: 16}, plan.Count{Replicas: 4, ControllerReplicas: 4}
	live := func(change func(*cycle.Forecast)) cycle.Forecast {
		a := cycle.Forecast{Mode: plan.ModeLive, From: sixteen, To: sixteen, Moves: 17, PerWave: 5, Waves: 4, Limited: true, Done: fixture.Noon}
		change(&a)
		return a
	}
	for want, a := range map[string]cycle.Forecast{
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget has room for all of it now.\n":          live(func(*cycle.Forecast) {}),
		"Rollout live: at least 4 waves of at most 5 clusters, and nothing restarts for it; by the move budget it takes 1h20m at least.\n": live(func(a *cycle.Forecast) { a.Done = fixture.Noon.Add(80 * time.Minute) }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n":                                                      live(func(a *cycle.Forecast) { a.Limited = false }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it; the move budget never has room for it.\n":               live(func(a *cycle.Forecast) { a.Done = time.Time{} }),
		"Rollout live: 3 -> 4 replicas, 1 wave of at most 1 cluster, and nothing restarts for it.\n": live(func(a *cycle.Forecast) {
			a.To.Replicas, a.Moves, a.Waves, a.PerWave, a.Limited = 4, 1, 1, 1, false
		}),
		"Rollout live: 3 -> 4 replicas, 4 waves of at most 5 clusters, and every pod restarts.\n":                                                            live(func(a *cycle.Forecast) { a.To.Replicas, a.Restarts, a.Limited = 4, true, false }),
		"Rollout live: 4 waves of at most 5 clusters, 3 -> 2 replicas, and nothing restarts for it.\n":                                                       live(func(a *cycle.Forecast) { a.To.Replicas, a.Limited = 2, false }),
		"Rollout live: 3 -> 2 replicas, and nothing restarts for it.\n":                                                                                      live(func(a *cycle.Forecast) { a.To.Replicas, a.Moves, a.Waves = 2, 0, 0 }),
		"Rollout live: nothing moves.\n  Before that, once and for all: ARGOCD_CONTROLLER_REPLICAS becomes 16, which restarts the application-controller.\n": live(func(a *cycle.Forecast) { a.Moves, a.Waves, a.Once = 0, 0, true }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: Secret \"a\" carries no shard.\n":                            live(func(a *cycle.Forecast) { a.Limited, a.Missing = false, []string{`Secret "a" carries no shard`} }),
		"Rollout live: 4 waves of at most 5 clusters, and nothing restarts for it.\n  It waits: b; and 2 more like that.\n":                                  live(func(a *cycle.Forecast) { a.Limited, a.Missing = false, []string{"b", "c", "d"} }),
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
	cfg, err := o.loadConfig(false)
	fixture.MustDo(t, err)
	if got, want := cfg.Poll.Prometheus.HTTP.Authorization.CredentialsFile, filepath.Join(dir, "token"); got != want {
		t.Errorf("the token is read from %q, want %q, which is beside the file", got, want)
	}
	fixture.MustDo(t, os.WriteFile(file, []byte(head+`index: {pNorm: {weights: {apps: "1"}}}`+"\n"), 0o600))
	if _, err := o.loadConfig(false); err == nil || !strings.Contains(err.Error(), "the default metric has no weight") {
		t.Errorf("weights that leave default metrics out: %v", err)
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
