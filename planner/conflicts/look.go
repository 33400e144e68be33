package conflicts

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/lenient"
	"ballast/planner/paged"
	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// Look asks what else has a say over the plan's workload. What it may not list is a finding; an error names what could
// not be asked for any other reason, and the findings of everything else hold all the same. The reader is one without a
// cache: a look every few minutes is no reason to watch.
func Look(ctx context.Context, r client.Reader, p plan.Plan) ([]Finding, error) {
	l := look{ctx: ctx, r: r, namespace: p.Target.Namespace}
	l.hpas(p.Target)
	l.scaledObjects(p.Target)
	found := autoscalers(p, l.scalers, l.unlisted)
	found = append(found, l.resizers(p)...)
	found = append(found, l.budgets(p)...)
	return append(found, l.denied...), errors.Join(l.errs...)
}

// resizers are the VPAs of the namespace that change the workload's pods.
func (l *look) resizers(p plan.Plan) (found []Finding) {
	more := 0
	list := paged.NewList[inputs.VPA](inputs.VPAKind())
	l.list(list, "verticalpodautoscalers.autoscaling.k8s.io", func() {
		found = append(found, Resizers(p, list.Kept)...)
		if beyond := len(found) - mostTold; beyond > 0 {
			found, more = found[:mostTold], more+beyond
		}
	})
	found = append(found, l.operator(p)...)
	if more > 0 {
		found = append(found, Finding{Kind: Resized, Subject: "more VPAs", Message: fmt.Sprintf(
			"%d more VPAs change the pods of %s %s: kubectl -n %s get vpa lists them; see who may create them",
			more, p.Target.Kind, p.Target.Name, p.Target.Namespace)})
	}
	return found
}

// operator is the Argo CD operator's resource that the workload belongs to: it writes the number of replicas and the
// pod template, too.
func (l *look) operator(p plan.Plan) []Finding {
	if p.Resources == nil && p.FreeReplicas {
		return nil
	}
	workload := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(),
		Kind: p.Target.Kind}}
	switch err := l.r.Get(l.ctx, client.ObjectKey{Namespace: p.Target.Namespace, Name: p.Target.Name}, workload); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // a cycle says so
		return nil
	case err != nil:
		l.errs = append(l.errs, fmt.Errorf("reading whose %s %q is: %w", p.Target.Kind, p.Target.Name, err))
		return nil
	}
	return Operated(p, workload.OwnerReferences)
}

// budgets are the PodDisruptionBudgets that keep the pods from being drained. They are judged together once all are
// read: two over the same pods are as bad as one that spares none.
func (l *look) budgets(p plan.Plan) []Finding {
	var pods *Pods
	var ours []policyv1.PodDisruptionBudget
	more := 0
	list := &policyv1.PodDisruptionBudgetList{}
	l.list(list, "poddisruptionbudgets.policy", func() {
		if pods == nil && len(list.Items) > 0 {
			now, err := l.pods(p.Target)
			if err != nil {
				l.errs = append(l.errs, err)
				return
			}
			pods = &now
		}
		if pods != nil {
			ours = append(ours, selecting(p.Target.Namespace, *pods, list.Items)...)
		}
		if beyond := len(ours) - mostKept; beyond > 0 {
			ours, more = ours[:mostKept], more+beyond
		}
	})
	if len(ours) == 0 {
		return nil
	}
	found := undrainable(p, *pods, ours)
	if beyond := len(found) - mostTold; beyond > 0 {
		several := found[len(found)-1] // those over the same pods
		found, more = append(found[:mostTold-1], several), more+beyond
	}
	if more > 0 {
		found = append(found, Finding{Kind: PDBBlocks, Subject: "more PodDisruptionBudgets", Message: fmt.Sprintf(
			"%d findings more of PodDisruptionBudgets over the pods of %s %s: kubectl -n %s get pdb lists them; see who may create them",
			more, p.Target.Kind, p.Target.Name, p.Target.Namespace)})
	}
	return found
}

type look struct {
	ctx       context.Context
	r         client.Reader
	namespace string
	denied    []Finding
	errs      []error

	scalers  []Autoscaler // of the workload, mostKept at most
	unlisted int          // those beyond
}

// mostKept is how many autoscalers of the workload are looked at: of KEDA's each has its HPA.
const mostKept = 1000

// keep keeps one that scales the workload.
func (l *look) keep(a Autoscaler, t plan.Target) {
	switch {
	case !a.scales(t):
	case len(l.scalers) < mostKept:
		l.scalers = append(l.scalers, a)
	default:
		l.unlisted++
	}
}

// list reads a list page by page, if this cluster has the kind and the planner may.
func (l *look) list(list client.ObjectList, resource string, page func()) {
	err := paged.Each(l.ctx, l.r, list, page, client.InNamespace(l.namespace))
	switch {
	case err == nil, meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		l.denied = append(l.denied, Finding{Kind: CannotLook, Subject: resource, Message: fmt.Sprintf(
			"ballast may not list %s in %q, so it cannot say whether one concerns the application-controller: grant the planner's ServiceAccount list on it", resource, l.namespace)})
	default:
		if l.ctx.Err() != nil {
			l.denied = append(l.denied, Finding{Kind: CannotLook, Subject: resource, Message: fmt.Sprintf(
				"the time for a look ended before all %s in %q were read, so ballast cannot say whether another one concerns the application-controller: see who made so many, or such large ones", resource, l.namespace)})
		}
		l.errs = append(l.errs, fmt.Errorf("listing %s in %q: %w", resource, l.namespace, err))
	}
}

func (l *look) hpas(t plan.Target) {
	hpas := &autoscalingv2.HorizontalPodAutoscalerList{}
	l.list(hpas, "horizontalpodautoscalers.autoscaling", func() {
		for i := range hpas.Items {
			l.keep(ofHPA(&hpas.Items[i]), t)
		}
	})
}

func ofHPA(h *autoscalingv2.HorizontalPodAutoscaler) Autoscaler {
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
	return a
}

// KEDA's own defaults for what a ScaledObject leaves out.
const (
	kedaMaxReplicas = 100
	kedaTargetKind  = plan.Deployment
)

func (l *look) scaledObjects(t plan.Target) {
	list := paged.NewList[scaledObject](schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1",
		Kind: "ScaledObject"})
	l.list(list, "scaledobjects.keda.sh", func() {
		for _, o := range list.Kept {
			l.keep(o.autoscaler(), t)
		}
	})
}

// scaledObject is the part of one that is read. It is somebody else's type: what is of another type is left out.
type scaledObject struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		MinReplicaCount lenient.Field[int]         `json:"minReplicaCount"`
		MaxReplicaCount lenient.Field[int]         `json:"maxReplicaCount"`
		ScaleTargetRef  lenient.Field[scaleTarget] `json:"scaleTargetRef"`
	} `json:"spec"`
}

type scaleTarget struct {
	APIVersion lenient.Field[string] `json:"apiVersion"`
	Kind       lenient.Field[string] `json:"kind"`
	Name       lenient.Field[string] `json:"name"`
}

func (o scaledObject) autoscaler() Autoscaler {
	ref := o.Spec.ScaleTargetRef.Or(scaleTarget{})
	a := Autoscaler{Kind: ScaledObject, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		TargetKind: cmp.Or(ref.Kind.Or(""), kedaTargetKind),
		Min:        o.Spec.MinReplicaCount.Or(0), Max: o.Spec.MaxReplicaCount.Or(kedaMaxReplicas)}
	if isApps(ref.APIVersion.Or("")) {
		a.TargetName = ref.Name.Or("")
	}
	return a
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
