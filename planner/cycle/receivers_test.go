package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

// nodes are what the pods of a sized fleet have: each is asked for its size at once, and its node makes of it what it says.
type nodes struct {
	has    map[int]plan.Resources
	resize map[int]observed.Resize // a node that does not resize, and why; empty: it says nothing
}

// sizedLive is a live fleet at rest whose replicas request 1Gi and 1Gi for each application, and its nodes. Clusters c000, c001 and so
// on are on the replicas that at names.
func sizedLive(t *testing.T, at ...int) (*liveWorld, *nodes) {
	t.Helper()
	loads := make([]float64, len(at))
	for i := range loads {
		loads[i] = 1
	}
	w := undecided(t, loads...)
	w.in.Pins = plan.Pins{}
	for i, replica := range at {
		w.in.Pins[w.in.Discovered.Secrets[i].Name] = replica
	}
	w.until(t, "each cluster is where it is pinned", time.Hour, func(outcome.Outcome) bool {
		settled := w.in.InForce.Rollout == nil
		for name, replica := range w.in.Pins {
			settled = settled && w.secret(name).Shard.N == replica
		}
		return settled
	})
	w.in.Workload.Resources = &plan.Resources{Requests: map[string]string{"memory": "1Gi"}}
	w.in.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "1Gi", Slope: "1Gi", Input: "apps"}}}}}
	n := &nodes{has: map[int]plan.Resources{}, resize: map[int]observed.Resize{}}
	w.shape = func(p *observed.Pod) {
		size, held := w.in.InForce.SizeOf(p.Replica)
		if !held {
			return
		}
		stuck, is := n.resize[p.Replica]
		if !is {
			n.has[p.Replica] = size
		}
		p.Size = &observed.Size{Asks: podspec.Size{Controller: size}, Has: n.has[p.Replica]}
		if is && n.has[p.Replica].Requests["memory"] != size.Requests["memory"] {
			p.Size.Resize = stuck
		}
	}
	for range 4 {
		w.step(30 * time.Second)
	}
	return w, n
}

func (n *nodes) memory(replica int) string { return n.has[replica].Requests["memory"] }

// levels lets what is uneven be levelled.
func (w *liveWorld) levels(sticky bool) {
	w.in.Pins = nil
	w.in.Config.Partition = config.Partition{Replicas: &config.Replicas{Fixed: 3}, LPT: &config.LPT{}}
	if sticky {
		w.in.Config.Partition.LPT = nil
		w.in.Config.Partition.Sticky = config.Default().Partition.Sticky
	}
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
}

// spread is how many clusters each replica has by the Secrets.
func (w *liveWorld) spread() map[int]int {
	on := map[int]int{}
	for _, s := range w.in.Discovered.Secrets {
		on[s.Shard.N]++
	}
	return on
}

// In a fleet whose nodes need a while for each resize no cluster comes to a replica that has not got the size for it.
func TestAWaveWaitsForItsReceiversResize(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		w, n := sizedLive(t, 0, 0, 0, 0, 0, 0, 0, 1, 2)
		w.levels(sticky)
		waited, asked := false, map[int]int{}
		for range 60 {
			before := w.spread()
			for replica := range 3 {
				n.resize[replica] = observed.ResizeInProgress
				if size, _ := w.in.InForce.SizeOf(replica); n.memory(replica) == size.Requests["memory"] {
					asked[replica] = 0
				} else if asked[replica]++; asked[replica] > 2 { // for as many cycles
					delete(n.resize, replica)
				}
			}
			w.step(30 * time.Second)
			waited = waited || strings.Contains(w.last.Progress.Why, "has not got its size: InProgress")
			for replica, clusters := range w.spread() {
				if has := resource.MustParse(n.memory(replica)); clusters > before[replica] && has.Value() < int64(1+clusters)<<30 {
					t.Errorf("replica %d got %d clusters with %s", replica, clusters, n.memory(replica))
				}
			}
		}
		if diff := cmp.Diff(map[int]int{0: 3, 1: 3, 2: 3}, w.spread()); diff != "" || !waited {
			t.Errorf("clusters by replica (-want +got):\n%s\nwaited: %v; %s", diff, waited, messages(w.last))
		}
	}
}

// A node that says nothing keeps clusters waiting for two minutes, and no longer.
func TestAWaveWaitsForAResizeWithinBounds(t *testing.T) {
	w, n := sizedLive(t, 0, 0, 0, 0, 0, 0, 0, 1, 2)
	n.resize[1], n.resize[2] = "", ""
	w.levels(true)
	w.until(t, "a rollout begins", 10*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil })
	began := w.in.Now
	w.until(t, "a cluster moves", 10*time.Minute, func(outcome.Outcome) bool { return w.spread()[0] < 7 })
	if took := w.in.Now.Sub(began); took != 2*time.Minute {
		t.Errorf("it took %s, want 2 minutes", took)
	}
}

// What levels is given up where a node has no room, and goes elsewhere, or stays; people are told.
func TestWhatLevelsGoesWhereThereIsRoom(t *testing.T) {
	for sticky, want := range map[bool]map[int]int{true: {0: 5, 1: 1, 2: 3}, false: {0: 5, 1: 1, 2: 3}} {
		w, n := sizedLive(t, 0, 0, 0, 0, 0, 0, 0, 1, 2)
		n.resize[1] = observed.ResizeInfeasible
		w.levels(sticky)
		told, verdicts := false, map[string]bool{}
		for range 100 {
			out := w.step(30 * time.Second)
			told = told || slices.Contains(problems(out), "size/NodeFull/argocd-application-controller-1")
			if out.Candidate != nil {
				verdicts[out.Candidate.Verdict] = true
			}
		}
		if diff := cmp.Diff(want, w.spread()); diff != "" || !told || w.in.InForce.Rollout != nil {
			t.Errorf("sticky %v: clusters by replica (-want +got):\n%s\ntold: %v, under way: %+v", sticky, diff, told, w.in.InForce.Rollout)
		}
		said := "waits: the node of replica 1 had no room for its size within the last hour, and nothing is levelled out onto it"
		if !sticky && !verdicts[said] {
			t.Errorf("verdicts: %v", verdicts)
		}
	}
}

// A failover waits for nobody's size: nobody has its clusters.
func TestAFailoverWaitsForNoResize(t *testing.T) {
	w, n := sizedLive(t, 0, 0, 1, 2)
	w.in.Config.Failover = &config.Failover{After: config.Duration(time.Minute), Settle: config.Duration(time.Minute)}
	n.resize[1], n.resize[0] = observed.ResizeInfeasible, observed.ResizeInfeasible
	w.in.Pins = nil
	w.down[2] = true
	w.until(t, "its cluster has left the replica that is down", 15*time.Minute, func(outcome.Outcome) bool { return w.secret("c003").Shard.N != 2 })
	moved := w.in.InForce.Rollout.Since
	if waited := w.in.Now.Sub(moved); waited > time.Minute {
		t.Errorf("it waited %s", waited)
	}
}

// heldUp is a fleet that is uneven, and whose rules of change let no replica grow.
func heldUp(t *testing.T, sticky bool, up config.Resizing) (*liveWorld, *nodes) {
	t.Helper()
	w, n := sizedLive(t, 0, 0, 0, 0, 0, 0, 0, 1, 2)
	w.in.Config.Change.Up = up
	w.levels(sticky)
	return w, n
}

var off = config.Resizing{Timing: config.Timing{Mode: change.Off}}

func windowAt(begin, end string) config.Resizing {
	return config.Resizing{Timing: config.Timing{Mode: change.Maintenance, Windows: []config.Window{{Begin: begin, End: end}}}}
}

// Nothing is levelled to a replica that may not grow for it, and what waits is shown; once the block ends it comes about.
func TestWhatLevelsWaitsForItsReceiversGrowth(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		for reason, up := range map[change.BlockReason]config.Resizing{
			change.UpdatePolicy: off, change.OutsideMaintenance: windowAt("01:00", "01:01")} {
			t.Run(fmt.Sprintf("sticky %v, %s", sticky, reason), func(t *testing.T) {
				w, n := heldUp(t, sticky, up)
				var since []time.Time
				for range 20 {
					out := w.step(30 * time.Second)
					for _, b := range out.Sizing.Blocked {
						if b.Replica == 1 && b.Direction == change.Up && b.Reason == reason && b.From == "2Gi" {
							since = append(since, b.Since)
						}
					}
				}
				if diff := cmp.Diff(map[int]int{0: 7, 1: 1, 2: 1}, w.spread()); diff != "" || w.in.InForce.Rollout != nil {
					t.Errorf("clusters by replica (-want +got):\n%s\nunder way: %+v", diff, w.in.InForce.Rollout)
				}
				first := map[bool]int{false: 1, true: 2}[sticky]
				said := fmt.Sprintf("waits: replica %d may not grow now for what would come to it (change.up: %s), and nothing is levelled out onto it", first, reason)
				if got := w.last.Candidate.Verdict; got != said {
					t.Errorf("the verdict is %q, want %q", got, said)
				}
				if len(since) < 10 || !since[0].Equal(since[len(since)-1]) {
					t.Errorf("blocked since %v", since)
				}
				w.in.Config.Change.Up = config.Resizing{}
				w.until(t, "it is level", time.Hour, func(outcome.Outcome) bool { return w.spread()[0] == 3 && w.in.InForce.Rollout == nil })
				if got := n.memory(1); got != "4Gi" {
					t.Errorf("replica 1 has %s", got)
				}
			})
		}
	}
}

// A replica that may not grow, whether or not clusters come to it, keeps none of them away.
func TestWhatLevelsWaitsForNoGrowthOfItsOwnAccord(t *testing.T) {
	w, _ := heldUp(t, false, off)
	w.in.Config.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "9Gi"}}
	w.until(t, "it is level", time.Hour, func(outcome.Outcome) bool { return w.spread()[0] == 3 && w.in.InForce.Rollout == nil })
}

// A rate lets one replica grow: clusters come to that one, and to the other when its time comes.
func TestWhatLevelsComesToWhoMayGrow(t *testing.T) {
	w, _ := heldUp(t, false, config.Resizing{Rate: []config.Pace{{Replicas: 1, Period: config.Duration(2 * time.Hour)}}})
	w.until(t, "one has grown", time.Hour, func(outcome.Outcome) bool { return w.spread()[0] == 5 && w.in.InForce.Rollout == nil })
	grown := w.in.Now
	for w.in.Now.Sub(grown) < 90*time.Minute {
		if w.step(30 * time.Second); w.spread()[0] != 5 {
			t.Fatalf("clusters by replica: %v after %s", w.spread(), w.in.Now.Sub(grown))
		}
	}
	w.until(t, "the other has", 2*time.Hour, func(outcome.Outcome) bool { return w.spread()[0] == 3 && w.in.InForce.Rollout == nil })
}

// A cordoned replica is emptied, whether or not the others may grow for it.
func TestADrainWaitsForNoGrowth(t *testing.T) {
	w, _ := heldUp(t, true, off)
	w.in.Cordon = "2=" + w.in.Now.Add(2*time.Hour).Format(time.RFC3339)
	w.until(t, "replica 2 is empty", time.Hour, func(outcome.Outcome) bool { return w.spread()[2] == 0 && w.in.InForce.Rollout == nil })
}

// A person's number of replicas, and more replicas than there are, wait for no growth either.
func TestANumberOfReplicasWaitsForNoGrowth(t *testing.T) {
	most := 2
	for name, number := range map[string]int{"fewer": 2, "more": 4, "maxReplicas": most} {
		w, _ := heldUp(t, true, off)
		w.in.Config.Partition.Replicas = &config.Replicas{Fixed: number}
		if name == "maxReplicas" {
			w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = nil, &most
		}
		w.until(t, fmt.Sprintf("there are %d replicas", number), 2*time.Hour, func(outcome.Outcome) bool {
			return w.in.InForce.Replicas == number && w.in.InForce.Rollout == nil
		})
	}
}

// A node without room keeps no lowered number from coming about: what leaves a replica that goes goes to the others.
func TestFewerReplicasComeBesideANodeWithoutRoom(t *testing.T) {
	for name, lower := range map[string]func(*config.PlannerConfig){
		"replicas":    func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Fixed: 2} },
		"maxReplicas": func(c *config.PlannerConfig) { two := 2; c.Partition.MaxReplicas = &two },
	} {
		t.Run(name, func(t *testing.T) {
			w, n := sizedLive(t, 0, 0, 0, 0, 0, 1, 1, 2, 2)
			n.resize[0] = observed.ResizeInfeasible
			w.levels(false)
			w.until(t, "people are told", time.Hour, func(out outcome.Outcome) bool {
				return slices.Contains(problems(out), "size/NodeFull/argocd-application-controller-0")
			})
			before := w.spread()[0]
			lower(&w.in.Config)
			w.until(t, "there are two", 2*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 2 && w.in.InForce.Rollout == nil })
			if got := w.spread()[0]; got > before {
				t.Errorf("replica 0, whose node is full, has %d clusters, and had %d: %v", got, before, w.spread())
			}
		})
	}
}

// One replica without room keeps no other number of replicas from coming about.
func TestMoreReplicasComeBesideANodeWithoutRoom(t *testing.T) {
	w, n := sizedLive(t, 0, 0, 0, 0, 0, 0, 0, 1, 2)
	n.resize[1] = observed.ResizeInfeasible
	w.levels(false)
	w.until(t, "people are told", time.Hour, func(out outcome.Outcome) bool {
		return slices.Contains(problems(out), "size/NodeFull/argocd-application-controller-1")
	})
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 4}
	w.until(t, "there are four", 40*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 4 && w.in.InForce.Rollout == nil })
	if got := w.spread()[1]; got != 1 {
		t.Errorf("replica 1 has %d clusters: %v", got, w.spread())
	}
}
