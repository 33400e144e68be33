package podspec

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
)

// TestFindController reads the table that the planner's and the webhook's tests read, too.
func TestFindController(t *testing.T) {
	text, err := os.ReadFile("testdata/containers.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct {
		Named      string
		Containers []struct {
			Name          string
			Command, Args []string
			Env           []struct{ Name string }
		}
		Want int
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, test := range table {
		t.Run(name, func(t *testing.T) {
			signs := make([]ContainerSigns, len(test.Containers))
			for i, c := range test.Containers {
				signs[i] = ContainerSigns{Name: c.Name, Words: append(append([]string{}, c.Command...), c.Args...)}
				for _, e := range c.Env {
					signs[i].HasEnv = signs[i].HasEnv || e.Name == plan.EnvReplicas
				}
			}
			if diff := cmp.Diff(test.Want, FindController(signs, test.Named)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
