package explain

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/source"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/explain"
	"ballast/planner/plan"
)

// A cluster's values, its load, and what each replica would be to it; by its Secret, its name or its server, of a saved cycle.
func TestExplainGolden(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Partition, in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	in.Cordon = "0=" + in.Now.Add(time.Hour).Format(time.RFC3339)
	in.Pins = plan.Pins{"c003": 1}
	file := filepath.Join(t.TempDir(), "inputs.json")
	masked, err := source.Save(file, in)
	fixture.MustDo(t, err)
	if masked != 0 {
		t.Errorf("%d servers had credentials", masked)
	}
	run := func(args ...string) string {
		cmd := NewCommand()
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

// What memory bounds is told of each replica that a cluster could be on: of one that no other has room for, and of one that could go.
func TestMemoryGolden(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Partition, in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	in.Config.Index.Dimensions = fixture.MemoryBound()
	out := cycle.Run(in)
	var text bytes.Buffer
	for _, name := range []string{"c008", "c001"} {
		e, err := explain.Cluster(in, out, name)
		fixture.MustDo(t, err)
		text.WriteString("$ ballast explain " + name + "\n")
		fixture.MustDo(t, explained{e}.WriteTable(&text))
		text.WriteString("\n")
	}
	fixture.Golden(t, "memory", text.String())
}
