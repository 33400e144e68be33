// Package surroundings asks the API server for what size rules may have as inputs beside loads: the nodes of the
// cluster, and what autoscalers of the workload recommend. What it makes of them is package size/inputs'.
package surroundings

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/paged"
	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// Look asks for what is wanted. A right or a kind that is missing is a state of what was asked for, with the mend; an
// error names what could not be asked for any other reason, and what it concerns is nil. The reader is one without a
// cache: lists go page by page, and a page is forgotten before the next one.
func Look(ctx context.Context, r client.Reader, t plan.Target, w inputs.Wants, now time.Time) (seen inputs.Surroundings, err error) {
	var errs []error
	if w.Nodes {
		if seen.Nodes, err = nodes(ctx, r, t, now); err != nil {
			errs = append(errs, err)
		}
	}
	if w.VPA {
		if seen.VPA, err = vpas(ctx, r, t, now); err != nil {
			errs = append(errs, err)
		}
	}
	if w.HPA {
		if seen.HPA, err = hpas(ctx, r, t, now); err != nil {
			errs = append(errs, err)
		}
	}
	return seen, errors.Join(errs...)
}

// state is why a list says nothing, where that is no passing fault.
func state(err error, what, mend string) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("ballast may not list %s: %s", what, mend)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return fmt.Sprintf("this cluster has no %s", what)
	}
	return ""
}

func nodes(ctx context.Context, r client.Reader, t plan.Target, now time.Time) (*inputs.Nodes, error) {
	needs, err := needsOf(ctx, r, t)
	if err != nil {
		return nil, err
	}
	seen := &inputs.Nodes{At: now}
	list := paged.NewList[inputs.Node](corev1.SchemeGroupVersion.WithKind("Node"))
	err = paged.Each(ctx, r, list, func() {
		for _, n := range list.Kept {
			seen.Add(n, needs)
		}
	})
	switch why := state(err, "nodes", "install component size-nodes"); {
	case why != "":
		return &inputs.Nodes{At: now, Why: why}, nil
	case err != nil:
		return nil, fmt.Errorf("listing nodes: %w", err)
	case seen.Count == 0:
		seen.Why = "this cluster has no nodes"
	}
	return seen, nil
}

func needsOf(ctx context.Context, r client.Reader, t plan.Target) (inputs.Needs, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.Name}
	var pod corev1.PodSpec
	var err error
	if t.Kind == plan.Deployment {
		var d appsv1.Deployment
		err, pod = r.Get(ctx, key, &d), d.Spec.Template.Spec
	} else {
		var s appsv1.StatefulSet
		err, pod = r.Get(ctx, key, &s), s.Spec.Template.Spec
	}
	if err != nil {
		return inputs.Needs{}, fmt.Errorf("reading %s %q: %w", t.Kind, key, err)
	}
	return inputs.NeedsOf(pod, t.Container), nil
}

func vpas(ctx context.Context, r client.Reader, t plan.Target, now time.Time) (*inputs.Recommendation, error) {
	var over []inputs.VPA
	list := paged.NewList[inputs.VPA](inputs.VPAKind())
	err := paged.Each(ctx, r, list, func() {
		for _, v := range list.Kept {
			if v.Over(t) && len(over) < 2 { // two are one too many, and which they are does not matter
				over = append(over, v)
			}
		}
	}, client.InNamespace(t.Namespace))
	switch why := state(err, "verticalpodautoscalers.autoscaling.k8s.io", "see that its Role ballast-planner is the shipped one"); {
	case why != "":
		return &inputs.Recommendation{At: now, Why: why}, nil
	case err != nil:
		return nil, fmt.Errorf("listing verticalpodautoscalers.autoscaling.k8s.io in %q: %w", t.Namespace, err)
	}
	return inputs.Recommends(over, t, now), nil
}

func hpas(ctx context.Context, r client.Reader, t plan.Target, now time.Time) (*inputs.Desired, error) {
	var over []autoscalingv2.HorizontalPodAutoscaler
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	err := paged.Each(ctx, r, list, func() {
		for i := range list.Items {
			if inputs.ScaledBy(&list.Items[i], t) && len(over) < 2 {
				over = append(over, list.Items[i])
			}
		}
	}, client.InNamespace(t.Namespace))
	switch why := state(err, "horizontalpodautoscalers.autoscaling", "see that its Role ballast-planner is the shipped one"); {
	case why != "":
		return &inputs.Desired{At: now, Why: why}, nil
	case err != nil:
		return nil, fmt.Errorf("listing horizontalpodautoscalers.autoscaling in %q: %w", t.Namespace, err)
	}
	return inputs.Desires(over, t, now), nil
}
