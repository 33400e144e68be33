package plane

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// programLabel on a pod names the program that RunProgram runs for it.
const programLabel = "plane.ballast/program"

// kubelet runs one real process for each selected pod, whichever node it is on:
// the first container's, with the environment, volumes, identity and probes
// that the pod's spec gives it. Init containers and further containers are
// taken as done and running. Pods that no kubelet may have are kwok's to
// simulate.
type kubelet struct {
	plane      *Plane
	selector   string
	binary     string
	secrets    listers.SecretLister
	configMaps listers.ConfigMapLister

	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool // no new runners
	pods   map[types.UID]*podRunner
}

// RunPods starts the kubelet: from now on each pod labelled
// app.kubernetes.io/name=ballast, in any namespace, has a process of the binary
// behind it, with a container's command but for its first word, and its args.
// Until then such pods stay Pending, and deleted ones stay Terminating. The
// context bounds the call and not the pods, which live as long as the plane.
func (p *Plane) RunPods(ctx context.Context, binary string) error {
	return p.runPods(ctx, labels.Set{"app.kubernetes.io/name": "ballast"}.String(), binary)
}

// RunProgram is RunPods for the pods labelled plane.ballast/program with that
// name.
func (p *Plane) RunProgram(ctx context.Context, name, binary string) error {
	return p.runPods(ctx, labels.Set{programLabel: name}.String(), binary)
}

func (p *Plane) runPods(ctx context.Context, selector, binary string) error {
	path, err := exec.LookPath(binary)
	if err != nil {
		return fmt.Errorf("finding the pods' binary: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("finding the pods' binary: %w", err)
	}
	if err := os.MkdirAll(p.path("pods"), 0o755); err != nil {
		return fmt.Errorf("making the pods' folder: %w", err)
	}
	k := &kubelet{plane: p, selector: selector, binary: path, pods: map[types.UID]*podRunner{}}
	p.mu.Lock()
	running := slices.ContainsFunc(p.kubelets, func(other *kubelet) bool { return other.selector == selector })
	if !running {
		p.kubelets = append(p.kubelets, k)
	}
	p.mu.Unlock()
	if running {
		return fmt.Errorf("starting the processes of pods %q: it was done before", selector)
	}
	return k.watch(ctx)
}

// watch starts the informers and waits until they are synced.
func (k *kubelet) watch(ctx context.Context) error {
	all := informers.NewSharedInformerFactory(k.plane.client, 0)
	secrets, configMaps := all.Core().V1().Secrets(), all.Core().V1().ConfigMaps()
	k.secrets, k.configMaps = secrets.Lister(), configMaps.Lister()
	selected := informers.NewSharedInformerFactoryWithOptions(k.plane.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = k.selector
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
	all.Start(k.plane.ctx.Done())
	selected.Start(k.plane.ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watching for the pods' processes: %w", ctx.Err())
	}
	return nil
}

func podEvents(k *kubelet) cache.ResourceEventHandler {
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
func (k *kubelet) observe(pod *corev1.Pod) {
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
			r.run(k.plane.ctx)
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.pods, pod.UID)
		})
	}
	r.update(pod, pod.DeletionTimestamp != nil)
}

// forget ends the process of a pod whose object was removed by force.
func (k *kubelet) forget(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.pods[pod.UID]; ok {
		r.update(pod, true)
	}
}

// nudge lets a namespace's pods look at their volumes again.
func (k *kubelet) nudge(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.namespace == namespace {
			r.wake()
		}
	}
}

// wait returns when the plane's context, which has ended, has ended every pod.
func (k *kubelet) wait() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.wg.Wait()
}

// KillPod kills the pod's process, as the kernel does when memory runs out, and
// returns when it is gone. The pod stays, and its container restarts.
func (p *Plane) KillPod(ctx context.Context, namespace, name string) error {
	c := p.podProcess(namespace, name)
	if c == nil {
		return fmt.Errorf("killing the process of pod %q: %w", namespace+"/"+name, fs.ErrNotExist)
	}
	c.signal(syscall.SIGKILL)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("killing the process of pod %q: %w", namespace+"/"+name, ctx.Err())
	}
}

// PodPID is the process behind the pod, 0 while there is none.
func (p *Plane) PodPID(namespace, name string) int {
	if c := p.podProcess(namespace, name); c != nil {
		return c.pid
	}
	return 0
}

func (p *Plane) podProcess(namespace, name string) *child {
	p.mu.Lock()
	kubelets := slices.Clone(p.kubelets)
	p.mu.Unlock()
	for _, k := range kubelets {
		if c := k.process(namespace, name); c != nil {
			return c
		}
	}
	return nil
}

func (k *kubelet) process(namespace, name string) *child {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.namespace == namespace && r.name == name {
			if c := r.process.Load(); c != nil && !c.exited() {
				return c
			}
		}
	}
	return nil
}

// PodLog is what the processes of the pods of this name have printed so far,
// restarts included.
func (p *Plane) PodLog(name string) (string, error) {
	data, err := os.ReadFile(p.PodLogPath(name))
	if err != nil {
		return "", fmt.Errorf("reading the log of pod %q: %w", name, err)
	}
	return string(data), nil
}

// PodLogPath is the file that PodLog reads.
func (p *Plane) PodLogPath(name string) string { return p.path("pods/" + name + ".log") }

// pause waits, and tells whether it could: false when the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
