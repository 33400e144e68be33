package rollout

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
	"ballast/planner/rollout/wave"
)

// loaded are rows with loads, and servers by the letter that their names begin with.
func loaded(shards map[string]int, loads map[string]string) map[string]plan.Row {
	rows := map[string]plan.Row{}
	for name, shard := range shards {
		rows[name] = plan.Row{Replica: shard, Load: loads[name], Server: plan.ServerHash("https://" + name[:1])}
	}
	return rows
}

func TestAWaveIsChosenSoThatNobodyIsOverloadedOnTheWay(t *testing.T) {
	for name, test := range map[string]struct {
		stands, target shards
		loads          map[string]string
		perWave        int
		budget         int
		change         func(*observed.State)
		small          map[int]string
		want           string
	}{
		"a receiver that is to be larger first keeps nobody else waiting": {
			stands: shards{"a": 0, "b": 0}, target: shards{"a": 1, "b": 2}, perWave: 5, budget: math.MaxInt, small: map[int]string{1: "it grows"},
			want: "Advanced: Moving 1/2 3/16 rows [a0 b2] moves [b2] was [b0]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"a wave waits for the receiver that is to be larger": {
			stands: shards{"a": 0, "b": 0}, target: shards{"a": 1, "b": 1}, perWave: 5, budget: math.MaxInt, small: map[int]string{1: "it grows"},
			want: "Waiting: Moving 3/16 rows [a0 b0]; waiting: it grows",
		},
		"what nobody works for waits for no size": {
			stands: shards{"a": 0, "b": 2}, target: shards{"a": 1, "b": 1}, perWave: 5, budget: math.MaxInt, small: map[int]string{1: "it grows"},
			change: func(s *observed.State) { s.Pods[0].Ready = false },
			want:   "Advanced: Moving 1/2 3/16 rows [a1 b2] moves [a1] was [a0]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"from the heaviest first, and the heavier one of it": {
			stands: shards{"a": 0, "b": 0, "c": 1, "d": 1}, target: shards{"a": 2, "b": 2, "c": 2, "d": 2},
			loads: map[string]string{"a": "1", "b": "1.5", "c": "4", "d": "3"}, perWave: 2, budget: math.MaxInt,
			want: "Advanced: Moving 1/2 3/16 rows [a0 b0 c2 d2] moves [c2 d2] was [c1 d1]; wave 1 of 2 moves 2 of 4 clusters",
		},
		"not two onto one, if it is too much before others leave": {
			stands: shards{"a": 0, "b": 1, "c": 2}, target: shards{"a": 2, "b": 0, "c": 1},
			loads: map[string]string{"a": "5", "b": "5", "c": "1"}, perWave: 3, budget: math.MaxInt,
			want: "Advanced: Moving 1/2 3/16 rows [a2 b1 c2] moves [a2] was [a0]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"an exchange between full replicas goes one by one": {
			stands: shards{"a": 0, "b": 1}, target: shards{"a": 1, "b": 0},
			loads: map[string]string{"a": "5", "b": "5"}, perWave: 5, budget: math.MaxInt,
			want: "Advanced: Moving 1/2 3/16 rows [a1 b1] moves [a1] was [a0]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"never more than the budget": {
			stands: shards{"a": 0, "b": 0, "c": 0}, target: shards{"a": 1, "b": 2, "c": 0}, perWave: 5, budget: 1,
			want: "Advanced: Moving 1/2 3/16 rows [a1 b0 c0] moves [a1] was [a0]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"clusters of one server together": {
			stands: shards{"a": 0, "b1": 0, "b2": 0, "c": 1}, target: shards{"a": 1, "b1": 1, "b2": 1, "c": 1}, perWave: 1, budget: math.MaxInt,
			want: "Advanced: Moving 1/2 3/16 rows [a0 b11 b21 c1] moves [b11 b21] was [b10 b20]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"one server is one move of the wave": {
			stands: shards{"b1": 0, "b2": 0, "b3": 0, "c": 0}, target: shards{"b1": 1, "b2": 1, "b3": 1, "c": 1}, perWave: 2, budget: math.MaxInt,
			want: "Advanced: Moving 1/1 3/16 rows [b11 b21 b31 c1] moves [b11 b21 b31 c1] was [b10 b20 b30 c0]; wave 1 of 1 moves 2 of 2 clusters",
		},
		"and one of the budget": {
			stands: shards{"b1": 0, "b2": 0, "c": 0}, target: shards{"b1": 1, "b2": 1, "c": 1}, perWave: 5, budget: 1,
			want: "Advanced: Moving 1/2 3/16 rows [b11 b21 c0] moves [b11 b21] was [b10 b20]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"no server without a budget": {
			stands: shards{"b1": 0, "b2": 0, "c": 0}, target: shards{"b1": 1, "b2": 1, "c": 0}, perWave: 5, budget: 0,
			want: "Waiting: Moving 3/16 rows [b10 b20 c0]; waiting: the budget of moves is used up",
		},
		"what nobody can reach comes last": {
			stands: shards{"a": 0, "b": 0}, target: shards{"a": 1, "b": 1}, loads: map[string]string{"a": "9"}, perWave: 1, budget: math.MaxInt,
			change: func(s *observed.State) { s.Owned["a"] = observed.Owned{Owners: []int{0}} },
			want:   "Advanced: Moving 1/2 3/16 rows [a0 b1] moves [b1] was [b0]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"a receiver that cannot now keeps nobody else waiting": {
			stands: shards{"a": 0, "b": 0}, target: shards{"a": 1, "b": 2}, perWave: 5, budget: math.MaxInt,
			change: func(s *observed.State) { s.Pods[1].Ready = false },
			want:   "Advanced: Moving 1/2 3/16 rows [a0 b2] moves [b2] was [b0]; wave 1 of 2 moves 1 of 2 clusters",
		},
		"a server with a Secret that is not ballast's stays": {
			stands: shards{"a": 0, "b1": 0, "b2": 0}, target: shards{"a": 1, "b1": 1, "b2": 1}, perWave: 5, budget: math.MaxInt,
			change: func(s *observed.State) { s.Secrets[2].Immutable = true },
			want:   "Advanced: Moving 1/1 3/16 rows [a1 b10 b20] moves [a1] was [a0]; wave 1 of 1 moves 1 of 2 clusters",
		},
		"what is kept apart waits until the other one has left": {
			stands: shards{"a": 0, "b": 1, "c": 2}, target: shards{"a": 1, "b": 2, "c": 2}, loads: map[string]string{"a": "2", "b": "1", "c": "9"}, perWave: 5, budget: math.MaxInt,
			change: func(s *observed.State) { s.Secrets[0].Apart, s.Secrets[1].Apart = []string{"hubs"}, []string{"hubs"} },
			want:   "Advanced: Moving 1/2 3/16 rows [a0 b2 c2] moves [b2] was [b1]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"two of a group that change places go one by one": {
			stands: shards{"a": 0, "b": 1, "c": 2}, target: shards{"a": 1, "b": 0, "c": 2}, loads: map[string]string{"a": "2", "b": "1", "c": "9"}, perWave: 5, budget: math.MaxInt,
			change: func(s *observed.State) { s.Secrets[0].Apart, s.Secrets[1].Apart = []string{"hubs"}, []string{"hubs"} },
			want:   "Advanced: Moving 1/2 3/16 rows [a1 b1 c2] moves [a1] was [a0]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"a group that stays together goes whole, and counts each server": {
			stands: shards{"a": 0, "b": 0, "c": 0}, target: shards{"a": 1, "b": 1, "c": 1}, perWave: 2, budget: math.MaxInt,
			change: func(s *observed.State) { s.Secrets[0].Bound, s.Secrets[1].Bound = "https://a", "https://a" },
			want:   "Advanced: Moving 1/2 3/16 rows [a1 b1 c0] moves [a1 b1] was [a0 b0]; wave 1 of 2 moves 2 of 3 clusters",
		},
		"loads that are no numbers count as clusters": {
			stands: shards{"a": 0, "b": 0}, target: shards{"a": 1, "b": 0}, loads: map[string]string{"a": "much", "b": "-1"}, perWave: 5, budget: math.MaxInt,
			want: "Advanced: Moving 1/1 3/16 rows [a1 b0] moves [a1] was [a0]; wave 1 of 1 moves 1 of 2 clusters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := fit(3, 16, test.stands)
			for i, s := range seen.Secrets {
				seen.Secrets[i].Server = "https://" + s.Name[:1]
			}
			if test.change != nil {
				test.change(&seen)
			}
			p := during(three, three, plan.Moving, nil, func(p *plan.Plan) { p.Clusters = loaded(test.stands, test.loads) })
			o := basis.Options{StageTimeout: time.Hour, MaxMovesPerWave: test.perWave, Budget: test.budget, AwaitSize: test.small}
			if diff := cmp.Diff(test.want, told(Advance(plan.NewView(p, nil), seen, test.target, o, start))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWaveKeepsItsLimitsAndTheHeaviestLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stands, target, loads := shards{}, shards{}, map[string]string{}
		for i := range rapid.IntRange(1, 30).Draw(t, "clusters") {
			name := fmt.Sprintf("%c%d", 'a'+i, i)
			stands[name], target[name] = rapid.IntRange(0, 2).Draw(t, "from"), rapid.IntRange(0, 2).Draw(t, "to")
			loads[name] = fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "load"))
		}
		p := during(three, three, plan.Moving, nil, func(p *plan.Plan) { p.Clusters = loaded(stands, loads) })
		o := basis.Options{StageTimeout: time.Hour, MaxMovesPerWave: rapid.IntRange(1, 8).Draw(t, "perWave"), Budget: rapid.IntRange(1, 8).Draw(t, "budget")}
		seen := fit(3, 16, stands)
		for i, s := range seen.Secrets {
			seen.Secrets[i].Server = "https://" + s.Name[:1]
		}
		next, _ := Advance(plan.NewView(p, nil), seen, target, o, start)
		if next.Rollout.Stage == plan.Verifying {
			return
		}
		if n := len(next.Rollout.Moves); n == 0 || n > min(o.MaxMovesPerWave, o.Budget) {
			t.Fatalf("a wave of %d clusters, where %d and %d are the limits", n, o.MaxMovesPerWave, o.Budget)
		}
		now, then, on := carriedBy(p), plan.Plan{Clusters: loaded(target, loads)}, carriedBy(p)
		for name, to := range next.Rollout.Moves {
			on[to] += wave.LoadOf(p.Clusters[name])
		}
		most := plan.Load(0)
		for r, load := range carriedBy(then) {
			most = max(most, load, now[r])
		}
		for r, load := range on {
			if load > most && len(next.Rollout.Moves) > 1 {
				t.Fatalf("replica %d carries %s in a wave of %v, more than %s before and after", r, load, next.Rollout.Moves, most)
			}
		}
	})
}

func carriedBy(p plan.Plan) [3]plan.Load {
	var loads [3]plan.Load
	for _, row := range p.Clusters {
		loads[row.Replica] += wave.LoadOf(row)
	}
	return loads
}

func TestADeploymentsWaveWaitsForEveryClaim(t *testing.T) {
	of := func(p plan.Plan) plan.Plan {
		p.Target.Kind, p.ControllerReplicas, p.Rollout.ControllerReplicas, p.Rollout.From.ControllerReplicas = plan.Deployment, 0, 0, 0
		return p
	}
	restarted := func(s *observed.State) { s.Workload.RestartedAt = start.Format(time.RFC3339) }
	for name, c := range map[string]liveCase{
		"a slot that nobody claimed": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[0].Claimed = false }), target: grown,
			want: "Waiting: Moving 3/0 rows [a0 b1 c1]; waiting: no pod has claimed replica 0",
		},
		"a slot that a pod is about to claim": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[0].Replica, s.Pods[0].Claimed = -1, false }), target: grown,
			want: "Waiting: Moving 3/0 rows [a0 b1 c1]; waiting: replica 0 has no pod that is seen",
		},
		"a slot that nobody is there to claim is left": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[1].Ready, s.Pods[1].Claimed = false, false }), target: grown,
			want: "Advanced: Moving 1/1 3/0 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"a slot that a ready pod did not claim for long is left by a failover": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[1].Claimed = false }), target: grown, rescue: true, unwell: map[int]bool{1: true},
			want: "Advanced: Moving 1/1 3/0 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"and not for a failover of another": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[1].Claimed = false }), target: grown, rescue: true, unwell: map[int]bool{0: true},
			want: "Waiting: Moving 3/0 rows [a0 b1 c1]; waiting: no pod has claimed replica 1",
		},
		"nor for anything else": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods[1].Claimed = false }), target: grown, unwell: map[int]bool{1: true},
			want: "Waiting: Moving 3/0 rows [a0 b1 c1]; waiting: no pod has claimed replica 1",
		},
		"a slot whose pod is gone is left": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods = []observed.Pod{s.Pods[0], s.Pods[2], {Replica: -1}} }), target: grown,
			want: "Advanced: Moving 1/1 3/0 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"nothing goes to a slot that nobody is there to claim": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods = s.Pods[:2] }), target: grown,
			want: "Waiting: Moving 3/0 rows [a0 b1 c1]; waiting: replica 2 has no pod that is seen",
		},
		"a slot that an old and a new pod hold": {
			plan: of(growing(plan.Moving, nil)), seen: but(fit(3, 16, old), func(s *observed.State) { s.Pods = append([]observed.Pod{{Replica: 2, Name: "old"}}, s.Pods...) }), target: grown,
			want: "Advanced: Moving 1/1 3/0 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"replicas that people took away claim nothing": {
			plan: of(shrinking(plan.Moving, before, func(p *plan.Plan) { p.FreeReplicas = true })), seen: fit(2, 16, before),
			want: "Advanced: Moving 1/1 3/0 rows [a0 b1 c0] moves [c0] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"growing waits for the restart that makes pods count": {
			plan: of(growing(plan.Scaling, nil)), seen: fit(3, 16, old),
			want: "Waiting: Scaling 3/0 rows [a0 b1 c1]; waiting: of 3 replicas 3 are updated and 3 ready",
		},
		"growing goes on after it": {
			plan: of(growing(plan.Scaling, nil)), seen: but(fit(3, 16, old), restarted),
			want: "Advanced: Moving 3/0 rows [a0 b1 c1]; of 3 replicas 3 are updated and 3 ready",
		},
		"shrinking waits for it, too": {
			plan: of(shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 })), seen: fit(2, 16, shrunken),
			want: "Waiting: Shrinking 2/0 rows [a0 b1 c0]; waiting: of 2 replicas 2 are updated and 2 ready",
		},
		"shrinking waits for the slots, which the restart leaves unclaimed": {
			plan: of(shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 })),
			seen: but(fit(2, 16, shrunken), func(s *observed.State) { restarted(s); s.Pods[1].Replica, s.Pods[1].Claimed = -1, false }),
			want: "Waiting: Shrinking 2/0 rows [a0 b1 c0]; waiting: replica 1 has no pod that is seen",
		},
		"shrinking ends when they are claimed": {
			plan: of(shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 })), seen: but(fit(2, 16, shrunken), restarted),
			want: "Finished: 2/0 rows [a0 b1 c0]; of 2 replicas 2 are updated and 2 ready",
		},
	} {
		t.Run(name, c.run)
	}
}
