// Package base holds what ballast compares the cluster with.
package base

import _ "embed"

//go:embed webhook-configuration.yaml
var webhookConfiguration string

// WebhookConfiguration is the shipped MutatingWebhookConfiguration, for namespace argocd, workload
// argocd-application-controller and plan ConfigMap ballast-plan.
func WebhookConfiguration() []byte { return []byte(webhookConfiguration) }
