package kubelet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"ballast/e2e/plane/identity"
	"ballast/e2e/plane/network"
	"ballast/e2e/plane/probe"
	"ballast/e2e/plane/process"
)

// The kubelet backs off from 10 s to 5 min and retries a volume every few
// seconds. A test has no such time, and a restart here pulls no image.
const (
	firstBackoff   = 200 * time.Millisecond
	longestBackoff = 5 * time.Second
	healthyRun     = 10 * time.Second
	retryStart     = 500 * time.Millisecond
	minimumGrace   = time.Second
	tokenLife      = 24 * time.Hour
	// stopGrace is what a process has to end by itself when the plane stops: nothing of it is worth saving.
	stopGrace = 3 * time.Second
)

// podRunner is one pod's life: it waits for what the process needs, starts it,
// probes it, restarts it, and ends it. Its status is written by one goroutine.
type podRunner struct {
	kubelet         *Kubelet
	namespace, name string
	uid             types.UID
	dir             string // Dir/pods/<uid>: the pod's root folder

	woken   chan struct{} // a hint that the pod or a volume's source changed
	ending  chan struct{} // closed when the pod is to go
	process atomic.Pointer[process.Child]

	mu  sync.Mutex
	pod *corev1.Pod

	address string            // of the loopback network, since the first start
	volumes map[string]string // what was written last, by folder
	status  podStatus
}

func newPodRunner(k *Kubelet, pod *corev1.Pod) *podRunner {
	return &podRunner{
		kubelet: k, namespace: pod.Namespace, name: pod.Name, uid: pod.UID, pod: pod,
		dir:     filepath.Join(k.Dir, string(pod.UID)),
		woken:   make(chan struct{}, 1),
		ending:  make(chan struct{}),
		volumes: map[string]string{},
	}
}

func (r *podRunner) update(pod *corev1.Pod, end bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pod = pod
	if end && !r.isEnding() {
		close(r.ending)
	}
	r.wake()
}

func (r *podRunner) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *podRunner) current() *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pod
}

func (r *podRunner) isEnding() bool {
	select {
	case <-r.ending:
		return true
	default:
		return false
	}
}

// run returns when the pod is gone or the plane stops.
func (r *podRunner) run(ctx context.Context) {
	backoff := firstBackoff
	for {
		c := r.startWhenReady(ctx)
		if c == nil {
			break
		}
		began := time.Now()
		r.supervise(ctx, c)
		r.end(ctx, c)
		if ctx.Err() != nil || r.isEnding() {
			break
		}
		if time.Since(began) > healthyRun {
			backoff = firstBackoff
		}
		r.status.exited(c)
		r.report(ctx)
		select {
		case <-time.After(backoff):
		case <-r.ending:
		case <-ctx.Done():
		}
		backoff = min(2*backoff, longestBackoff)
	}
	if r.isEnding() {
		r.remove(ctx)
	}
}

// startWhenReady retries until the process runs; nil when the pod is to go
// first. What is missing stands in the container's status.
func (r *podRunner) startWhenReady(ctx context.Context) *process.Child {
	for ctx.Err() == nil && !r.isEnding() {
		pod := r.current()
		if pod.Status.PodIP != "" {
			c, err := r.start(ctx, pod)
			if err == nil {
				r.process.Store(c)
				r.status.started(time.Now())
				return c
			}
			r.status.waiting("CreateContainerConfigError", err.Error())
			r.report(ctx)
		}
		select {
		case <-r.woken:
		case <-time.After(retryStart):
		case <-r.ending:
		case <-ctx.Done():
		}
	}
	return nil
}

// start makes everything that the container sees, then the process.
func (r *podRunner) start(ctx context.Context, pod *corev1.Pod) (*process.Child, error) {
	k := r.kubelet
	address, err := k.Network.Loopback(pod.Status.PodIP)
	if err != nil {
		return nil, err
	}
	r.address = address
	container := &pod.Spec.Containers[0]
	for _, port := range container.Ports {
		if err := network.PortFree(address, int(port.ContainerPort)); err != nil {
			return nil, err
		}
	}
	if err := r.writeVolumes(pod, container, true); err != nil {
		return nil, err
	}
	kubeconfig, err := r.writeIdentity(ctx, pod)
	if err != nil {
		return nil, err
	}
	env, err := r.environment(pod, container, address)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(k.Binary, r.arguments(container, env)...)
	cmd.Dir = r.dir
	// PLANE_POD_IP stands in for the one address that a container has, HTTP_PROXY for the way to other pods.
	cmd.Env = append(slices.Clone(k.Env), "HOME="+r.dir, "TMPDIR="+r.dir, "KUBECONFIG="+kubeconfig,
		"HOSTNAME="+pod.Name, "PLANE_POD_IP="+address,
		"HTTP_PROXY="+k.ProxyURL)
	if coverage := os.Getenv("GOCOVERDIR"); coverage != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+coverage)
	}
	cmd.Env = append(cmd.Env, env.list()...)
	return k.Nursery.Spawn("pod "+r.namespace+"/"+r.name, k.logPath(r.name), cmd)
}

// writeIdentity asks for a token of the pod's ServiceAccount, bound to the pod
// as a projected one is, and writes the kubeconfig that stands in for the
// in-cluster configuration. It is the only access that the process gets.
func (r *podRunner) writeIdentity(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := pod.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID},
	}}
	k := r.kubelet
	token, err := k.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %q: %w", account, err)
	}
	path := r.dir + ".kubeconfig"
	config := rest.CopyConfig(k.Access)
	config.BearerToken = token.Status.Token
	return path, identity.WriteKubeconfig(path, config, pod.Namespace)
}

// supervise returns when the process exited or has to be ended.
func (r *podRunner) supervise(ctx context.Context, c *process.Child) {
	probing, stop := context.WithCancel(ctx)
	defer stop()
	verdicts := probe.Start(probing, &r.current().Spec.Containers[0], r.address)
	r.report(ctx)
	retry := time.NewTicker(retryStart)
	defer retry.Stop()
	for {
		select {
		case <-c.Done:
			return
		case <-r.ending:
			return
		case <-ctx.Done():
			return
		case v := <-verdicts:
			if v.Kind == probe.Readiness {
				r.status.probed(v.Err)
				r.report(ctx)
			} else {
				r.kubelet.Log("pod %s/%s: restarting, %s probe failed: %v", r.namespace, r.name, v.Kind, v.Err)
				return
			}
		case <-r.woken:
			pod := r.current()
			if err := r.writeVolumes(pod, &pod.Spec.Containers[0], false); err != nil {
				r.kubelet.Log("pod %s/%s: %v", r.namespace, r.name, err)
			}
		case <-retry.C:
			r.report(ctx) // a write that failed is tried again; else nothing happens
		}
	}
}

// end gives the process its grace: a preStop sleep, SIGTERM, the wait, SIGKILL.
// A stop of the plane cuts it short.
func (r *podRunner) end(ctx context.Context, c *process.Child) {
	pod := r.current()
	graceful, cancel := context.WithTimeout(ctx, grace(pod))
	defer cancel()
	if sleep := preStopSleep(pod); sleep > 0 && !c.Exited() {
		select {
		case <-c.Done:
		case <-time.After(sleep):
		case <-graceful.Done():
		}
	}
	c.Signal(syscall.SIGTERM)
	select {
	case <-c.Done:
	case <-graceful.Done():
		if ctx.Err() != nil {
			select {
			case <-c.Done:
			case <-time.After(stopGrace):
			}
		}
	}
	c.Signal(syscall.SIGKILL)
	<-c.Done
}

// grace is what the deletion asks for, else the spec, and never nothing.
func grace(pod *corev1.Pod) time.Duration {
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	return max(time.Duration(seconds)*time.Second, minimumGrace)
}

func preStopSleep(pod *corev1.Pod) time.Duration {
	l := pod.Spec.Containers[0].Lifecycle
	if l == nil || l.PreStop == nil || l.PreStop.Sleep == nil {
		return 0
	}
	return time.Duration(l.PreStop.Sleep.Seconds) * time.Second
}

// remove lets the object go, now that the process is gone, and the files.
func (r *podRunner) remove(ctx context.Context) {
	options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)),
		Preconditions: metav1.NewUIDPreconditions(string(r.uid))}
	gone := func(ctx context.Context) (bool, error) {
		err := r.kubelet.Client.CoreV1().Pods(r.namespace).Delete(ctx, r.name, options)
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
	}
	if err := wait.PollUntilContextCancel(ctx, retryStart, true, gone); err != nil {
		return
	}
	for _, path := range []string{r.dir, r.dir + ".kubeconfig"} {
		if err := os.RemoveAll(path); err != nil {
			r.kubelet.Log("removing files of pod %s/%s: %v", r.namespace, r.name, err)
		}
	}
}
