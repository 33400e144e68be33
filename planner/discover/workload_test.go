package discover

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFindContainer reads the table of plan.FindController as a workload's pod template.
func TestFindContainer(t *testing.T) {
	text, err := os.ReadFile("../plan/testdata/containers.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct {
		Named      string
		Containers []corev1.Container
		Want       int
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, test := range table {
		if test.Named != "" {
			continue // the planner reads the container of that name, or says that there is none
		}
		t.Run(name, func(t *testing.T) {
			got, err := FindContainer(test.Containers)
			if err != nil {
				got = -1
			}
			if got != test.Want {
				t.Errorf("container %d (%v), want %d", got, err, test.Want)
			}
		})
	}
}

func TestFindContainerSaysWhatToSet(t *testing.T) {
	for want, containers := range map[string][]corev1.Container{
		`finding the application-controller's container: none of "a", "b" stands out by the command argocd-application-controller, the env ARGOCD_CONTROLLER_REPLICAS or its name; set target.container`:      {{Name: "a"}, {Name: "b"}},
		`finding the application-controller's container: none of no containers stands out by the command argocd-application-controller, the env ARGOCD_CONTROLLER_REPLICAS or its name; set target.container`: nil,
	} {
		if _, err := FindContainer(containers); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
