// Package installation says where the cluster that ballast is installed in differs from what it was made for: an
// installed webhook configuration that is not the shipped one, and a Kubernetes that is too old. Nothing here stops
// anything: it is told.
package installation

// Kind is what a finding is about.
type Kind string

// The kinds of findings.
const (
	Changed    Kind = "WebhookConfigurationChanged"  // the installed webhook configuration is not the shipped one
	Unreadable Kind = "WebhookConfigurationUnread"   // the right to find out is missing
	LeftBehind Kind = "WebhookConfigurationLeftOver" // that of an older release is still there
	TooOld     Kind = "KubernetesTooOld"
)

// Finding is one difference. The subject tells it from others of its kind, and stays the same while the difference
// lasts.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// Names are what differs from one installation to another.
type Names struct {
	Namespace string // Argo CD's, in which ballast is
	Workload  string // the application-controller's
	Plan      string // the plan ConfigMap's
	Planner   string // the planner's user
}
