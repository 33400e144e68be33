package life

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// configuration is what is shipped, but for one metric.
func configuration() config.PlannerConfig {
	c := config.Default()
	c.Mode = plan.Enforce
	one := sim.Config()
	c.Poll.Prometheus.Metrics, c.Index.PNorm.Weights = one.Poll.Prometheus.Metrics, one.Index.PNorm.Weights
	return c
}

// voted is a partition that is made anew, and an election of it in each window.
func voted(window time.Duration) (config.Partition, config.Evaluate) {
	return config.Partition{LPT: &config.LPT{}}, config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(window), MinSamples: 10}}
}

func loadsOf(seed uint64, clusters int) map[string]float64 {
	loads := map[string]float64{}
	for i, load := range sim.Lognormal(seed, clusters) {
		loads[fmt.Sprintf("c%02d", i)] = load
	}
	return loads
}

// TestACalmDay: the fleet is adopted as it is, restarts once for the env, and comes to rest.
func TestACalmDay(t *testing.T) {
	l := New(1, configuration(), 3, "3", loadsOf(1, 30))
	found := map[string]int{}
	for _, name := range l.Clusters {
		found[name] = l.Owners(name)[0]
	}
	l.Pass(9 * time.Minute) // before the first vote can have ten samples
	rows := map[string]int{}
	for name, row := range l.Plan.Clusters {
		rows[name] = row.Replica
	}
	if diff := cmp.Diff(found, rows); diff != "" {
		t.Errorf("the first plan is not the fleet as it is (-fleet +plan):\n%s", diff)
	}
	if diff := cmp.Diff(found, l.Shards); diff != "" {
		t.Errorf("shards (-owners +stamped):\n%s", diff)
	}
	l.Pass(8 * 24 * time.Hour)
	if err := l.Quiet(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[change.Cause]int{change.Balance: 1}, l.Moves); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	if l.Env != "16" || l.Counts["envs"] != 1 || l.Counts["trips"] != 0 {
		t.Errorf("env %s, events %v; want 16, written once, and no trip", l.Env, l.Counts)
	}
	if l.Replicas != 3 || l.Made != 3+3 {
		t.Errorf("%d replicas, and %d pods so far; want 3, and 6: each of the first three restarted once", l.Replicas, l.Made)
	}
	plans := l.Counts["plans"]
	l.Pass(24 * time.Hour)
	if l.Counts["plans"] != plans {
		t.Errorf("%d plans were written in eight days, and %d in the day after them", plans, l.Counts["plans"]-plans)
	}
}

// luck is what happens in a life, and when.
type luck struct {
	*Life
	draw draw
	coin *rand.Rand
	log  []string

	comes int                  // clusters that came
	gone  map[string]time.Time // clusters that went, and when
	ends  map[string]time.Time // when what people did for a while is over
	waits map[string]int       // acts in which a cluster had no owner, by why it may be so

	backed *backup // nil: there is none
	later  bool    // the next one is to be of the middle of a rollout
	onSave func()  // after a backup was taken; may be nil

	sizing sizing // what is configured of sizes
}

func (l *luck) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%s  ", l.Now.Sub(sim.Epoch))+fmt.Sprintf(format, args...))
}

// misfortune is one of the things that happen to fleets.
func (l *luck) misfortune() error {
	ordinal, cluster := l.coin.IntN(max(l.Replicas, 1)), l.Clusters[l.coin.IntN(len(l.Clusters))]
	switch event := l.draw.events()[l.coin.IntN(len(l.draw.events()))]; event {
	case "crash", "oom":
		l.note("%s of %d", event, ordinal)
		l.Crash(ordinal, event == "oom", l.Now)
	case "elect":
		l.note("another leader")
		return l.Elect()
	case "deaf":
		l.Deaf = !l.Deaf
		l.note("Prometheus answers: %t", !l.Deaf)
	case "lossy":
		l.Lossy = !l.Lossy
		l.note("writes get lost: %t", l.Lossy)
	case "pin":
		if l.Plan != nil && l.Plan.Replicas > 0 {
			l.Pins = maps.Clone(l.Pins)
			if l.Pins == nil {
				l.Pins = plan.Pins{}
			}
			l.Pins[cluster] = l.coin.IntN(l.Plan.Replicas)
			l.note("%s is pinned to %d", cluster, l.Pins[cluster])
		}
	case "unpin":
		l.Pins = nil
		l.note("no pins")
	case "pause":
		l.Paused = !l.Paused
		l.note("paused: %t", l.Paused)
	case "load":
		l.Loads[cluster] *= 0.25 + 3*l.coin.Float64()
		l.note("%s has %.0f", cluster, l.Loads[cluster])
	case "shard":
		if l.Plan != nil && l.Plan.Replicas > 0 { // behind the webhooks' back
			l.Shards[cluster] = l.coin.IntN(l.Plan.Replicas)
			l.note("a person writes shard %d into %s", l.Shards[cluster], cluster)
		}
	case "broken":
		l.Broken[ordinal] = true
		l.note("%d is never ready", ordinal)
	case "dies":
		l.Dies[ordinal] = l.Now
		l.note("%d is killed again and again", ordinal)
	case "refused":
		l.Refused[cluster] = true
		l.note("nobody may write %s", cluster)
	case "unreachable":
		l.Unreachable[cluster] = true
		l.note("nobody can connect %s", cluster)
	case "stuck":
		l.Stuck = !l.Stuck
		l.note("no pod becomes ready: %t", l.Stuck)
	case "rollback":
		if n := len(l.History); n > 0 {
			back := l.History[l.coin.IntN(n)]
			l.Rollback = &input.Rollback{Revision: back.Revision, Plan: &back}
			l.note("a person asks for plan %d", back.Revision)
		}
	case "plan":
		l.Plan = nil
		l.note("somebody deletes the plan")
	case "clock":
		l.Skew = 6*time.Hour - l.Skew
		l.note("the leader's clock is ahead by %s", l.Skew)
	case "settings":
		l.settings()
	case "cordon":
		if l.Cordon = ""; l.coin.IntN(2) == 0 {
			l.Cordon = fmt.Sprintf("%d=%s", ordinal, l.Now.Add(4*time.Hour).UTC().Format(time.RFC3339))
		}
		l.note("cordoned: %q", l.Cordon)
	case "scale":
		switch {
		case byPeople(l.Config):
			l.Replicas = 1 + l.coin.IntN(6)
			l.note("an autoscaler asks for %d replicas", l.Replicas)
		case l.draw > kept && l.unheld() && l.Replicas > 0: // else the webhooks hold it
			l.Replicas = 1 + l.coin.IntN(l.Replicas)
			l.note("a person scales to %d replicas", l.Replicas)
		}
	case "optout":
		l.OptedOut[cluster] = true
		if l.Plan != nil && l.Plan.Replicas > 0 && l.coin.IntN(2) == 0 {
			l.Shards[cluster] = l.coin.IntN(l.Plan.Replicas)
		}
		l.note("people keep %s at shard %v", cluster, l.Shards[cluster])
	case "optin":
		clear(l.OptedOut)
		l.note("nobody keeps a Secret any more")
	case "resume":
		l.Tripped, l.Paused = "", false
		l.note("a person resumes")
	default:
		return l.further(event, cluster)
	}
	return nil
}

func byPeople(c config.PlannerConfig) bool {
	return c.Partition.Replicas != nil && c.Partition.Replicas.Workload
}

// settings is a person who edits the configuration.
func (l *luck) settings() {
	p := &l.Config.Partition
	few := func(n int) *int { return &n }
	switch l.coin.IntN(6) {
	case 0:
		p.MaxReplicas = few(2 + l.coin.IntN(15))
		l.note("maxReplicas: %d", *p.MaxReplicas)
	case 1:
		p.MaxReplicas = nil
		l.note("maxReplicas: null")
	case 2:
		p.MaxClustersPerReplica = l.coin.IntN(3) * len(l.Clusters)
		l.note("maxClustersPerReplica: %d", p.MaxClustersPerReplica)
	case 3:
		capacity := config.Decimal(fmt.Sprintf("%.2f", 0.15+l.coin.Float64()))
		p.Capacity = &capacity
		l.note("capacity: %s", capacity)
	case 4:
		p.Capacity = nil
		l.note("capacity: null")
	case 5:
		hours := time.Duration(1+l.coin.IntN(24)) * time.Hour
		if weighed := l.Config.Evaluate.CostBenefit; weighed != nil {
			weighed.Horizon = config.Duration(hours)
		} else {
			_, l.Config.Evaluate = voted(hours)
		}
		l.note("window or horizon: %s", hours)
	}
}

// peace ends everything that is wrong. People take away what stopped ballast.
func (l *luck) peace() {
	l.note("peace")
	l.Deaf, l.Lossy, l.Paused, l.Stuck, l.Tripped, l.Pins = false, false, false, false, "", nil
	l.Rollback, l.Cordon, l.Skew = nil, "", 0
	l.Glass, l.Unheld, l.Config.Mode = false, false, plan.Enforce
	clear(l.Barred)
	clear(l.Broken)
	clear(l.Dies)
	clear(l.Refused)
	clear(l.Unreachable)
	clear(l.Slotless)
	clear(l.Asks)
	clear(l.Silent)
	clear(l.Ahead)
	l.roomAgain()
}

// rests lets a life in peace go on until nothing has changed for six hours and everything is as the plan says. A wave that
// began in worse times may still be blamed in the first day of peace: people look, and take it away. After that day
// nothing may stop ballast any more.
func (l *luck) rests() error {
	const quiet, blamed, patience = 6, 24, 6 * 24
	plans, still := l.Counts["plans"], 0
	var err error
	for hour := range patience {
		if hour < blamed {
			l.Tripped = ""
		}
		l.Pass(time.Hour)
		if hour >= blamed && l.Tripped != "" {
			return fmt.Errorf("stopped after %d hours of peace: %s", hour, l.Tripped)
		}
		if err = l.Quiet(); err != nil || plans != l.Counts["plans"] || l.Tripped != "" {
			plans, still = l.Counts["plans"], 0
			continue
		}
		if still++; still == quiet {
			return nil
		}
	}
	return fmt.Errorf("no six hours of rest in six days of peace: %d plans; %w", l.Counts["plans"], err)
}

// twins makes some Secrets another one's server's.
func (l *luck) twins(seed uint64) {
	coin := rand.New(rand.NewPCG(seed, 17))
	for range 1 + coin.IntN(3) {
		a, b := coin.IntN(len(l.Clusters)), coin.IntN(len(l.Clusters))
		if first, twin := l.Clusters[min(a, b)], l.Clusters[max(a, b)]; a != b && len(l.SecretsOf(first)) == 1 && len(l.SecretsOf(twin)) == 1 {
			l.Twins[twin] = first
			for _, p := range l.Pods {
				delete(p.Gained, twin)
				delete(p.Took, twin)
			}
		}
	}
}

func (l *luck) fatal(t testing.TB, format string, args ...any) {
	t.Helper()
	const last = 60
	t.Fatalf("%s\nafter %s, events %v, the last decision: %s; problems %+v\n%s", fmt.Sprintf(format, args...), l.Now.Sub(sim.Epoch), l.Counts, l.Last.Reason, l.Last.Problems,
		strings.Join(l.log[max(len(l.log)-last, 0):], "\n"))
}

// TestLives: whatever happens to a fleet for two days, no cluster has two owners, the workload never stands at 0 replicas,
// and in peace everything comes to rest as the plan says.
func TestLives(t *testing.T) {
	lives, first := sim.FromEnv(t, "BALLAST_LIVES", 40), sim.FromEnv(t, "BALLAST_SEED", 1)
	drawn := draw(min(sim.FromEnv(t, "BALLAST_DRAW", uint64(widest)), uint64(stranger))) // of another one a seed means another life
	hours, counts, moves, waits := 0.0, map[string]int{}, map[change.Cause]int{}, map[string]int{}
	for seed := first; seed < first+lives; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			l := live(t, seed, drawn)
			hours += l.Now.Sub(sim.Epoch).Hours()
			addUp(counts, l.Counts)
			addUp(moves, l.Moves)
			addUp(waits, l.waits)
		})
	}
	t.Logf("%d lives of %.0f hours, seeds from %d; moves %v; besides %v; acts without an owner %v", lives, hours, first, moves, counts, waits)
}

// TestLivesThatEndedBadlyOnce: 212 of an earlier thousand; 721 by a clock that was ahead for a while, which gave moves back; 984 by a wave
// that went back, which the judge took for a second one. They were drawn from fewer misfortunes than today's, and are so still. In 323, 511 and
// 523 people pin Secrets of one server apart, in 291 and 579 nobody may write the second of them, and in 389 one comes as it is failed over:
// the judge took those for faults. 330 ended by a Deployment's waves, of which each counted as the day's restart; 332 by a Secret that people
// keep, which the judge took for one of those that the budget is a share of; 509 by a plan that had more than a lowered maxReplicas beside an
// autoscaler. In 42, 204, 254 and 298 a plan is put back with its history, and the judge knew nothing of what that remembers: of clusters that went
// meanwhile, of an hour that a failover began, of its moves; in 298 an enforced plan was put back in mode Observe beside a list that is refused, and
// its repairs wrote Secrets. In 707 the second Secret of a server, which nobody may write, made the budget larger; in 971 plan
// and history were lost, and for some minutes nobody could tell a dead replica from one that would be back. In 24 of the strange ones a pin
// kept the others of its group on a dead replica. In 7 of the stranger ones plan and history were lost, and what a group asks for stopped
// every replica for a second time that day; in 713 the judge counted of a group only the clusters that were together already; in 54 it
// did not know that under mode live a silent replica receives nothing, nor in 56 does one that was killed for its memory before a trip; in 506 and
// 559 that a Secret which went and comes back is a new one; and in 10 of the rich ones that a replica which may be back at once holds up no
// dead one.
func TestLivesThatEndedBadlyOnce(t *testing.T) {
	for d, seeds := range map[draw][]uint64{
		kept:     {212, 721, 984},
		wider:    {291, 323, 330, 332, 389, 509, 511, 523, 579},
		widest:   {42, 56, 204, 254, 298, 506, 559, 707, 971},
		strange:  {24},
		stranger: {7, 54, 713},
		rich:     {10},
	} {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { live(t, seed, d) })
		}
	}
}

func addUp[K comparable](all, one map[K]int) {
	for k, n := range one {
		all[k] += n
	}
}

func live(t *testing.T, seed uint64, d draw) *luck {
	coin := rand.New(rand.NewPCG(seed, 11))
	c := configuration()
	if d == kept || seed%2 == 0 { // else the shipped plans
		c.Partition, c.Evaluate = voted(time.Hour)
	}
	switch coin.IntN(8) {
	case 0, 1:
		c.Rollout.Live, c.Rollout.Default = nil, &config.DefaultRollout{}
	case 2:
		c.Rollout.Live, c.Rollout.X0Y = nil, &config.X0YRollout{}
	case 3:
		c.Partition.Replicas = &config.Replicas{Workload: true}
	}
	replicas := 1 + coin.IntN(4)
	hidden, said := coin.IntN(8) == 0, strconv.Itoa(coin.IntN(6))
	l := &luck{Life: New(seed, c, replicas, strconv.Itoa(replicas), loadsOf(seed, 6+coin.IntN(25))), coin: coin, draw: d,
		gone: map[string]time.Time{}, ends: map[string]time.Time{}, waits: map[string]int{}}
	l.Hidden, l.Said = hidden, said
	if d.deployed(seed) && !byPeople(c) {
		l.Deployment, l.Hidden = true, false
		l.note("the application-controller is a Deployment")
	}
	if seed%4 == 3 {
		l.twins(seed)
	}
	switch d {
	case sized:
		l.sizes(seed)
	case strange, stranger:
		l.oddly(seed)
	case rich:
		l.sizes(seed)
		l.richly(seed)
	}
	l.judged(t)
	l.Pass(30 * time.Minute)
	for l.Now.Sub(sim.Epoch) < 48*time.Hour {
		l.over()
		if err := l.misfortune(); err != nil {
			l.fatal(t, "%v", err)
		}
		l.Pass(time.Duration(1+coin.IntN(180)) * time.Minute)
	}
	l.peace()
	if err := l.rests(); err != nil {
		l.fatal(t, "%v", err)
	}
	l.staysBelow(t)
	if err := l.sizesRest(); err != nil {
		l.fatal(t, "%v", err)
	}
	return l
}
