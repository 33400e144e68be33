package plane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"ballast/e2e/assets"
	"ballast/e2e/plane/identity"
	"ballast/e2e/plane/network"
	"ballast/e2e/plane/process"
)

//go:embed stages.yaml
var stages []byte

//go:embed audit-policy.yaml
var auditPolicy []byte

// egressConfig sends all that the API server dials inside the cluster, and
// only that, through our proxy.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// serviceNetwork is disjoint from every plane's pod network: nothing routes
// it, the API server resolves Services to pods itself.
const serviceNetwork = "10.0.0.0/16"

// systemGroup is the group of the plane's own parts beside system:masters; the
// audit policy leaves out what they do.
const systemGroup = "system:plane"

// run starts a part of the plane. It inherits nothing of our environment but
// the search path: no proxy setting and no credential of the caller.
func (p *Plane) run(name, binary string, args ...string) (*process.Child, error) {
	cmd := exec.Command(p.binaries.Path(binary), args...)
	cmd.Dir, cmd.Env = p.dir, p.env()
	return p.start(name, cmd)
}

// start is run for a command that is made already.
func (p *Plane) start(name string, cmd *exec.Cmd) (*process.Child, error) {
	c, err := p.nursery.Spawn(name, p.path(name+".log"), cmd)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	stopped := p.stopped
	p.parts = append(p.parts, c)
	p.mu.Unlock()
	if stopped {
		c.End()
		return nil, fmt.Errorf("starting %q: %w", name, process.ErrStopped)
	}
	go func() {
		<-c.Done
		if p.ctx.Err() == nil && !c.Wanted.Load() {
			p.log.printf("%s exited: %v: %s", c.Name, c.Err, c.LogTail())
		}
	}()
	return c, nil
}

// env is the environment of every child. HOME and TMPDIR lie in the plane's
// folder, so that caches and leftovers go with it.
func (p *Plane) env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir}, more...)
}

// startEtcd brings etcd up behind its own authority: a person's certificate,
// good at the API server, opens nothing here. It never syncs to disk, for its
// data is not worth a millisecond.
func (p *Plane) startEtcd(ctx context.Context) error {
	ca, err := identity.NewAuthority("etcd")
	if err != nil {
		return err
	}
	cert, err := ca.Server("etcd", p.network.Host())
	if err != nil {
		return err
	}
	if err := cert.Write(p.dir, "etcd"); err != nil {
		return err
	}
	if err := os.WriteFile(p.path("etcd-ca.crt"), ca.PEM, 0o600); err != nil {
		return fmt.Errorf("writing etcd's authority: %w", err)
	}
	client, err := network.FreePort(p.network.Host())
	if err != nil {
		return err
	}
	peer, err := network.FreePort(p.network.Host())
	if err != nil {
		return err
	}
	p.etcdURL = p.url(client)
	c, err := p.run("etcd", assets.Etcd, etcdArgs(p, p.url(peer))...)
	if err != nil {
		return err
	}
	return c.Await(ctx, healthy(p.etcdURL+"/health", ca, &cert))
}

func etcdArgs(p *Plane, peerURL string) []string {
	return []string{
		"--name=plane", "--data-dir=" + p.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + p.etcdURL, "--advertise-client-urls=" + p.etcdURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=plane=" +
			peerURL,
		"--client-cert-auth", "--trusted-ca-file=" + p.path("etcd-ca.crt"),
		"--cert-file=" + p.path("etcd.crt"), "--key-file=" + p.path("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + p.path("etcd-ca.crt"),
		"--peer-cert-file=" + p.path("etcd.crt"), "--peer-key-file=" + p.path("etcd.key"),
	}
}

// startAPIServer writes the API server's files and waits until it is ready.
func (p *Plane) startAPIServer(ctx context.Context) error {
	port, err := network.FreePort(p.network.Host())
	if err != nil {
		return err
	}
	p.address = p.url(port)
	if err := p.writeAPIServerFiles(); err != nil {
		return err
	}
	c, err := p.run("kube-apiserver", assets.APIServer, apiserverArgs(p, port)...)
	if err != nil {
		return err
	}
	return c.Await(ctx, healthy(p.address+"/readyz", p.ca, nil))
}

func (p *Plane) writeAPIServerFiles() error {
	hosts := []string{p.network.Host(), "127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	cert, err := p.ca.Server("kube-apiserver", hosts...)
	if err != nil {
		return err
	}
	if err := cert.Write(p.dir, "server"); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	keyPEM, err := identity.EncodeKey(key)
	if err != nil {
		return fmt.Errorf("encoding the service account key: %w", err)
	}
	caKey, err := identity.EncodeKey(p.ca.Key)
	if err != nil {
		return fmt.Errorf("encoding the authority's key: %w", err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": p.ca.PEM, "ca.Key": caKey, "service-accounts.key": keyPEM,
		"audit-policy.yaml": auditPolicy, "egress.yaml": fmt.Appendf(nil, egressConfig, p.socket),
	} {
		if err := os.WriteFile(p.path(name), data, 0o600); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
	}
	return nil
}

// apiserverArgs: the kubernetes Service gets no endpoint, because the API
// server would refuse its own loopback address there.
func apiserverArgs(p *Plane, port int) []string {
	return []string{
		"--etcd-servers=" + p.etcdURL, "--etcd-cafile=" + p.path("etcd-ca.crt"),
		"--etcd-certfile=" + p.path("etcd.crt"), "--etcd-keyfile=" + p.path("etcd.key"),
		"--bind-address=" + p.network.Host(), "--advertise-address=" + p.network.Host(), "--secure-port=" +
			strconv.Itoa(port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=" + p.path("server.crt"), "--tls-private-key-file=" + p.path("server.key"),
		"--client-ca-file=" + p.path("ca.crt"), "--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.path("service-accounts.key"), "--service-account-signing-key-file=" +
			p.path("service-accounts.key"),
		"--enable-aggregator-routing=true", "--egress-selector-config-file=" + p.path("egress.yaml"),
		"--audit-policy-file=" + p.path("audit-policy.yaml"), "--audit-log-path=" + p.AuditLogPath(),
		"--audit-log-maxsize=4096",
		"--profiling=false",
	}
}

// startControllerManager gives it its own identity, and each of its
// controllers the ServiceAccount it has in a real cluster.
func (p *Plane) startControllerManager(ctx context.Context) error {
	return p.startSystemPart(ctx, assets.ControllerManager, "system:kube-controller-manager",
		"--use-service-account-credentials",
		"--service-account-private-key-file="+p.path("service-accounts.key"), "--root-ca-file="+p.path("ca.crt"),
		"--cluster-signing-cert-file="+p.path("ca.crt"), "--cluster-signing-key-file="+p.path("ca.Key"))
}

func (p *Plane) startScheduler(ctx context.Context) error {
	return p.startSystemPart(ctx, assets.Scheduler, "system:kube-scheduler")
}

// startSystemPart starts one of the two that share their flags. At their own
// 20 requests a second a rollout of the tests would take minutes.
func (p *Plane) startSystemPart(ctx context.Context, name, user string, args ...string) error {
	kubeconfig, err := p.KubeconfigFor(user)
	if err != nil {
		return err
	}
	port, err := network.FreePort(p.network.Host())
	if err != nil {
		return err
	}
	args = append(args, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+p.network.Host(), "--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+p.path("server.crt"), "--tls-private-key-file="+p.path("server.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--leader-elect=false", "--profiling=false")
	c, err := p.run(name, name, args...)
	if err != nil {
		return err
	}
	return c.Await(ctx, healthy(p.url(port)+"/healthz", p.ca, nil))
}

// startKwok has no health check: that it works shows in the nodes.
func (p *Plane) startKwok() (*process.Child, error) {
	kubeconfig, err := p.KubeconfigFor("kwok", "system:masters", systemGroup)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.path("stages.yaml"), stages, 0o600); err != nil {
		return nil, fmt.Errorf("writing kwok's stages: %w", err)
	}
	return p.run("kwok", assets.Kwok, "--kubeconfig="+kubeconfig, "--config="+p.path("stages.yaml"),
		"--manage-all-nodes", "--cidr="+p.network.CIDR(), "--node-ip="+p.network.NodeIP(),
		"--node-lease-duration-seconds=40")
}

func (p *Plane) url(port int) string {
	return "https://" + net.JoinHostPort(p.network.Host(), strconv.Itoa(port))
}

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// healthy is a check for child.await: 200 from the address, whose certificate
// the authority signed. Without an authority it speaks plain HTTP.
func healthy(url string, ca *identity.Authority, client *identity.Pair) func(context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true}
	if ca != nil {
		roots := x509.NewCertPool()
		roots.AddCert(ca.Cert)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if client != nil {
		cert, err := tls.X509KeyPair(client.Cert, client.Key)
		if err != nil {
			return func(context.Context) error { return fmt.Errorf("reading the client certificate: %w", err) }
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{cert}
	}
	c := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return func(ctx context.Context) error { return get(ctx, c, url) }
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %q: %w", url, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("asking %q: %w", url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("asking %q: status %s", url, resp.Status)
	}
	return nil
}
