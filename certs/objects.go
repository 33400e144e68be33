// Package certs is the webhook's certificates: the cert-manager objects that make them, and what can be wrong with them.
package certs

import (
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the objects, which the manifests share.
const (
	Root      = "ballast-root"        // Issuer: signs the CA by itself
	CA        = "ballast-ca"          // Certificate, its Secret, and the Issuer that signs with it
	Leaf      = "ballast-webhook"     // Certificate of the webhook's Service, which has its name
	LeafTLS   = "ballast-webhook-tls" // Secret that the webhook mounts
	InjectKey = "cert-manager.io/inject-ca-from"
)

// Lengths of life. The CA's is long because an API server that trusts an old caBundle calls nobody; the leaf's is short
// because it renews without a restart. The leaf renews when a third is left: ten days in which somebody notices.
const (
	CADuration      = 10 * 365 * 24 * time.Hour
	CARenewBefore   = 365 * 24 * time.Hour
	LeafDuration    = 30 * 24 * time.Hour
	LeafRenewBefore = 10 * 24 * time.Hour
)

// Settings is what differs between installations.
type Settings struct {
	Namespace string
	Service   string // of the webhook
}

// DefaultSettings are those of manifests/base.
func DefaultSettings() Settings { return Settings{Namespace: "argocd", Service: "ballast-webhook"} }

// DNSNames are the names under which API servers call the Service.
func (s Settings) DNSNames() []string {
	short := s.Service + "." + s.Namespace + ".svc"
	return []string{short, short + ".cluster.local"}
}

// Configuration is the name of the MutatingWebhookConfiguration. What has no namespace is named NAME.NAMESPACE, so that two
// installations in one cluster have nothing in common.
func (s Settings) Configuration() string { return "ballast." + s.Namespace }

// InjectFrom is the value of the annotation InjectKey, by which cert-manager's cainjector finds the CA.
func (s Settings) InjectFrom() string { return s.Namespace + "/" + Leaf }

// Issuers are the self-signed root and the CA's.
func (s Settings) Issuers() []certmanager.Issuer {
	root := certmanager.Issuer{TypeMeta: kind("Issuer"), ObjectMeta: s.meta(Root)}
	root.Spec.SelfSigned = &certmanager.SelfSignedIssuer{}
	ca := certmanager.Issuer{TypeMeta: kind("Issuer"), ObjectMeta: s.meta(CA)}
	ca.Spec.CA = &certmanager.CAIssuer{SecretName: CA}
	return []certmanager.Issuer{root, ca}
}

// Certificates are the CA's and the webhook's. The CA keeps its key when it renews, so that leaves signed before and an
// old caBundle go on fitting each other; the leaf's key is new each time.
func (s Settings) Certificates() []certmanager.Certificate {
	ca := certmanager.Certificate{TypeMeta: kind("Certificate"), ObjectMeta: s.meta(CA), Spec: certmanager.CertificateSpec{
		IsCA:        true,
		CommonName:  CA,
		SecretName:  CA,
		Duration:    &metav1.Duration{Duration: CADuration},
		RenewBefore: &metav1.Duration{Duration: CARenewBefore},
		PrivateKey:  ecdsaKey(certmanager.RotationPolicyNever),
		IssuerRef:   issuer(Root),
	}}
	leaf := certmanager.Certificate{TypeMeta: kind("Certificate"), ObjectMeta: s.meta(Leaf), Spec: certmanager.CertificateSpec{
		SecretName:  LeafTLS,
		Duration:    &metav1.Duration{Duration: LeafDuration},
		RenewBefore: &metav1.Duration{Duration: LeafRenewBefore},
		DNSNames:    s.DNSNames(),
		Usages:      []certmanager.KeyUsage{certmanager.UsageDigitalSignature, certmanager.UsageServerAuth},
		PrivateKey:  ecdsaKey(certmanager.RotationPolicyAlways),
		IssuerRef:   issuer(CA),
	}}
	return []certmanager.Certificate{ca, leaf}
}

func kind(k string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: certmanager.SchemeGroupVersion.String(), Kind: k}
}

func (s Settings) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{
		"app.kubernetes.io/name":      "ballast",
		"app.kubernetes.io/component": "webhook",
		"app.kubernetes.io/part-of":   "ballast",
	}}
}

func ecdsaKey(rotation certmanager.PrivateKeyRotationPolicy) *certmanager.CertificatePrivateKey {
	return &certmanager.CertificatePrivateKey{Algorithm: certmanager.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: rotation}
}

func issuer(name string) cmmeta.IssuerReference {
	return cmmeta.IssuerReference{Group: certmanager.SchemeGroupVersion.Group, Kind: "Issuer", Name: name}
}
