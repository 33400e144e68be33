// Package resize answers changes of pods' sizes as their nodes do.
package resize

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Resizer plays the nodes' part in changes of a pod's size: it gives a pod what it asks for where the node has room
// (PodResizeInProgress, then done), puts it off while other pods have the room (PodResizePending, Deferred), and
// refuses what the node never has (PodResizePending, Infeasible), by the node's allocatable: the API server asks for no
// more itself. A node annotated plane.ballast/resizes=refused refuses every change, as a kubelet with a static CPU
// manager does. A memory limit below a pod's plane.ballast/memory-in-use is not made (PodResizeInProgress, Error) until
// that is less. The resizer writes the status of simulated pods; those with a process have it from their kubelet, which
// asks here.
type Resizer struct {
	Options
	life   context.Context // it works until then
	ending sync.WaitGroup
	pods   listers.PodLister
	nodes  listers.NodeLister
	queue  workqueue.TypedRateLimitingInterface[string]

	mu    sync.Mutex
	given map[types.UID]*Grant
}

// Grant is what a pod's containers have, in their order, and what its node says of what they ask for.
type Grant struct {
	node      string
	has       []corev1.ResourceRequirements
	allocated []corev1.ResourceRequirements
	condition *corev1.PodCondition // nil: it has what it asks for
}

// resizesAnnotation on a node says what it does with changes of its pods' sizes.
const resizesAnnotation = "plane.ballast/resizes"

// inUseAnnotation on a pod says how much memory its containers use.
const inUseAnnotation = "plane.ballast/memory-in-use"

// actuation is how long a container takes to have what its node has set aside for it.
const actuation = 200 * time.Millisecond

// Options say whose pods these are.
type Options struct {
	Client kubernetes.Interface
	// HasProcess reports whether a pod's status is somebody else's to write.
	HasProcess func(*corev1.Pod) bool
	Log        func(format string, args ...any)
}

// Start returns when it sees pods and nodes. ctx bounds the call, life the resizer.
func Start(ctx, life context.Context, o Options) (*Resizer, error) {
	factory := informers.NewSharedInformerFactory(o.Client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	r := &Resizer{Options: o, life: life, pods: pods.Lister(), nodes: nodes.Lister(), given: map[types.UID]*Grant{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	onPod, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: r.enqueue, UpdateFunc: func(_, o any) { r.enqueue(o) }, DeleteFunc: r.forget,
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods for their sizes: %w", err)
	}
	onNode, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: r.nodeChanged})
	if err != nil {
		return nil, fmt.Errorf("watching nodes for their room: %w", err)
	}
	factory.Start(life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), onPod.HasSynced, onNode.HasSynced) {
		return nil, fmt.Errorf("watching pods for their sizes: %w", ctx.Err())
	}
	context.AfterFunc(life, r.queue.ShutDown)
	r.ending.Go(r.work)
	return r, nil
}

// Wait returns when the work has ended, after life has.
func (r *Resizer) Wait() { r.ending.Wait() }

func (r *Resizer) enqueue(o any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
		r.queue.Add(key)
	}
}

// forget gives back what a pod had: another may have it.
func (r *Resizer) forget(o any) {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = t.Obj
	}
	pod := o.(*corev1.Pod)
	r.mu.Lock()
	delete(r.given, pod.UID)
	r.mu.Unlock()
	r.enqueueNode(pod.Spec.NodeName)
}

func (r *Resizer) nodeChanged(old, now any) {
	was, is := old.(*corev1.Node), now.(*corev1.Node)
	if !equality.Semantic.DeepEqual(was.Status.Allocatable, is.Status.Allocatable) || refuses(was) != refuses(is) {
		r.enqueueNode(is.Name)
	}
}

func (r *Resizer) enqueueNode(node string) {
	pods, err := r.pods.List(labels.Everything())
	if err != nil { // a cache's list does not fail
		return
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == node {
			r.enqueue(pod)
		}
	}
}

func (r *Resizer) work() {
	for {
		key, ended := r.queue.Get()
		if ended {
			return
		}
		if r.one(key) {
			r.queue.Forget(key)
		} else {
			r.queue.AddRateLimited(key)
		}
		r.queue.Done(key)
	}
}

// one looks at a pod and reports whether that is done with.
func (r *Resizer) one(key string) bool {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return true
	}
	pod, err := r.pods.Pods(namespace).Get(name)
	if err != nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return true
	}
	node, err := r.nodes.Get(pod.Spec.NodeName)
	if err != nil {
		return false
	}
	g := r.answer(pod, node)
	if inProgress(g.condition) {
		r.queue.AddAfter(key, actuation)
	}
	if r.HasProcess(pod) || len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return true
	}
	return r.report(pod, g)
}

// answer decides on what a pod asks for. The first time it has been scheduled with that, and has it.
func (r *Resizer) answer(pod *corev1.Pod, node *corev1.Node) Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	asks := requirements(pod)
	g := r.given[pod.UID]
	if g == nil {
		g = &Grant{node: pod.Spec.NodeName, has: asks, allocated: asks}
		r.given[pod.UID] = g
	}
	switch {
	case equality.Semantic.DeepEqual(g.has, asks):
		g.allocated, g.condition = asks, nil
	case inProgress(g.condition) && equality.Semantic.DeepEqual(g.allocated, asks):
		if g.condition = inUse(pod); g.condition == nil {
			g.has = asks
		}
	case refuses(node):
		g.condition = pending(corev1.PodReasonInfeasible,
			"Resize is infeasible for Pods alongside CPU Manager static policy")
	default:
		if g.condition = refusal(requests(asks), r.others(pod), node.Status.Allocatable); g.condition == nil {
			g.allocated, g.condition = asks, &corev1.PodCondition{Type: corev1.PodResizeInProgress,
				Status: corev1.ConditionTrue}
		}
	}
	return *g
}

func refuses(node *corev1.Node) bool { return node.Annotations[resizesAnnotation] == "refused" }

// others is what the node's other pods have.
func (r *Resizer) others(pod *corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for uid, g := range r.given {
		if uid != pod.UID && g.node == pod.Spec.NodeName {
			add(sum, requests(g.allocated))
		}
	}
	return sum
}

// refusal is a node's answer to requests that it cannot Grant, in a kubelet's words; nil where it can.
func refusal(asks, others, allocatable corev1.ResourceList) *corev1.PodCondition {
	var waits *corev1.PodCondition
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		wanted, used, most := asks[name], others[name], allocatable[name]
		if wanted.Cmp(most) > 0 {
			return pending(corev1.PodReasonInfeasible,
				"Node didn't have enough capacity: %s, requested: %d, capacity: %d", name, wanted.Value(), most.Value())
		}
		used.Add(wanted)
		if used.Cmp(most) > 0 && waits == nil {
			waits = pending(corev1.PodReasonDeferred,
				"Node didn't have enough resource: %s, requested: %d, capacity: %d", name, wanted.Value(), most.Value())
		}
	}
	return waits
}

func pending(reason, format string, args ...any) *corev1.PodCondition {
	return &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason,
		Message: fmt.Sprintf(format, args...)}
}

func inProgress(c *corev1.PodCondition) bool { return c != nil && c.Type == corev1.PodResizeInProgress }

// inUse is a node's answer to a memory limit below what a pod uses, in a kubelet's words; nil where it uses less.
func inUse(pod *corev1.Pod) *corev1.PodCondition {
	used, err := resource.ParseQuantity(pod.Annotations[inUseAnnotation])
	limit := corev1.ResourceList{}
	for _, has := range requirements(pod) {
		add(limit, has.Limits)
	}
	if most, limited := limit[corev1.ResourceMemory]; err != nil || !limited || used.Cmp(most) <= 0 {
		return nil
	}
	return &corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonError,
		Message: fmt.Sprintf("attempting to set pod memory limit (%d) below current usage (%d)", limit.Memory().Value(),
			used.Value())}
}

// Of is what a pod has; a pod that was not seen yet has what it asks for.
func (r *Resizer) Of(pod *corev1.Pod) Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.given[pod.UID]; g != nil {
		return *g
	}
	asks := requirements(pod)
	return Grant{has: asks, allocated: asks}
}

// Dress says in container statuses what they have. It reports whether that is new.
func (g Grant) Dress(statuses []corev1.ContainerStatus) (news bool) {
	for i := range statuses[:min(len(statuses), len(g.has))] {
		s := &statuses[i]
		if s.Resources == nil || !equality.Semantic.DeepEqual(*s.Resources, g.has[i]) || !equality.Semantic.DeepEqual(s.AllocatedResources, g.allocated[i].Requests) {
			s.Resources, s.AllocatedResources, news = g.has[i].DeepCopy(), maps.Clone(g.allocated[i].Requests), true
		}
	}
	return news
}

// Conditions is the strategic merge patch that leaves a pod with the grant's condition alone, of the two.
func (g Grant) Conditions(pod *corev1.Pod) []any {
	out := []any{}
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		switch {
		case g.condition != nil && g.condition.Type == kind:
			c := *g.condition
			c.LastTransitionTime = metav1.Now()
			if i >= 0 {
				c.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
			}
			out = append(out, c)
		case i >= 0:
			out = append(out, map[string]any{"type": kind, "$patch": "delete"})
		}
	}
	return out
}

// report writes a simulated pod's status, unless somebody else has written it meanwhile.
func (r *Resizer) report(pod *corev1.Pod, g Grant) bool {
	conditions := g.Conditions(pod)
	statuses := slices.Clone(pod.Status.ContainerStatuses)
	if !g.Dress(statuses) && same(conditions, pod.Status.Conditions) {
		return true
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"containerStatuses": statuses, "conditions": conditions},
	})
	if err != nil {
		return true
	}
	_, err = r.Client.CoreV1().Pods(pod.Namespace).Patch(r.life, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	passing := apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	if err != nil && !passing && r.life.Err() == nil {
		r.Log("pod %s/%s: writing its size: %v", pod.Namespace, pod.Name, err)
	}
	return err == nil || apierrors.IsNotFound(err)
}

// same reports whether a patch of conditions changes none of those that stand.
func same(patch []any, stand []corev1.PodCondition) bool {
	for _, p := range patch {
		c, ok := p.(corev1.PodCondition)
		if !ok || !slices.ContainsFunc(stand, func(s corev1.PodCondition) bool {
			return s.Type == c.Type && s.Reason == c.Reason && s.Message == c.Message
		}) {
			return false
		}
	}
	return true
}

// requirements are what a pod's containers ask for, in order: cpu and memory, which change without a restart.
func requirements(pod *corev1.Pod) []corev1.ResourceRequirements {
	out := make([]corev1.ResourceRequirements, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		out[i] = corev1.ResourceRequirements{Requests: sized(c.Resources.Requests), Limits: sized(c.Resources.Limits)}
	}
	return out
}

func sized(list corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory
	})
	return out
}

func requests(containers []corev1.ResourceRequirements) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range containers {
		add(sum, c.Requests)
	}
	return sum
}

func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}
