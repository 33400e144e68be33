package plan

import (
	"bytes"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/cycle"
)

// What memory bounds is told of the fleet and of each move; of each replica that a cluster could be on, explain tells it.
func TestMemoryGolden(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	in.Config.Partition, in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	in.Config.Index.Dimensions = fixture.MemoryBound()
	out := cycle.Run(in)
	var text, json bytes.Buffer
	fixture.MustDo(t, writePlanTable(&text, in, out, false))
	fixture.MustDo(t, writePlanJSON(&json, in, out))
	_, memory, _ := strings.Cut(json.String(), `"memory": [`)
	first, _, _ := strings.Cut(memory, "}")
	text.WriteString("\n--- json, the first move\n" + first + "}\n")
	fixture.Golden(t, "memory", text.String())
}

func TestWhatWasLearnedIsTold(t *testing.T) {
	heldOut := 0.91
	got := learned(calibrate.Fit{Samples: 48, Pods: 3, R2: 0.934, HeldOut: &heldOut, Base: 250 << 20, Margin: 90 << 20,
		Per: map[string]float64{"objects": 2048, "apps": 30000}})
	want := "Learned of 48 samples of 3 pods (R2 0.93, 0.91 of each pod by the others): one more takes 29.3 KiB of apps, 2 KiB of objects; " +
		"a replica without any cluster takes 250 MiB, and up to 90 MiB are left free for what that is off by."
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
