// Package locks asserts on a real control plane that ballast locks nobody out: what fails, or is not there yet, stops
// no write but those to cluster Secrets, and those only where somebody chose so; and it comes back without a manual
// step.
package locks
