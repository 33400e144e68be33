package life

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/config"
	"ballast/planner/failover"
	"ballast/planner/plan"
)

// verdict is what a judge says, instead of the end of the test.
type verdict struct {
	testing.TB
	said string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.said, _, _ = strings.Cut(fmt.Sprintf(format, args...), "\n")
	panic(v)
}

// judgement is what the judge says of what passes, empty: nothing; spoil is done after each act, to what the planner knows.
func judgement(t *testing.T, l *luck, spoil func(), passes func()) (said string) {
	v := &verdict{TB: t}
	l.judged(v)
	judged := l.Watch
	l.Watch = func(l *Life) { judged(l); spoil() }
	defer func() {
		if r := recover(); r == any(v) {
			said = v.said
		} else if r != nil {
			panic(r)
		}
	}()
	passes()
	return ""
}

// level is a calm fleet of that many replicas with ten equal clusters each, of which that share may move in an hour.
func level(replicas, percent int, r config.Rollout) *luck {
	c := configuration()
	c.Rollout = r
	c.Change.Moves.Rate = []config.Rate{{Percent: percent, Period: config.Duration(time.Hour)}}
	loads := map[string]float64{}
	for i := range 10 * replicas {
		loads[fmt.Sprintf("c%02d", i)] = 10
	}
	l := &luck{Life: New(1, c, replicas, "16", loads), gone: map[string]time.Time{}, ends: map[string]time.Time{}, waits: map[string]int{}}
	for i, name := range l.Clusters {
		l.Shards[name] = i % replicas
	}
	clear(l.Pods)
	l.Populate(l.Now)
	return l
}

// dies has a replica's pod never be ready again.
func (l *Life) dies(ordinal int) {
	l.Broken[ordinal] = true
	l.Crash(ordinal, false, l.Now)
}

// rolloutsJudged are the modes in which failovers are judged.
func rolloutsJudged() map[string]config.Rollout {
	live, other := config.Default().Rollout, config.Default().Rollout
	other.Live, other.Default = nil, &config.DefaultRollout{}
	return map[string]config.Rollout{"live": live, "default": other}
}

// TestTheJudgeSeesTwoFailoversWithinAnHour: a leader that forgets the last failover begins one for each replica that dies.
func TestTheJudgeSeesTwoFailoversWithinAnHour(t *testing.T) {
	for mode, r := range rolloutsJudged() {
		for name, forgets := range map[string]bool{"as it is": false, "a leader that forgets": true} {
			t.Run(mode+", "+name, func(t *testing.T) {
				l := level(5, 50, r)
				said := judgement(t, l, func() {
					if forgets {
						l.memory.Changes.Failover = failover.Last{}
					}
				}, func() {
					l.Pass(time.Hour)
					l.dies(1)
					l.Pass(10 * time.Minute)
					l.dies(2)
					l.Pass(40 * time.Minute)
				})
				if want := "a failover begins for replica 2, and one of 1, which did not work since, "; strings.HasPrefix(said, want) != forgets {
					t.Errorf("the judge says %q, want %q: %t", said, want, forgets)
				}
			})
		}
	}
}

// TestTheJudgeSeesWhoTakesOnTooMuch: a leader that takes the others for ten times as loaded as they were has them take on all of
// a replica that died within the hour.
func TestTheJudgeSeesWhoTakesOnTooMuch(t *testing.T) {
	for mode, r := range rolloutsJudged() {
		for name, wrong := range map[string]bool{"as it is": false, "a leader that knows it wrong": true} {
			t.Run(mode+", "+name, func(t *testing.T) {
				l := level(4, 1, r)
				said := judgement(t, l, func() {
					last := &l.memory.Changes.Failover
					if last.Carried = slices.Clone(last.Carried); wrong {
						for i := range last.Carried {
							last.Carried[i] = plan.LoadUnit
						}
					}
				}, func() {
					l.Pass(time.Hour)
					l.dies(1)
					l.Pass(50 * time.Minute)
				})
				left := 0
				for _, row := range l.Plan.Clusters {
					if row.Replica == 1 {
						left++
					}
				}
				want := "of replica 1's failover 3 servers go beyond what the others take on freely"
				if strings.HasPrefix(said, want) != wrong || !wrong && left != 3 {
					t.Errorf("the judge says %q, want %q: %t; %d clusters are left, want 3", said, want, wrong, left)
				}
			})
		}
	}
}

// TestTheJudgesDaysAreOfWhatBallastMoves: a Secret that people keep is none of those that the budget is a share of.
func TestTheJudgesDaysAreOfWhatBallastMoves(t *testing.T) {
	l := &luck{Life: New(1, configuration(), 2, "16", loadsOf(1, 12))}
	l.Twins = map[string]string{"c11": "c10"}
	days := []int{l.days()} // eleven servers, two a day
	l.OptedOut["c11"] = true
	days = append(days, l.days())
	l.OptedOut["c10"] = true
	days = append(days, l.days()) // ten
	l.Twins = map[string]string{}
	clear(l.OptedOut)
	if days = append(days, l.days()); !slices.Equal(days, []int{7, 7, 6, 5}) { // twelve, three a day
		t.Errorf("%v days, want 7, 7, 6 and 5", days)
	}
}

// TestTheJudgeKnowsWhoHoldsMoreThanAPlanMayHave: the workload may have other replicas than the plan only beside an autoscaler, and
// above maxReplicas.
func TestTheJudgeKnowsWhoHoldsMoreThanAPlanMayHave(t *testing.T) {
	for name, test := range map[string]struct {
		free                 bool
		workload, plan, most int
		want                 bool
	}{
		"more than may be":                       {true, 6, 2, 2, true},
		"and a plan that had more":               {true, 6, 3, 2, true},
		"a plan that has fewer than it may have": {true, 6, 2, 3, false},
		"as many as the plan":                    {true, 3, 3, 2, false},
		"nobody's autoscaler":                    {false, 6, 2, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, configuration(), test.workload, "16", loadsOf(1, 12))
			l.Plan = &plan.Plan{FreeReplicas: test.free, Replicas: test.plan, MaxReplicas: test.most}
			if got := l.beyond(); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// TestTheJudgeSeesASecondStopOfADay: what two groups ask for stops every replica once a day; of a leader that forgets when the fleet
// restarted, each does so at once. One that has lost plan and history sees it by the pods.
func TestTheJudgeSeesASecondStopOfADay(t *testing.T) {
	team := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}
	}
	for name, test := range map[string]struct{ forgets, loses bool }{
		"as it is": {}, "a leader that forgets": {forgets: true}, "plan and history are lost": {loses: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := level(3, 50, config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Default().Rollout.StageTimeout})
			l.Config.Partition.Groups = []config.Group{{Name: "one", Together: team("one")}, {Name: "two", Together: team("two")}}
			for _, p := range l.Pods {
				p.Runs = p.Runs.Add(-30 * time.Hour) // else they show a restart of this day
			}
			stops, second := 0, time.Duration(0)
			said := judgement(t, l, func() {
				if test.forgets {
					l.memory.Changes.Restarted = time.Time{}
				}
			}, func() {
				join := func(team string, clusters ...string) {
					for _, cluster := range clusters {
						l.Labels[cluster] = map[string]string{"team": team}
					}
				}
				join("one", "c00", "c01")
				for began := l.Now; l.Now.Sub(began) < 26*time.Hour; {
					stood := l.Replicas == 0
					if l.step(); l.Replicas == 0 && !stood {
						if stops++; stops == 1 {
							join("two", "c04", "c05")
						}
						second = l.Now.Sub(began)
					}
					if l.Now.Sub(began) == time.Hour && test.loses {
						l.lose()
					}
				}
			})
			if want := "every replica is stopped "; strings.HasPrefix(said, want) != test.forgets {
				t.Errorf("the judge says %q, want %q: %t", said, want, test.forgets)
			}
			if !test.forgets && (stops != 2 || second < 24*time.Hour) {
				t.Errorf("%d stops, the last after %s, want two, a day apart", stops, second)
			}
		})
	}
}

// TestTheJudgeSeesASecondRestartOfADay: a leader that forgets when the fleet restarted last has it restart for each number of replicas.
func TestTheJudgeSeesASecondRestartOfADay(t *testing.T) {
	for name, forgets := range map[string]bool{"as it is": false, "a leader that forgets": true} {
		t.Run(name, func(t *testing.T) {
			l := level(3, 100, rolloutsJudged()["default"])
			l.Env = "3"
			clear(l.Pods)
			l.Populate(l.Now)
			capacity := config.Decimal("0.4")
			l.Config.Partition, l.Config.Evaluate = voted(time.Hour)
			l.Config.Partition.Capacity = &capacity
			begun := 0
			said := judgement(t, l, func() {
				if forgets {
					l.memory.Changes.Restarted = time.Time{}
				}
			}, func() {
				l.Pass(25 * time.Hour) // the pods' start counts as a restart
				for _, load := range []float64{10, 20, 30} {
					for _, name := range l.Clusters {
						l.Loads[name] = load
					}
					l.Pass(6 * time.Hour)
				}
				begun = l.Counts["envs"]
			})
			if want := "the fleet restarts "; strings.HasPrefix(said, want) != forgets || !forgets && begun != 1 {
				t.Errorf("the judge says %q, want %q: %t; the env was written %d times", said, want, forgets, begun)
			}
		})
	}
}

// TestTheJudgeSeesWhatMayNeverBe: each of its rules fails where a fleet, or what the planner knows of it, is spoiled.
func TestTheJudgeSeesWhatMayNeverBe(t *testing.T) {
	for name, test := range map[string]struct {
		seen, after func(*luck) // what is spoiled before the judge looks, and after it
		want        string      // how its verdict begins; empty: there is none
	}{
		"nothing is spoiled": {},
		"two pods work on a cluster": {
			seen: func(l *luck) { l.Pods[0].Gained["c02"] = l.Now }, want: "cluster c02 is owned by [0 2]"},
		"no replica is asked for": {
			after: func(l *luck) { l.Glass, l.Replicas = true, 0 }, want: "the workload stands at 0 replicas"},
		"the planner is not told of a freeze": {
			seen: func(l *luck) { l.Paused = true }, after: func(l *luck) { l.Paused = false }, want: "frozen since "},
		"a revision comes twice": {
			after: func(l *luck) { l.Plan.Revision, l.History, l.said = 1, nil, 0 }, want: "revision 2 came after "},
	} {
		t.Run(name, func(t *testing.T) {
			l, spoils := level(3, 100, rolloutsJudged()["live"]), false
			spoil := func(how func(*luck)) {
				if spoils && how != nil {
					how(l)
				}
			}
			said := judgement(t, l, func() { spoil(test.after) }, func() {
				judged := l.Watch
				l.Watch = func(of *Life) { spoil(test.seen); judged(of) }
				l.Pass(2 * time.Hour)
				spoils = true
				l.dies(1) // so that there is something to decide
				l.Pass(40 * time.Minute)
			})
			if !strings.HasPrefix(said, test.want) || test.want == "" && said != "" {
				t.Errorf("the judge says %q, want %q", said, test.want)
			}
		})
	}
}
