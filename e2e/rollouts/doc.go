// Package rollouts proves ballast's rollouts with Argo CD's own application-controllers: each mode grows, levels,
// shrinks and loses a replica on a real control plane, told by nothing but ballast's configuration, and the
// controllers' own logs say how long each cluster was without an owner.
package rollouts
