package plane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"ballast/e2e/assets"
	"ballast/e2e/plane/process"
)

const certManagerNamespace = "cert-manager"

// StartCertManager installs cert-manager's CRDs and runs its controllers and
// its cainjector, without the webhook. It returns when an Issuer has become
// Ready: from then on certificates are issued.
func (p *Plane) StartCertManager(ctx context.Context) error {
	return p.step(assets.CertManager, func() error { return p.startCertManager(ctx) })
}

func (p *Plane) startCertManager(ctx context.Context) error {
	config, err := p.ConfigFor("plane", "system:masters", systemGroup)
	if err != nil {
		return err
	}
	if err := p.installCRDs(ctx, config); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: certManagerNamespace}}
	if _, err := p.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", certManagerNamespace, err)
	}
	kubeconfig, err := p.KubeconfigFor("system:serviceaccount:cert-manager:cert-manager", "system:masters")
	if err != nil {
		return err
	}
	c, err := p.run(assets.CertManager, assets.CertManager, "--kubeconfig="+kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of cert-manager's objects: %w", err)
	}
	issuers := client.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
		Resource: "issuers"}).Namespace(certManagerNamespace)
	return proveIssuing(ctx, c, issuers)
}

// proveIssuing makes an Issuer, waits until the controllers have taken it, and
// removes it again.
func proveIssuing(ctx context.Context, c *process.Child, issuers dynamic.ResourceInterface) error {
	const name = "plane-ready"
	issuer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"selfSigned": map[string]any{}},
	}}
	if _, err := issuers.Create(ctx, issuer, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating issuer %q: %w", name, err)
	}
	err := c.Await(ctx, func(ctx context.Context) error {
		got, err := issuers.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("getting issuer %q: %w", name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("checking issuer %q: it is not ready", name)
	})
	if err != nil {
		return err
	}
	if err := issuers.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting issuer %q: %w", name, err)
	}
	return nil
}
