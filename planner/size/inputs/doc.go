// Package inputs makes inputs of size rules of what says nothing of clusters: metrics of pods, the nodes of the cluster
// that ballast runs in, and what autoscalers of the workload recommend. It is pure; planner/surroundings asks the API
// server.
package inputs
