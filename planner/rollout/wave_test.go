package rollout

import (
	"testing"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

func TestLiveWaves(t *testing.T) {
	away := func(s *observed.State) { s.OwnersKnown, s.Owned = false, nil }
	pod := func(i int, change func(*observed.Pod)) func(*observed.State) {
		return func(s *observed.State) { change(&s.Pods[i]) }
	}
	stamped := func(owned observed.Owned) observed.State {
		return but(fit(3, 16, grown), func(s *observed.State) { s.Owned["b"] = owned })
	}
	for name, c := range map[string]liveCase{
		"the first wave": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"no wave is begun onto a pod that is not ready": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), pod(2, func(p *observed.Pod) { p.Ready = false })), target: grown,
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: replica 2 is not ready",
		},
		"no wave is begun onto a pod near its memory limit": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), pod(2, func(p *observed.Pod) { p.Memory = 922 << 20 })), target: grown,
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"a pod without a limit is near nothing": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), pod(2, func(p *observed.Pod) { p.Memory, p.MemoryLimit = 922<<20, 0 })), target: grown,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"no wave is begun while owners are not known": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), away), target: grown,
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: not every pod says which clusters it owns",
		},
		"no cluster is moved of which nobody says who owns it": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), func(s *observed.State) { delete(s.Owned, "b") }), target: grown,
			want: `Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: nobody says who owns cluster "b"`,
		},
		"replicas to which nothing could be moved go again": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), away), target: grown, late: true,
			want: "TurnedBack: Reverting 2/16 rows [a0 b1 c1]; not done after 10m0s: not every pod says which clusters it owns",
		},
		"people's replicas to which nothing could be moved stay": {
			plan: growing(plan.Moving, func(p *plan.Plan) { p.FreeReplicas = true }), seen: but(fit(3, 16, old), away), target: grown, late: true,
			want: "GaveUp: 3/16 rows [a0 b1 c1]; not done after 10m0s: not every pod says which clusters it owns",
		},
		"without a budget no wave is begun": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown, budget: -1,
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: the budget of moves is used up",
		},
		"without a budget it ends, and the rest is decided anew": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown, budget: -1, late: true,
			want: "Finished: 3/16 rows [a0 b1 c1]; the budget of moves is used up after 10m0s: where the other clusters go is decided anew",
		},
		"a leader that forgot where to go moves nothing more": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old),
			want: "Advanced: Verifying 3/16 rows [a0 b1 c1]; every cluster has its replica",
		},
		"a pin to a replica that came is where a cluster goes, whatever was decided": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), pins: plan.Pins{"c": 2, "b": 1}, target: grown,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c2] moves [c2] was [c1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"a wave waits for its Secrets": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, old), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"a wave waits for the new owner": {
			plan: growing(plan.Moving, moved), seen: stamped(observed.Owned{}), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: cluster "b" is owned by nobody instead of replica 2`,
		},
		"a wave waits until the old owner let go": {
			plan: growing(plan.Moving, moved), seen: stamped(observed.Owned{Owners: []int{1, 2}, Live: []int{2}}), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: cluster "b" is owned by replicas [1 2] instead of replica 2`,
		},
		"a wave waits until the new owner has it connected": {
			plan: growing(plan.Moving, moved), seen: stamped(observed.Owned{Owners: []int{2}}), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: replica 2 has not connected cluster "b"`,
		},
		"a wave waits while owners are not known": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), away), target: grown,
			want: "Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: not every pod says which clusters it owns",
		},
		"a wave waits for the pod that receives": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), pod(2, func(p *observed.Pod) { p.Ready = false })), target: grown,
			want: "Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: replica 2 is not ready",
		},
		"a wave does not wait for a cluster without an Application": {
			plan: growing(plan.Moving, moved), seen: stamped(observed.Owned{Idle: true}), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"a wave does not wait for a Secret that is gone": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, shards{"a": 0, "c": 1}), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"the last wave is done": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, grown), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"a wave is done and the next begins": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, grown), target: shards{"a": 2, "b": 2, "c": 1},
			want: "Advanced: Moving 2/2 3/16 rows [a2 b2 c1] moves [a2] was [a0]; wave 1 is done; wave 2 of 2 moves 1 of 3 clusters",
		},
		"a wave is done and the next waits": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, grown), target: shards{"a": 2, "b": 2, "c": 1}, budget: -1,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; the next wave waits: the budget of moves is used up",
		},
		"a pin that was edited meanwhile is what a wave waits for": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, shards{"a": 0, "b": 0, "c": 1}), pins: plan.Pins{"b": 0}, target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
	} {
		t.Run(name, c.run)
	}
}

func TestLiveWavesTurnBack(t *testing.T) {
	pod := func(change func(*observed.Pod), others ...func(*observed.State)) observed.State {
		s := but(fit(3, 16, grown), func(s *observed.State) { change(&s.Pods[2]) })
		for _, other := range others {
			other(&s)
		}
		return s
	}
	const back = "TurnedBack: Reverting 1/1 3/16 rows [a0 b1 c1] moves [b1] was [b2]; "
	for name, c := range map[string]liveCase{
		"when the pod that receives restarted": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Restarts, p.RestartedAt = 1, start.Add(time.Second) }),
			want: back + "replica 2 restarted",
		},
		"when it was killed for its memory": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Restarts, p.RestartedAt, p.OOMKilled = 1, start.Add(time.Second), true }),
			want: back + "replica 2 was out of memory",
		},
		"when it was killed and does not run again": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Ready, p.OOMKilled = false, true }),
			want: back + "replica 2 was out of memory",
		},
		"when it comes near its memory limit": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Memory = 922 << 20 }),
			want: back + "replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"when its deadline has passed": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) { s.Owned["b"] = observed.Owned{} }), late: true,
			want: back + `not done after 10m0s: cluster "b" is owned by nobody instead of replica 2`,
		},
		"when nobody can be asked until its deadline": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) { s.OwnersKnown = false }), late: true,
			want: back + "not done after 10m0s: not every pod says which clusters it owns",
		},
		"when most Secrets are not seen until its deadline": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				moved(p)
				p.Clusters["d"] = plan.Row{}
			}), seen: fit(3, 16, shards{"b": 2}), late: true,
			want: "TurnedBack: Reverting 1/1 3/16 rows [a0 b1 c1 d0] moves [b1] was [b2]; not done after 10m0s: most of the plan's Secrets are not seen",
		},
		"but not what rescues those that are seen": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				moved(p)
				p.Clusters["d"] = plan.Row{}
			}), seen: fit(3, 16, shards{"b": 2}), rescue: true, target: shards{"b": 2},
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1 d0]; wave 1 is done; every cluster has its replica",
		},
		"nor is its first wave kept from it": {
			plan: growing(plan.Moving, func(p *plan.Plan) { p.Clusters["d"] = plan.Row{} }),
			seen: fit(3, 16, shards{"b": 1}), rescue: true, target: shards{"b": 2},
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1 d0] moves [b2] was [b1]; wave 1 of 1 moves 1 of 4 clusters",
		},
		"but not for a restart before it": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Restarts, p.RestartedAt, p.OOMKilled = 1, start.Add(-time.Second), true }), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"but not for a pod that receives nothing": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) { s.Pods[0].Restarts, s.Pods[0].RestartedAt = 1, start.Add(time.Minute) }), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"and a replica that has nothing connected shows nothing": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) { s.Owned["b"] = observed.Owned{Owners: []int{2}} }), late: true,
			want: back + `not done after 10m0s: replica 2 has not connected cluster "b"`,
		},
		"but not for a cluster that nobody can reach, at a replica that has others": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 0, "b": 1, "c": 1})
				inWave(p, shards{"c": 1}, shards{"c": 2})
			}),
			seen:   but(fit(3, 16, shards{"a": 0, "b": 1, "c": 1}), func(s *observed.State) { s.Owned["c"] = observed.Owned{Owners: []int{1}} }),
			target: shards{"a": 0, "b": 1, "c": 1}, late: true,
			want: `Advanced: Verifying 1/1 3/16 rows [a0 b1 c1]; going on after 10m0s, though replica 1 has not connected cluster "c"; every cluster has its replica`,
		},
		"and leaves what a person decided meanwhile": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 1, "b": 2, "c": 0})
				inWave(p, shards{"a": 1, "b": 2, "c": 2}, shards{"a": 0, "b": 1, "c": 1})
			}),
			pins: plan.Pins{"a": 1}, seen: pod(func(p *observed.Pod) { p.Memory = 922 << 20 }),
			want: "TurnedBack: Reverting 1/1 3/16 rows [a1 b1 c0] moves [b1] was [b2]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"and keeps the Secrets of one server together where a person pinned one of them meanwhile": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 2, "b": 2, "c": 2})
				p.Clusters["a"] = plan.Row{Replica: 2, Server: p.Clusters["b"].Server}
				inWave(p, shards{"a": 2, "b": 2, "c": 2}, shards{"a": 0, "b": 0, "c": 1})
			}),
			pins: plan.Pins{"b": 2}, seen: but(fit(3, 16, shards{"a": 2, "b": 2, "c": 2}), func(s *observed.State) {
				s.Pods[2].Memory, s.Secrets[0].Server = 922<<20, s.Secrets[1].Server
			}),
			want: "TurnedBack: Reverting 1/1 3/16 rows [a2 b2 c1] moves [c1] was [c2]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"and one that came to the wave's server goes back with it": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				moved(p)
				p.Clusters["new"] = plan.Row{Replica: 2, Server: p.Clusters["b"].Server}
			}),
			seen: but(fit(3, 16, shards{"a": 0, "b": 2, "c": 1, "new": 2}), func(s *observed.State) {
				s.Pods[2].Memory, s.Secrets[3].Server = 922<<20, s.Secrets[1].Server
			}),
			want: "TurnedBack: Reverting 1/1 3/16 rows [a0 b1 c1 new1] moves [b1] was [b2]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"and gives nothing to replicas that people took away": {
			plan: shrinking(plan.Moving, shards{"a": 0, "b": 1, "c": 0}, func(p *plan.Plan) {
				p.FreeReplicas = true
				inWave(p, shards{"c": 0}, shards{"c": 2})
			}),
			seen: but(fit(2, 16, shrunken), func(s *observed.State) { s.Pods[0].Memory = 1 << 30 }),
			want: "GaveUp: 3/16 rows [a0 b1 c0]; replica 0 uses 1024 MiB of its memory limit of 1024 MiB",
		},
		"but not onto a replica that does not work": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Memory = 922 << 20 }, func(s *observed.State) { s.Pods[1].Ready = false }),
			want: "GaveUp: 3/16 rows [a0 b2 c1]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"but not onto one that is unwell, though it is ready now": {
			plan: growing(plan.Moving, moved), seen: pod(func(p *observed.Pod) { p.Memory = 922 << 20 }), unwell: map[int]bool{1: true},
			want: "GaveUp: 3/16 rows [a0 b2 c1]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"and what came from others goes back alone": {
			plan: growing(plan.Moving, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 2, "b": 2, "c": 1})
				inWave(p, shards{"a": 2, "b": 2}, shards{"a": 0, "b": 1})
			}),
			seen: but(fit(3, 16, shards{"a": 2, "b": 2, "c": 1}), func(s *observed.State) { s.Pods[1].Ready, s.Pods[2].Memory = false, 922<<20 }),
			want: "TurnedBack: Reverting 1/1 3/16 rows [a0 b2 c1] moves [a0] was [a2]; replica 2 uses 922 MiB of its memory limit of 1024 MiB",
		},
		"then it waits until its Secrets are back": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { inWave(p, shards{"b": 1}, shards{"b": 2}) }), seen: fit(3, 16, grown),
			want: `Waiting: Reverting 1/1 3/16 rows [a0 b1 c1] moves [b1] was [b2]; waiting: 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"then it waits until the old owners have them again": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { inWave(p, shards{"b": 1}, shards{"b": 2}) }),
			seen: but(fit(3, 16, old), func(s *observed.State) { s.Owned["b"] = observed.Owned{} }),
			want: `Waiting: Reverting 1/1 3/16 rows [a0 b1 c1] moves [b1] was [b2]; waiting: cluster "b" is owned by nobody instead of replica 1`,
		},
		"then written Secrets are enough where nobody can be asked, and replicas without a cluster go": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { inWave(p, shards{"b": 1}, shards{"b": 2}) }),
			seen: but(fit(3, 16, old), func(s *observed.State) { s.OwnersKnown, s.Owned = false, nil }),
			want: "Advanced: Reverting 1/1 2/16 rows [a0 b1 c1]; the wave's clusters are back where they were",
		},
		"then replicas that have clusters stay": {
			plan: growing(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 2, "b": 1, "c": 1})
				inWave(p, shards{"b": 1}, shards{"b": 2})
			}),
			seen: fit(3, 16, shards{"a": 2, "b": 1, "c": 1}),
			want: "Reverted: 3/16 rows [a2 b1 c1]; the wave's clusters are back where they were",
		},
		"then replicas that a Secret holds which is not ballast's stay": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { inWave(p, shards{"b": 1}, shards{"b": 2}) }),
			seen: but(fit(3, 16, old), func(s *observed.State) {
				s.Secrets = append(s.Secrets, observed.Secret{Name: "z", Shard: 2, Valid: true, Unmanaged: true})
			}),
			want: "Reverted: 3/16 rows [a0 b1 c1]; the wave's clusters are back where they were",
		},
		"then its deadline ends it too": {
			plan: during(two, two, plan.Reverting, old, func(p *plan.Plan) { inWave(p, shards{"b": 1}, shards{"b": 0}) }),
			seen: fit(2, 16, shards{"a": 0, "b": 0, "c": 1}), late: true,
			want: `Reverted: 2/16 rows [a0 b1 c1]; not done after 10m0s: 1 Secrets do not carry their replica yet, the first is "b"`,
		},
	} {
		t.Run(name, c.run)
	}
}
