// Package canary asserts on a real control plane that no credential leaves the cluster Secrets: a thousand of them hold
// tokens that begin alike, and that beginning shows nowhere that ballast writes, at its highest log verbosity.
package canary
