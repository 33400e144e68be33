// Package kubelet runs one real process for each selected pod of a plane.
package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"ballast/e2e/plane/network"
	"ballast/e2e/plane/process"
	"ballast/e2e/plane/resize"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// ProgramLabel on a pod names the program that runs for it, where that is not ballast.
const ProgramLabel = "plane.ballast/program"

// HasProcess reports whether a pod has a process, and its status is a kubelet's to write.
func HasProcess(pod *corev1.Pod) bool {
	return pod.Labels[ProgramLabel] != "" || pod.Labels["app.kubernetes.io/name"] == "ballast"
}

// Options say which pods have a process, of what, and in what surroundings.
type Options struct {
	Selector string // of the pods' labels
	Binary   string // its absolute path
	Dir      string // of the pods' folders and logs
	Client   kubernetes.Interface
	Access   *rest.Config // the API server's address and authority; each pod has a token of its own
	Env      []string     // of every process; ProxyURL is its way to other pods
	ProxyURL string
	Network  *network.Network
	Nursery  *process.Nursery
	Sizes    *resize.Resizer
	Log      func(format string, args ...any)
}

// Kubelet runs one real process for each selected pod, whichever node it is on:
// the first container's, with the environment, volumes, identity and probes
// that the pod's spec gives it. Init containers and further containers are
// taken as done and running. Pods that no kubelet may have are kwok's to
// simulate.
type Kubelet struct {
	Options
	life       context.Context // it and every process end with it
	secrets    listers.SecretLister
	configMaps listers.ConfigMapLister

	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool // no new runners
	pods   map[types.UID]*podRunner
}

// New is a kubelet whose pods live as long as life.
func New(life context.Context, o Options) *Kubelet {
	return &Kubelet{Options: o, life: life, pods: map[types.UID]*podRunner{}}
}

// Start watches the selected pods from now on: until then they stay Pending, and
// deleted ones stay Terminating. The context bounds the call.
func (k *Kubelet) Start(ctx context.Context) error {
	all := informers.NewSharedInformerFactory(k.Client, 0)
	secrets, configMaps := all.Core().V1().Secrets(), all.Core().V1().ConfigMaps()
	k.secrets, k.configMaps = secrets.Lister(), configMaps.Lister()
	selected := informers.NewSharedInformerFactoryWithOptions(k.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = k.Selector
	}))
	pods := selected.Core().V1().Pods().Informer()

	var synced []cache.InformerSynced
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{secrets.Informer(), anyChange(k.nudge)},
		{configMaps.Informer(), anyChange(k.nudge)},
		{pods, podEvents(k)},
	} {
		r, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watching for the pods' processes: %w", err)
		}
		synced = append(synced, r.HasSynced)
	}
	all.Start(k.life.Done())
	selected.Start(k.life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watching for the pods' processes: %w", ctx.Err())
	}
	return nil
}

func podEvents(k *Kubelet) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.observe(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.observe(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = t.Obj
			}
			k.forget(o.(*corev1.Pod))
		},
	}
}

// anyChange calls f with the namespace of whatever changed.
func anyChange(f func(namespace string)) cache.ResourceEventHandler {
	on := func(o any) {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		f(o.(metav1.Object).GetNamespace())
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: on, UpdateFunc: func(_, o any) { on(o) }, DeleteFunc: on}
}

// observe takes a pod as it is now. The first sight of a scheduled pod starts
// its runner.
func (k *Kubelet) observe(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.pods[pod.UID]
	if !ok {
		if k.closed {
			return
		}
		r = newPodRunner(k, pod)
		k.pods[pod.UID] = r
		k.wg.Go(func() {
			r.run(k.life)
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.pods, pod.UID)
		})
	}
	r.update(pod, pod.DeletionTimestamp != nil)
}

// forget ends the process of a pod whose object was removed by force.
func (k *Kubelet) forget(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.pods[pod.UID]; ok {
		r.update(pod, true)
	}
}

// nudge lets a namespace's pods look at their volumes again.
func (k *Kubelet) nudge(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.namespace == namespace {
			r.wake()
		}
	}
}

// Wait returns when the plane's context, which has ended, has ended every pod.
func (k *Kubelet) Wait() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.wg.Wait()
}

// Process is what runs behind the pod now, nil for nothing.
func (k *Kubelet) Process(namespace, name string) *process.Child {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.namespace == namespace && r.name == name {
			if c := r.process.Load(); c != nil && !c.Exited() {
				return c
			}
		}
	}
	return nil
}

// logPath is the file of what the processes of the pods of this name have printed so far,
// restarts included.
func (k *Kubelet) logPath(name string) string { return filepath.Join(k.Dir, name+".log") }
