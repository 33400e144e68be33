package matrix

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"ballast/certs"
	"ballast/e2e/hooked"
	"ballast/planner/plan"
)

// host is the name that certificates are made for: a leaf of ours has no address in it.
const host = "localhost"

// identity is what the webhook shows to the API server, and what the API server trusts: a CA, the leaf of the moment in
// a folder as the kubelet mounts one, and the caBundle.
type identity struct {
	site    *site
	mount   string
	version int
	ca      certs.Pair
	configs admissionclient.MutatingWebhookConfigurationInterface
	shipped *admissionregistration.MutatingWebhookConfiguration
	marked  bool                          // see trust
	roots   atomic.Pointer[x509.CertPool] // what the caBundle holds
}

// identify moves the site to certificates of our own making, until revert.
func (s *site) identify(t *testing.T) *identity {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	id := &identity{site: s, mount: t.TempDir(), ca: newCA(t), configs: client.AdmissionregistrationV1().MutatingWebhookConfigurations()}
	if id.shipped, err = id.configs.Get(t.Context(), "ballast.argocd", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(id.mount, file)); err != nil {
			t.Fatal(err)
		}
	}
	before := s.certs
	s.certs = id.mount
	t.Cleanup(func() { s.certs = before })
	id.rotate(t)
	id.trust(t, id.ca)
	return id
}

// revert brings the shipped configuration back. No load may run, and the replica of the site must serve.
func (id *identity) revert(t *testing.T) {
	t.Helper()
	id.configure(t, false, func(c *admissionregistration.MutatingWebhookConfiguration) { c.Webhooks = id.shipped.Webhooks })
}

func newCA(t *testing.T) certs.Pair {
	t.Helper()
	ca, err := certs.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// rotate puts a new leaf into the folder in one step, as the kubelet does, and waits until each of the replicas serves it.
func (id *identity) rotate(t *testing.T, replicas ...*replica) {
	t.Helper()
	leaf, err := certs.NewLeaf(id.ca, []string{host}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := id.write(leaf); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(leaf.Cert)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(id.ca.Cert)
	for _, r := range replicas {
		eventually(t, "the new leaf", func() bool {
			shown, err := shake(r.address, roots)
			return err == nil && slices.Equal(shown.Raw, block.Bytes)
		})
	}
}

func (id *identity) write(leaf certs.Pair) error {
	old := fmt.Sprintf("..version_%d", id.version)
	id.version++
	next := fmt.Sprintf("..version_%d", id.version)
	if err := os.Mkdir(filepath.Join(id.mount, next), 0o755); err != nil {
		return err
	}
	for file, text := range map[string][]byte{"tls.crt": leaf.Cert, "tls.key": leaf.Key} {
		if err := os.WriteFile(filepath.Join(id.mount, next, file), text, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(next, filepath.Join(id.mount, "..data_tmp")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(id.mount, "..data_tmp"), filepath.Join(id.mount, "..data")); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(id.mount, old))
}

// renew goes from one CA to the next: both are trusted before the new one signs, and the old one until no leaf of it is
// served any more.
func (id *identity) renew(t *testing.T, replicas ...*replica) {
	t.Helper()
	old := id.ca
	id.ca = newCA(t)
	id.trust(t, old, id.ca)
	id.rotate(t, replicas...)
	id.trust(t, id.ca)
}

// trust makes the CAs the caBundle, and waits until the API server goes by it. No write tells by which caBundle it was
// made, so that the same update turns the webhook for the workload off or on again, by turns: that can be seen.
func (id *identity) trust(t *testing.T, cas ...certs.Pair) {
	t.Helper()
	var bundle []byte
	roots := x509.NewCertPool()
	for _, ca := range cas {
		bundle = append(bundle, ca.Cert...)
		roots.AppendCertsFromPEM(ca.Cert)
	}
	id.configure(t, !id.marked, func(c *admissionregistration.MutatingWebhookConfiguration) {
		for i := range c.Webhooks {
			at, err := url.Parse(*c.Webhooks[i].ClientConfig.URL)
			if err != nil {
				t.Fatal(err)
			}
			at.Host = net.JoinHostPort(host, at.Port())
			named := at.String()
			c.Webhooks[i].ClientConfig.URL, c.Webhooks[i].ClientConfig.CABundle = &named, bundle
		}
	})
	id.roots.Store(roots)
}

func (id *identity) configure(t *testing.T, mark bool, change func(*admissionregistration.MutatingWebhookConfiguration)) {
	t.Helper()
	c, err := id.configs.Get(t.Context(), "ballast.argocd", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	i := slices.IndexFunc(c.Webhooks, func(w admissionregistration.MutatingWebhook) bool {
		return w.Name == "controllers.ballast.argoproj.io"
	})
	c.Webhooks[i].MatchConditions = slices.Clone(id.shipped.Webhooks[i].MatchConditions)
	if mark {
		c.Webhooks[i].MatchConditions = append(c.Webhooks[i].MatchConditions, admissionregistration.MatchCondition{Name: "never", Expression: "false"})
	}
	if _, err := id.configs.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	id.site.remove(statefulSets)(t, workload)
	client := id.site.dynamic(t, quiet(id.site.person)).Resource(statefulSets).Namespace(namespace)
	eventually(t, "the webhook configuration", func() bool {
		got, err := client.Create(t.Context(), named(controller(plan.StatefulSet, 9, "9"), workload), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && (workloadFields(got)["replicas"] == "9") == mark
	})
	id.marked = mark
}

// shake makes a handshake with a webhook as the API server does, and answers the leaf.
func shake(address string, roots *x509.CertPool) (*x509.Certificate, error) {
	dialer := &net.Dialer{Timeout: hooked.Timeout * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// shakes makes handshakes on new connections all the time: the API server keeps its own for long.
type shakes struct {
	stop   context.CancelFunc
	wg     sync.WaitGroup
	made   int
	failed []error
}

func (id *identity) shakes(t *testing.T) *shakes {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &shakes{stop: stop}
	s.wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := id.shakeNow(); err != nil {
				s.failed = append(s.failed, err)
			}
			s.made++
			<-tick.C
		}
	})
	t.Cleanup(func() { s.end() })
	return s
}

// shakeNow makes a handshake under the caBundle in force. One that failed while the next caBundle took its place is made
// again under that: only the caBundle in force has to fit.
func (id *identity) shakeNow() error {
	for {
		roots := id.roots.Load()
		_, err := shake(id.site.endpoints.listener.Addr().String(), roots)
		if err == nil || id.roots.Load() == roots {
			return err
		}
	}
}

func (s *shakes) end() (int, []error) {
	s.stop()
	s.wg.Wait()
	return s.made, s.failed
}
