package workload

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"

	corev1 "k8s.io/api/core/v1"
)

// TestFindContainer reads the table of podspec.FindController as a workload's pod template.
func TestFindContainer(t *testing.T) {
	text, err := os.ReadFile("../../plan/podspec/testdata/containers.json")
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

// What the container runtime takes is the last entry; where entries disagree, none of them is what a plan holds.
func TestEntriesOfOneVariable(t *testing.T) {
	said := func(values ...string) corev1.Container {
		var c corev1.Container
		for _, v := range values {
			e := corev1.EnvVar{Name: discover.EnvReplicas, Value: v}
			if v == "ref" {
				e = corev1.EnvVar{Name: discover.EnvReplicas, ValueFrom: &corev1.EnvVarSource{}}
			}
			c.Env = append(c.Env, corev1.EnvVar{Name: "OTHER", Value: "9"}, e)
		}
		return c
	}
	loaded := func(c corev1.Container) corev1.Container {
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
		return c
	}
	type reading struct {
		Value            string
		Set, Mixed, Else bool
	}
	for name, tc := range map[string]struct {
		c    corev1.Container
		want reading
	}{
		"none":                     {said(), reading{}},
		"one":                      {said("4"), reading{"4", true, false, false}},
		"two that say the same":    {said("4", "4"), reading{"4", true, false, false}},
		"two that disagree":        {said("4", "1"), reading{"1", true, true, false}},
		"one before a reference":   {said("4", "ref"), reading{"", false, true, true}}, // the last counts
		"a reference before one":   {said("ref", "4"), reading{"4", true, true, false}},
		"a reference":              {said("ref"), reading{"", false, false, true}},
		"none, and what is loaded": {loaded(said()), reading{"", false, false, true}},
		"one, and what is loaded":  {loaded(said("4")), reading{"4", true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			value, set := env(tc.c, discover.EnvReplicas)
			if diff := cmp.Diff(tc.want, reading{value, set, mixed(tc.c, discover.EnvReplicas), elsewhere(tc.c, discover.EnvReplicas)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
