package ownership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ballast/planner/paged"
	"ballast/planner/plan"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List reads the target's pods and, for a Deployment whose clusters are distributed dynamically, its claims. It needs
// list on pods and get on the one ConfigMap, in the target's namespace. Claims that cannot be read are a problem, not
// an error.
func List(ctx context.Context, r client.Reader, target plan.Target, now time.Time) (Controllers, error) {
	var pods corev1.PodList
	var ours []corev1.Pod
	page := func() {
		for i := range pods.Items {
			if Belongs(&pods.Items[i], target) {
				ours = append(ours, pods.Items[i])
			}
		}
	}
	if err := paged.Each(ctx, r, &pods, page, client.InNamespace(target.Namespace)); err != nil {
		return Controllers{}, fmt.Errorf("listing the pods in %q: %w", target.Namespace, err)
	}
	c := Controllers{Patience: patienceOf(ours, target.Container)}
	if target.Kind == plan.Deployment {
		if err := c.readClaims(ctx, r, target, dynamic(ours, target.Container)); err != nil {
			return Controllers{}, err
		}
	}
	for i := range ours {
		c.Pods = append(c.Pods, c.number(fromPod(&ours[i], target.Container), target, now))
	}
	slices.SortFunc(c.Pods, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Name, b.Name))
	})
	return c, nil
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
		c.Problems = append(c.Problems, fmt.Sprintf("ConfigMap %q is not there yet, so no pod has claimed a slot", ClaimsConfigMap))
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
func (c *Controllers) number(p Controller, target plan.Target, now time.Time) Controller {
	if target.Kind != plan.Deployment {
		p.Replica, p.Claimed = ordinal(p.Name, target.Name), true
		return p
	}
	if !c.Dynamic {
		p.Replica, p.Claimed = 0, true
		return p
	}
	p.Replica = NoReplica
	if i := slices.IndexFunc(c.Claims, func(claim Claim) bool { return claim.Controller == p.Name }); i >= 0 {
		p.Replica, p.Claimed = c.Claims[i].Shard, c.Claims[i].fresh(c.Patience, now)
	}
	return p
}
