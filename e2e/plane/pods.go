package plane

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"ballast/e2e/plane/kubelet"
	"ballast/e2e/plane/process"
)

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
	return p.runPods(ctx, labels.Set{kubelet.ProgramLabel: name}.String(), binary)
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
	k := kubelet.New(p.ctx, kubelet.Options{
		Selector: selector, Binary: path, Dir: p.path("pods"), Client: p.client,
		Access: &rest.Config{Host: p.address, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.PEM}},
		Env:    p.env(), ProxyURL: p.forward.URL, Network: p.network, Nursery: p.nursery, Sizes: p.resizer,
		Log: p.log.printf,
	})
	p.mu.Lock()
	running := slices.ContainsFunc(p.kubelets, func(other *kubelet.Kubelet) bool { return other.Selector == selector })
	if !running {
		p.kubelets = append(p.kubelets, k)
	}
	p.mu.Unlock()
	if running {
		return fmt.Errorf("starting the processes of pods %q: it was done before", selector)
	}
	return k.Start(ctx)
}

// KillPod kills the pod's process, as the kernel does when memory runs out, and
// returns when it is gone. The pod stays, and its container restarts.
func (p *Plane) KillPod(ctx context.Context, namespace, name string) error {
	c := p.podProcess(namespace, name)
	if c == nil {
		return fmt.Errorf("killing the process of pod %q: %w", namespace+"/"+name, fs.ErrNotExist)
	}
	c.Signal(syscall.SIGKILL)
	select {
	case <-c.Done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("killing the process of pod %q: %w", namespace+"/"+name, ctx.Err())
	}
}

// PodPID is the process behind the pod, 0 while there is none.
func (p *Plane) PodPID(namespace, name string) int {
	if c := p.podProcess(namespace, name); c != nil {
		return c.PID
	}
	return 0
}

func (p *Plane) podProcess(namespace, name string) *process.Child {
	p.mu.Lock()
	kubelets := slices.Clone(p.kubelets)
	p.mu.Unlock()
	for _, k := range kubelets {
		if c := k.Process(namespace, name); c != nil {
			return c
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
