package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"ballast/e2e/assets"
	"ballast/e2e/plane/identity"
	"ballast/e2e/plane/kubelet"
	"ballast/e2e/plane/network"
	"ballast/e2e/plane/process"
	"ballast/e2e/plane/resize"
)

// Options say what to start.
type Options struct {
	// Binaries come from Build.
	Binaries assets.Binaries
	// Dir receives every file of the plane, and is kept. Empty: a temporary
	// folder, which Stop removes.
	Dir string
	// Log receives a line for every step that takes longer than a second, and
	// for every part that ends by itself. Nil: nobody.
	Log io.Writer
	// Nodes is the number of kwok nodes, spread over the zones zone-0 to
	// zone-2. 0 means 3.
	Nodes int
}

// Plane is a running control plane. Its methods are safe for concurrent use.
type Plane struct {
	binaries assets.Binaries
	dir      string
	ownsDir  bool
	log      *lineWriter
	nodes    int

	network *network.Network
	nursery *process.Nursery
	ca      *identity.Authority
	proxy   *network.Proxy
	forward *network.Forward
	socket  string
	etcdURL string
	address string
	config  *rest.Config
	client  kubernetes.Interface

	// ctx ends when Stop begins.
	ctx    context.Context
	cancel context.CancelFunc
	stop   sync.Once

	mu       sync.Mutex
	parts    []*process.Child // in the order of their start
	stopped  bool             // Stop has taken the parts
	kubelets []*kubelet.Kubelet

	resizer *resize.Resizer
}

// startTimeout is for the slowest shared machine: a plane takes some 4 seconds
// on two idle cores.
const startTimeout = 2 * time.Minute

// Start brings the plane up and returns when its nodes are Ready and take
// pods. The context bounds the plane's whole life, not just the start: when it
// ends, the plane stops.
func Start(ctx context.Context, o Options) (*Plane, error) {
	p, err := newPlane(ctx, o)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, p.Stop)
	starting, cancel := context.WithTimeout(p.ctx, startTimeout)
	defer cancel()
	if err := p.bringUp(starting); err != nil {
		p.Stop()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return p, nil
}

func newPlane(ctx context.Context, o Options) (*Plane, error) {
	ca, err := identity.NewAuthority("plane")
	if err != nil {
		return nil, err
	}
	n, err := network.Claim()
	if err != nil {
		return nil, err
	}
	dir, ownsDir, err := workDir(o.Dir)
	if err != nil {
		n.Release()
		return nil, err
	}
	p := &Plane{
		binaries: o.Binaries, dir: dir, ownsDir: ownsDir, nodes: cmp.Or(o.Nodes, 3),
		log: &lineWriter{w: o.Log}, network: n, nursery: process.NewNursery(), ca: ca,
	}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return p, nil
}

func workDir(dir string) (path string, temporary bool, err error) {
	if dir == "" {
		path, err = os.MkdirTemp("", "ballast-plane-")
		if err != nil {
			return "", false, fmt.Errorf("making the plane's folder: %w", err)
		}
		return path, true, nil
	}
	path, err = filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return "", false, fmt.Errorf("making the plane's folder %q: %w", dir, err)
	}
	return path, false, nil
}

// bringUp starts the parts in the order of their needs: the controller manager
// gives up when it finds no API server.
func (p *Plane) bringUp(ctx context.Context) error {
	p.socket = p.socketPath()
	proxy, err := network.StartProxy(p.network, p.socket)
	if err != nil {
		return err
	}
	p.proxy = proxy
	if p.forward, err = network.StartForward(proxy, p.network.Host()); err != nil {
		return err
	}
	if err := p.step("etcd", func() error { return p.startEtcd(ctx) }); err != nil {
		return err
	}
	if err := p.step("kube-apiserver", func() error { return p.startAPIServer(ctx) }); err != nil {
		return err
	}
	if err := p.connect(); err != nil {
		return err
	}
	if err := p.step("sizes", func() error { return p.startSizes(ctx) }); err != nil {
		return err
	}
	kwok, err := p.startKwok()
	if err != nil {
		return err
	}
	return errors.Join(together(
		func() error {
			return p.step("kube-controller-manager", func() error { return p.startControllerManager(ctx) })
		},
		func() error { return p.step("kube-scheduler", func() error { return p.startScheduler(ctx) }) },
		func() error { return p.step("nodes", func() error { return p.createNodes(ctx, kwok) }) },
	)...)
}

func (p *Plane) startSizes(ctx context.Context) (err error) {
	p.resizer, err = resize.Start(ctx, p.ctx, resize.Options{Client: p.client, HasProcess: kubelet.HasProcess,
		Log: p.log.printf})
	return err
}

// socketPath avoids the plane's folder where the kernel's limit of 107 bytes
// for a socket's path would not hold it.
func (p *Plane) socketPath() string {
	if path := p.path("egress.sock"); len(path) <= 107 {
		return path
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("ballast-plane-%d.sock", p.network.N))
}

// connect makes the administrator's identity.
func (p *Plane) connect() error {
	config, err := p.ConfigFor("plane-admin", "system:masters")
	if err != nil {
		return err
	}
	p.config = config
	if err := identity.WriteKubeconfig(p.KubeconfigPath(), config, ""); err != nil {
		return err
	}
	own, err := p.ConfigFor("plane", "system:masters", systemGroup)
	if err != nil {
		return err
	}
	p.client, err = kubernetes.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("making the plane's client: %w", err)
	}
	return nil
}

// together runs all at once and gives their errors in the order of the calls.
func together(fs ...func() error) []error {
	errs := make([]error, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errs
}

// step tells of what took longer than a second.
func (p *Plane) step(name string, do func() error) error {
	start := time.Now()
	err := do()
	if took := time.Since(start); took > time.Second && err == nil {
		p.log.printf("%s ready in %.1f s", name, took.Seconds())
	}
	return err
}

// Stop ends every process of the plane, the API server before etcd (without
// which it hangs), and returns when all are gone. Further calls wait for the
// first.
func (p *Plane) Stop() {
	p.stop.Do(func() {
		p.cancel()
		p.mu.Lock()
		kubelets, parts := p.kubelets, p.parts
		p.stopped = true
		p.mu.Unlock()
		for _, k := range kubelets {
			k.Wait()
		}
		if p.resizer != nil {
			p.resizer.Wait()
		}
		p.endParts(parts)
		if p.forward != nil {
			if err := p.forward.Close(); err != nil {
				p.log.printf("closing the pods' proxy: %v", err)
			}
		}
		if p.proxy != nil {
			if err := p.proxy.Close(); err != nil {
				p.log.printf("closing the egress proxy: %v", err)
			}
		}
		p.nursery.Close()
		p.network.Release()
		if p.ownsDir {
			if err := os.RemoveAll(p.dir); err != nil {
				p.log.printf("removing the plane's folder: %v", err)
			}
		}
	})
}

// endParts ends the clients of the API server together, then the API server,
// then etcd: the first two parts are etcd and the API server, in this order.
func (p *Plane) endParts(parts []*process.Child) {
	const stores = 2
	if len(parts) > stores {
		var wg sync.WaitGroup
		for _, c := range parts[stores:] {
			wg.Go(func() { c.End() })
		}
		wg.Wait()
	}
	for i := min(stores, len(parts)) - 1; i >= 0; i-- {
		parts[i].End()
	}
}

// URL is the API server's address.
func (p *Plane) URL() string { return p.address }

// Dir is the plane's folder: logs, kubeconfigs, the pods' volumes.
func (p *Plane) Dir() string { return p.dir }

// Config is the administrator's access, in a copy that the caller may change.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// KubeconfigPath is the administrator's kubeconfig file.
func (p *Plane) KubeconfigPath() string { return p.path("admin.kubeconfig") }

// AuditLogPath is the API server's audit log, a JSON event a line. It is
// written before the answer is, so whoever wrote can read the event at once.
func (p *Plane) AuditLogPath() string { return p.path("audit.log") }

// Proxy is what stands between the API server and the pods.
func (p *Plane) Proxy() *network.Proxy { return p.proxy }

// Processes are all the children that the plane ever started.
func (p *Plane) Processes() []process.Process { return p.nursery.All() }

// PodAddress is where the process behind a pod IP listens.
func (p *Plane) PodAddress(podIP string) (string, error) { return p.network.Loopback(podIP) }

// lineWriter keeps the lines of concurrent steps whole.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) printf(format string, args ...any) {
	if l.w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}
