package life

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/sim"
)

// oddly has a life begin as few do: with an env that is not the number of replicas, one that waits for people's next rollout, clusters
// that belong together or apart, memory that bounds what a replica may have.
func (l *luck) oddly(seed uint64) {
	coin := rand.New(rand.NewPCG(seed, 29))
	c := &l.Config
	if !l.Deployment && coin.IntN(2) == 0 {
		l.Env = strconv.Itoa(max(1, l.Replicas-1+coin.IntN(4)))
		l.Pods = map[int]*sim.Pod{}
		l.Populate(l.Now)
		l.note("the env is %s beside %d replicas", l.Env, l.Replicas)
	}
	if c.Rollout.Live != nil && coin.IntN(3) == 0 {
		c.Rollout.Live.Adopt = config.AdoptWithNext
		l.note("the env waits for the next rollout")
	}
	if coin.IntN(2) == 0 {
		room := config.Bytes(fmt.Sprintf("%dMi", 150+coin.IntN(400)))
		c.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"apps": "1Mi"}, Base: "50Mi", Capacity: &room, LimitShare: "0.8"}}
		l.note("a replica has %s", room)
	}
	if coin.IntN(2) == 0 {
		of := func(team string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		}
		c.Partition.Groups = []config.Group{{Name: "one", Together: of("one")}, {Name: "two", Apart: of("two")}}
		l.regroup(coin)
	}
}

// regroup gives some clusters another team.
func (l *luck) regroup(coin *rand.Rand) {
	for _, name := range l.Clusters {
		switch coin.IntN(6) {
		case 0:
			l.Labels[name] = map[string]string{"team": "one"}
		case 1:
			l.Labels[name] = map[string]string{"team": "two"}
		default:
			delete(l.Labels, name)
		}
	}
	l.note("the teams' clusters: %v", maps.Clone(l.Labels))
}

// odd is a misfortune of the strange draw.
func (l *luck) odd(event string) {
	switch cluster := l.Clusters[l.coin.IntN(len(l.Clusters))]; event {
	case "unheld":
		l.Unheld = true
		l.ends["unheld"] = l.Now.Add(time.Duration(1+l.coin.IntN(4*60)) * time.Minute)
		l.note("no webhook answers")
	case "barred":
		l.Refused[cluster], l.Barred[cluster] = true, true
		l.note("the API server refuses every write of %s", cluster)
	case "regrouped":
		if len(l.Config.Partition.Groups) > 0 {
			l.regroup(l.coin)
		}
	}
}

// odder is a misfortune of the stranger draw.
func (l *luck) odder(event string) {
	ordinal, cluster := l.coin.IntN(max(l.Replicas, 1)), l.Clusters[l.coin.IntN(len(l.Clusters))]
	ahead := time.Duration(1+l.coin.IntN(12*60)) * time.Minute
	switch event {
	case "silent":
		l.Silent[ordinal] = true
		l.note("%d tells nobody what it owns", ordinal)
	case "asks":
		l.Asks[cluster] = strconv.Itoa(l.coin.IntN(l.Replicas + 4)) // at times one that is not there
		l.note("the Secret of %s asks for replica %s", cluster, l.Asks[cluster])
	case "asks no more":
		clear(l.Asks)
		l.note("no Secret asks for a replica any more")
	case "node clock":
		l.Ahead[ordinal] = ahead
		l.note("the clock of %d's node is ahead by %s", ordinal, ahead)
	case "restart ahead":
		l.RestartedAt = l.Now.Add(ahead).UTC().Format(time.RFC3339)
		l.Generation++
		l.note("a person whose clock is ahead by %s restarts the workload", ahead)
		l.joins()
	}
}

// joins has the env that the plan waits for come with a change of the pod template, as the webhook writes it.
func (l *luck) joins() {
	held := l.Plan != nil && l.Plan.Mode.Enforced() && !l.Glass && !l.Unheld
	if held && l.Plan.NextControllerReplicas > 0 && !l.Hidden {
		l.Env = strconv.Itoa(l.Plan.NextControllerReplicas)
		l.note("env %s comes with it", l.Env)
	}
}

// TestStrangeLives: what holds in every life holds in those that begin oddly, too.
func TestStrangeLives(t *testing.T) {
	lives, first := sim.FromEnv(t, "BALLAST_STRANGE_LIVES", 20), sim.FromEnv(t, "BALLAST_SEED", 1)
	hours, counts, moves := 0.0, map[string]int{}, map[change.Cause]int{}
	for seed := first; seed < first+lives; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			l := live(t, seed, stranger)
			hours += l.Now.Sub(sim.Epoch).Hours()
			addUp(counts, l.Counts)
			addUp(moves, l.Moves)
		})
	}
	t.Logf("%d strange lives of %.0f hours, seeds from %d; moves %v; besides %v", lives, hours, first, moves, counts)
}
