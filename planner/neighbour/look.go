package neighbour

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

// Look asks what else has a say over the plan's workload. What it may not list is a finding; an error names what could not
// be asked for any other reason, and the findings of everything else hold all the same. The reader is one without a cache:
// a look every few minutes is no reason to watch.
func Look(ctx context.Context, r client.Reader, p plan.Plan) ([]Finding, error) {
	l := look{ctx: ctx, r: r, namespace: p.Target.Namespace}
	scalers := append(l.hpas(), l.scaledObjects()...)
	found := Autoscalers(p, scalers)
	budgets := &policyv1.PodDisruptionBudgetList{}
	if l.list(budgets, "poddisruptionbudgets.policy") && len(budgets.Items) > 0 {
		if pods, err := l.pods(p.Target); err != nil {
			l.errs = append(l.errs, err)
		} else {
			found = append(found, Undrainable(p, pods, budgets.Items)...)
		}
	}
	return append(found, l.denied...), errors.Join(l.errs...)
}

type look struct {
	ctx       context.Context
	r         client.Reader
	namespace string
	denied    []Finding
	errs      []error
}

// list reports whether the list is to be believed: read, and of a kind that this cluster has.
func (l *look) list(list client.ObjectList, resource string) bool {
	err := l.r.List(l.ctx, list, client.InNamespace(l.namespace))
	switch {
	case err == nil:
		return true
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		l.denied = append(l.denied, Finding{Kind: CannotLook, Subject: resource, Message: fmt.Sprintf(
			"ballast may not list %s in %q, so it cannot say whether one concerns the application-controller: grant the planner's ServiceAccount list on it", resource, l.namespace)})
	default:
		l.errs = append(l.errs, fmt.Errorf("listing %s in %q: %w", resource, l.namespace, err))
	}
	return false
}

func (l *look) hpas() []Autoscaler {
	hpas := &autoscalingv2.HorizontalPodAutoscalerList{}
	if !l.list(hpas, "horizontalpodautoscalers.autoscaling") {
		return nil
	}
	var all []Autoscaler
	for i := range hpas.Items {
		h := &hpas.Items[i]
		a := Autoscaler{Kind: HPA, Namespace: h.Namespace, Name: h.Name, Min: 1, Max: int(h.Spec.MaxReplicas)}
		if h.Spec.MinReplicas != nil {
			a.Min = int(*h.Spec.MinReplicas)
		}
		if ref := h.Spec.ScaleTargetRef; isApps(ref.APIVersion) {
			a.TargetKind, a.TargetName = ref.Kind, ref.Name
		}
		if owner := metav1.GetControllerOf(h); owner != nil && owner.Kind == ScaledObject {
			a.Owner = owner.Name
		}
		all = append(all, a)
	}
	return all
}

// KEDA's own defaults for what a ScaledObject leaves out.
const (
	kedaMaxReplicas = 100
	kedaTargetKind  = plan.Deployment
)

func (l *look) scaledObjects() []Autoscaler {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObjectList"})
	if !l.list(list, "scaledobjects.keda.sh") {
		return nil
	}
	var all []Autoscaler
	for i := range list.Items {
		o := &list.Items[i]
		a := Autoscaler{Kind: ScaledObject, Namespace: o.GetNamespace(), Name: o.GetName(), TargetKind: kedaTargetKind,
			Min: int(number(o, 0, "spec", "minReplicaCount")), Max: int(number(o, kedaMaxReplicas, "spec", "maxReplicaCount"))}
		if kind := text(o, "spec", "scaleTargetRef", "kind"); kind != "" {
			a.TargetKind = kind
		}
		if isApps(text(o, "spec", "scaleTargetRef", "apiVersion")) {
			a.TargetName = text(o, "spec", "scaleTargetRef", "name")
		}
		all = append(all, a)
	}
	return all
}

// number and text read a field of somebody else's type; one that is not there, or is something else, is left out.
func number(o *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, ok, err := unstructured.NestedInt64(o.Object, path...); ok && err == nil {
		return n
	}
	return otherwise
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return s
}

// isApps reports whether an apiVersion is one of group apps, which is also what an absent one stands for.
func isApps(apiVersion string) bool {
	return apiVersion == "" || strings.HasPrefix(apiVersion, appsv1.GroupName+"/")
}

// pods are the workload's as they stand.
func (l *look) pods(t plan.Target) (Pods, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.Name}
	if t.Kind == plan.Deployment {
		var d appsv1.Deployment
		if err := l.r.Get(l.ctx, key, &d); err != nil {
			return Pods{}, fmt.Errorf("reading %s %q: %w", t.Kind, key, err)
		}
		return Pods{Labels: d.Spec.Template.Labels, Count: int(d.Status.Replicas)}, nil
	}
	var s appsv1.StatefulSet
	if err := l.r.Get(l.ctx, key, &s); err != nil {
		return Pods{}, fmt.Errorf("reading %s %q: %w", t.Kind, key, err)
	}
	return Pods{Labels: s.Spec.Template.Labels, Count: int(s.Status.Replicas)}, nil
}
