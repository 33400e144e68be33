package cycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/rollout"
)

// stopped is a fleet in the midst of rollout.x0y, at a stage in which no replica runs, and with Secrets that stand for no
// cluster.
func stopped(t *testing.T, stage plan.Stage, dummies int) *world {
	t.Helper()
	w := newWorld(lognormal(20, 24)...)
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
	for i := range dummies {
		w.add(dummy(i), 0)
	}
	for range 200 {
		w.run(1)
		if p := w.last.Next; p.Rollout != nil && p.Rollout.Stage == stage && w.in.Workload.Replicas == 0 {
			return w
		}
	}
	t.Fatalf("no rollout came to stage %s", stage)
	return nil
}

func dummy(i int) string { return fmt.Sprintf("zz-dummy%02d", i) }

// atZero runs cycles, a minute each, until a replica runs, and answers after how many.
func (w *world) atZero(each func(minute int)) int {
	for minute := range 8 * 60 {
		each(minute)
		w.run(1)
		if w.in.Workload.Replicas > 0 {
			return minute
		}
	}
	return 8 * 60
}

// Whoever may write Secrets makes the discovery unbelievable by deleting many at once, and keeps it so for as long as there
// are more to delete. What rollout.x0y stopped comes back all the same, as it was.
func TestAFleetThatIsStoppedComesBackWhateverSecretsGo(t *testing.T) {
	for _, stage := range []plan.Stage{plan.Draining, plan.Assigning} {
		t.Run(string(stage), func(t *testing.T) {
			w := stopped(t, stage, 60)
			before := w.in.InForce.Rollout.From.Replicas
			gone := 0
			for ; gone < 43; gone++ {
				w.remove(dummy(gone))
			}
			minutes := w.atZero(func(minute int) {
				if minute%25 == 24 {
					w.remove(dummy(gone))
					gone++
				}
			})
			if minutes > 0 || w.in.Workload.Replicas != before {
				t.Errorf("after %d minutes %d replicas run, want %d at once", minutes, w.in.Workload.Replicas, before)
			}
			if got := w.last.Reason; !strings.HasPrefix(got, "too many cluster Secrets are gone at once, and no replica runs; this was under way: moves ") {
				t.Errorf("reason %q", got)
			}
		})
	}
}

// Break-glass binds when the replicas that ballast stopped are back: a person who opens it in fright, or a pinner, leaves no fleet
// stopped.
func TestBreakGlassLeavesNoFleetStopped(t *testing.T) {
	for _, stage := range []plan.Stage{plan.Draining, plan.Assigning} {
		t.Run(string(stage), func(t *testing.T) {
			w := stopped(t, stage, 0)
			before := w.in.InForce.Rollout.From.Replicas
			w.in.BreakGlass = true
			if minutes := w.atZero(func(int) {}); minutes > 0 || w.in.Workload.Replicas != before {
				t.Errorf("after %d minutes %d replicas run, want %d at once", minutes, w.in.Workload.Replicas, before)
			}
			want := problem.Problem{Phase: problem.PhaseRollout, Kind: "GlassWaits", Message: "enforcement off waits until the replicas that rollout.x0y stopped are back"}
			if got := findProblem(w.last, "GlassWaits"); !cmp.Equal(want, got) {
				t.Errorf("people are told %+v", got)
			}
			w.run(30)
			if w.in.InForce.Rollout != nil {
				t.Fatalf("the rollout goes on under break-glass: %+v", w.in.InForce.Rollout)
			}
			if got := w.last.Memory.Changes.Failures; got != nil {
				t.Errorf("a person's word is remembered as a rollout that failed: %+v", got)
			}
			writes := w.writes
			w.secret("c003").Shard = discover.ShardValue{State: discover.ShardValid, N: 0}
			w.in.Workload.Replicas = before + 3
			w.run(30)
			if w.writes != writes || w.in.Workload.Replicas != before+3 || findProblem(w.last, "GlassWaits").Kind != "" {
				t.Errorf("%d plans are written and %d replicas held under break-glass", w.writes-writes, w.in.Workload.Replicas)
			}
		})
	}
}

// TestNoModeLeavesAFleetStoppedThatComesBack: from Restoring and Reverting on the plan has replicas again, and the workload none yet. Who
// configures less by then, or while the stop goes on, is told to wait, and heard once they are back.
func TestNoModeLeavesAFleetStoppedThatComesBack(t *testing.T) {
	waits := func(mode plan.Mode) string {
		return fmt.Sprintf("mode %s waits until the replicas that rollout.x0y stopped are back", mode)
	}
	for _, stage := range []plan.Stage{plan.Draining, plan.Assigning, plan.Restoring, plan.Reverting} {
		for _, mode := range []plan.Mode{plan.Observe, plan.Hold} {
			t.Run(fmt.Sprintf("%s at %s", mode, stage), func(t *testing.T) {
				begins := plan.Draining
				if stage == plan.Assigning {
					begins = stage
				}
				w := stopped(t, begins, 0)
				if r := w.in.InForce.Rollout; stage == plan.Restoring || stage == plan.Reverting {
					r.Stage, r.Since, r.Moves = stage, w.in.Now, nil
					w.in.InForce.Replicas, w.in.InForce.ControllerReplicas = r.From.Replicas, r.From.ControllerReplicas
				}
				before := w.in.InForce.Rollout.From.Replicas
				w.in.Config.Mode = mode
				w.in.Now = w.in.Now.Add(time.Second)
				if out := Run(w.in); out.Next.Mode != plan.Enforce || out.Next.Rollout == nil || findProblem(out, "ModeWaits").Message != waits(mode) {
					t.Errorf("with 0 replicas: mode %s, rollout %+v, and people are told %v", out.Next.Mode, out.Next.Rollout, messages(out))
				}
				if minutes := w.atZero(func(int) {}); minutes > 20 || w.in.Workload.Replicas < before {
					t.Errorf("after %d minutes %d replicas run, want %d", minutes, w.in.Workload.Replicas, before)
				}
				w.run(30)
				if w.in.InForce.Mode != mode || w.in.InForce.Rollout != nil || findProblem(w.last, "ModeWaits").Kind != "" {
					t.Errorf("once they are back: mode %s, rollout %+v, %v", w.in.InForce.Mode, w.in.InForce.Rollout, messages(w.last))
				}
			})
		}
	}
}

// TestNoModeLeavesAFleetHalfBack: somebody scales up what is coming back, to fewer than there were.
func TestNoModeLeavesAFleetHalfBack(t *testing.T) {
	w := stopped(t, plan.Draining, 0)
	r := w.in.InForce.Rollout
	r.Stage, r.Since, r.Moves = plan.Restoring, w.in.Now, nil
	w.in.InForce.Replicas, w.in.InForce.ControllerReplicas = r.From.Replicas, r.From.ControllerReplicas
	w.in.Workload.Replicas, w.in.Config.Mode = 1, plan.Observe
	w.in.Now = w.in.Now.Add(time.Second)
	if out := Run(w.in); out.Next.Mode != plan.Enforce || out.Next.Rollout == nil || findProblem(out, "ModeWaits").Kind == "" {
		t.Errorf("with 1 replica of %d: mode %s, rollout %+v, %v", r.From.Replicas, out.Next.Mode, out.Next.Rollout, messages(out))
	}
	w.run(30)
	if w.in.InForce.Mode != plan.Observe || w.in.Workload.Replicas != r.From.Replicas {
		t.Errorf("once they are back: mode %s, %d replicas", w.in.InForce.Mode, w.in.Workload.Replicas)
	}
}

func findProblem(out outcome.Outcome, kind string) problem.Problem {
	for _, p := range out.Problems {
		if p.Kind == kind {
			return p
		}
	}
	return problem.Problem{}
}

// TestOneSecretThatCannotBeWrittenKeepsNoFailoverWaiting: in each mode it keeps a dead replica's clusters waiting no longer than none does.
func TestOneSecretThatCannotBeWrittenKeepsNoFailoverWaiting(t *testing.T) {
	beyond := discover.ShardValue{State: discover.ShardValid, N: 99}
	for name, change := range map[string]func(*liveWorld, *discover.Secret){
		"none":                               nil,
		"unmanaged, beyond the replicas":     func(_ *liveWorld, s *discover.Secret) { s.Unmanaged, s.Shard = true, beyond },
		"unmanaged, without a shard":         func(_ *liveWorld, s *discover.Secret) { s.Unmanaged = true },
		"immutable, beyond the replicas":     func(_ *liveWorld, s *discover.Secret) { s.Immutable, s.Shard = true, beyond },
		"being deleted, beyond the replicas": func(_ *liveWorld, s *discover.Secret) { s.Deleting, s.Shard = true, beyond },
		"denied by a policy, beyond the replicas": func(w *liveWorld, s *discover.Secret) {
			s.Shard, w.in.Barred = beyond, map[string]string{s.Name: "a policy refuses it"}
		},
		"immutable, without a shard":     func(_ *liveWorld, s *discover.Secret) { s.Immutable, s.Shard = true, discover.ShardValue{} },
		"being deleted, without a shard": func(_ *liveWorld, s *discover.Secret) { s.Deleting, s.Shard = true, discover.ShardValue{} },
		"denied by a policy, without a shard": func(w *liveWorld, s *discover.Secret) {
			s.Shard, w.in.Barred = discover.ShardValue{}, map[string]string{s.Name: "a policy refuses it"}
		},
	} {
		for mode, r := range map[string]config.Rollout{plan.ModeLive: config.Default().Rollout,
			plan.ModeDefault: {Default: &config.DefaultRollout{}}, plan.ModeX0Y: {X0Y: &config.X0YRollout{}}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				w := undecided(t, skewed(12)...)
				r.StageTimeout = w.in.Config.Rollout.StageTimeout
				w.in.Config.Rollout = r
				for range 30 {
					w.step(time.Minute)
				}
				was := discover.ShardValue{}
				if change != nil {
					w.add("zz", 0)
					change(w, w.secret("zz"))
					was = w.secret("zz").Shard
				}
				for range 10 {
					w.step(time.Minute)
				}
				told := findProblem(w.last, "LiveNotReady")
				if told := told.Kind != ""; told != (change != nil && mode == plan.ModeLive) {
					t.Errorf("people are told of the Secret: %t, %v", told, problems(w.last))
				}
				if told.Kind != "" && !strings.Contains(told.Subject+" "+told.Message, "zz") {
					t.Errorf("the Secret is not named: %q, %q", told.Subject, told.Message)
				}
				w.down[2] = true
				minutes := 0
				for ; len(w.on(2)) > 0 && minutes < 60; minutes++ {
					w.step(time.Minute)
				}
				named := func(p string) bool { return strings.HasSuffix(p, "/zz") }
				if change != nil && !slices.ContainsFunc(problems(w.last), named) {
					t.Errorf("the Secret is not named while the others leave: %v", problems(w.last))
				}
				if minutes > 7 {
					t.Errorf("after %d minutes %v are on the dead replica, and without the Secret none after 7", minutes, w.on(2))
				}
				if zz := w.secret("zz"); change != nil && !zz.Unmanaged && zz.Shard != was {
					t.Errorf("the Secret was written: %+v", zz.Shard)
				}
			})
		}
	}
}

// TestWhatOnlyPeopleMayWriteKeepsNothingWaiting once the env is live's for good: a pin beyond the replicas scales, and
// levelling goes on.
func TestWhatOnlyPeopleMayWriteKeepsNothingWaiting(t *testing.T) {
	for name, change := range map[string]func(*discover.Secret){
		"none":                       func(s *discover.Secret) { s.Shard = discover.ShardValue{State: discover.ShardValid} },
		"unmanaged, without a shard": func(s *discover.Secret) { s.Unmanaged = true },
		"unmanaged, beyond the replicas": func(s *discover.Secret) {
			s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardValid, N: 99}
		},
		"unmanaged, no number":       func(s *discover.Secret) { s.Unmanaged, s.Shard.State = true, discover.ShardInvalid },
		"immutable, without a shard": func(s *discover.Secret) { s.Immutable = true },
		"immutable, beyond the replicas": func(s *discover.Secret) {
			s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardValid, N: 99}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, skewed(24)...)
			w.until(t, "it is level", 12*time.Hour, func(out outcome.Outcome) bool { return len(w.waves) > 0 && w.in.InForce.Rollout == nil })
			w.add("zz", 0)
			change(w.secret("zz"))
			w.step(time.Minute)
			if told := findProblem(w.last, "LiveNotReady"); name != "none" && !strings.HasPrefix(told.Message, "rollout.live changes no ARGOCD_CONTROLLER_REPLICAS: ") {
				t.Errorf("people are told %q of %v", told.Message, problems(w.last))
			}
			w.in.Pins = plan.Pins{"c003": 13}
			w.until(t, "the pin holds, and no stage waited for its deadline", 9*time.Minute, func(outcome.Outcome) bool {
				return w.in.InForce.Replicas == 14 && w.row(t, "c003") == 13 && w.in.InForce.Rollout == nil
			})
			w.imbalanced()
			waves := len(w.waves)
			w.until(t, "a wave levels", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > waves })
			if diff := cmp.Diff([]int{3, 16}, w.envs); diff != "" {
				t.Errorf("the env over time (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoKeepsMoreReplicasThanTheNumberIsNamed, with the mend: `partition.replicas: 3` stayed at 5 in silence beside one Secret.
func TestWhoKeepsMoreReplicasThanTheNumberIsNamed(t *testing.T) {
	on4 := discover.ShardValue{State: discover.ShardValid, N: 4}
	const needs = "partition.replicas is 3, and 5 are needed, since \"zz\" is on replica 4; "
	for name, test := range map[string]struct {
		make     func(*liveWorld, *discover.Secret)
		replicas int
		want     string
	}{
		"none": {func(*liveWorld, *discover.Secret) {}, 3, ""},
		"opted out": {func(_ *liveWorld, s *discover.Secret) { s.Unmanaged = true }, 5,
			needs + "its Secret opted out of ballast: write a lower data.shard there, or take the annotation ballast.argoproj.io/unmanaged away"},
		"immutable": {func(_ *liveWorld, s *discover.Secret) { s.Immutable = true }, 5,
			needs + "its Secret cannot be written: make it anew with a lower data.shard"},
		"pinned by its Secret": {func(_ *liveWorld, s *discover.Secret) { s.Pin = "4" }, 5,
			needs + "it is pinned there: pin it lower, or take the pin away"},
		"pinned": {func(w *liveWorld, _ *discover.Secret) { w.in.Pins = plan.Pins{"zz": 4} }, 5,
			needs + "it is pinned there: pin it lower, or take the pin away"},
		"immutable, and pinned elsewhere by itself": {func(_ *liveWorld, s *discover.Secret) { s.Immutable, s.Pin = true, "0" }, 5,
			needs + "its Secret cannot be written: make it anew with a lower data.shard"},
		"being deleted, and pinned elsewhere": {func(w *liveWorld, s *discover.Secret) { s.Deleting, w.in.Pins = true, plan.Pins{"zz": 0} }, 5,
			needs + "its Secret cannot be written: make it anew with a lower data.shard"},
		"immutable, with a twin that is pinned elsewhere": {func(w *liveWorld, s *discover.Secret) {
			w.add("zz-twin", 1)
			w.secret("zz-twin").Server, w.secret("zz-twin").Pin = s.Server, "0"
			w.secret("zz").Immutable = true
		}, 5, needs + "its Secret cannot be written: make it anew with a lower data.shard"},
		"opted out below": {func(_ *liveWorld, s *discover.Secret) { s.Unmanaged, s.Shard.N = true, 2 }, 3, ""},
		"people scale, and one opted out": {func(w *liveWorld, s *discover.Secret) {
			s.Unmanaged, w.in.Config.Partition.Replicas = true, &config.Replicas{Workload: true}
		}, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, skewed(24)...)
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
			w.until(t, "there are five replicas", 12*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 5 && w.in.InForce.Rollout == nil })
			w.add("zz", 1)
			w.secret("zz").Shard = on4
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
			test.make(w, w.secret("zz"))
			for range 8 * 60 {
				w.step(time.Minute)
			}
			told := findProblem(w.last, "ReplicasHeld")
			if diff := cmp.Diff(test.want, told.Message); diff != "" || w.in.InForce.Replicas != test.replicas {
				t.Errorf("there are %d replicas, want %d; what people are told (-want +got):\n%s", w.in.InForce.Replicas, test.replicas, diff)
			}
		})
	}
}

// TestASecretThatNobodyMayWriteAnyMoreFailsNoRollout: whoever makes it so while replicas are about to go has its own stay,
// and the others' go on.
func TestASecretThatNobodyMayWriteAnyMoreFailsNoRollout(t *testing.T) {
	for name, lock := range map[string]func(*discover.Secret){
		"immutable":               func(s *discover.Secret) { s.Immutable = true },
		"opted out":               func(s *discover.Secret) { s.Unmanaged = true },
		"being deleted":           func(s *discover.Secret) { s.Deleting = true },
		"immutable, its pin gone": func(s *discover.Secret) { s.Immutable, s.Pin = true, "0" },
		"opted out, its shard gone, where Argo CD's algorithm has it on 4": func(s *discover.Secret) {
			s.Unmanaged, s.Shard = true, discover.ShardValue{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, skewed(24)...)
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 6}
			w.until(t, "there are six replicas", 12*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 6 && w.in.InForce.Rollout == nil })
			var own string
			for cluster, row := range w.in.InForce.Clusters {
				if row.Replica == 4 && own < cluster {
					own = cluster
				}
			}
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
			w.until(t, "replicas are about to go", 12*time.Hour, func(outcome.Outcome) bool {
				return w.in.InForce.Rollout != nil && w.in.InForce.Rollout.Stage == plan.Moving
			})
			w.secret(own).Shard = discover.ShardValue{State: discover.ShardValid, N: 4}
			if lock(w.secret(own)); w.secret(own).Shard.State == discover.ShardAbsent {
				w.placed = map[string]int{own: 4}
			}
			gaveUp := ""
			for range 6 * 60 {
				if w.step(time.Minute); w.last.Progress.Outcome == rollout.GaveUp || w.last.Progress.Outcome == rollout.TurnedBack {
					gaveUp = w.last.Progress.Why
				}
			}
			if gaveUp != "" || w.in.InForce.Replicas != 5 || w.in.InForce.Rollout != nil || !w.in.Memory.HoldOff.IsZero() {
				t.Errorf("%d replicas, want 5; rollout %+v; gave up %q; held off since %s", w.in.InForce.Replicas, w.in.InForce.Rollout, gaveUp, w.in.Memory.HoldOff)
			}
		})
	}
}

// Entries of the env that disagree are written anew, though the one that was read last is right.
func TestEntriesThatDisagreeAreDrift(t *testing.T) {
	w := newWorld(4, 2, 1)
	w.run(2)
	seen := standing.Seen(w.in.InForce.Clusters, w.last.Fleet, w.in.Memory.Known, w.in.Workload)
	if steps := diff.Between(plan.NewView(*w.in.InForce, nil), seen, diff.Options{}).Steps; len(steps) > 0 {
		t.Fatalf("what stands is written: %v", steps)
	}
	w.in.Workload.EnvMixed = true
	three := 3
	want := []diff.Step{diff.PatchWorkload{ControllerReplicas: &three}}
	got := diff.Between(plan.NewView(*w.in.InForce, nil), standing.Seen(w.in.InForce.Clusters, w.last.Fleet, w.in.Memory.Known, w.in.Workload), diff.Options{}).Steps
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(diff.PatchWorkload{}, "Why")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whoever makes Secrets with the longest names fills no plan: one that cannot be written would end all planning.
func TestNoNumberOfSecretsMakesAPlanThatCannotBeWritten(t *testing.T) {
	longest := func(i int) string { return fmt.Sprintf("zz-%04d-", i) + strings.Repeat("n", 245) }
	for _, mode := range []string{plan.ModeX0Y, plan.ModeDefault} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(lognormal(20, 24)...)
			if mode == plan.ModeX0Y {
				w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
			}
			w.run(2)
			for i := range 3500 {
				w.add(longest(i), 0)
				w.in.Discovered.Secrets[len(w.in.Discovered.Secrets)-1].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3} // the webhook's
			}
			for range 12 {
				w.run(1)
				if _, err := codec.Encode(*w.in.InForce); err != nil {
					t.Fatal(err)
				}
			}
			told := findProblem(w.last, "PlanFull")
			rows := len(w.in.InForce.Clusters)
			if !strings.HasPrefix(told.Message, fmt.Sprintf("the plan has no room for %d clusters, the first is ", 3524-rows)) || rows < 2000 || rows > 3000 {
				t.Errorf("%d rows, and people are told %.120q", rows, told.Message)
			}
			w.in.Pins = plan.Pins{"c003": 5}
			w.run(30)
			if w.in.InForce.Clusters["c003"].Replica != 5 || w.in.InForce.Rollout != nil || w.in.Workload.Replicas < 6 {
				t.Errorf("a pin beyond the replicas comes to %d of %d replicas (%v)", w.in.InForce.Clusters["c003"].Replica, w.in.Workload.Replicas, problems(w.last))
			}
		})
	}
}

// Who may only create Secrets moves nobody's cluster by a second Secret of its server, whatever that one says.
func TestASecondSecretMovesNobodysCluster(t *testing.T) {
	for name, change := range map[string]func(*discover.Secret){
		"pinned":                      func(s *discover.Secret) { s.Pin = "0" },
		"unmanaged, with a shard":     func(s *discover.Secret) { s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		"immutable, with a shard":     func(s *discover.Secret) { s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		"first by its name, a shard":  func(s *discover.Secret) { s.Shard = discover.ShardValue{State: discover.ShardValid} },
		"pinned beyond the replicas":  func(s *discover.Secret) { s.Pin = "9" },
		"pinned, to where nobody may": func(s *discover.Secret) { s.Pin, s.Immutable = "0", true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(20, 24)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Created = epoch
			}
			w.run(3)
			before := map[string]int{}
			for cluster, row := range w.in.InForce.Clusters {
				before[cluster] = row.Replica
			}
			for cluster := range before {
				twin := "aa-" + cluster
				w.add(twin, 0)
				s := w.secret(twin)
				s.Server, s.Created = w.secret(cluster).Server, w.in.Now
				change(s)
			}
			w.run(10)
			after := map[string]int{}
			for cluster := range before {
				after[cluster] = w.in.InForce.Clusters[cluster].Replica
			}
			if diff := cmp.Diff(before, after); diff != "" || w.in.InForce.Replicas != 3 {
				t.Errorf("%d replicas, rows (-before +after):\n%s", w.in.InForce.Replicas, diff)
			}
			w.add("zz-own", 1) // a change of the fleet, for which others' clusters must not move either
			w.secret("zz-own").Pin = "3"
			w.run(30)
			for cluster := range before {
				after[cluster] = w.in.InForce.Clusters[cluster].Replica
			}
			if diff := cmp.Diff(before, after); diff != "" || w.in.InForce.Replicas != 4 {
				t.Errorf("once another one grew the fleet: %d replicas, rows (-before +after):\n%s", w.in.InForce.Replicas, diff)
			}
		})
	}
}

// TestAServerWithTheHashOfAnotherMovesNothing: a row's hash is short, and anybody can find a URL that has it.
func TestAServerWithTheHashOfAnotherMovesNothing(t *testing.T) {
	const real, clash = "c60974", "c191599"
	if plan.ServerHash(server(real)) != plan.ServerHash(server(clash)) {
		t.Fatal("the servers' hashes differ")
	}
	w := newWorld(lognormal(20, 9)...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
	w.add(real, 1)
	w.run(3)
	before := w.row(t, real)
	w.add(clash, 1)
	w.secret(clash).Pin = "3"
	w.run(30)
	if at := w.row(t, clash); at != 3 || w.in.InForce.Replicas != 4 {
		t.Errorf("the pinned cluster is on replica %d of %d, want 3 of 4", at, w.in.InForce.Replicas)
	}
	if at := w.row(t, real); at != before {
		t.Errorf("the other one is on replica %d, want %d as before", at, before)
	}
}

// TestASecretThatLedLeadsAgain: who made a second one beside it does not get it when the first is made anew.
func TestASecretThatLedLeadsAgain(t *testing.T) {
	w := newWorld(lognormal(20, 9)...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 100}} // levels nothing
	w.run(3)
	before := w.row(t, "c004")
	w.add("zz", 0)
	for _, s := range []*discover.Secret{w.secret("c004"), w.secret("zz")} {
		s.Server, s.Created = server("c004"), w.in.Now
	}
	w.secret("zz").Created, w.secret("zz").Pin = w.in.Now.Add(time.Second), strconv.Itoa((before+1)%3)
	w.run(5)
	anew := *w.secret("c004")
	w.remove("c004")
	w.run(1)
	anew.Created = w.in.Now
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, anew)
	w.run(30)
	if at := w.row(t, "c004"); at != before {
		t.Errorf("it is on replica %d, want %d as before; problems %v", at, before, problems(w.last))
	}
}

// TestASecretThatTakesAnothersServerMovesNothing, however old it is: its age is not that of its server.
func TestASecretThatTakesAnothersServerMovesNothing(t *testing.T) {
	for name, forget := range map[string]bool{"under the same leader": false, "at a change of leaders": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(20, 9)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(time.Hour), MinSamples: 100}} // levels nothing
			w.run(3)
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Created = epoch.Add(time.Minute)
			}
			before := w.row(t, "c004")
			old := w.secret("c000")
			old.Created, old.Pin = epoch, strconv.Itoa((before+1)%3)
			w.run(3)
			w.secret("c000").Server = server("c004")
			if forget {
				w.in.Memory.Servers = nil
			}
			w.run(5)
			if at := w.row(t, "c004"); at != before {
				t.Errorf("its cluster is on replica %d, want %d as before; problems %v", at, before, problems(w.last))
			}
		})
	}
}

// TestATwinKeepsNoFailoverAndNoDrainWaiting, whoever may write it and whatever shard it carries.
func TestATwinKeepsNoFailoverAndNoDrainWaiting(t *testing.T) {
	const bothCount = "a shard, opted out, by which the cluster has a second owner"
	for name, change := range map[string]func(*discover.Secret){
		"no shard, opted out": func(s *discover.Secret) { s.Unmanaged = true },
		"a shard, opted out":  func(s *discover.Secret) { s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		bothCount:             func(s *discover.Secret) { s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		"the shard, immutable": func(s *discover.Secret) {
			s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardValid, N: 2}
		},
	} {
		for why, ends := range map[string]func(*liveWorld){
			"down":     func(w *liveWorld) { w.down[2] = true },
			"cordoned": func(w *liveWorld) { w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).Format(time.RFC3339) },
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				w := undecided(t, skewed(12)...)
				w.in.Cordon, w.doubled = "", map[string]bool{}
				for i := range w.in.Discovered.Secrets {
					w.in.Discovered.Secrets[i].Created = epoch
				}
				for range 10 {
					w.step(time.Minute)
				}
				for _, s := range slices.Clone(w.in.Discovered.Secrets) {
					w.add("zz-"+s.Name, 0)
					twin := w.secret("zz-" + s.Name)
					twin.Server, twin.Created = s.Server, w.in.Now
					change(twin)
					if name == bothCount {
						w.doubled[s.Name] = true
					}
				}
				ends(w)
				isTwin := func(cluster string) bool { return strings.HasPrefix(cluster, "zz-") }
				left := 1
				for minute := 0; left > 0 && minute < 60; minute++ {
					w.step(time.Minute)
					left = len(slices.DeleteFunc(w.on(2), isTwin))
				}
				if left > 0 {
					t.Errorf("%d clusters are left on replica 2 after an hour: problems %v", left, problems(w.last))
				}
			})
		}
	}
}

// TestASecretThatIsRenamedIsFailedOver like any other: the row of the old name keeps nothing on a dead replica. Nor does the row
// of a Secret that somebody made beside it and took away.
func TestASecretThatIsRenamedIsFailedOver(t *testing.T) {
	for name, change := range map[string]func(*liveWorld, discover.Secret){
		"renamed": func(w *liveWorld, s discover.Secret) {
			w.remove(s.Name)
			s.Name, s.Created = "new-"+s.Name, w.in.Now
			w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, s)
		},
		"another beside it came and went": func(w *liveWorld, s discover.Secret) {
			w.add("zz-"+s.Name, 0)
			w.secret("zz-" + s.Name).Server = s.Server
			w.step(time.Minute)
			w.remove("zz-" + s.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			for range 30 {
				w.step(time.Minute)
			}
			change(w, *w.secret(w.on(2)[0]))
			w.step(time.Minute)
			w.down[2] = true
			here := func(clusters []string) []string {
				return slices.DeleteFunc(clusters, func(cluster string) bool { return w.secret(cluster) == nil })
			}
			minutes := 0
			for ; len(here(w.on(2))) > 0 && minutes < 60; minutes++ {
				w.step(time.Minute)
			}
			if minutes > 10 {
				t.Errorf("%v are on the dead replica after %d minutes: %v", here(w.on(2)), minutes, messages(w.last))
			}
		})
	}
}

// TestASecretMadeAnewIsMovedByNoTwin: one that nobody may write stands alone, however old it is by then, and one that comes while
// the owner's is away does not lead.
func TestASecretMadeAnewIsMovedByNoTwin(t *testing.T) {
	for name, change := range map[string]func(*discover.Secret){
		"opted out": func(s *discover.Secret) { s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		"immutable": func(s *discover.Secret) { s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardValid} },
		"pinned":    func(s *discover.Secret) { s.Pin = "0" },
	} {
		for when, early := range map[string]bool{"made before": true, "made meanwhile": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				w := newWorld(lognormal(20, 9)...)
				w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
				w.in.Pins = plan.Pins{"c004": 2}
				w.run(3)
				w.in.Pins = nil
				twin := func() {
					w.add("aa", 0)
					s := w.secret("aa")
					s.Server, s.Created = server("c004"), w.in.Now
					change(s)
				}
				if w.run(2); early {
					twin()
				}
				w.run(3)
				anew := *w.secret("c004")
				w.remove("c004")
				if !early {
					twin()
				}
				w.run(1)
				anew.Created = w.in.Now
				w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, anew)
				w.run(30)
				if at := w.row(t, "c004"); at != 2 {
					t.Errorf("it is on replica %d, want 2 as before; problems %v", at, problems(w.last))
				}
			})
		}
	}
}

// TestNobodysOrphanTripsAnything: a cluster that opted out, and that its owner leaves without a replica, is no wave's doing.
func TestNobodysOrphanTripsAnything(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.add("own", 0)
	w.secret("own").Unmanaged, w.secret("own").Shard = true, discover.ShardValue{State: discover.ShardValid}
	for range 30 {
		w.step(time.Minute)
	}
	w.down[2] = true
	w.until(t, "replica 2 is empty, and at rest", time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
	delete(w.down, 2)
	w.secret("own").Shard = discover.ShardValue{State: discover.ShardNegative}
	for range 12 {
		w.step(time.Minute)
	}
	if found := problems(w.last); !slices.Contains(found, "ownership/Orphaned/own") || slices.Contains(found, "rollout/Tripped/") {
		t.Errorf("problems %v, want the orphan told of, and no trip", found)
	}
}

// TestNoOrphanOfOthersTripsAnything: an Application that names a cluster in a way that Argo CD does not find, or a Secret whose
// data.config it cannot read, makes an orphan at any time, and none that a wave made. One that was owned and is not any more does.
func TestNoOrphanOfOthersTripsAnything(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*liveWorld)
		trips  bool
	}{
		"an Application of a cluster that nobody had": {func(w *liveWorld) { delete(w.idle, "c001") }, false},
		"data.config that cannot be read":             {func(w *liveWorld) { w.secret("c000").Unread = true }, false},
		"a twin whose data.config cannot be read": {func(w *liveWorld) {
			w.add("zz", 0)
			w.secret("zz").Server, w.secret("zz").Unread, w.secret("zz").Unmanaged = server("c000"), true, true
		}, false},
		"a twin beyond those that are planned": {func(w *liveWorld) { w.secret("c000").Beside, w.in.Discovered.LeftOut = true, 1 }, false},
		"a twin that no replica has": {func(w *liveWorld) {
			w.add("zz", 0)
			w.secret("zz").Server, w.secret("zz").Unmanaged = server("c000"), true
			w.secret("zz").Shard = discover.ShardValue{State: discover.ShardNegative}
		}, false},
		"a twin that no replica has, behind 600 slashes": {func(w *liveWorld) {
			w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, secrets.FromSecret(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "zz", Annotations: map[string]string{plan.AnnotationUnmanaged: "true"}},
				Data:       map[string][]byte{"server": []byte(server("c000") + strings.Repeat("/", 600)), "name": []byte("zz"), "shard": []byte("-1")},
			}))
		}, false},
		"a twin that no replica has, and that is gone": {func(w *liveWorld) {
			w.add("zz", 0)
			w.secret("zz").Server, w.secret("zz").Unmanaged = server("c000")+"/", true
			w.secret("zz").Shard = discover.ShardValue{State: discover.ShardNegative}
			w.step(time.Minute)
			w.in.Discovered.Secrets = slices.DeleteFunc(w.in.Discovered.Secrets, func(s discover.Secret) bool { return s.Name == "zz" })
		}, false},
		"nothing of the kind": {func(*liveWorld) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.idle = map[string]bool{"c001": true}
			for range 30 {
				w.step(time.Minute)
			}
			w.down[2] = true
			w.until(t, "replica 2 is empty, and at rest", time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
			delete(w.down, 2)
			if test.change(w); !w.idle["c001"] {
				w.taken = map[string]bool{"c001": true}
			} else {
				w.taken = map[string]bool{"c000": true}
			}
			for range 12 {
				w.step(time.Minute)
			}
			found := problems(w.last)
			if tripped := slices.Contains(found, "rollout/Tripped/"); tripped != test.trips || !strings.Contains(strings.Join(found, " "), "ownership/Orphaned/c00") {
				t.Errorf("problems %v, want the orphan told of, and a trip: %t", found, test.trips)
			}
		})
	}
}

// TestTwinsBeyondThePlannedKeepNothingWaiting: of more Secrets than are planned somebody has one of each server, and Argo CD does
// nothing for a cluster that takes that one.
func TestTwinsBeyondThePlannedKeepNothingWaiting(t *testing.T) {
	for why, ends := range map[string]func(*liveWorld){
		"down":     func(w *liveWorld) { w.down[2] = true },
		"cordoned": func(w *liveWorld) { w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).Format(time.RFC3339) },
	} {
		t.Run(why, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			for range 30 {
				w.step(time.Minute)
			}
			w.in.Discovered.LeftOut = 100_000
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Beside = true
			}
			w.taken = map[string]bool{}
			w.breaks(w.on(2)[0])
			ends(w)
			w.until(t, "replica 2 is empty, and at rest", 30*time.Minute, func(out outcome.Outcome) bool {
				if out.Progress.Outcome == rollout.TurnedBack {
					t.Fatalf("turned back: %v", out.Progress)
				}
				return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil
			})
			if found := problems(w.last); !slices.Contains(found, "discover/TooMany/") {
				t.Errorf("problems %v, want one of too many Secrets", found)
			}
		})
	}
}

// TestASecretThatIsRefusedHoldsNoWave: what the API server lets nobody write, 1 MiB of data or another's policy, is waited for
// nowhere. A pin of it beyond the others began a wave that could not end before its deadline, and the failover after it no better.
func TestASecretThatIsRefusedHoldsNoWave(t *testing.T) {
	type course struct {
		UnderWay, HeldOff bool // for longer than the minutes that both changes take; after a failure
		Told              string
	}
	for name, test := range map[string]struct {
		barred   map[string]string
		deleting bool
		want     course
	}{
		"it is known": {map[string]string{"c003": "Invalid: data: Too long"}, false, course{Told: `ballast cannot write Secret "c003", so its cluster stays where it is, ` +
			`and nothing waits for it; it is tried again from time to time: Invalid: data: Too long`}},
		"it is being deleted": {nil, true, course{}},
		"nobody says so":      {nil, false, course{UnderWay: true, HeldOff: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			w.refuses, w.in.Barred = map[string]bool{"c003": true}, test.barred
			w.secret("c003").Deleting = test.deleting
			w.in.Pins = plan.Pins{"c003": 3} // beyond the three replicas
			underWay := 0
			for minute := range 35 {
				w.down[2] = minute > 5
				if w.step(time.Minute); w.in.InForce.Rollout != nil {
					underWay++
				}
			}
			got := course{UnderWay: underWay > 8, HeldOff: !w.in.Memory.HoldOff.IsZero(), Told: findProblem(w.last, "Unwritable").Message}
			if diff := cmp.Diff(test.want, got); diff != "" || len(w.on(2)) > 0 {
				t.Errorf("%d minutes under way, on the dead replica: %v (-want +got):\n%s", underWay, w.on(2), diff)
			}
		})
	}
}

// TestATwinKeepsNoReplicaByItsServersOwner: what nobody may write stays where its own Secret has it, not where the other of its server is.
func TestATwinKeepsNoReplicaByItsServersOwner(t *testing.T) {
	on1 := discover.ShardValue{State: discover.ShardValid, N: 1}
	for name, test := range map[string]struct {
		cluster discover.Cluster
		want    int
	}{
		"a twin, opted out":                 {discover.Cluster{Alone: true, Unmanaged: true, Explicit: on1}, 1},
		"a twin, opted out, without shard":  {discover.Cluster{Alone: true, Unmanaged: true}, plan.NoReplica}, // it follows the count
		"the only one, opted out":           {discover.Cluster{Unmanaged: true, Explicit: on1}, 4},
		"a twin on a replica beyond":        {discover.Cluster{Alone: true, Immutable: true, Explicit: discover.ShardValue{State: discover.ShardValid, N: 99}}, plan.NoReplica},
		"a twin that ballast may write too": {discover.Cluster{Follows: true, Explicit: on1}, plan.NoReplica},
	} {
		a := &ground.Ground{Fleet: discover.Fleet{Clusters: []discover.Cluster{test.cluster}}, Owners: []int{4}, Next: plan.Plan{Replicas: 5, MaxReplicas: 16}}
		if got := a.Fixed().To(0).At; got != test.want {
			t.Errorf("%s: on replica %d, want %d", name, got, test.want)
		}
	}
}

// TestAFleetAtZeroIsNamed where ballast does not bring it back: pods that are not there name no orphan.
func TestAFleetAtZeroIsNamed(t *testing.T) {
	const said = `StatefulSet "argocd-application-controller" has 0 replicas, so that nobody reconciles any of 3 clusters: scale it up, or see who scaled it down with ` + "`ballast audit`"
	for name, test := range map[string]struct {
		change func(*world)
		want   string
	}{
		"people's replicas, at 0": {func(w *world) {
			w.in.Config.Partition.Replicas, w.in.Workload.Replicas = &config.Replicas{Workload: true}, 0
		}, said},
		"people's replicas, at 1": {func(w *world) {
			w.in.Config.Partition.Replicas, w.in.Workload.Replicas = &config.Replicas{Workload: true}, 1
		}, ""},
		"opted out, at 0": {func(w *world) { w.in.Workload.Unmanaged, w.in.Workload.Replicas = true, 0 }, said},
		"without clusters": {func(w *world) {
			w.in.Workload.Replicas, w.in.Discovered.Secrets, w.in.Discovered.AcceptDiscovery = 0, nil, new(int)
		}, ""},
		"stopped by x0y": {func(w *world) {
			w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
			w.in.InForce.Replicas, w.in.InForce.Rollout = 0, &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: w.in.Now,
				From: plan.Count{Replicas: 2, ControllerReplicas: 2}, Replicas: 2, ControllerReplicas: 2}
			w.in.Workload.Replicas = 0
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(4, 2, 1)
			w.run(2)
			test.change(w)
			w.run(1)
			if got := findProblem(w.last, "NoReplicas").Message; got != test.want {
				t.Errorf("people are told %q, want %q", got, test.want)
			}
		})
	}
}

// TestAFleetAtZeroIsNamedBesideARefusedDiscovery: what is not seen may be there all the same, and has nobody either.
func TestAFleetAtZeroIsNamedBesideARefusedDiscovery(t *testing.T) {
	for name, left := range map[string]int{"two Secrets are left": 2, "none is": 0} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, skewed(24)...)
			w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
			w.run(2)
			w.in.Workload.Replicas, w.in.Discovered.Secrets = 0, w.in.Discovered.Secrets[:left]
			w.run(1)
			const want = `StatefulSet "argocd-application-controller" has 0 replicas, so that nobody reconciles any of 24 clusters: scale it up, or see who scaled it down with ` + "`ballast audit`"
			if got := findProblem(w.last, "NoReplicas").Message; got != want {
				t.Errorf("people are told %q, want %q", got, want)
			}
			if findProblem(w.last, "Shrunk").Message == "" {
				t.Error("the discovery was believed, so that this shows nothing")
			}
		})
	}
}

// TestAMissingKeyIsToldAsLongAsItIs, and keeps x0y from stopping anything.
func TestAMissingKeyIsToldAsLongAsItIs(t *testing.T) {
	const told = "this leader goes on by the key that it knows, the next one plans nothing, and rollout.x0y stops nothing meanwhile: it is gone"
	for name, test := range map[string]struct {
		rollout config.Rollout
		stopped bool
	}{
		"x0y":     {config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}, true},
		"default": {config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: config.Duration(10 * time.Minute)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, skewed(24)...)
			w.in.Config.Rollout, w.in.Config.Partition.Replicas = test.rollout, &config.Replicas{Fixed: 5}
			w.in.Keyless = "it is gone"
			begun := false
			for range 60 {
				w.step(time.Minute)
				begun = begun || w.in.InForce.Rollout != nil
				if got := findProblem(w.last, "KeyMissing").Message; got != told {
					t.Fatalf("people are told %q, want %q", got, told)
				}
			}
			if begun == test.stopped {
				t.Errorf("a rollout was begun: %v, want %v", begun, !test.stopped)
			}
			w.in.Keyless = ""
			w.until(t, "there are five replicas", 12*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas == 5 && w.in.InForce.Rollout == nil })
		})
	}
}

// TestARolloutOfTheWorkloadWithoutAnEndIsNamed: nothing fails over meanwhile, and people would not hear of a replica that died.
func TestARolloutOfTheWorkloadWithoutAnEndIsNamed(t *testing.T) {
	w := undecided(t, skewed(12)...)
	w.in.Cordon = ""
	w.step(time.Minute)
	w.in.Workload.UpdatedReplicas, w.down[1] = 1, true
	began := w.in.Now.Add(time.Minute)
	for minute := range 12 {
		out := w.step(time.Minute)
		want := ""
		if minute >= 10 {
			want = `StatefulSet "argocd-application-controller" rolls out since ` + began.Format(time.RFC3339) + `, and of its replicas [1] do not work: none is judged meanwhile, and nothing fails over; ` +
				"mend the rollout (kubectl rollout status, kubectl rollout undo), or empty them with `ballast evacuate 1`"
		}
		if got := findProblem(out, "WorkloadRollsOut").Message; got != want {
			t.Fatalf("minute %d: people are told %q, want %q", minute, got, want)
		}
	}
}
