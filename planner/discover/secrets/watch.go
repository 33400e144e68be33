// Package secrets reads Argo CD's cluster Secrets, and what else of its namespace a fleet follows from; of them no
// cache keeps a credential.
package secrets

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"ballast/planner/discover"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Argo CD's ConfigMaps and what of them is read.
const (
	configMapSettings = "argocd-cm"
	configMapParams   = "argocd-cmd-params-cm"
	keyInCluster      = "cluster.inClusterEnabled"
	keyAlgorithm      = "controller.sharding.algorithm"
)

// Transform strips a Secret before the informer of a cache keeps it, of those that a selector chooses: credentials,
// last-applied and managed fields never stay in memory. Of labels it keeps those that the selector asks for, and those
// of that name for partition.groups. What is planned with is packed, for FromSecret to read. What is no Secret passes
// as it is.
func Transform(selector labels.Selector, groups ...string) func(any) (any, error) {
	requirements, _ := selector.Requirements()
	var shared sharedLabels
	return func(obj any) (any, error) { return transform(obj, requirements, groups, &shared) }
}

func transform(obj any, asked labels.Requirements, groups []string, shared *sharedLabels) (any, error) {
	s, ok := obj.(*corev1.Secret)
	if !ok || isPacked(s) {
		return obj, nil
	}
	return packed(FromSecret(s).WithLabels(s.Labels, groups), s, shared.of(keptLabels(s.Labels, asked))), nil
}

// keptLabels are those that the cache is asked for: a Secret may have thousands.
func keptLabels(all map[string]string, asked labels.Requirements) map[string]string {
	var kept map[string]string
	for _, r := range asked {
		value, found := all[r.Key()]
		if !found {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[r.Key()] = value
	}
	return kept
}

// sharedLabels has Secrets with the same labels share one map: nearly all have the same, and a map takes more than the
// rest of a small Secret does. Nobody writes to what a cache holds.
type sharedLabels struct {
	mu   sync.Mutex
	last map[string]string
}

func (s *sharedLabels) of(kept map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.last, kept) {
		s.last = kept
	}
	return s.last
}

// SecretsDiffer reports whether an update that a watch tells of changes anything of a Secret that is planned with: its
// other keys and labels, and what an informer tells again every few hours run no cycle.
func SecretsDiffer(before, after any) bool {
	a, is := after.(*corev1.Secret)
	b, was := before.(*corev1.Secret)
	return !is || !was || FromSecret(a) != FromSecret(b) || !maps.Equal(a.Labels, b.Labels) // what is packed has few of them
}

// ReadInput reads what Discover needs of Argo CD's namespace, but for InClusterOwner and AcceptDiscovery, which others
// know. Of more Secrets than are planned those that are known come first; of their labels those of the groups' names
// are kept. Without argocd-cm, or without its key, the in-cluster is enabled, as Argo CD has it.
func ReadInput(ctx context.Context, r client.Reader, namespace string, selector labels.Selector, known discover.Known, groups ...string) (discover.Input, error) {
	in := discover.Input{Namespace: namespace}
	var secrets corev1.SecretList
	// Nothing of the list is written to or outlives this call but strings: a copy of all would take as much again.
	err := r.List(ctx, &secrets, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy,
		packing(Transform(selector, groups...)))
	if err != nil {
		return discover.Input{}, fmt.Errorf("listing cluster secrets in %q: %w", namespace, err)
	}
	in.Secrets, in.LeftOut = choose(known, secrets.Items, discover.MostSecrets, groups...)
	settings, err := ReadConfigMap(ctx, r, namespace, configMapSettings)
	if err != nil {
		return discover.Input{}, err
	}
	in.InClusterEnabled = settings[keyInCluster] != "false"
	params, err := ReadConfigMap(ctx, r, namespace, configMapParams)
	if err != nil {
		return discover.Input{}, err
	}
	in.Algorithm = params[keyAlgorithm]
	return in, nil
}

// ReadConfigMap reads a ConfigMap's data; nil where there is none.
func ReadConfigMap(ctx context.Context, r client.Reader, namespace, name string) (map[string]string, error) {
	var cm corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ConfigMap %q in %q: %w", name, namespace, err)
	}
	return cm.Data, nil
}
