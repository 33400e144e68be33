// Package rollout takes a plan into force: what differs between the fleet that stands and the plan that holds (Steps),
// how a changed plan is reached stage by stage (Begin, Advance), and, in apply.go alone, the writes themselves. Healing
// and applying are one function: a Secret that somebody changed and a Secret that a stage has not reached yet differ
// from the plan in the same way.
//
// # What a stage holds
//
// The plan's own fields say what holds now, its Rollout where it goes: a stage is entered by writing the plan, and only
// then come its steps, so the webhook never works against them and the next leader goes on from the plan alone. Nothing
// else is remembered. N is what stands at the start (from), Y what is wanted.
//
//	path       stage       replicas, env  rows  waits until                      past its deadline (stageTimeout)
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
// Where the plan leaves replicas free, they are never written, and Scaling past its deadline ends at Y instead.
//
// Restarting is part of a path only with rolloutRestart. A stage's since is the only clock of its deadline, and a lower
// now counts as no time passed.
//
// # Why nobody is orphaned or doubled
//
// Argo CD reads ARGOCD_CONTROLLER_REPLICAS once, at a pod's start, and takes a shard at or above it for shard 0. While
// pods with N and pods with Y run side by side, only shards below both mean the same replica to all of them; so rows are
// below both in Scaling and Reverting. The reach of a count is the number of replicas that own the shard of their own
// number: the lower of replicas and env, or all replicas where the env is absent or at most 1, since such a pod owns
// everything. Growing and shrinking compare reaches. Steps holds a stamp at or above the reach back, and holds a
// workload back that would shrink below a shard that a Secret still carries.
//
// # Adoption
//
// The first plan has the env as found; 0 stands for an absent env, which is left alone. Stamps come first: they change
// nothing while each pod owns everything. The first rollout sets the env to at least the replicas. Its way back is the
// replicas as found with an env as large, never the absent env: with every Secret stamped below it, that gives each
// cluster one owner.
//
// A Deployment (dynamic cluster distribution) has no env: its pods read spec.replicas at their start, so Scaling
// restarts them too.
package rollout
