// Package podlist has the application-controller's pods as the API server knows them, and the slots that they claim.
package podlist

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/observed"
	"ballast/planner/paged"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

// mostPods is how many pods are kept: more than any workload has, and few enough for whoever makes pods to end nobody
// by them.
const mostPods = 5000

// List reads the pods of the target, whose UID may be "" where it is not known, and, for a Deployment whose clusters
// are distributed dynamically, its claims. It needs list on pods and, of a Deployment, on ReplicaSets, and get on the
// one ConfigMap, in the target's namespace.
// Claims that cannot be read are a problem, not an error. Of each pod only what is needed outlives its page.
func List(ctx context.Context, r client.Reader, target plan.Target, uid string, now time.Time) (Controllers, error) {
	var pods corev1.PodList
	c := Controllers{Patience: Patience{Heartbeat: defaultHeartbeat, Probe: defaultHeartbeat}}
	distributes, beyond, frozen := distributionOff, 0, ""
	owner, err := c.owners(ctx, r, target, uid)
	if err != nil {
		return Controllers{}, err
	}
	page := func() {
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !owner.of(pod) {
				continue
			}
			if len(c.Pods) == mostPods {
				beyond++
				continue
			}
			one := patienceOf(pod, target.Container)
			c.Patience = Patience{Heartbeat: max(c.Patience.Heartbeat, one.Heartbeat),
				Probe: max(c.Patience.Probe, one.Probe)}
			distributes = max(distributes, dynamic(pod, target.Container))
			c.Pods = append(c.Pods, fromPod(pod, target.Container))
			if patchable.HoldsBeyondJSON(pod.Status) && frozen == "" {
				frozen = pod.Name
			}
		}
	}
	if err := paged.Each(ctx, r, &pods, page, client.InNamespace(target.Namespace)); err != nil {
		return Controllers{}, fmt.Errorf("listing the pods in %q: %w", target.Namespace, err)
	}
	if beyond > 0 {
		c.Problems = append(c.Problems, fmt.Sprintf("%s %q has %d pods, of which %d are not looked at", target.Kind,
			target.Name, mostPods+beyond, beyond))
	}
	if frozen != "" {
		c.Problems = append(c.Problems, fmt.Sprintf("the status of pod %q has a time that JSON does not have, which somebody else than its kubelet wrote: the kubelet cannot write it any more, "+
			"and what it says stands for good; delete the pod, and see with `ballast audit` who may write pods' status",
			frozen))
	}
	if target.Kind == plan.Deployment {
		if err := c.readClaims(ctx, r, target, distributes); err != nil {
			return Controllers{}, err
		}
	}
	for i := range c.Pods {
		c.Pods[i] = c.number(c.Pods[i], target, now)
	}
	slices.SortFunc(c.Pods, func(a, b observed.Controller) int {
		return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Name, b.Name))
	})
	return c, nil
}

// owners are what the target's pods are controlled by: the target itself, or a Deployment's ReplicaSets. These are
// listed before the pods: one that comes in between is known the next time, and its pods are not ready before.
func (c *Controllers) owners(ctx context.Context, r client.Reader, target plan.Target, uid string) (owners, error) {
	o := owners{target: target, uid: uid}
	if target.Kind != plan.Deployment {
		return o, nil
	}
	var sets metav1.PartialObjectMetadataList
	sets.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSetList"})
	o.sets = map[types.UID]string{}
	page := func() {
		for i := range sets.Items {
			if o.controls(&sets.Items[i]) {
				o.sets[sets.Items[i].UID] = sets.Items[i].Name
			}
		}
	}
	err := paged.Each(ctx, r, &sets, page, client.InNamespace(target.Namespace))
	if apierrors.IsForbidden(err) {
		o.sets = nil
		c.Problems = append(c.Problems, fmt.Sprintf("the ReplicaSets in %q may not be listed, so the pods of Deployment %q are known by their owners' names alone: "+
			"allow list on replicasets.apps", target.Namespace, target.Name))
		return o, nil
	}
	if err != nil {
		return owners{}, fmt.Errorf("listing the ReplicaSets in %q: %w", target.Namespace, err)
	}
	return o, nil
}

// readClaims reads the mapping if there is one, or should be one.
func (c *Controllers) readClaims(ctx context.Context, r client.Reader, target plan.Target, d distribution) error {
	if d == distributionOff {
		return nil
	}
	var cm corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: ClaimsConfigMap}, &cm)
	switch {
	case apierrors.IsNotFound(err) && d == distributionUnknown:
		return nil
	case apierrors.IsNotFound(err):
		c.Problems = append(c.Problems, fmt.Sprintf("ConfigMap %q is not there yet, so no pod has claimed a slot",
			ClaimsConfigMap))
	case err != nil:
		return fmt.Errorf("reading ConfigMap %q in %q: %w", ClaimsConfigMap, target.Namespace, err)
	}
	c.Dynamic = true
	claims, err := ParseClaims(cm.Data[ClaimsKey])
	if c.Claims = claims; err != nil {
		c.Problems = append(c.Problems, err.Error())
	}
	if problem, found := c.Patience.problem(); found {
		c.Problems = append(c.Problems, problem)
	}
	return nil
}

// number gives a pod its replica: a StatefulSet's pod has its ordinal; one of a Deployment the first slot that carries
// its name, as Argo CD reads it, or shard 0 where nothing is distributed.
func (c *Controllers) number(p observed.Controller, target plan.Target, now time.Time) observed.Controller {
	if target.Kind != plan.Deployment {
		p.Replica, p.Claimed = ordinal(p.Name, target.Name), true
		return p
	}
	if !c.Dynamic {
		p.Replica, p.Claimed = 0, true
		return p
	}
	p.Replica = plan.NoReplica
	if i := slices.IndexFunc(c.Claims, func(claim Claim) bool { return claim.Controller == p.Name }); i >= 0 {
		p.Replica, p.Claimed = c.Claims[i].Shard, c.Claims[i].fresh(c.Patience, now)
	}
	return p
}
