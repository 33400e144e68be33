// Package newcomer walks docs/quick-start.md as a new user does, on a real control plane: once with kustomize and once
// with Helm. One story, two installers; each of ballast's commands runs in it.
package newcomer
