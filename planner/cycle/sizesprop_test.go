package cycle

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/poll"
	"ballast/planner/size"
)

// drawnWorld is a fleet with a rule of memory by applications, and whatever else policies may say.
func drawnWorld(t *rapid.T) *world {
	loads := rapid.SliceOfN(rapid.Float64Range(0, 60), 2, 14).Draw(t, "loads")
	w := sizedWorld(loads...)
	rule := &w.in.Config.Size.Policies[0].Rules[1]
	rule.Segments = rapid.SampledFrom([][]config.SizeSegment{nil, {{At: "0", Every: "5"}}, {{At: "4", Every: "4"}, {At: "32", Every: "8"}}}).Draw(t, "segments")
	if rapid.Bool().Draw(t, "delayed") {
		rule.DelayScaleDown = &config.SizeDelay{Max: "5", DelaySeconds: 300}
		rule.DelayScaleUp = &config.SizeDelay{DelaySeconds: 300}
	}
	if rapid.Bool().Draw(t, "a rule of the limit") {
		w.in.Config.Size.Policies[0].Rules = append(w.in.Config.Size.Policies[0].Rules,
			config.SizeRule{List: config.Limits, Resource: "memory", Base: "3Gi", Slope: "10Mi", Input: "load", Scope: config.ScopeCluster})
	}
	w.in.Config.Change.Up.StabilizationWindow = config.Duration(rapid.SampledFrom([]time.Duration{0, 3 * time.Minute}).Draw(t, "up"))
	w.in.Config.Change.Up.Cooldown = config.Duration(rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "cooldown"))
	w.in.Config.Change.Down.StabilizationWindow = config.Duration(rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(t, "down"))
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	return w
}

// needs is what the rules of sizedWorld make of so many applications.
func (w *world) needs(apps float64) int64 {
	rules, most := w.in.Config.Size.Merged(), int64(0)
	for _, r := range rules {
		if r.List == size.Requests {
			q := r.Value(apps, true)
			most += q.Value()
		}
	}
	return most
}

// unknown reports whether a rule has never had an input for a replica: it came while what was measured was not believed.
func (w *world) unknown(replica int) bool {
	return slices.ContainsFunc(w.last.Sizing.Rules, func(r resize.SizeRow) bool { return r.Replica == replica && !r.Known })
}

// In any plan that is written while a rollout is under way, a replica is as large as what it has, and what is about to come to
// it, needs; no request is ever above its limit; and the plan can be written and read.
func TestAReceiverIsSizedBeforeItReceives(t *testing.T) {
	rollouts := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawnWorld(t)
		w.run(2)
		for range rapid.IntRange(3, 12).Draw(t, "cycles") {
			name := fmt.Sprintf("c%03d", rapid.IntRange(0, len(w.in.Discovered.Secrets)-1).Draw(t, "cluster"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w.setLoad(name, rapid.Float64Range(0, 60).Draw(t, "load"))
			case 1:
				w.in.Pins = plan.Pins{name: rapid.IntRange(0, 4).Draw(t, "pin")}
			case 2:
				w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "clock")) * time.Minute)
			}
			w.run(1)
			text, err := codec.Encode(*w.in.InForce)
			if err != nil {
				t.Fatalf("the plan cannot be written: %v", err)
			}
			if _, err := codec.Decode(text); err != nil {
				t.Fatalf("the plan cannot be read: %v", err)
			}
			r := w.in.InForce.Rollout
			if r == nil {
				continue
			}
			rollouts++
			apps := map[int]float64{}
			for _, s := range w.in.Fetched[0].Samples {
				for _, secret := range w.in.Discovered.Secrets {
					if to, goes := r.Moves[secret.Name]; goes && server(secret.Name) == s.Key && w.in.InForce.Clusters[secret.Name].Replica != to {
						apps[to] += s.Value
					}
				}
			}
			for _, s := range w.in.Fetched[0].Samples {
				for _, secret := range w.in.Discovered.Secrets {
					if at := w.in.InForce.Clusters[secret.Name].Replica; apps[at] > 0 && server(secret.Name) == s.Key {
						apps[at] += s.Value
					}
				}
			}
			for replica, sum := range apps {
				held, _ := w.in.InForce.SizeOf(replica)
				q, err := size.ParseQuantity(held.Requests["memory"])
				limit, limitErr := size.ParseQuantity(held.Limits["memory"])
				if limitErr != nil || q.Cmp(limit) > 0 {
					t.Fatalf("replica %d requests %v, with a limit of %v", replica, held.Requests, held.Limits)
				}
				if w.unknown(replica) {
					continue // it has the template's size
				}
				ruled := len(w.in.Config.Size.Policies[0].Rules) > 2 // of the limit, which no request goes beyond
				if err != nil || q.Value() < w.needs(sum) && (!ruled || q.Cmp(limit) != 0) {
					t.Fatalf("replica %d is to have %.1f applications, which need %d, and is held at %s", replica, sum, w.needs(sum), held.Requests["memory"])
				}
			}
		}
	})
	if rollouts == 0 {
		t.Error("no rollout was seen")
	}
}

// While inputs only grow nothing shrinks.
func TestWhatGrowsNeverShrinksASize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawnWorld(t)
		w.in.Config.Partition.Replicas = &config.Replicas{Workload: true} // nothing is levelled to another replica
		w.in.Config.Mode = plan.Enforce
		w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour), MinSamples: 1000}}
		w.run(2)
		last := map[int]int64{}
		for range 12 {
			name := fmt.Sprintf("c%03d", rapid.IntRange(0, len(w.in.Discovered.Secrets)-1).Draw(t, "cluster"))
			for i, s := range w.in.Fetched[0].Samples {
				if s.Key == server(name) {
					w.in.Fetched[0].Samples[i].Value += rapid.Float64Range(0, 30).Draw(t, "more")
				}
			}
			w.run(1)
			for replica := range w.in.InForce.Replicas {
				held, ok := w.in.InForce.SizeOf(replica)
				if !ok {
					continue
				}
				q, err := size.ParseQuantity(held.Requests["memory"])
				if err != nil || q.Value() < last[replica] {
					t.Fatalf("replica %d shrank to %s from %d", replica, held.Requests["memory"], last[replica])
				}
				last[replica] = q.Value()
			}
		}
	})
}

// What Prometheus does not say leaves sizes as they are; a rule without an input goes on, and so does one of the clusters.
func TestSizesGoOnWithoutPrometheus(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.in.Config.Size.Policies[0].Rules = append(w.in.Config.Size.Policies[0].Rules,
		config.SizeRule{List: config.Requests, Resource: "cpu", Base: "100m", Slope: "100m", Input: "clusters", Scope: config.ScopeTotal})
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(3)
	before := w.memories()
	w.in.Fetched = []poll.Fetched{{Metric: "apps", Err: "refused"}}
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, *clonedSecret(w, "c000", "c003"))
	w.run(3)
	if got := w.memories(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("memory is %v, was %v", got, before)
	}
	if held, _ := w.in.InForce.SizeOf(0); held.Requests["cpu"] != "500m" {
		t.Errorf("cpu of four clusters is %s, want 500m", held.Requests["cpu"])
	}
}

// The memory that a leader leaves is all that the next one needs: it decides the same.
func TestANewLeaderDecidesTheSameSizes(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Config.Change.Down.StabilizationWindow = config.Duration(30 * time.Minute)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.setLoad("c001", 10)
	w.run(5)
	w.setLoad("c001", 2)
	w.run(10)
	parts, stale := w.in.Memory.Parts(nil)
	next, dropped := memory.Of(parts)
	if len(stale)+len(dropped) > 0 {
		t.Fatal(stale, dropped)
	}
	w.in.Memory.Sizes = next.Sizes
	since := w.last.Sizing.Blocked[0].Since
	w.run(10)
	if b := w.last.Sizing.Blocked; len(b) != 1 || !b[0].Since.Equal(since) || w.memoryOf(1)[0] != "2Gi" {
		t.Errorf("blocked %v since %v, sizes %v", b, since, w.memories())
	}
	w.run(15)
	if got := w.memoryOf(1)[0]; got != "1280Mi" {
		t.Errorf("after the window it is %s", got)
	}
}

// A limit of memory stays a fifth above what a replica was seen to use.
func TestALimitStaysAboveThePeak(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Observed.Known = true
	for r := range 3 {
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true, Memory: 100 << 20})
	}
	w.in.Observed.Pods[2].Memory = 3<<30 + 1
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(3)
	w.in.Observed.Pods[2].Memory = 100 << 20
	w.run(60)
	if got := w.memoryOf(2); got != [2]string{"1280Mi", "3776Mi"} {
		t.Errorf("the size is %v, want a limit a fifth above 3Gi in whole steps", got)
	}
	w.in.Now = w.in.Now.Add(8 * 24 * time.Hour)
	w.run(60)
	if got := w.memoryOf(2); got != [2]string{"1280Mi", "2560Mi"} {
		t.Errorf("a week later the size is %v", got)
	}
}

func TestARuleForAnotherContainerIsRefused(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.run(2)
	before := w.memories()
	w.in.Config.Size.Policies[0].Rules[0].Container = "sidecar"
	w.in.Config.Size.Policies[0].Rules[0].Base = "9Gi"
	w.run(2)
	if got := w.memories(); fmt.Sprint(got) != fmt.Sprint(before) || problems(w.last)[0] != "size/SizePolicyRefused/" {
		t.Errorf("sizes %v, problems %v", got, problems(w.last))
	}
}

// A Deployment's pods have one size, that of the largest replica.
func TestADeploymentHasOneSize(t *testing.T) {
	w := sizedWorld(20, 1, 1)
	w.in.Workload.Kind, w.in.Workload.DynamicDistribution, w.in.Workload.EnvReplicas = plan.Deployment, true, nil
	w.run(5)
	s := w.in.InForce.Sizes
	if s == nil || len(s.Replicas) != 0 || s.Default.Requests["memory"] != "3Gi" {
		t.Errorf("the plan has %+v", s)
	}
	if math.IsNaN(w.last.Sizing.Rules[0].Input) {
		t.Error("an input is no number")
	}
}
