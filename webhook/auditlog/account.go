package auditlog

import (
	"slices"
	"strings"
)

// Account says what kind of user a name is.
type Account struct {
	Kind AccountKind `json:"kind"`
	// StandsFor says whose wishes a ServiceAccount carries out, as far as its name tells.
	StandsFor string `json:"standsFor,omitempty"`
}

// AccountKind is the kind of a user.
type AccountKind string

// The kinds of users.
const (
	Person         AccountKind = "person"
	ServiceAccount AccountKind = "service account"
	ControlPlane   AccountKind = "control plane"
)

// String is the account in words.
func (a Account) String() string {
	if a.StandsFor == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + " for " + a.StandsFor
}

// AccountOf tells what kind of user a name is. What a ServiceAccount stands for is told by its name, and is a hint.
func AccountOf(user string) Account {
	rest, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(rest, ":")
	switch {
	case isAccount && namespace == "kube-system":
		return Account{Kind: ControlPlane}
	case isAccount:
		return Account{Kind: ServiceAccount, StandsFor: standsFor(name)}
	case strings.HasPrefix(user, "system:node:"), strings.HasPrefix(user, "system:kube-"), user == "system:apiserver":
		return Account{Kind: ControlPlane}
	}
	return Account{Kind: Person}
}

// standsFor knows the names that Argo CD, Flux and the External Secrets Operator ship, whatever a Helm release or an
// operator puts before them, ballast's own without anything before it, and the words that pipelines are named with.
func standsFor(name string) string {
	if name == "ballast-planner" {
		return "ballast itself"
	}
	for _, known := range []struct{ name, who string }{
		{"argocd-server", "people in Argo CD's UI and CLI"},
		{"argocd-application-controller", "Git, by Argo CD"},
		{"argocd-applicationset-controller", "Git, by Argo CD"},
		{"kustomize-controller", "Git, by Flux"},
		{"helm-controller", "Git, by Flux"},
		{"external-secrets", "a secret store"},
	} {
		if name == known.name || strings.HasSuffix(name, "-"+known.name) {
			return known.who
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })
	pipelines := []string{"ci", "cd", "cicd", "jenkins", "gitlab", "github", "runner", "pipeline", "tekton", "deployer"}
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(pipelines, w) }) {
		return "a pipeline"
	}
	return ""
}
