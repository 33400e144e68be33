// Package controller holds tests alone: the planner's loop on a real API server, on a fake clock, with a Prometheus
// that answers what the test says.
package controller
