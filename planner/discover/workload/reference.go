package workload

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/plan"
)

// mostSources is how many of a container's envFrom are looked through: each is a read in every cycle.
const mostSources = 16

// errUnseen stands for a value that no ConfigMap shows.
var errUnseen = errors.New("it stands in no ConfigMap that can be read")

// follow reads what the container's variables refer to. A Deployment of which nobody can say whether its clusters are distributed
// dynamically counts with a number that cannot be seen: its pods say who has which cluster.
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
	// "true" gives nobody's cluster to another replica than its pods say. A word that it is not may be younger than the pods.
	if w.DynamicDistribution, _ = strconv.ParseBool(ptr.Deref(dynamic, "")); !w.DynamicDistribution {
		w.EnvUnknown, w.EnvSaid = true, nil
	}
	return nil
}

// followShard reads what number envFrom gives every pod, or says that nobody can tell. What an entry of its own refers to is told of as it
// stands in the template: a ConfigMap's key is one number for all, a field of the pod another for each.
func followShard(ctx context.Context, r client.Reader, w *discover.Workload, c corev1.Container) error {
	if e := lastEntry(c, discover.EnvShard); e != nil {
		w.ShardUnknown = e.ValueFrom == nil && refers(*e)
		return nil
	}
	value, err := said(ctx, r, w.Namespace, c, discover.EnvShard)
	if err != nil {
		return err
	}
	w.FixedShard, w.ShardUnknown = shardIn(ptr.Deref(value, "")), value == nil
	return nil
}

// said is what a variable's reference holds, as the kubelet would give it to a pod that starts now: empty where the
// reference is optional and leads nowhere. Nil: it is no ConfigMap's, or may not be read. A Secret is never read for it.
func said(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (*string, error) {
	value, err := refer(ctx, r, namespace, c, name)
	if errors.Is(err, errUnseen) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &value, nil
}

func refer(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (string, error) {
	if e := lastEntry(c, name); e != nil {
		if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			return "", errUnseen
		}
		ref := e.ValueFrom.ConfigMapKeyRef
		data, err := secrets.ReadConfigMap(ctx, r, namespace, ref.Name)
		value, found := data[ref.Key]
		if required := !ptr.Deref(ref.Optional, false); err == nil && !found && required {
			err = errUnseen // a pod that starts now does not run; those that run started with a value
		}
		return value, err
	}
	if len(c.EnvFrom) > mostSources {
		return "", errUnseen
	}
	for _, source := range slices.Backward(c.EnvFrom) { // the last one that has it
		key, ok := unprefixed(name, source.Prefix)
		switch {
		case !ok:
			continue
		case source.ConfigMapRef == nil:
			return "", errUnseen
		}
		data, err := secrets.ReadConfigMap(ctx, r, namespace, source.ConfigMapRef.Name)
		if err != nil {
			return "", err
		}
		if value, found := data[key]; found {
			return value, nil
		}
	}
	return "", nil
}

// unprefixed is the key that a source with this prefix gives a variable; false: it gives it by none.
func unprefixed(name, prefix string) (string, bool) {
	key, ok := strings.CutPrefix(name, prefix)
	return key, ok && key != ""
}
