// Package webhook makes every write to Argo CD's cluster Secrets and to its application-controller agree with the plan.
//
// Each kind has one pure decision (DecideCluster, DecideController, DecideScale, DecidePlan, DecidePod) that turns the plan in
// force (package inforce) and the essentials of a request into a Verdict: data, not effects. Around them stand a handler
// that speaks AdmissionReview, a source that keeps the plan current (package source), and a server that stops without
// losing a call (package intake).
//
// The package may read the plan ConfigMap and nothing else: the object is in the request. It refuses a pin that cannot
// be and a plan ConfigMap beyond its bounds, and admits every other write; whatever fails inside it lets the write pass
// unchanged.
package webhook
