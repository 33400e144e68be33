package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/site"
)

func TestAClientNameWithoutACAIsRefused(t *testing.T) {
	o := &options{clientNames: []string{"ballast-apiserver"}}
	if err := o.run(t.Context()); err == nil || err.Error() != "--client-name needs --client-ca-file: without a CA nobody's name is verified" {
		t.Errorf("it runs, or ends with %v", err)
	}
}

// TestTheAPIServerShowsItsCertificate runs a real API server with the two files of manifests/README.md, and the webhook
// as components/client-auth runs it: the API server's calls are answered, and of anybody else none gets past the
// handshake.
func TestTheAPIServerShowsItsCertificate(t *testing.T) {
	ca := newClientCA(t)
	dir, port := t.TempDir(), fixture.FreePort(t)
	ca.sign(t, "ballast-apiserver", filepath.Join(dir, "ballast"))
	replace := strings.NewReplacer("/etc/kubernetes/admission", dir, "ballast-webhook.argocd.svc", net.JoinHostPort("127.0.0.1", port))
	for name, kind := range map[string]string{"admission.yaml": "AdmissionConfiguration", "webhooks.kubeconfig": "Config"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(replace.Replace(readmeBlock(t, kind))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := fixture.StartWithWebhook(t, func(env *envtest.Environment) {
		env.WebhookInstallOptions.LocalServingHost = "127.0.0.1"
		env.WebhookInstallOptions.LocalServingPort = portOf(t, port)
		env.ControlPlane.GetAPIServer().Configure().Set("admission-control-config-file", filepath.Join(dir, "admission.yaml"))
	})
	planner := rest.CopyConfig(env.Config)
	planner.Impersonate = rest.ImpersonationConfig{UserName: site.PlannerUser, Groups: []string{"system:masters"}}
	admin := clientOf(t, env.Config)
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, planner).CoreV1().ConfigMaps("argocd").Create(t.Context(), largePlan(t, 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	runWebhook(t, builtAsShipped(t), fixture.KubeconfigOf(t, env), &env.WebhookInstallOptions, "--client-ca-file="+ca.file, "--client-name=ballast-apiserver")
	writeSecrets(t, admin) // each comes back with the plan's shard

	write, address := honestSecret(t), net.JoinHostPort("127.0.0.1", port)
	for name, tc := range map[string]struct {
		shows string
		ok    bool
	}{"nobody's": {"", false}, "another name's": {"somebody", false}, "the API server's": {"ballast-apiserver", true}} {
		config := &tls.Config{InsecureSkipVerify: true} // envtest's own CA is of no matter here
		if tc.shows != "" {
			file := filepath.Join(t.TempDir(), "shown")
			ca.sign(t, tc.shows, file)
			pair, err := tls.LoadX509KeyPair(file+".crt", file+".key")
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: config}}
		if answer, err := post(client, address, write.path, write.body); (err == nil) != tc.ok || tc.ok != strings.Contains(string(answer), write.answer) {
			t.Errorf("a caller with %s certificate was answered %.200s: %v", name, answer, err)
		}
	}
}

func portOf(t *testing.T, port string) int {
	t.Helper()
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readmeBlock is the block of manifests/README.md with that kind.
func readmeBlock(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?m)^    apiVersion: .*\n    kind: ` + kind + `\n(    .*\n)+`).FindString(string(text))
	if block == "" {
		t.Fatalf("README.md has no %s", kind)
	}
	return strings.ReplaceAll("\n"+block, "\n    ", "\n")
}

// clientCA signs client certificates; its own is in a file.
type clientCA struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newClientCA(t *testing.T) *clientCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ballast-client-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	ca := &clientCA{filepath.Join(t.TempDir(), "ca.crt"), template, key}
	ca.cert = ca.issue(t, template, key, ca.file)
	return ca
}

// sign makes a client certificate for a name, in two files.
func (c *clientCA) sign(t *testing.T, name, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600); err != nil {
		t.Fatal(err)
	}
	c.issue(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, key, file+".crt")
}

func (c *clientCA) issue(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey, file string) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
