// Package base holds what ballast compares the cluster with.
package base

import _ "embed"

//go:embed webhook-configuration.yaml
var webhookConfiguration string

// WebhookConfiguration is the shipped MutatingWebhookConfiguration, for namespace argocd, workload
// argocd-application-controller and plan ConfigMap ballast-plan.
func WebhookConfiguration() []byte { return []byte(webhookConfiguration) }

//go:embed planner-rbac.yaml
var plannerRoles string

// PlannerRoles is what the shipped manifests let the planner do, in several documents, for the same names.
func PlannerRoles() []byte { return []byte(plannerRoles) }
