// Package auditlog reads a Kubernetes API server's audit log (JSON lines) for the writes that ballast's webhooks were
// asked about, and for those that no webhook is asked about and that concern ballast all the same, such as deletions:
// who tried what on which object, what was enforced, and at which revision.
//
// The log is not trusted. At level Request it holds Secret data, and whoever may register a webhook may forge an
// annotation; so nothing is handed on but values of closed sets and of the annotations' own grammar.
package auditlog

// Policy is the audit policy that records what this package reads, and no object. A deletion of a whole collection has
// no name, so that no rule of it names objects.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users:
  - system:kube-controller-manager
  - system:serviceaccount:kube-system:statefulset-controller
  - system:serviceaccount:kube-system:deployment-controller
  resources:
  - group: apps
    resources: [statefulsets/status, deployments/status]
- level: Metadata
  namespaces: [argocd]
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: ""
    resources: [secrets, configmaps]
  - group: apps
    resources: [statefulsets, statefulsets/scale, statefulsets/status,
      deployments, deployments/scale, deployments/status]
- level: Metadata
  namespaces: [argocd]
  verbs: [create]
  resources:
  - group: ""
    resources: [pods, serviceaccounts/token]
- level: Metadata
  namespaces: [argocd]
  verbs: [update, patch]
  resources:
  - group: ""
    resources: [pods/resize]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - group: admissionregistration.k8s.io
`
