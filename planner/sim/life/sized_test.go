package life

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/sim"
	"ballast/planner/size"
)

// sizing is what a life is configured with, and how much more memory than the rules say clusters take.
type sizing struct {
	size   config.Size
	change config.Change
	hunger map[string]float64

	received int  // replicas that clusters were about to come to
	seen     bool // rules read what pods have in use, which of a pod that comes nobody knows
}

// perApp is what an Application takes of memory where nothing is out of the ordinary, and slope what the rules have for one.
const perApp, idle = 8 << 20, 200 << 20

func slope(mebi int64) config.SizeRule {
	return config.SizeRule{Name: "apps", List: config.Requests, Resource: "memory", Slope: config.Quantity(sim.Mebibytes(mebi)), Input: "apps",
		Quantize: &config.Quantize{Step: "256Mi"}}
}

// sizes has a life's replicas sized by policies.
func (l *luck) sizes(seed uint64) {
	coin := rand.New(rand.NewPCG(seed, 23))
	rules := []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "512Mi"}, slope(16)}
	if coin.IntN(3) == 0 {
		rules = append(rules, config.SizeRule{Name: "clusters", List: config.Requests, Resource: "cpu", Base: "250m", Slope: "50m",
			Input: "clusters"})
	}
	if coin.IntN(3) == 0 {
		rules[1].DelayScaleDown, rules[1].DelayScaleUp = &config.SizeDelay{Max: "50", DelaySeconds: 600}, &config.SizeDelay{DelaySeconds: 300}
	}
	c := &l.Config
	c.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: rules}}}
	if coin.IntN(4) == 0 {
		c.Size.Apply = config.Template
	}
	up, down := &c.Change.Up, &c.Change.Down
	minutes := func(of ...int) config.Duration {
		return config.Duration(time.Duration(of[coin.IntN(len(of))]) * time.Minute)
	}
	up.StabilizationWindow, up.Cooldown = minutes(0, 3), minutes(0, 10)
	down.StabilizationWindow = minutes(5, 30)
	if coin.IntN(4) == 0 {
		down.Mode, down.Windows = change.Maintenance, []config.Window{{Begin: "22:00", End: "02:00"}}
	}
	if coin.IntN(4) == 0 {
		up.Rate = []config.Pace{{Replicas: 1, Period: config.Duration(10 * time.Minute)}}
	}
	l.sizing = sizing{size: c.Size, change: c.Change, hunger: map[string]float64{}}
	l.Sized(sim.Sizing{
		Template: plan.Resources{Requests: map[string]string{"cpu": "1", "memory": "4Gi"}, Limits: map[string]string{"memory": "6Gi"}},
		Held: func(replica int) (plan.Resources, bool) {
			if l.Plan == nil || l.Glass || !l.Plan.Mode.Enforced() {
				return plan.Resources{}, false
			}
			return l.Plan.SizeOf(replica)
		},
		Uses: func(_ int, clusters []string) int64 {
			apps := 0.0
			for _, name := range clusters {
				apps += l.Loads[name] * max(l.sizing.hunger[name], 1)
			}
			return idle + int64(apps*perApp)
		},
		Full: map[int]bool{}, Small: map[int]int64{},
	})
}

// resize is a misfortune of the sized draw.
func (l *luck) resize(event string) {
	ordinal, cluster := l.coin.IntN(max(l.Replicas, 1)), l.Clusters[l.coin.IntN(len(l.Clusters))]
	c := &l.Config
	ends := l.Now.Add(time.Duration(1+l.coin.IntN(8*60)) * time.Minute)
	switch event {
	case "node full":
		l.Sizing.Full[ordinal] = true
		l.note("the node of %d has no room", ordinal)
	case "node small":
		l.Sizing.Small[ordinal] = int64(1+l.coin.IntN(4)) << 30
		l.note("the node of %d has %d bytes", ordinal, l.Sizing.Small[ordinal])
	case "node room":
		l.roomAgain()
		l.note("the nodes have room")
	case "hungry":
		l.sizing.hunger[cluster] = 1 + 5*l.coin.Float64()
		l.note("%s takes %.1f times the memory", cluster, l.sizing.hunger[cluster])
	case "up", "down":
		of := map[string]*config.Resizing{"up": &c.Change.Up, "down": &c.Change.Down}[event]
		of.Mode, of.Windows = change.Off, nil
		l.ends[event] = ends
		l.note("change.%s is off", event)
	case "slope":
		rules := slices.Clone(l.sizing.size.Policies[0].Rules)
		rules[1].Slope = slope(int64(8 + 8*l.coin.IntN(4))).Slope
		l.sizing.size.Policies = []config.SizePolicy{{Name: "ours", Rules: rules}}
		c.Size.Policies = l.sizing.size.Policies
		l.note("the slope is %s", rules[1].Slope)
	case "policies":
		c.Size.Policies = nil
		l.ends[event] = ends
		l.note("no policies of sizes")
	case "apply":
		if c.Size.Apply = config.InPlace; l.coin.IntN(3) == 0 {
			c.Size.Apply = config.Template
		}
		l.sizing.size.Apply = c.Size.Apply
		l.note("size.apply: %s", c.Size.Apply)
	}
}

// unresize ends what was so for a while.
func (l *luck) unresize(what string) {
	switch what {
	case "up":
		l.Config.Change.Up = l.sizing.change.Up
	case "down":
		l.Config.Change.Down = l.sizing.change.Down
	case "policies":
		l.Config.Size.Policies = l.sizing.size.Policies
	}
}

// roomAgain has every node have room, and people's rules as they were.
func (l *luck) roomAgain() {
	if l.Sizing == nil {
		return
	}
	clear(l.Sizing.Full)
	clear(l.Sizing.Small)
	if l.Config.Size.NodeCap.Memory != "" { // who takes more than a node has is killed for ever
		clear(l.sizing.hunger)
	}
}

// sizesRest: in peace what was blocked is applied once its block ends, every container has the size that the plan has for it and
// the rules want, and none is killed for its memory any more.
func (l *luck) sizesRest() error {
	if l.Sizing == nil {
		return nil
	}
	for _, what := range []string{"up", "down", "policies"} {
		l.unresize(what)
	}
	const quiet, patience = 3, 60 // hours; a window of the day and a restart of the day come meanwhile
	var err error
	for hour, still := 0, 0; hour < patience && still < quiet; hour++ {
		killed, plans := l.Sizing.Killed, l.Counts["plans"]
		l.Pass(time.Hour)
		if err = l.sizesStand(l.Sizing.Killed-killed, l.Counts["plans"]-plans); err == nil {
			still++
		} else {
			still = 0
		}
	}
	return err
}

// sizesStand is what is wrong with the sizes after an hour with that many kills and plans.
func (l *luck) sizesStand(killed, plans int) error {
	switch s := l.Last.Sizing; {
	case l.Tripped != "":
		return fmt.Errorf("stopped in peace: %s", l.Tripped)
	case killed > 0:
		return fmt.Errorf("%d containers were killed for their memory within the last hour of peace", killed)
	case plans > 0:
		return fmt.Errorf("%d plans within the last hour of peace", plans)
	case s == nil:
		return fmt.Errorf("nothing is sized")
	}
	if waits := slices.DeleteFunc(slices.Clone(l.Last.Sizing.Blocked), l.stays); len(waits) > 0 {
		return fmt.Errorf("it is blocked in peace: %v", waits)
	}
	return l.sizesHold()
}

// sizesHold: every container has the size that the plan has for it.
func (l *luck) sizesHold() error {
	for ordinal := range l.Replicas {
		want, held := l.Plan.SizeOf(ordinal)
		if l.Config.Size.Apply == config.Template && l.Plan.Resources != nil {
			want, held = *l.Plan.Resources, true
		}
		if !held {
			return fmt.Errorf("replica %d has no size: %+v", ordinal, l.Plan.Sizes)
		}
		if has := l.Pods[ordinal].Size.Has; !has.With(want).Same(has) {
			return fmt.Errorf("replica %d is to have %v, and its container has %v", ordinal, want, has)
		}
	}
	return nil
}

// sizes: while a rollout is under way nothing shrinks, and who receives is as large as it needs; what keeps ballast still keeps
// sizes, too; no request is above its limit; and every plan can be written and read.
func (j *judge) sizes() {
	if j.Sizing == nil {
		return
	}
	text, err := codec.Encode(*j.Plan)
	if err == nil {
		_, err = codec.Decode(text)
	}
	if err != nil {
		j.fail("a plan that cannot be written and read: %v", err)
	}
	under := j.Plan.Rollout != nil && j.before.Rollout != nil
	still := j.lasts(j.still.frozen) || j.lasts(j.still.held) || j.lasts(j.still.glass) || j.lasts(j.still.observes)
	for replica := range min(j.Plan.Replicas, j.before.Replicas) {
		was, had := j.before.SizeOf(replica)
		now, has := j.Plan.SizeOf(replica)
		if !had || !has {
			continue
		}
		request, limit := sim.Bytes(now.Requests["memory"]), sim.Bytes(now.Limits["memory"])
		switch {
		case limit > 0 && request > limit:
			j.fail("replica %d requests %d bytes, with a limit of %d", replica, request, limit)
		case under && (request < sim.Bytes(was.Requests["memory"]) || limit < sim.Bytes(was.Limits["memory"])):
			j.fail("replica %d shrinks from %v to %v while a rollout is under way", replica, was, now)
		case still && !was.Same(now):
			j.fail("replica %d has %v instead of %v in mode %s, break-glass %t, frozen %t", replica, now, was, j.Config.Mode, j.Glass, j.Paused)
		}
	}
	j.receiversAreLarge()
}

// receiversAreLarge judges what clusters are about to come to.
func (j *judge) receiversAreLarge() {
	r, up := j.Plan.Rollout, j.Config.Change.Up
	waits := up.Mode != "" && up.Mode != change.Auto || len(up.Rate) > 0 || j.Paused || j.Glass || j.Tripped != ""
	unknown := j.Last.Table.Frozen || j.sizing.seen
	if r == nil || waits || j.Config.Size.Apply == config.Template || len(j.Config.Size.Policies) == 0 || unknown {
		return
	}
	apps, receives := map[int]float64{}, map[int]bool{}
	for i, c := range j.Last.Fleet.Clusters {
		row, planned := j.Plan.Clusters[c.Shard.ID]
		if !planned {
			continue
		}
		at := []int{row.Replica}
		for _, moves := range []map[string]int{j.memory.Changes.Target, r.Moves} {
			if to, goes := moves[c.Shard.ID]; goes && to != row.Replica {
				at, receives[to] = append(at, to), true
			}
		}
		slices.Sort(at)
		for _, replica := range slices.Compact(at) {
			apps[replica] += j.measured(i)
		}
	}
	j.sizing.received += len(receives)
	for replica := range receives {
		need := int64(0)
		for _, rule := range j.Config.Size.Merged() {
			if rule.List == size.Requests && rule.Resource == size.Memory {
				q := rule.Value(apps[replica], true)
				need += q.Value()
			}
		}
		if most := sim.Bytes(string(j.Config.Size.NodeCap.Memory)); most > 0 {
			need = min(need, most)
		}
		held, is := j.Plan.SizeOf(replica)
		if has := sim.Bytes(held.Requests["memory"]); is && has < need {
			j.fail("clusters are about to come to replica %d, which needs %d then and requests %d", replica, need, has)
		}
	}
}

// measured is what the last cycle believed of a cluster's applications.
func (j *judge) measured(i int) float64 {
	for _, column := range j.Last.Table.Columns {
		if column.ID == "apps" && !column.Refused {
			return column.Values[i]
		}
	}
	return 0
}

// TestSizedLives: what TestLives promises, and what sizes do.
func TestSizedLives(t *testing.T) {
	lives, counts := sim.FromEnv(t, "BALLAST_SIZED_LIVES", 6), map[string]int{}
	for seed := uint64(1); seed <= lives; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			l := live(t, seed, sized)
			addUp(counts, l.Counts)
			counts["killed"] += l.Sizing.Killed
			counts["received"] += l.sizing.received
		})
	}
	if t.Logf("%d lives of sizes: %v", lives, counts); counts["resizes"] == 0 || counts["killed"] == 0 || counts["received"] == 0 {
		t.Errorf("%v, want containers that are resized and killed, and replicas that receive", counts)
	}
}
