// Package webhook makes every write to Argo CD's cluster Secrets and to its application-controller agree with the plan.
//
// Each kind of object has one pure decision (package decision) that turns the plan in force (package inforce) and what
// it needs of the object (package objects) into a Verdict: data, not effects. This package is the handler around them,
// which speaks AdmissionReview. A source keeps the plan current (package source), and a server stops without losing a
// call (package intake).
//
// The webhook may read the plan ConfigMap and nothing else: the object is in the request. It refuses a pin that cannot
// be and a plan ConfigMap beyond its bounds, and admits every other write; whatever fails inside it lets the write pass
// unchanged.
package webhook
