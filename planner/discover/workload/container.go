package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// The application-controller's flags that say the same, and go before its env.
const (
	flagAlgorithm  = "--sharding-method"
	flagDynamic    = "--dynamic-cluster-distribution-enabled"
	flagNamespaces = "--application-namespaces"
)

const envNamespaces = "ARGOCD_APPLICATION_NAMESPACES"

// fixedShard is the env that names every pod's replica; a negative one and what is no number leave it to the pod's
// name. A pod's name and index are another one for each; a ConfigMap, a Secret, a limit or an annotation of the
// template says the same to all, and is not read for it.
func fixedShard(c corev1.Container) string {
	if e := lastEntry(c, discover.EnvShard); e != nil && e.ValueFrom != nil && !eachPods(e.ValueFrom.FieldRef) {
		return "by reference"
	}
	value, _ := env(c, discover.EnvShard)
	return shardIn(value)
}

// eachPods reports whether a field is another one for each pod of a workload.
func eachPods(f *corev1.ObjectFieldSelector) bool {
	return f != nil && slices.Contains([]string{"metadata.name", "metadata.uid", "status.podIP",
		"metadata.labels['" + appsv1.PodIndexLabel + "']", "metadata.labels['" + appsv1.StatefulSetPodNameLabel + "']"},
		f.FieldPath)
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

// FindContainer finds the application-controller among a pod's containers by podspec.FindController, as the webhook
// does.
func FindContainer(containers []corev1.Container) (int, error) {
	if at := podspec.FindController(signsOf(containers), ""); at >= 0 {
		return at, nil
	}
	return -1, fmt.Errorf("finding the application-controller's container: none of %s stands out by the command %s, the env %s or its name; "+
		"set target.container", cmp.Or(containerNames(containers), "no containers"), podspec.ControllerCommand,
		discover.EnvReplicas)
}

func signsOf(containers []corev1.Container) []podspec.ContainerSigns {
	signs := make([]podspec.ContainerSigns, len(containers))
	for i, c := range containers {
		signs[i] = podspec.ContainerSigns{Name: c.Name, Words: slices.Concat(c.Command, c.Args),
			HasEnv: slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == discover.EnvReplicas })}
	}
	return signs
}

// runsController reports whether one of them is an application-controller by more than its name.
func runsController(containers []corev1.Container) bool {
	return slices.ContainsFunc(signsOf(containers), podspec.ContainerSigns.IsController)
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

// mostSources is how many of a container's envFrom are looked through: each is a read in every cycle.
const mostSources = 16

// errUnseen stands for a value that no ConfigMap shows.
var errUnseen = errors.New("it stands in no ConfigMap that can be read")

// follow reads what the container's variables refer to. A Deployment of which nobody can say whether its clusters are
// distributed dynamically counts with a number that cannot be seen: its pods say who has which cluster.
func follow(ctx context.Context, r client.Reader, w *discover.Workload, c corev1.Container) (err error) {
	if w.EnvUnknown {
		if w.EnvSaid, err = said(ctx, r, w.Namespace, c, discover.EnvReplicas); err != nil {
			return err
		}
	}
	if err := followShard(ctx, r, w, c); err != nil {
		return err
	}
	_, written := setting(c, flagDynamic, discover.EnvDynamic)
	if w.Kind != plan.Deployment || written || !elsewhere(c, discover.EnvDynamic) {
		return nil
	}
	dynamic, err := said(ctx, r, w.Namespace, c, discover.EnvDynamic)
	if err != nil {
		return err
	}
	// "true" gives nobody's cluster to another replica than its pods say. A word that it is not may be younger than the
	// pods.
	if w.DynamicDistribution, _ = strconv.ParseBool(ptr.Deref(dynamic, "")); !w.DynamicDistribution {
		w.EnvUnknown, w.EnvSaid = true, nil
	}
	return nil
}

// followShard reads what number envFrom gives every pod, or says that nobody can tell. What an entry of its own refers
// to is told of as it stands in the template: a ConfigMap's key is one number for all, a field of the pod another for
// each.
func followShard(ctx context.Context, r client.Reader, w *discover.Workload, c corev1.Container) error {
	if e := lastEntry(c, discover.EnvShard); e != nil {
		w.ShardUnknown = e.ValueFrom == nil && refers(*e)
		return nil
	}
	value, source, err := refer(ctx, r, w.Namespace, c, discover.EnvShard)
	if w.ShardUnknown = unseen(err); w.ShardUnknown {
		return nil
	}
	if w.FixedShard = shardIn(value); w.FixedShard != "" {
		w.ShardSource = source
	}
	return err
}

// said is what a variable's reference holds, as the kubelet would give it to a pod that starts now: empty where the
// reference is optional and leads nowhere. Nil: it is no ConfigMap's, or may not be read. A Secret is never read for
// it.
func said(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (*string, error) {
	value, _, err := refer(ctx, r, namespace, c, name)
	if unseen(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &value, nil
}

func unseen(err error) bool { return errors.Is(err, errUnseen) || apierrors.IsForbidden(err) }

// refer is what said answers; source names the key and the ConfigMap of envFrom that have it.
func refer(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (value, source string, err error) {
	for _, e := range slices.Backward(c.Env) {
		if e.Name != name {
			continue
		}
		if value, leads, err := entry(ctx, r, namespace, e); leads || err != nil {
			return value, "", err
		}
	}
	if len(c.EnvFrom) > mostSources {
		return "", "", errUnseen
	}
	for _, source := range slices.Backward(c.EnvFrom) { // the last one that has it
		key, ok := unprefixed(name, source.Prefix)
		switch {
		case !ok:
			continue
		case source.ConfigMapRef == nil:
			return "", "", errUnseen
		}
		data, err := secrets.ReadConfigMap(ctx, r, namespace, source.ConfigMapRef.Name)
		if err != nil {
			return "", "", err
		}
		if value, found := data[key]; found {
			return value, fmt.Sprintf("%q of ConfigMap %q", key, source.ConfigMapRef.Name), nil
		}
	}
	return "", "", nil
}

// entry is what one entry gives a variable; false: it is optional and leads nowhere, and leaves what an earlier one or
// envFrom gave.
func entry(ctx context.Context, r client.Reader, namespace string, e corev1.EnvVar) (value string, leads bool, err error) {
	switch {
	case !refers(e):
		return e.Value, true, nil
	case e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil:
		return "", false, errUnseen
	}
	ref := e.ValueFrom.ConfigMapKeyRef
	data, err := secrets.ReadConfigMap(ctx, r, namespace, ref.Name)
	value, leads = data[ref.Key]
	if required := !ptr.Deref(ref.Optional, false); err == nil && !leads && required {
		err = errUnseen // a pod that starts now does not run; those that run started with a value
	}
	return value, leads, err
}

// unprefixed is the key that a source with this prefix gives a variable; false: it gives it by none.
func unprefixed(name, prefix string) (string, bool) {
	key, ok := strings.CutPrefix(name, prefix)
	return key, ok && key != ""
}
