// Package sample has fleets to look at: tests and the pictures of docs/page are made of them. The same number of
// clusters is the same fleet.
package sample

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/page"
	"ballast/planner/page/chart"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/probing"
	"ballast/planner/status"
	"ballast/planner/trend"
)

// Now is when all of them are looked at.
var Now = time.Date(2026, 11, 20, 3, 12, 40, 0, time.UTC)

const gib = 1 << 30

// Fleet is a fleet of so many clusters in the middle of a wave, with something of everything that a page shows.
func Fleet(clusters int) page.Fleet {
	p, shards := inForce(clusters)
	f := page.Fleet{Now: Now, Clusters: shards, Pins: plan.Pins{}, Kept: kept(p), Pods: pods(p.Replicas),
		Decided: chart.Decided{At: Now.Add(-4 * time.Minute), By: "ballast-planner-7d9f8c6b5-2xk4q",
			Reason: "wave 2 of 3: replica 1 is above what it may carry, and 0 has room"}}
	f.Kept[0].Decided = f.Decided
	f.Trend = week(f.Kept)
	f.Values = measured(p, shards)
	for _, c := range []int{3, 8} {
		if c < len(shards) {
			f.Pins[shards[c].ID] = p.Clusters[shards[c].ID].Replica
		}
	}
	f.Document = configmap.Document{Plan: &p, Pins: f.Pins}
	f.Status = said(p, shards)
	return f
}

// Replicas is how many replicas a fleet of so many clusters has.
func Replicas(clusters int) int {
	return min(max(int(math.Round(math.Sqrt(float64(clusters))/1.6)), 2), 16)
}

func inForce(clusters int) (plan.Plan, []plan.Shard) {
	draw := rand.New(rand.NewPCG(1, uint64(clusters)))
	replicas := Replicas(clusters)
	p := plan.Plan{Revision: 118, Mode: plan.Enforce, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
		Replicas: replicas, ControllerReplicas: 16, MaxReplicas: 16,
		Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller",
			Container: "application-controller"},
		Clusters: map[string]plan.Row{}, Sizes: &plan.Sizes{Default: size("1500m", "4Gi"),
			Replicas: map[int]plan.Resources{1: size("2", "6Gi")}}}
	shards := make([]plan.Shard, clusters)
	weights, total := make([]float64, clusters), 0.0
	for i := range shards {
		region := []string{"eu-west-1", "us-east-2", "ap-south-1"}[i%3]
		stage := []string{"prod", "prod", "stage", "dev"}[draw.IntN(4)]
		called := fmt.Sprintf("%s-%s-%04d", stage, region, i)
		shards[i] = plan.Shard{ID: "cluster-" + called, Namespace: "argocd", Name: called,
			Server: fmt.Sprintf("https://%04x.%s.example:6443", draw.IntN(1<<16), region)}
		weights[i] = math.Exp(draw.NormFloat64())
		total += weights[i]
	}
	slices.SortFunc(shards, plan.CompareShards)
	carries := make([]float64, replicas)
	for _, i := range byWeight(weights) {
		to := draw.IntN(replicas) // the better of two: level, but for what people's clusters do over time
		if other := draw.IntN(replicas); carries[other] < carries[to] {
			to = other
		}
		carries[to] += weights[i] / total
		l, _ := plan.NewLoad(weights[i] / total * (1 + 0.06*math.Sin(float64(5*to+3)))) // what they made of it since
		p.Clusters[shards[i].ID] = plan.Row{Replica: to, Load: l.Display(), Server: plan.ServerHash(shards[i].Server)}
	}
	p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: Now.Add(-70 * time.Second),
		From:     plan.Count{Replicas: replicas, ControllerReplicas: 16},
		Replicas: replicas, ControllerReplicas: 16, Wave: 2, Waves: 3, Moves: map[string]int{}}
	for i, s := range shards[:min(len(shards), 60)] {
		pinned := i == 3 || i == 8
		if p.Clusters[s.ID].Replica == 1 && !pinned && len(p.Rollout.Moves) < 3 {
			p.Rollout.Moves[s.ID] = 0
		}
	}
	return p, shards
}

// measured are two metrics of the clusters by their load, as of the last cycle that the history has.
func measured(p plan.Plan, shards []plan.Shard) measure.LastGood {
	l := measure.LastGood{Columns: []measure.LastColumn{{ID: "apps"}, {ID: "objects"}}}
	for _, s := range shards {
		l.IDs = append(l.IDs, s.ID)
		carries := plan.LoadOf(p.Clusters[s.ID].Load).Float() * float64(len(shards))
		for c, value := range []float64{math.Round(20 * carries), math.Round(8123.4 * carries)} {
			at := Now.Add(-time.Duration(150+60*c) * time.Second).Unix()
			l.Columns[c].Values, l.Columns[c].At = append(l.Columns[c].Values, value), append(l.Columns[c].At, at)
		}
	}
	return l
}

func byWeight(weights []float64) []int {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
	return order
}

func size(cpu, memory string) plan.Resources {
	return plan.Resources{Requests: map[string]string{"cpu": cpu, "memory": memory},
		Limits: map[string]string{"memory": memory}}
}

func pods(replicas int) []observed.Pod {
	list := make([]observed.Pod, replicas)
	for i := range list {
		has := size("1500m", "4Gi")
		list[i] = observed.Pod{Replica: i, Name: fmt.Sprintf("argocd-application-controller-%d", i), Ready: true,
			Started: Now.Add(-40 * time.Hour),
			Memory:  int64(2+i%2) * gib, MemoryLimit: 4 * gib, Claimed: true, Answered: true,
			Size: &observed.Size{Has: has}}
	}
	list[1].Restarts, list[1].RestartedAt, list[1].OOMKilled = 1, Now.Add(-26*time.Minute), true
	list[1].Size.Resize = observed.ResizeDeferred
	return list
}

// kept are the earlier plans of the history: the fleet grows, and is levelled now and then.
func kept(p plan.Plan) []chart.Kept {
	before := []struct {
		ago    time.Duration
		reason string
		grown  float64 // of the load
		worse  float64 // how much more replica 1 carries
	}{
		{3 * time.Hour, "cluster prod-eu-west-1-0021 joined and weighs as much as any", 0.98, 1.15},
		{20 * time.Hour, "levelled: the fullest replica carried 1.31 of the mean for 6 hours", 0.95, 1.02},
		{27 * time.Hour, "2 clusters joined", 0.94, 1.26},
		{75 * time.Hour, "a pin was written: replica 1 keeps its cluster", 0.86, 1.1},
		{98 * time.Hour, "adopted the fleet as it is", 0.84, 1.3},
	}
	list := []chart.Kept{{Plan: p}}
	names := slices.Sorted(maps.Keys(p.Clusters))
	for i, b := range before {
		old := p.Clone()
		old.Revision, old.Rollout = p.Revision-int64(3*i+4), nil
		for n, row := range old.Clusters {
			scale := b.grown
			if row.Replica == 1 {
				scale *= b.worse
			}
			l, _ := plan.NewLoad(plan.LoadOf(row.Load).Float() * scale)
			row.Load = l.Display()
			old.Clusters[n] = row
		}
		for j := range min(i, len(names)) { // those that came later, and one that moved
			delete(old.Clusters, names[len(names)-1-j])
		}
		if row, there := old.Clusters[names[i%len(names)]]; there {
			row.Replica = (row.Replica + i) % p.Replicas
			old.Clusters[names[i%len(names)]] = row
		}
		list = append(list, chart.Kept{Plan: old, Decided: chart.Decided{At: Now.Add(-b.ago),
			By: "ballast-planner-7d9f8c6b5-2xk4q", Reason: b.reason}})
	}
	return list
}

// week is what replicas carried in the last five days: more by day than by night, and more from day to day. For two
// hours nobody led.
func week(kept []chart.Kept) trend.Trend {
	sums := make([][]float64, len(kept))
	for i, k := range kept {
		sums[i] = carried(k.Plan)
	}
	var t trend.Trend
	for at := Now.Add(-5 * 24 * time.Hour); !at.After(Now); at = at.Add(trend.Every) {
		if ago := Now.Sub(at); ago > 40*time.Hour && ago < 42*time.Hour {
			continue
		}
		then := len(kept) - 1
		for then > 0 && !kept[then-1].At.After(at) {
			then--
		}
		day := 1 + 0.12*math.Sin(2*math.Pi*float64(at.Hour()*60+at.Minute()-8*60)/(24*60)) +
			0.02*math.Sin(float64(at.Unix()/900*7))
		replicas := make([]plan.Replica, len(sums[then]))
		for i, sum := range sums[then] {
			replicas[i].TotalLoad, _ = plan.NewLoad(sum * day)
		}
		t = t.Take(trend.Of(replicas, at), "sample")
	}
	return t
}

// carried is what replicas carry under a plan.
func carried(p plan.Plan) []float64 {
	sums := make([]float64, p.Replicas)
	for _, n := range slices.Sorted(maps.Keys(p.Clusters)) { // in one order, since these are floats
		sums[p.Clusters[n].Replica] += plan.LoadOf(p.Clusters[n].Load).Float()
	}
	return sums
}

// said is what the leader says: one cluster has no replica, one size waits, and the wave is waited for.
func said(p plan.Plan, shards []plan.Shard) *status.Status {
	left, orphan := 7, shards[len(shards)/2].ID
	last := p.Clusters[orphan].Replica
	line, _ := plan.NewLoad(1.12 / float64(p.Replicas))
	return &status.Status{
		Leader: "ballast-planner-7d9f8c6b5-2xk4q", LookedAt: Now.Add(-21 * time.Second), Revision: p.Revision,
		Conditions: []status.Condition{
			{Type: status.Planning, Status: status.True, Reason: status.Measured,
				LastTransitionTime: Now.Add(-51 * time.Hour)},
			{Type: status.Enforced, Status: status.True, Reason: status.Held,
				LastTransitionTime: Now.Add(-97 * time.Hour)},
			{Type: status.Progressing, Status: status.True, Reason: "Moving",
				LastTransitionTime: Now.Add(-4 * time.Minute),
				Message:            "live: it waits: replica 0 has 2 of 3 clusters of this wave"},
			{Type: status.Degraded, Status: status.True, Reason: status.Orphaned,
				LastTransitionTime: Now.Add(-95 * time.Second),
				Message:            "clusters without a replica: 1; the first: " + orphan},
		},
		Rollout: &status.Rollout{Stage: plan.Moving, Since: p.Rollout.Since,
			Waits: "replica 0 has 2 of 3 clusters of this wave", Deadline: Now.Add(8*time.Minute + 50*time.Second),
			After: 4},
		Budget: &status.Budget{Message: "3 of 10 moves of this hour are made; 7 are left", Left: &left},
		PutBack: &probing.PutBack{Webhook: "all", Since: Now.Add(-97 * time.Hour), Others: 2,
			Users: []probing.UserWrites{
				{User: "system:serviceaccount:external-secrets:external-secrets", PutBack: 1204,
					Last: Now.Add(-3 * time.Minute)},
				{User: "alice@example.com", PutBack: 3, Refused: 1, Last: Now.Add(-26 * time.Hour)}}},
		Candidate: &status.Candidate{Replicas: p.Replicas, Moves: 4,
			Verdict: "the saving of 0.04 is worth 4 moves; 6 of 10 votes agree, and it takes 7"},
		Line:     &status.Line{Load: line, Since: Now.Add(-98 * time.Hour)},
		Orphaned: []status.Fault{{Cluster: orphan, Since: Now.Add(-95 * time.Second), Last: &last}},
		Blocked: []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Up,
			Reason: change.OutsideMaintenance, From: "6Gi", To: "8Gi", Since: Now.Add(-12 * time.Minute),
			Until: Now.Add(50 * time.Minute), Why: "the window opens at 04:00"}},
		Problems: []problem.Problem{{Phase: problem.PhasePoll, Subject: "objects", Kind: "StaleSamples",
			Message: "metric objects: the samples of 1 cluster are 14m old"}},
	}
}
