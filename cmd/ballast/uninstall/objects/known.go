package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service is the Service by which ballast's webhooks are called.
const service = "ballast-webhook"

// running are ballast's Deployments and the configuration that calls its webhook, by their names and whom they call:
// whoever labels them otherwise, as an overlay that sets app.kubernetes.io/part-of for all it has, keeps uninstall from
// knowing them as ballast's.
func (i Installation) running(ctx context.Context, c client.Client) ([]client.Object, error) {
	var deployments appsv1.DeploymentList
	if err := list(ctx, c, &deployments, client.InNamespace(i.Namespace)); err != nil {
		return nil, err
	}
	var configurations admissionv1.MutatingWebhookConfigurationList
	if err := list(ctx, c, &configurations); err != nil {
		return nil, err
	}
	calls := func(w admissionv1.MutatingWebhook) bool {
		s := w.ClientConfig.Service
		return s != nil && s.Namespace == i.Namespace && s.Name == service
	}
	return slices.Concat(
		only(deployments.Items, func(d *appsv1.Deployment) bool { return d.DeletionTimestamp == nil && made(d, d.Name) }),
		only(configurations.Items, func(m *admissionv1.MutatingWebhookConfiguration) bool {
			return m.DeletionTimestamp == nil && slices.ContainsFunc(m.Webhooks, calls)
		}),
	), nil
}

// AllKnown refuses to begin where something of ballast's runs that it would not find by its label.
func (i Installation) AllKnown(ctx context.Context, c client.Client) error {
	found, err := i.running(ctx, c)
	if err != nil {
		return err
	}
	for _, object := range found {
		if isBallasts(object) || object.GetName() == i.Webhooks {
			continue
		}
		kind := kindOf(object)
		return fmt.Errorf("%s %q is ballast's by its name or by whom it calls, and lacks the label %s=ballast "+
			"by which uninstall finds what is ballast's: kubectl -n %s label --overwrite %s %s %s=ballast, "+
			"and so with all of that overlay, or delete what it made yourself",
			kind, object.GetName(), PartOf, i.Namespace, strings.ToLower(kind), object.GetName(), PartOf)
	}
	return nil
}

// NoneLeft refuses to say that ballast is gone, and to delete its plan, while something of it runs.
func (i Installation) NoneLeft(ctx context.Context, c client.Client) error {
	found, err := i.running(ctx, c)
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%s %q is there again, or still: take it out of what puts it back (a GitOps tool, an operator), delete it, "+
		"and run uninstall again",
		kindOf(found[0]), found[0].GetName())
}
