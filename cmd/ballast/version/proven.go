package version

// What ballast's tests run with: the API server of e2e/kube, and the controllers of e2e/argocd.
const (
	ProvenKubernetes = "1.36.1"
	ProvenArgoCD     = "3.2.11"
)
