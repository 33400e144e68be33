package whatif

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
)

// seen are the inputs of a cycle of 24 clusters on three replicas, as the planner saves them; of the shipped configuration.
func seen(t testing.TB) input.Inputs {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "planner", "cycle", "testdata", "cycles", "elected-move.json"))
	if err != nil {
		t.Fatal(err)
	}
	var in input.Inputs
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	d := config.Default()
	in.Config.Rollout, in.Config.Change, in.Config.Failover = d.Rollout, d.Change, d.Failover
	in.Config.Partition, in.Config.Evaluate = d.Partition, d.Evaluate
	return in
}

func saved(t *testing.T, in input.Inputs) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "inputs.json")
	text, err := json.Marshal(in)
	fixture.MustDo(t, err)
	fixture.MustDo(t, os.WriteFile(file, text, 0o600))
	return file
}

func run(t *testing.T, file string, args ...string) string {
	t.Helper()
	cmd := NewCommand()
	var out, notes bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "--inputs", file))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), file, "FILE") + "\n"
	}
	return out.String() + notes.String()
}

func TestWhatIfGolden(t *testing.T) {
	file := saved(t, seen(t))
	for name, asked := range map[string][][]string{
		"added":    {{"--add", "12", "--like", "c001"}, {"--add", "12", "--like", "https://c001.example", "--capacity", "0.3"}},
		"removed":  {{"--remove", "c001", "--remove", "c003"}},
		"lost":     {{"--lose", "2"}, {"--lose", "1,2", "--capacity", "0.3"}, {"--lose", "0,1"}},
		"replicas": {{"--replicas", "5"}, {"--capacity", "0.25"}, {"--capacity", "1"}},
		"forms":    {{"--remove", "c001", "-o", "json"}, {"--lose", "0", "-o", "yaml"}},
	} {
		var text strings.Builder
		for _, args := range asked {
			text.WriteString("$ ballast whatif " + strings.Join(args, " ") + "\n" + run(t, file, args...) + "\n")
		}
		fixture.Golden(t, name, text.String())
	}
}

// What cannot be supposed is named by its flag, with the mend, and all mistakes at once.
func TestWhatCannotBeSupposed(t *testing.T) {
	file := saved(t, seen(t))
	fixed := seen(t)
	fixed.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
	under := seen(t)
	under.InForce.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: under.Now, From: plan.Count{Replicas: 3}, Replicas: 4}
	away := seen(t)
	for i := range away.Fetched {
		away.Fetched[i].Samples, away.Fetched[i].Err = nil, "connection refused"
	}
	off := seen(t)
	off.Config.Failover = nil
	var text strings.Builder
	for _, test := range []struct {
		file string
		args string
	}{
		{file, ""}, {file, "--add 3"}, {file, "--like c001"}, {file, "--add 30000 --lose -1 --replicas few"},
		{file, "--add 1 --like nobody"}, {file, "--remove nobody"}, {file, "--lose 3"}, {file, "--lose 1 --lose 1"},
		{file, "--replicas 20"},
		{file, "--capacity much"}, {file, "--capacity -1"}, {file, "--capacity 0"}, {file, "--replicas 4 --max-replicas 3"},
		{file, "--lose 0 -o wide"},
		{saved(t, fixed), "--capacity 1"}, {saved(t, under), "--lose 1"}, {saved(t, away), "--lose 1"}, {saved(t, off), "--lose 1"},
	} {
		var args []string
		if test.args != "" {
			args = strings.Split(test.args, " ")
		}
		text.WriteString("$ ballast whatif " + test.args + "\n" + run(t, test.file, args...) + "\n")
	}
	fixture.Golden(t, "errors", text.String())
}
