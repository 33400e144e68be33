package controller_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/controller"
	"ballast/planner/plan"
)

// TestLoop runs every case against one real API server, each in its own namespace.
func TestLoop(t *testing.T) {
	server := anyServer.Start(t)
	for name, run := range map[string]func(*testing.T, *rest.Config){
		"Observe writes the plan once and touches nothing":            observes,
		"an idle hour writes no plan and little history":              idlesForAnHour,
		"Enforce writes present owners, then what was elected":        enforces24,
		"neither its readings nor its writes wake the loop":           wakesNoOtherCycle,
		"a person's write during a cycle is kept":                     keepsAWriteDuringACycle,
		"a plan that could not be written is elected again":           electsAgainAfterAFailedWrite,
		"another leader goes on where the last one stopped":           goesOn,
		"without the last leader's memory nothing is planned":         waitsForTheHistory,
		"who writes before each try keeps no plan from being written": writesBetweenWrites,
		"a history that somebody else wrote is written over at once":  keepsItsHistory,
		"a restored backup is replaced by the newest plan":            replacesABackup,
		"a broken plan is replaced by the newest one":                 replacesABrokenPlan,
		"a deleted plan comes back, also under another leader":        bringsAPlanBack,
		"what people wrote comes back with a deleted plan":            keepsPeoplesWords,
		"break-glass comes back with a deleted plan":                  keepsBreakGlass,
		"what people wrote ends with an uninstall":                    startsWithoutTheWordsOfBefore,
		"ConfigMaps that somebody locked are named with the mend":     namesLockedConfigMaps,
		"a cycle that does not end is a health check that fails":      failsItsHealthCheck,
		"a panic fails the cycle and nothing else":                    survivesAPanic,
		"a refused configuration is an event":                         tellsOfARefusedConfiguration,
		"a pin holds without a cycle":                                 pinsAtOnce,
		"a pin that no watch told of is not written back":             readsPinsBeforeItWrites,
		"in mode live whom a repair gives a cluster is woken":         wakesWhomItRepairs,
		"drift is repaired, told or not":                              repairsDrift,
		"break-glass stops every write at once":                       breaksTheGlass,
		"a workload at 0 is brought back":                             bringsTheWorkloadBack,
		"a second workload that fits stops nothing":                   staysWithItsWorkload,
		"a second writer is named":                                    namesASecondWriter,
		"a Secret that the API server refuses is named":               namesARefusedSecret,
		"a step that fails is tried again by its backoff":             triesAgain,
		"a Secret that may not be written is not hammered":            leavesWhatItMayNotWrite,
		"how things are is written as soon as they change":            saysHowThingsAre,
		"the next leader goes on with what the last one said":         keepsWhatTheLastLeaderSaid,
	} {
		t.Run(name, func(t *testing.T) { run(t, server) })
	}
}

func observes(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Observe, lognormal(3, 12)...)
	before := b.versions()
	l, _ := b.start()
	written := b.planMap().ResourceVersion
	b.cycles(l, 3)
	if diff := cmp.Diff(before, b.versions()); diff != "" {
		t.Errorf("something was touched (-before +after):\n%s", diff)
	}
	if p := b.plan(); p.Revision != 1 || p.Mode != plan.Observe || len(p.Clusters) != 12 || b.planMap().ResourceVersion != written {
		t.Errorf("the plan is revision %d, %s, with %d clusters; want revision 1, Observe, 12, written once", p.Revision, p.Mode, len(p.Clusters))
	}
	if got := b.told("PlanWritten"); len(got) != 1 || got[0] != "revision 1: took over the fleet as it is: 12 clusters on 3 replicas; the references of apps are taken anew at 2026-11-20T12:10:00Z if they are not what is usual" {
		t.Errorf("PlanWritten events: %q", got)
	}
	if got := b.told("LeaderElected"); len(got) != 1 || got[0] != "planner-0 plans from here on; there is no plan yet" {
		t.Errorf("LeaderElected events: %q", got)
	}
}

func idlesForAnHour(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(4, 12)...)
	l, _ := b.start()
	b.cycles(l, 30) // long enough to come to the elected plan
	if r := b.plan().Rollout; r != nil {
		t.Fatalf("the rollout is still in %s", r.Stage)
	}
	written, others := b.planMap().ResourceVersion, b.versions()
	savedAt := map[string]bool{}
	var history corev1.ConfigMap
	writes := b.tried("patch ballast-history")
	for range 60 {
		b.cycles(l, 1)
		b.get(&history, "ballast-history")
		savedAt[history.Data["savedAt"]] = true
	}
	if got := b.planMap().ResourceVersion; got != written {
		t.Errorf("an idle hour took the plan from version %s to %s", written, got)
	}
	if diff := cmp.Diff(others, b.versions()); diff != "" {
		t.Errorf("an idle hour touched Secrets or the workload:\n%s", diff)
	}
	if n := b.tried("patch ballast-history") - writes; n != 12 || len(savedAt) > 13 {
		t.Errorf("an idle hour wrote the history %d times (%d states), want 12: every five minutes", n, len(savedAt))
	}
}

func enforces24(t *testing.T, server *rest.Config) {
	b := newLopsidedBed(t, server, lognormal(5, 24)...)
	present := map[string]string{}
	for name, owner := range b.present() {
		present[name] = strconv.Itoa(owner)
	}
	l, _ := b.start()
	b.eventually("every Secret carries its present owner", func() bool { return cmp.Equal(present, b.shards()) })
	b.cycles(l, 8) // the first cycle made the plan and voted, as each of these does
	if diff := cmp.Diff(present, b.shards()); diff != "" || b.plan().Revision != 1 {
		t.Errorf("something moved on 9 samples (revision %d):\n%s", b.plan().Revision, diff)
	}
	b.cycles(l, 12)
	p := b.plan()
	if p.Rollout != nil || cmp.Equal(present, b.planned()) {
		t.Fatalf("revision %d moved nothing, or is under way still: %+v", p.Revision, p.Rollout)
	}
	if diff := cmp.Diff(b.planned(), b.shards()); diff != "" {
		t.Errorf("shards (-plan +Secrets):\n%s", diff)
	}
	set := b.workload()
	if env := set.Spec.Template.Spec.Containers[0].Env[0].Value; int(*set.Spec.Replicas) != p.Replicas || env != strconv.Itoa(p.ControllerReplicas) {
		t.Errorf("the workload has %d replicas, env %s; the plan %d and %d", *set.Spec.Replicas, env, p.Replicas, p.ControllerReplicas)
	}
	if got := b.told("RolloutFinished"); len(got) != 1 {
		t.Errorf("RolloutFinished events: %q", got)
	}
	if got := b.told("PlanWritten"); int64(len(got)) != p.Revision {
		t.Errorf("%d PlanWritten events for %d revisions: %q", len(got), p.Revision, got)
	}
}

// wakesNoOtherCycle: a loop that woke itself would vote every second instead of every minute.
func wakesNoOtherCycle(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	for range 2 {
		b.seen(l) // what the watch tells is what the loop wrote or read itself
		b.idle(l)
		b.clock.Step(quiet)
		b.idle(l)
		b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] += "# a comment\n" })
		b.cycles(l, 1) // reads it before any watch tells
	}
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 2\n" })
	b.cycles(l, 1)
	b.seen(l)
	b.idle(l)
	b.clock.Step(quiet)
	b.idle(l)
	if got := b.prometheus.asked(); got != 4 {
		t.Errorf("%d cycles, want 4: the first, and one at each interval", got)
	}
}

func keepsAWriteDuringACycle(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	b.addCluster("new", 5)
	b.prometheus.once(func() {
		b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c001: 2 # mine\n" })
	})
	tried := b.tried("patch ballast-plan")
	b.clock.Step(time.Duration(b.config.Interval)) // the cycle reads the plan before the edit, and would write it after
	b.eventually("it is decided anew by what the person wrote", func() bool { return b.plan().Revision == 2 })
	if n := b.tried("patch ballast-plan") - tried; n != 2 {
		t.Errorf("%d writes, want one that lost the race and one that went by the pin", n)
	}
	b.quieten(l)
	b.idle(l)
	if got := b.planMap().Data[plan.KeyPins]; got != "c001: 2 # mine\n" {
		t.Errorf("the pins are %q", got)
	}
	if row := b.plan().Clusters["c001"]; row.Replica != 2 || !row.Pinned || b.shards()["c001"] != "2" {
		t.Errorf("the row is %+v, the Secret's shard %s; want 2, pinned", row, b.shards()["c001"])
	}
}

func electsAgainAfterAFailedWrite(t *testing.T, server *rest.Config) {
	b := newLopsidedBed(t, server, lognormal(5, 24)...)
	b.config.Evaluate.MostWanted.MinSamples = 5 // the window, of ten samples, decides
	l, _ := b.start()
	b.cycles(l, 8)
	b.fail("patch ballast-plan", errors.New("the API server is away"))
	b.cycles(l, 1) // the tenth sample elects, and cannot be written
	if p := b.plan(); p.Revision != 1 || b.tried("patch ballast-plan") != 1 {
		t.Fatalf("revision %d after %d writes, want 1 after one that failed", p.Revision, b.tried("patch ballast-plan"))
	}
	b.fail("patch ballast-plan", nil)
	b.cycles(l, 1)
	if p := b.plan(); p.Revision != 2 || p.Rollout == nil {
		t.Errorf("revision %d, rollout %v: the vote was lost with the write", p.Revision, p.Rollout)
	}
}

func goesOn(t *testing.T, server *rest.Config) {
	b := newLopsidedBed(t, server, lognormal(5, 24)...)
	first, end := b.start()
	b.cycles(first, 5) // the history is written again at the fifth minute
	end()
	before := b.saved()
	written, others := b.planMap().ResourceVersion, b.versions()
	b.clock.Step(time.Duration(b.config.Interval)) // a vote counts time, not cycles
	second, _ := b.start()
	if got := len(before.Votes.Ballots); got != 6 {
		t.Errorf("the first leader left %d votes, want 6", got)
	}
	if got := b.told("LeaderElected"); len(got) != 2 || got[1] != "planner-0 plans from here on, from revision 1" {
		t.Errorf("LeaderElected events: %q", got)
	}
	b.cycles(second, 2)
	if got := b.planMap().ResourceVersion; got != written {
		t.Errorf("the change of leaders wrote the plan: version %s to %s", written, got)
	}
	if diff := cmp.Diff(others, b.versions()); diff != "" {
		t.Errorf("the change of leaders touched Secrets or the workload:\n%s", diff)
	}
	b.cycles(second, 1)
	if b.plan().Rollout == nil {
		t.Error("ten votes, six of them the first leader's, elected nothing")
	}
	if diff := cmp.Diff(before.Known, b.saved().Known); diff != "" {
		t.Errorf("what is known of the fleet (-first +second):\n%s", diff)
	}
}

func waitsForTheHistory(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	b.fail("get ballast-history", errors.New("the API server is away"))
	l, _ := b.start()
	b.clock.Step(time.Duration(b.config.Interval))
	b.eventually("it is asked for again", func() bool { return b.tried("get ballast-history") == 2 })
	b.idle(l)
	var cm corev1.ConfigMap
	err := b.client.Get(b.ctx, client.ObjectKey{Namespace: b.namespace, Name: "ballast-plan"}, &cm)
	if !apierrors.IsNotFound(err) || b.prometheus.asked() != 0 || len(b.told("LeaderElected")) != 0 {
		t.Errorf("something was planned without the history: %v", err)
	}
	b.fail("get ballast-history", nil)
	b.cycles(l, 1)
	if p := b.plan(); p.Revision != 1 || len(b.told("LeaderElected")) != 1 {
		t.Errorf("revision %d, elected %q", p.Revision, b.told("LeaderElected"))
	}
}

// writesBetweenWrites: what was gathered took seconds, and a write a second would undo each cycle. What is decided goes by the newest
// pins all the same.
func writesBetweenWrites(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	b.idle(l)
	before, asked, tried := b.plan().Revision, b.prometheus.asked(), b.tried("patch ballast-plan")
	b.meddle = map[string]func(int){"patch ballast-plan": func(tries int) {
		if n := tries - tried; n < mostTries {
			b.edit(func(cm *corev1.ConfigMap) {
				annotate(cm, "example.org/x", strconv.Itoa(n))
				cm.Data[plan.KeyPins] = fmt.Sprintf("c000: %d\n", n%3)
			})
		}
	}}
	b.addCluster("new", 5)
	b.clock.Step(time.Duration(b.config.Interval))
	b.eventually("a cycle at the interval", func() bool { return b.prometheus.asked() > asked })
	b.calm(l) // the repairs that ran beside its tries may have woken the next one
	p, pinned := b.plan(), (mostTries-1)%3
	if p.Revision != before+1 || p.Clusters["c000"].Replica != pinned || len(p.Clusters) != 4 {
		t.Errorf("revision %d after %d with %d clusters, c000 on %d; want the next one with 4, c000 on %d", p.Revision, before, len(p.Clusters), p.Clusters["c000"].Replica, pinned)
	}
	if n, once := b.tried("patch ballast-plan")-tried, b.prometheus.asked()-asked; n != mostTries || once != 1 {
		t.Errorf("%d tries and Prometheus asked %d times, want %d and once", n, once, mostTries)
	}
}

func keepsItsHistory(t *testing.T, server *rest.Config) {
	for name, disturb := range map[string]func(*bed, *corev1.ConfigMap){
		"written": func(b *bed, cm *corev1.ConfigMap) {
			annotate(cm, "example.org/note", "kept")
			delete(cm.BinaryData, "votes")
			b.must(b.client.Update(b.ctx, cm))
		},
		"annotated": func(b *bed, cm *corev1.ConfigMap) {
			annotate(cm, "example.org/note", "kept")
			b.must(b.client.Update(b.ctx, cm))
		},
		"deleted": func(b *bed, cm *corev1.ConfigMap) { b.must(b.client.Delete(b.ctx, cm)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, server, plan.Hold, 3, 2, 1)
			l, _ := b.start()
			var history corev1.ConfigMap
			b.get(&history, "ballast-history")
			disturb(b, &history)
			b.cycles(l, 1) // nothing is decided in it: what somebody else did is enough
			b.get(&history, "ballast-history")
			accused := 1
			if name == "annotated" { // which says nothing else of the past
				accused = 0
			}
			if told := b.told("HistoryReplaced"); len(told) != accused || history.BinaryData["votes"] == nil {
				t.Errorf("a cycle later the history has %v; told: %q", namesIn(history.BinaryData), told)
			}
			b.addCluster("new", 5)
			b.cycles(l, 1)
			b.get(&history, "ballast-history")
			want := []string{"plan.1.json.gz", "plan.2.json.gz"}
			var got []string
			for _, key := range namesIn(history.BinaryData) {
				if strings.HasPrefix(key, "plan.") {
					got = append(got, key)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plans in the history (-want +got):\n%s", diff)
			}
			if name != "deleted" && history.Annotations["example.org/note"] != "kept" {
				t.Error("the other writer's annotation is gone")
			}
		})
	}
}

func replacesABackup(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	backup := b.planMap()
	b.addCluster("new", 5)
	b.cycles(l, 1)
	newest := b.plan()
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data, cm.Annotations = backup.Data, backup.Annotations
		cm.Data[plan.KeyPins] = "c000: 1\n"
	})
	b.seen(l)
	b.quieten(l)
	b.eventually("it is replaced after a second", func() bool { return b.plan().Revision == newest.Revision+1 })
	p := b.plan()
	if _, known := p.Clusters["new"]; !known || b.planMap().Data[plan.KeyPins] != "c000: 1\n" || p.Clusters["c000"] != (plan.Row{Replica: 1, Load: p.Clusters["c000"].Load, Server: p.Clusters["c000"].Server, Pinned: true}) {
		t.Errorf("rows %+v; want the newest plan's, with the pin that came with the backup", p.Clusters)
	}
	if reason := b.planMap().Annotations[plan.AnnotationReason]; !strings.HasPrefix(reason, "put back the last plan") {
		t.Errorf("the reason is %q", reason)
	}
}

func replacesABrokenPlan(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	before, shards := b.plan(), b.shards()
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPlan] = strings.NewReplacer("replica: 0", "replica: 1", "replica: 1", "replica: 2", "replica: 2", "replica: 0").Replace(cm.Data[plan.KeyPlan])
	})
	b.seen(l)
	b.quieten(l)
	b.eventually("it is replaced after a second", func() bool { return b.planMap().Annotations[plan.AnnotationRevision] == "2" })
	b.idle(l)
	if p := b.plan(); !p.SameEnforced(before) {
		t.Errorf("the mended plan differs from the last good one:\n%s", cmp.Diff(before, p))
	}
	if diff := cmp.Diff(shards, b.shards()); diff != "" {
		t.Errorf("what nobody decided was written to Secrets:\n%s", diff)
	}
}

func bringsAPlanBack(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(5, 24)...)
	first, end := b.start()
	b.cycles(first, 25)
	want := b.plan()
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(first, 1)
	if p := b.plan(); !p.SameEnforced(want) || p.Revision != want.Revision+1 {
		t.Errorf("what came back is revision %d and differs (want %d):\n%s", p.Revision, want.Revision+1, cmp.Diff(want, p))
	}
	end()
	b.must(b.client.Delete(b.ctx, b.planMap()))
	others := b.versions()
	second, _ := b.start()
	if p := b.plan(); !p.SameEnforced(want) || p.Revision != want.Revision+2 {
		t.Errorf("what another leader made of the history is revision %d and differs (want %d):\n%s", p.Revision, want.Revision+2, cmp.Diff(want, p))
	}
	b.cycles(second, 1)
	if diff := cmp.Diff(others, b.versions()); diff != "" {
		t.Errorf("Secrets or the workload were touched:\n%s", diff)
	}
}

// startsWithoutTheWordsOfBefore: what people told an installation that was taken out ends with it, unless the plan stands with it.
func startsWithoutTheWordsOfBefore(t *testing.T, server *rest.Config) {
	for name, c := range map[string]struct {
		forgets, deleted bool
		want             string // what stands with the next installation
	}{
		"uninstall --keep-plan, and the plan stands":  {true, false, "c003: 0 true an orphan"},
		"uninstall --keep-plan, and it was deleted":   {true, true, ""},
		"no uninstall: whoever deletes takes nothing": {false, true, "c003: 0 true an orphan"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, server, plan.Enforce, 3, 2, 1, 1)
			first, end := b.start()
			b.cycles(first, 2)
			b.edit(func(cm *corev1.ConfigMap) {
				cm.Data[plan.KeyPins] = "c003: 0"
				annotate(cm, plan.AnnotationPaused, "true")
				annotate(cm, plan.AnnotationTripped, "an orphan")
			})
			b.cycles(first, 2)
			end()
			if c.forgets {
				b.must(first.Store.ForgetWords(b.ctx))
			}
			if c.deleted {
				b.must(b.client.Delete(b.ctx, b.planMap()))
			}
			next, _ := b.start()
			b.cycles(next, 2)
			cm := b.planMap()
			got := strings.TrimSpace(cm.Data[plan.KeyPins] + " " + cm.Annotations[plan.AnnotationPaused] + " " + cm.Annotations[plan.AnnotationTripped])
			if got != c.want {
				t.Errorf("there stands %q, want %q", got, c.want)
			}
			if told := b.told("HistoryDropped"); len(told) > 0 {
				t.Errorf("the history is not whole: %q", told)
			}
		})
	}
}

// keepsPeoplesWords: whoever deletes the plan ConfigMap takes back nothing that stands in it, not even from the next leader; whoever
// edits it does.
func keepsPeoplesWords(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(5, 24)...)
	first, end := b.start()
	b.eventually("every Secret is stamped", func() bool { return b.shards()["c003"] != "" })
	pinned := "0"
	until := b.clock.Now().Add(6 * time.Hour).UTC().Format(time.RFC3339)
	written := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "an upgrade", plan.AnnotationPausedBy: "ann",
		plan.AnnotationCordon: "1=" + until, plan.AnnotationTripped: "wave 3 left an orphan"}
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPins] = "c003: " + pinned + " # near its repositories\n"
		for name, value := range written {
			annotate(cm, name, value)
		}
		annotate(cm, plan.AnnotationAcceptDiscovery, "7")
	})
	b.cycles(first, 1)
	stands := func(when string) {
		t.Helper()
		cm := b.planMap()
		got := map[string]string{}
		for name := range written {
			got[name] = cm.Annotations[name]
		}
		if diff := cmp.Diff(written, got); diff != "" || cm.Data[plan.KeyPins] != "c003: "+pinned+" # near its repositories\n" {
			t.Errorf("%s the pins are %q, and the annotations (-want +got):\n%s", when, cm.Data[plan.KeyPins], diff)
		}
		if asked, again := cm.Annotations[plan.AnnotationAcceptDiscovery]; again {
			t.Errorf("%s a discovery of %s is accepted anew", when, asked)
		}
	}
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(first, 1)
	stands("after the plan was deleted")
	b.cycles(first, 90) // with votes enough to level, if it were not frozen
	for name, row := range b.plan().Clusters {
		if at := b.shards()[name]; row.Replica == 1 || strconv.Itoa(row.Replica) != at || name == "c003" && at != pinned {
			t.Errorf("%s is on %s, its row %+v: replica 1 is cordoned, and c003 is pinned to %s", name, at, row, pinned)
		}
	}
	if why := b.planMap().Annotations[plan.AnnotationReason]; !strings.Contains(why, "empties replica 1 as asked") {
		t.Errorf("the last plan stands because %q", why)
	}
	if told := b.told("WordsPutBack"); len(told) != 1 || !strings.Contains(told[0], "\"ballast-plan\"") {
		t.Errorf("people heard %q", told)
	}
	end()
	b.must(b.client.Delete(b.ctx, b.planMap()))
	second, _ := b.start()
	stands("with another leader")
	b.edit(func(cm *corev1.ConfigMap) {
		delete(cm.Data, plan.KeyPins)
		for name := range written {
			delete(cm.Annotations, name)
		}
	})
	b.cycles(second, 1)
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(second, 1)
	cm := b.planMap()
	if cm.Data[plan.KeyPins] != "" || cm.Annotations[plan.AnnotationPaused] != "" || cm.Annotations[plan.AnnotationCordon] != "" {
		t.Errorf("what a person took away came back: pins %q, %v", cm.Data[plan.KeyPins], cm.Annotations)
	}
}

// keepsBreakGlass: whoever deletes the plan ConfigMap has nobody enforce it again, the next leader neither; whoever takes the annotation
// away does.
func keepsBreakGlass(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, 3, 2, 1)
	first, end := b.start()
	b.eventually("every Secret is stamped", func() bool { return b.shards()["c002"] != "" })
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationEnforcement, "off") })
	b.cycles(first, 1)
	written := strconv.Itoa((b.plan().Clusters["c001"].Replica + 1) % 3)
	b.stamp("c001", written, "ann")
	stands := func(when, glass, shard string) {
		t.Helper()
		if got := b.planMap().Annotations[plan.AnnotationEnforcement]; got != glass || b.shards()["c001"] != shard {
			t.Errorf("%s enforcement is %q and the shard %s, want %q and %s", when, got, b.shards()["c001"], glass, shard)
		}
	}
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(first, 3)
	stands("after the plan was deleted", "off", written)
	end()
	b.must(b.client.Delete(b.ctx, b.planMap()))
	second, _ := b.start()
	b.cycles(second, 3)
	stands("with another leader", "off", written)
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.AnnotationEnforcement) })
	b.cycles(second, 3)
	stands("once a person took it away", "", b.shards()["c001"])
	at := strconv.Itoa(b.plan().Clusters["c001"].Replica)
	b.eventually("the plan is enforced again", func() bool { return b.shards()["c001"] == at })
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(second, 2)
	stands("and after another deletion", "", at)
}

func namesLockedConfigMaps(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	lock := func(name string) {
		var cm corev1.ConfigMap
		b.get(&cm, name)
		cm.Immutable = ptr.To(true)
		b.must(b.client.Update(b.ctx, &cm))
	}
	lock("ballast-plan")
	b.addCluster("new", 5)
	b.cycles(l, 3)
	want := []string{fmt.Sprintf("ConfigMap \"ballast-plan\" is immutable, so that nothing is written to it any more: "+
		"delete it (kubectl -n %s delete configmap ballast-plan; where it stays, take its finalizers out), and ballast makes it anew", b.namespace)}
	if diff := cmp.Diff(want, b.told("Immutable")); diff != "" {
		t.Errorf("told of the plan (-want +got):\n%s", diff)
	}
	if _, known := b.plan().Clusters["new"]; known {
		t.Fatal("the plan was written: it is not locked")
	}
	b.must(b.client.Delete(b.ctx, b.planMap()))
	b.cycles(l, 1)
	if _, known := b.plan().Clusters["new"]; !known || b.plan().Revision != 2 {
		t.Errorf("what came back is revision %d with %v, want 2, with the new cluster", b.plan().Revision, b.plan().Clusters)
	}
	lock("ballast-history")
	b.addCluster("newer", 5)
	b.cycles(l, 2)
	want = append(want, fmt.Sprintf("ConfigMap \"ballast-history\" is immutable, so that nothing is written to it any more: delete it (kubectl -n %s delete configmap ballast-history; where it stays, take its finalizers out), and ballast makes it anew", b.namespace))
	if diff := cmp.Diff(want, b.told("Immutable")); diff != "" {
		t.Errorf("told of both (-want +got):\n%s", diff)
	}
	var history corev1.ConfigMap
	b.get(&history, "ballast-history")
	b.must(b.client.Delete(b.ctx, &history))
	b.cycles(l, 2)
	history = corev1.ConfigMap{}
	b.get(&history, "ballast-history")
	if history.Immutable != nil || history.BinaryData["plan.3.json.gz"] == nil {
		t.Errorf("the history has %v, immutable: %v", namesIn(history.BinaryData), history.Immutable)
	}
}

func failsItsHealthCheck(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	hung, release := make(chan struct{}), make(chan struct{})
	b.prometheus.once(func() { close(hung); <-release })
	l, _ := b.launch() // its first cycle is the one that hangs
	<-hung
	for _, test := range []struct {
		after time.Duration
		want  string
	}{
		{4 * time.Minute, "<nil>"}, // 3 intervals and 10 timeouts of 10 s are 4m40s
		{40 * time.Second, "<nil>"},
		{time.Second, "no cycle has ended for 4m41s, more than 4m40s"},
	} {
		b.clock.Step(test.after)
		if got := fmt.Sprint(l.Alive()); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	close(release)
	b.eventually("it is well when the cycle ended", func() bool { return l.Alive() == nil })
	b.idle(l)
	standby := controller.NewLoop(l.Options)
	b.clock.Step(time.Hour)
	b.must(standby.Alive())
}

func tellsOfARefusedConfiguration(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	l.ConfigChanged(errors.New("poll.maxDrop: 900% is above 100%"))
	want := []string{"the new configuration is refused and the last good one stays in force: poll.maxDrop: 900% is above 100%"}
	if diff := cmp.Diff(want, b.told("ConfigRefused")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ran := cycled(l)
	l.ConfigChanged(nil)
	b.quieten(l)
	b.eventually("a new configuration runs a cycle", func() bool { return cycled(l) == ran+1 })
	b.idle(l)
}

type secretValue string

// survivesAPanic: one bad input must not end the process, at each start anew; and what a panic says may come from a
// Secret.
func survivesAPanic(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ := b.start()
	before, shards := b.planMap().ResourceVersion, b.shards()
	var logged strings.Builder
	l.Log = funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{Verbosity: 1})
	for range 2 {
		b.prometheus.once(func() { panic(secretValue("CANARY")) })
		b.cycles(l, 1)
	}
	want := []string{`ballast met a fault of its own, a panic of type controller_test.secretValue in phase "fetch"; the plan in force stays enforced, and it is tried again. ` +
		"Please report it with the stack, which the planner logs with --verbosity 1"}
	if diff := cmp.Diff(want, b.told("Panicked")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(l.Metrics.Work.Errors.WithLabelValues("fetch")); n != 2 {
		t.Errorf("%v errors of phase fetch were counted, want 2", n)
	}
	if n := testutil.ToFloat64(l.Metrics.Panics.WithLabelValues("fetch")); n != 2 || testutil.ToFloat64(l.Metrics.Cycles.WithLabelValues("failed")) != 2 {
		t.Errorf("%v panics were counted, and %v failed cycles; want 2 and 2", n, testutil.ToFloat64(l.Metrics.Cycles.WithLabelValues("failed")))
	}
	if text := logged.String(); strings.Contains(text, "CANARY") || !strings.Contains(text, "survivesAPanic") {
		t.Errorf("the log has the panic's value, or no stack: %s", text)
	}
	if diff := cmp.Diff(shards, b.shards()); diff != "" || b.planMap().ResourceVersion != before {
		t.Errorf("the plan or the shards changed (-before +after):\n%s", diff)
	}
	b.addCluster("new", 5)
	b.cycles(l, 1)
	if row, planned := b.plan().Clusters["new"]; !planned {
		t.Errorf("the next cycle did not plan the new cluster: %+v", row)
	}
	b.prometheus.once(func() { panic(secretValue("CANARY")) })
	b.cycles(l, 1)
	if got := b.told("Panicked"); len(got) != 2 {
		t.Errorf("%d events after a good cycle and another panic, want 2", len(got))
	}
}
