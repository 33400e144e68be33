// Package rollout takes a plan into force stage by stage (Begin, Advance). Each stage is a plan that holds: package
// diff says what differs from it, and package apply writes that.
//
// # What a stage holds
//
// The plan's own fields say what holds now, its Rollout where it goes: a stage is entered by writing the plan, and only
// then come its steps, so the webhook never works against them and the next leader goes on from the plan alone. Nothing
// else is remembered, but for where a live rollout goes as a whole: a leader that does not know it ends safely what is
// under way. N is what stands at the start (from), Y what is wanted, E the env that live holds.
//
//	default    stage       replicas, env  rows  waits until                      past its deadline (stageTimeout)
//	growing    Scaling     Y              old   all pods updated and ready       Reverting: back to N, rows unchanged
//	           Assigning   Y              new   every managed Secret has its row goes on: with Y pods up each Secret has
//	                                                                             one owner, and healing continues
//	           Restarting  Y              new   restarted, updated and ready     ends: nothing is left to take back
//	shrinking  Assigning   N              new   as above, and no Secret carries  goes on if none carries a shard at or
//	                                            a shard at or above Y            above Y; else ends at N, new rows
//	           Scaling     Y              new   all pods updated and ready       Reverting: back to N, new rows
//	           Restarting  Y              new   as above                         ends
//	level      Assigning   N              new   every managed Secret has its row goes on
//	           Restarting  N              new   as above                         ends
//	way back   Reverting   N              kept  all pods updated and ready       ends at N
//
//	live       stage       replicas, env  rows  waits until                      past its deadline (stageTimeout)
//	adoption   Scaling     N, E           old   the one restart is done          Reverting: N and the old env
//	growing    Scaling     Y, E           old   the pods that come are ready     Reverting: back to N; no row changed
//	waves      Moving      Y or N, E      wave  each Secret of the wave has its  Reverting: the wave's rows go back
//	                                            row, its new owner alone has it
//	                                            connected, and is ready
//	           Verifying   Y or N, E      new   every cluster has its one owner, shrinking with something left or
//	                                            nothing is left on what goes     doubled: ends at N; else goes on
//	shrinking  Shrinking   Y, E           new   the replicas that were left are  ends: at N if the workload was not made
//	                                            gone                             smaller, else at Y
//	way back   Reverting   as it was, E   was   the wave's Secrets have their    ends; where the replicas that came have no
//	                                            old rows, the old owners them    cluster: Reverting, back to N
//
//	x0y        stage       replicas, env  rows  waits until                      past its deadline
//	           Draining    0, as it is    old   no pod is left                   Reverting (drainTimeout)
//	           Assigning   0, as it is    new   every managed Secret has its row goes on; Reverting if pods run
//	           Restoring   Y              new   all pods updated and ready       Reverting, for a larger N twice as late
//	                                                                             while a Secret carries what is beyond
//	                                                                             Y; ends if Y is N
//	way back   Reverting   N              was   all pods updated and ready, then ends, but not at 0, nor while pods of a
//	                                            the rest of the rows             smaller Y may run
//
// Draining and Assigning hold 0 for plan.StopHeld at most, here as in the webhook: what people brought back after that
// is not stopped again, and the rollout turns back.
//
// Where the plan leaves replicas free, they are never written: Scaling past its deadline ends (at Y in mode default;
// live says N, since it cannot rely on the others), Shrinking waits for what people did, and x0y refuses to begin.
//
// Restarting is part of a path only with rolloutRestart. A stage's since is the only clock of its deadline, and a lower
// now counts as no time passed. Hold stops a rollout where it is, but for x0y, which turns back from Draining and
// Assigning and otherwise goes on to its end: no workload stays at 0.
//
// # Waves
//
// A wave moves at most maxMovesPerWave clusters and no more than the budget has, clusters of one server together. Its
// rows are written with it (Moves: where to, Was: where from). It turns back before its deadline when a pod that
// receives restarts, is out of memory or near its limit; a pod that is near it beforehand receives nothing. What came
// from a replica for which nobody works stays where it is. Where the wave's clusters are owned as they should be, but
// some are connected by nobody, at replicas that have others connected, it is the clusters that cannot be reached: then
// its deadline lets it pass.
//
// No wave begins while a cluster has several owners, or none, but for those that leave a replica for which nobody
// works, and those that a person asked for. The first need an answer of who receives only, all others one of every pod.
//
// Between two waves Moves is empty: Moving waits for a budget, for pods and for word of who owns what, and its deadline
// ends the rollout where it is. basis.Options.EndsBecause ends it there at once, and before replicas go: a leader that may
// decide nothing by itself any more, or sees a replica unwell, does so. basis.Options.NoMoreWaves ends it there alone, while
// clusters are left.
//
// The clusters of a wave, and of its way back, are nudged as their Secrets are written, and so are those that a pin or
// a repair gives another owner, whatever stage there is: see diff.Nudge.
//
// # Why nobody is orphaned or doubled
//
// Argo CD reads ARGOCD_CONTROLLER_REPLICAS once, at a pod's start, and takes a shard at or above it for shard 0. While
// pods with N and pods with Y run side by side, only shards below both mean the same replica to all of them; so rows
// are below both in Scaling, Shrinking and in Reverting, until all pods are of one count. The reach of a count is the
// number of replicas that own the shard of their own number: the lower of replicas and env, or all replicas where the
// env is absent or at most 1, since such a pod owns everything. Growing and shrinking compare reaches. Package diff
// holds a stamp at or above the reach back, and holds a workload back that would shrink below a shard that a Secret
// still carries.
//
// In mode live the env is the largest number of replicas that may ever be, so that every pod knows every shard:
// replicas come and go without a restart, and a cluster has one owner as soon as its Secret has one shard.
// readiness.Missing says what that rests on. In mode x0y nobody owns anything while shards change; the pods that come
// are of one count. What remains open in x0y and default is a Secret that ballast may not write: where it carries a
// shard at or above the smaller count, it may have two owners while pods of both run.
//
// # Adoption
//
// The first plan has the env as found; 0 stands for an absent env, which is left alone. Stamps come first: they change
// nothing while each pod owns everything. The first rollout sets the env to at least the replicas, in mode live to E.
// Its way back is the replicas as found with an env as large, never the absent env: with every Secret stamped below it,
// that gives each cluster one owner.
//
// # Deployments
//
// A Deployment (dynamic cluster distribution) has no env: its pods read spec.replicas at their start, so Scaling,
// Shrinking and their way back restart them too, in mode live as well. Meanwhile pods of both counts run, and rows are
// below both: Moving comes before Shrinking and after Scaling. That is as far as a plan can see to it. Which pod is
// which replica is Argo CD's to say: a new pod that finds no free slot owns nothing until an old one's heartbeat is
// three periods old, and a mapping with more entries than replicas is dealt anew. So the restart of a Deployment may
// leave a cluster without an owner, or with two, for about that long; no wave is begun, and Shrinking does not end,
// while a pod is ready and has no slot. One that nobody is there to claim holds nobody up: failover has to empty it.
// Nor does the slot of an unwell replica hold up its own failover, though a pod is ready and may claim it. A pod that
// claims its slot late owns the slot's clusters and begins with none: it is nudged until it does.
package rollout
