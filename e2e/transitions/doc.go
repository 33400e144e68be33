// Package transitions drives planner/rollout in mode live against Argo CD's own controller/sharding package, which says
// after every single event whose each cluster is. It has tests only. The package runs in the command e2e/argocd/views,
// of whose requests e2e/gaps has the types.
//
// A transition is one rollout, from Begin to a fleet at rest: growing, shrinking or level. A fleet is found as Argo CD
// runs it, by one of its algorithms, is adopted (each Secret is given its owner, then the environment is changed once),
// and goes through ten of them. In every second one pods crash, hang or never come up, people pin, move and create
// clusters, the leader forgets where it was going, and metrics are away.
//
// # What is real, and what is a model
//
// Begin, Advance, Steps and Missing are real, and so is what Argo CD makes of what a pod has read: each pod that runs
// has a view of its own, from the environment it started with, the cluster Secrets it listed then, and the changes of
// Secrets that it has seen since. Models are the API server, the StatefulSet's controller (OrderedReady,
// RollingUpdate), the kubelet, and who has a cluster connected.
//
// Events come one at a time and in random order: the write of one Secret or of the workload, one pod that sees one
// change of one Secret, a process that starts or ends, a pod that becomes ready. A pod sees the versions of one Secret
// in their order, those of different Secrets in any, and may miss versions between, as a watch that lists anew. A
// process that starts lists nothing older than what any other pod still believes.
//
// # What must hold after every event
//
//   - Each running pod owns exactly the clusters whose Secret, as that pod saw it last, names it. Nothing else decides: no
//     algorithm, no other pod's environment. So a cluster that moves is owned by nobody but its old and its new owner (those
//     that its Secret named since the oldest version that a pod still believes), and pods that have seen all never disagree.
//   - Every cluster's Secret names a pod whose process runs, or is being started again after a crash or for the environment.
//   - So a cluster whose Secret every running pod has seen has exactly one owner, or none while that one process is down.
//   - A pod that a rollout takes away owns nothing when it goes.
//   - Once the environment is what mode live holds it at, it is never written again, and no pod is replaced.
//
// One of several Secrets of a server that is deleted has each pod that sees it go take 0 for the server's shard,
// whatever the others say, until it hears of another one with another shard (e2e/gaps
// TestWhatArgoCDMakesOfASecondSecretThatGoes). So it is judged, and an hour later those pods are restarted, as the
// runbook says. ballast itself tells of it and mends it by one write, which planner/sim/life
// TestASecondSecretThatGoesLeavesNobodyAstray shows.
//
// # What is left out
//
// Three states give a cluster two owners, or none, or a row that cannot be carried, and are not drawn:
//
// Two Secrets of one server, without shards, under round-robin or consistent-hashing: a pod knows the server by the
// Secret it heard of last, and these algorithms rank clusters by their Secrets' UIDs. So a write to either Secret, a
// stamp too, changes the rank, and with it the owner, of other clusters that have no shard yet. Once all have one,
// nothing does.
//
// A Secret created while the environment is changed on a fleet found with fewer in it than it has pods:
// plan.View.Assign looks at the replicas alone, and a shard between the two numbers is pod 0's to the pods that run
// still, and its own pod's to those that were replaced.
//
// A Secret that somebody changed and that became immutable before it was healed, in a rollout that shrinks: its row
// stays on the replica that goes, though the Secret does not name it.
package transitions
