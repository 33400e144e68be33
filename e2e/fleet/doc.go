// Package fleet simulates the Argo CD that ballast works for: cluster Secrets with very unequal load, the
// application-controller's StatefulSet and ConfigMaps as upstream ships them, and in place of its pods' processes an
// exporter that follows the API server as they would and serves each pod's metrics under Argo CD's own names, types and
// labels, with a past. It imports nothing of ballast, so that a mistake of ballast's is not repeated here. Its rules
// are those of argo-cd v3.2.11.
package fleet
