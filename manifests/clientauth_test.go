package manifests

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const clientAuth = "testdata/client-auth"

// TestClientAuthDemandsACertificateAndChangesNothingElse of the webhook or anything beside it.
func TestClientAuthDemandsACertificateAndChangesNothingElse(t *testing.T) {
	want, got := decode(t, build(t, overlays()["cert-manager"])), decode(t, build(t, clientAuth))
	ca := got.Secrets["ballast-client-ca"]
	if ca.Namespace != "argocd" || !x509.NewCertPool().AppendCertsFromPEM(ca.Data["ca.crt"]) {
		t.Errorf("no CA is in %q of %s/%s", ca.Data, ca.Namespace, ca.Name)
	}
	delete(got.Secrets, "ballast-client-ca")
	d := want.Deployments["ballast-webhook"]
	pod := &d.Spec.Template.Spec
	pod.Containers[0].Args = append(pod.Containers[0].Args, "--client-ca-file=/etc/ballast/client-ca/ca.crt", "--client-name=ballast-apiserver")
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "client-ca", MountPath: "/etc/ballast/client-ca", ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "client-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ballast-client-ca"}}})
	want.Deployments["ballast-webhook"] = d
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTheReadmeTellsTheAPIServerWhatTheComponentDemands: its overlay is the tested one, its certificate has the
// component's name and client use, and the user of its kubeconfig is the host of the webhooks' Service.
func TestTheReadmeTellsTheAPIServerWhatTheComponentDemands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := os.ReadFile(filepath.Join(clientAuth, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(overlay), "components:")
	if shown = indent("components:" + shown); !strings.Contains(string(readme), shown) {
		t.Errorf("README.md does not have\n%s", shown)
	}
	in := decode(t, build(t, clientAuth))
	args := in.Deployments["ballast-webhook"].Spec.Template.Spec.Containers[0].Args
	name := regexp.MustCompile(`CN=([a-z-]+).*\n.*clientAuth`).FindStringSubmatch(string(readme))
	if name == nil || !slices.Contains(args, "--client-name="+name[1]) {
		t.Errorf("README.md makes a certificate for %q, the webhook runs with %q", name, args)
	}
	var kubeconfig struct {
		Users []struct{ Name string }
	}
	found := regexp.MustCompile(`(?m)^    apiVersion: v1\n    kind: Config\n(    .*\n)+`).FindString(string(readme))
	if err := yaml.Unmarshal([]byte(found), &kubeconfig); err != nil || len(kubeconfig.Users) != 1 {
		t.Fatalf("no kubeconfig is in README.md: %v", err)
	}
	for _, w := range in.Webhooks["ballast"].Webhooks {
		s := w.ClientConfig.Service
		if host := s.Name + "." + s.Namespace + ".svc"; host != kubeconfig.Users[0].Name || *s.Port != 443 {
			t.Errorf("%s calls %s, port %d; the certificate is for calls of %q", w.Name, host, *s.Port, kubeconfig.Users[0].Name)
		}
	}
}

// indent makes a block of README.md.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
