package discover

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Env variables of the application-controller that ballast reads; it writes the first.
const (
	EnvReplicas  = "ARGOCD_CONTROLLER_REPLICAS"
	EnvAlgorithm = "ARGOCD_CONTROLLER_SHARDING_ALGORITHM"
	EnvDynamic   = "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION"

	envNamespaces = "ARGOCD_APPLICATION_NAMESPACES"
)

// The application-controller's flags that say the same, and go before its env.
const (
	flagAlgorithm  = "--sharding-method"
	flagDynamic    = "--dynamic-cluster-distribution-enabled"
	flagNamespaces = "--application-namespaces"
)

// Workload is the application-controller's StatefulSet or Deployment as it stands. EnvReplicas is nil where the env is
// absent or comes from a reference; Algorithm is empty where neither flag nor env is there, else what they say.
// ApplicationNamespaces is nil where they leave it to Argo CD's settings.
type Workload struct {
	UID                 string  `json:"uid,omitempty"`
	Kind                string  `json:"kind"`
	Namespace           string  `json:"namespace"`
	Name                string  `json:"name"`
	Container           string  `json:"container"`
	Replicas            int     `json:"replicas"`
	ReadyReplicas       int     `json:"readyReplicas,omitempty"`
	UpdatedReplicas     int     `json:"updatedReplicas,omitempty"`
	CurrentReplicas     int     `json:"currentReplicas,omitempty"` // status.replicas: pods that exist, whatever their revision
	CurrentRevision     string  `json:"currentRevision,omitempty"`
	UpdateRevision      string  `json:"updateRevision,omitempty"`
	Generation          int64   `json:"generation,omitempty"`
	ObservedGeneration  int64   `json:"observedGeneration,omitempty"`
	EnvReplicas         *string `json:"envReplicas,omitempty"`
	Algorithm           string  `json:"algorithm,omitempty"`
	DynamicDistribution bool    `json:"dynamicDistribution,omitempty"`
	Unmanaged           bool    `json:"unmanaged,omitempty"`
	RestartedAt         string  `json:"restartedAt,omitempty"` // the pod template's annotation kubectl.kubernetes.io/restartedAt

	ApplicationNamespaces *string `json:"applicationNamespaces,omitempty"`
}

const controllerCommand = "argocd-application-controller"

// FindContainer finds the application-controller among a pod's containers, whatever it is called: by its env, else by its
// command, else by the names that the upstream manifests and the Helm chart use, else as the only one. Where a rule fits
// several, the next decides between them.
func FindContainer(containers []corev1.Container) (int, error) {
	candidates := make([]int, len(containers))
	for i := range containers {
		candidates[i] = i
	}
	for _, fits := range []func(corev1.Container) bool{hasReplicasEnv, runsController, isNamedController} {
		var left []int
		for _, i := range candidates {
			if fits(containers[i]) {
				left = append(left, i)
			}
		}
		if len(left) > 0 {
			candidates = left
		}
		if len(left) == 1 {
			return left[0], nil
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	return 0, fmt.Errorf("finding the application-controller's container: none of %s stands out by the env %s, the command %s or its name; set target.container",
		cmp.Or(containerNames(containers), "no containers"), EnvReplicas, controllerCommand)
}

func hasReplicasEnv(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == EnvReplicas })
}

func runsController(c corev1.Container) bool {
	return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return path.Base(arg) == controllerCommand })
}

func isNamedController(c corev1.Container) bool {
	return c.Name == controllerCommand || c.Name == "application-controller"
}

// env is a container's variable: its value, and whether it is there with a value of its own.
func env(c corev1.Container, name string) (string, bool) {
	for _, e := range c.Env {
		if e.Name == name && e.ValueFrom == nil {
			return e.Value, true
		}
	}
	return "", false
}

// setting is what the container's command line gives a flag, else what its env holds. A flag without "=" takes the next
// word unless it is a switch, and one that stands several times is a list, as Argo CD reads them.
func setting(c corev1.Container, flag, variable string) (string, bool) {
	words := slices.Concat(c.Command, c.Args)
	var values []string
	for i, word := range words {
		name, value, found := strings.Cut(word, "=")
		switch {
		case name != flag:
		case found:
			values = append(values, value)
		case flag == flagDynamic:
			values = append(values, "true")
		case i+1 < len(words):
			values = append(values, words[i+1])
		}
	}
	if len(values) == 0 {
		return env(c, variable)
	}
	if flag != flagNamespaces {
		values = values[len(values)-1:]
	}
	return strings.Join(values, ","), true
}

func containerNames(containers []corev1.Container) string {
	names := make([]string, len(containers))
	for i, c := range containers {
		names[i] = strconv.Quote(c.Name)
	}
	return strings.Join(names, ", ")
}
