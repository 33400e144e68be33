package discover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// Env variables of the application-controller that ballast reads; it writes the first.
const (
	EnvReplicas  = "ARGOCD_CONTROLLER_REPLICAS"
	EnvAlgorithm = "ARGOCD_CONTROLLER_SHARDING_ALGORITHM"
	EnvDynamic   = "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION"

	envNamespaces = "ARGOCD_APPLICATION_NAMESPACES"
)

// envShard is the replica that a pod is, to Argo CD, before the number in its name.
const envShard = "ARGOCD_CONTROLLER_SHARD"

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
	EnvMixed            bool    `json:"envMixed,omitempty"`   // the env has several entries, and they do not say the same
	EnvUnknown          bool    `json:"envUnknown,omitempty"` // the env has a value that does not stand in the template: valueFrom, $(...) or perhaps envFrom
	EnvSaid             *string `json:"envSaid,omitempty"`    // what the reference says now, where that is known; empty: nothing. Pods may have started with another value
	Algorithm           string  `json:"algorithm,omitempty"`
	DynamicDistribution bool    `json:"dynamicDistribution,omitempty"`
	Unmanaged           bool    `json:"unmanaged,omitempty"`
	NoText              bool    `json:"noText,omitempty"`        // some string of it is no UTF-8, which no patch that goes by JSON keeps
	ContainerGone       bool    `json:"containerGone,omitempty"` // the pod template has no container that is the controller's: what is said of one is what the plan holds
	FirstOrdinal        int     `json:"firstOrdinal,omitempty"`  // spec.ordinals.start of a StatefulSet: its pods' numbers begin there
	FixedShard          string  `json:"fixedShard,omitempty"`    // the env that Argo CD takes for a pod's replica before its name's number, where that is a number
	ShardUnknown        bool    `json:"shardUnknown,omitempty"`  // that env may have a value that nobody here can read
	RestartedAt         string  `json:"restartedAt,omitempty"`   // the pod template's annotation kubectl.kubernetes.io/restartedAt

	ApplicationNamespaces *string `json:"applicationNamespaces,omitempty"`

	Resources *plan.Resources `json:"resources,omitempty"` // what the pod template gives the container; nil for nothing

	Beside string `json:"beside,omitempty"` // other workloads that could be taken for it, by kind and name
}

// Renumbered is why the pods' replicas are not those from 0 that their clusters are divided over, and the mend; empty: they are. Planned is
// how many replicas the plan in force has, 0 without one.
func (w Workload) Renumbered(planned int) string {
	switch {
	case w.onlyReplica0(planned):
		return ""
	case w.FixedShard != "":
		return fmt.Sprintf("the pod template of %s %q has the env %s %q: each of its pods takes itself for that replica, and none for another, whose clusters nobody reconciles; take it out",
			w.Kind, w.Name, envShard, w.FixedShard)
	case w.FirstOrdinal > 0:
		return fmt.Sprintf("spec.ordinals.start of %s %q is %d: its pods' numbers begin there, and nobody reconciles the clusters of the replicas below; set it to 0",
			w.Kind, w.Name, w.FirstOrdinal)
	}
	return ""
}

// OnlyReplica0 is why no replica may be added, and the mend, where the pods' number is right for one replica alone; empty: it is right.
func (w Workload) OnlyReplica0(planned int) string {
	if !w.onlyReplica0(planned) {
		return ""
	}
	return fmt.Sprintf("the pod template of %s %q has the env %s %q, which is right for one replica: "+
		"each pod of another one would take itself for that replica, too; take it out", w.Kind, w.Name, envShard, w.FixedShard)
}

// onlyReplica0 goes by the plan, too: a workload that somebody scaled to 1 gets the plan's replicas back, and one that is stopped comes back.
func (w Workload) onlyReplica0(planned int) bool {
	n, err := strconv.Atoi(w.FixedShard)
	return err == nil && n == 0 && max(w.Replicas, planned) == 1
}

// Unnumbered is what cannot be told of the pods' numbers, and the mend; empty: all can.
func (w Workload) Unnumbered() string {
	if !w.ShardUnknown {
		return ""
	}
	return fmt.Sprintf("the pod template of %s %q may have the env %s by a Secret or another variable, which ballast does not read: with one number for all pods, "+
		"each takes itself for that replica, and nobody reconciles the others' clusters; where the pods' names are to number them, write the env with the value \"-1\" into the template",
		w.Kind, w.Name, envShard)
}

// fixedShard is the env that names every pod's replica; a negative one and what is no number leave it to the pod's name. A field of
// the pod is another one for each, as by its labels; a ConfigMap or a Secret says the same to all, and is not read for it.
func fixedShard(c corev1.Container) string {
	if e := lastEntry(c, envShard); e != nil && e.ValueFrom != nil && (e.ValueFrom.ConfigMapKeyRef != nil || e.ValueFrom.SecretKeyRef != nil) {
		return "by reference"
	}
	value, _ := env(c, envShard)
	return shardIn(value)
}

// shardIn is an env's value where Argo CD takes it for a replica.
func shardIn(value string) string {
	if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 {
		return ""
	}
	return value
}

// mostResources is how many resources of a container are read, by their names: a pod template has room for thousands.
const mostResources = 16

// resourcesOf is what a pod template gives a container.
func resourcesOf(c corev1.Container) *plan.Resources {
	texts := func(list corev1.ResourceList) map[string]string {
		if len(list) == 0 {
			return nil
		}
		m := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(list))[:min(len(list), mostResources)] {
			q := list[name]
			m[string(name)] = q.String()
		}
		return m
	}
	if len(c.Resources.Requests)+len(c.Resources.Limits) == 0 {
		return nil
	}
	return &plan.Resources{Requests: texts(c.Resources.Requests), Limits: texts(c.Resources.Limits)}
}

// FindContainer finds the application-controller among a pod's containers by plan.FindController, as the webhook does.
func FindContainer(containers []corev1.Container) (int, error) {
	if at := plan.FindController(signsOf(containers), ""); at >= 0 {
		return at, nil
	}
	return -1, fmt.Errorf("finding the application-controller's container: none of %s stands out by the command %s, the env %s or its name; "+
		"set target.container", cmp.Or(containerNames(containers), "no containers"), plan.ControllerCommand, EnvReplicas)
}

func signsOf(containers []corev1.Container) []plan.ContainerSigns {
	signs := make([]plan.ContainerSigns, len(containers))
	for i, c := range containers {
		signs[i] = plan.ContainerSigns{Name: c.Name, Words: slices.Concat(c.Command, c.Args),
			HasEnv: slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == EnvReplicas })}
	}
	return signs
}

// runsController reports whether one of them is an application-controller by more than its name.
func runsController(containers []corev1.Container) bool {
	return slices.ContainsFunc(signsOf(containers), plan.ContainerSigns.IsController)
}

// env is a container's variable: its value, and whether it is there with a value of its own. Of several entries the
// container runtime takes the last.
func env(c corev1.Container, name string) (string, bool) {
	if e := lastEntry(c, name); e != nil && !refers(*e) {
		return e.Value, true
	}
	return "", false
}

// refers reports whether an entry's value stands elsewhere: in a reference, or in another variable.
func refers(e corev1.EnvVar) bool { return e.ValueFrom != nil || strings.Contains(e.Value, "$(") }

func lastEntry(c corev1.Container, name string) *corev1.EnvVar {
	for i := range slices.Backward(c.Env) {
		if c.Env[i].Name == name {
			return &c.Env[i]
		}
	}
	return nil
}

// elsewhere reports whether a variable has, or may have, a value that the template does not show.
func elsewhere(c corev1.Container, name string) bool {
	if e := lastEntry(c, name); e != nil {
		return refers(*e)
	}
	return len(c.EnvFrom) > 0
}

// mixed reports whether a variable has several entries that do not say the same.
func mixed(c corev1.Container, name string) bool {
	var first *corev1.EnvVar
	for i, e := range c.Env {
		switch {
		case e.Name != name:
		case first == nil:
			first = &c.Env[i]
		case e.Value != first.Value, e.ValueFrom != nil, first.ValueFrom != nil:
			return true
		}
	}
	return false
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
