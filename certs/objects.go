// Package certs is the webhook's certificates: their names and lives, what can be wrong with them, and how they are
// made where no cert-manager is.
//
// They are not made by open-policy-agent/cert-controller's rotator, the field's own: it caches every Secret of its
// namespace, where Argo CD's hold the tokens of all clusters, and ours may read two; it updates the webhook
// configuration whole, and ours patches the caBundles; and it puts a new CA in place of the old one at once, after the
// leaf, so that calls are lost until API servers and pods have both (Next loses none).
package certs

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the objects, which the manifests share.
const (
	CA      = "ballast-ca"          // cert-manager's Certificate, its Secret, and the Issuer that signs with it
	Leaf    = "ballast-webhook"     // Certificate of the webhook's Service, which has its name
	LeafTLS = "ballast-webhook-tls" // Secret that the webhook mounts
	// InjectKey is the annotation by which cert-manager's cainjector finds the CA.
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

// Configuration is the name of the MutatingWebhookConfiguration. What has no namespace is named NAME.NAMESPACE, so that
// two installations in one cluster have nothing in common.
func (s Settings) Configuration() string { return "ballast." + s.Namespace }

// meta is an object of this installation.
func (s Settings) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{
		"app.kubernetes.io/name":      "ballast",
		"app.kubernetes.io/component": "webhook",
		"app.kubernetes.io/part-of":   "ballast",
	}}
}
