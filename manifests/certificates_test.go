package manifests

import (
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/certs"
)

const rootIssuer = "ballast-root" // signs the CA by itself

// injectFrom is the value of certs.InjectKey.
func injectFrom(s certs.Settings) string { return s.Namespace + "/" + certs.Leaf }

// issuers are the self-signed root and the CA's.
func issuers(s certs.Settings) []certmanager.Issuer {
	root := certmanager.Issuer{TypeMeta: kind("Issuer"), ObjectMeta: metaOf(s, rootIssuer)}
	root.Spec.SelfSigned = &certmanager.SelfSignedIssuer{}
	ca := certmanager.Issuer{TypeMeta: kind("Issuer"), ObjectMeta: metaOf(s, certs.CA)}
	ca.Spec.CA = &certmanager.CAIssuer{SecretName: certs.CA}
	return []certmanager.Issuer{root, ca}
}

// certificates are the CA's and the webhook's. The CA keeps its key when it renews, so that leaves signed
// before and an old caBundle go on fitting each other; the leaf's key is new each time.
func certificates(s certs.Settings) []certmanager.Certificate {
	ca := certmanager.Certificate{TypeMeta: kind("Certificate"), ObjectMeta: metaOf(s, certs.CA), Spec: certmanager.CertificateSpec{
		IsCA:        true,
		CommonName:  certs.CA,
		SecretName:  certs.CA,
		Duration:    &metav1.Duration{Duration: certs.CADuration},
		RenewBefore: &metav1.Duration{Duration: certs.CARenewBefore},
		PrivateKey:  ecdsaKey(certmanager.RotationPolicyNever),
		IssuerRef:   issuer(rootIssuer),
	}}
	leaf := certmanager.Certificate{TypeMeta: kind("Certificate"), ObjectMeta: metaOf(s, certs.Leaf), Spec: certmanager.CertificateSpec{
		SecretName:  certs.LeafTLS,
		Duration:    &metav1.Duration{Duration: certs.LeafDuration},
		RenewBefore: &metav1.Duration{Duration: certs.LeafRenewBefore},
		DNSNames:    s.DNSNames(),
		Usages:      []certmanager.KeyUsage{certmanager.UsageDigitalSignature, certmanager.UsageServerAuth},
		PrivateKey:  ecdsaKey(certmanager.RotationPolicyAlways),
		IssuerRef:   issuer(certs.CA),
	}}
	return []certmanager.Certificate{ca, leaf}
}

func kind(k string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: certmanager.SchemeGroupVersion.String(), Kind: k}
}

func ecdsaKey(rotation certmanager.PrivateKeyRotationPolicy) *certmanager.CertificatePrivateKey {
	return &certmanager.CertificatePrivateKey{Algorithm: certmanager.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: rotation}
}

func issuer(name string) cmmeta.IssuerReference {
	return cmmeta.IssuerReference{Group: certmanager.SchemeGroupVersion.Group, Kind: "Issuer", Name: name}
}

func metaOf(s certs.Settings, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{
		"app.kubernetes.io/name":      "ballast",
		"app.kubernetes.io/component": "webhook",
		"app.kubernetes.io/part-of":   "ballast",
	}}
}

func TestTheCertificatesAreWhatPackageCertsNames(t *testing.T) {
	for name, settings := range map[string]certs.Settings{
		"cert-manager":     certs.DefaultSettings(),
		"retarget-example": {Namespace: "gitops", Service: "ballast-webhook"},
	} {
		in := decode(t, build(t, overlays()[name]))
		for _, want := range issuers(settings) {
			if diff := cmp.Diff(want, in.Issuers[want.Name]); diff != "" {
				t.Errorf("%s: Issuer %s -want +manifest:\n%s", name, want.Name, diff)
			}
		}
		for _, want := range certificates(settings) {
			if diff := cmp.Diff(want, in.Certificates[want.Name]); diff != "" {
				t.Errorf("%s: Certificate %s -want +manifest:\n%s", name, want.Name, diff)
			}
		}
		if len(in.Issuers) != 2 || len(in.Certificates) != 2 {
			t.Errorf("%s: %d issuers and %d certificates", name, len(in.Issuers), len(in.Certificates))
		}
		if got := in.Webhooks[settings.Configuration()].Annotations[certs.InjectKey]; got != injectFrom(settings) {
			t.Errorf("%s: the CA is injected from %q, want %q", name, got, injectFrom(settings))
		}
	}
}
