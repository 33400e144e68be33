// Package gaps runs Argo CD's own application-controllers on a plane and measures, in their own logs, who owned each
// cluster when: how long a cluster was without an owner, and how long it had two.
package gaps
