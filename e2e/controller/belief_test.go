package controller_test

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/controller/gather"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/sharding"
)

// forgeries are what somebody who may write the plan ConfigMap, and nothing else, could make of a plan with the next revision.
func forgeries() map[string]func(*plan.Plan) {
	return map[string]func(*plan.Plan){
		"env 1":        func(p *plan.Plan) { p.ControllerReplicas = 1 },
		"replicas 0":   func(p *plan.Plan) { p.Replicas = 0 },
		"replicas 900": func(p *plan.Plan) { p.Replicas, p.MaxReplicas = 900, 999 },
		"all on 0": func(p *plan.Plan) {
			for name, row := range p.Clusters {
				row.Replica = 0
				p.Clusters[name] = row
			}
		},
		"x0y draining for ever": func(p *plan.Plan) {
			p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
				From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 3, ControllerReplicas: 3}
			p.Replicas = 0
		},
		"the last revision of all": func(p *plan.Plan) { p.Revision, p.ControllerReplicas = plan.MaxRevision, 1 },
	}
}

// stands is what ballast writes to, beside the plan.
type stands struct {
	Replicas int32
	Env      string
	Shards   map[string]string
}

func (b *bed) stands() stands {
	b.Helper()
	set := b.workload()
	return stands{*set.Spec.Replicas, set.Spec.Template.Spec.Containers[0].Env[0].Value, b.shards()}
}

// forge puts a plan into the ConfigMap as a person could, with its digest and whatever else is given.
func (b *bed) forge(p plan.Plan, annotations map[string]string) {
	b.Helper()
	text, err := codec.Encode(p)
	b.must(err)
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPlan], cm.Annotations[plan.AnnotationDigest] = text, plan.Digest(text)
		maps.Copy(cm.Annotations, annotations)
	})
}

func TestNoPlanIsBelievedThatNoPlannerWrote(t *testing.T) {
	server := anyServer.Start(t)
	for name, forge := range forgeries() {
		t.Run(name, func(t *testing.T) { refusesAForgery(t, server, forge) })
	}
	t.Run("the alias bomb, with its digest", func(t *testing.T) { refusesABomb(t, server) })
	t.Run("one of another installation", func(t *testing.T) { refusesAnotherInstallations(t, server) })
	t.Run("one with its history, of another installation", func(t *testing.T) { refusesAWholeBackupFromElsewhere(t, server) })
	t.Run("an older one, before the new leader's first cycle", func(t *testing.T) { repairsNothingUnjudged(t, server) })
	t.Run("without the key's Secret nothing is planned, and people hear why", func(t *testing.T) { saysThatTheKeyIsMissing(t, server) })
	t.Run("without the key no fleet stays stopped", func(t *testing.T) { bringsBackWithoutTheKey(t, server) })
	t.Run("whoever leads next without the key goes on with what was begun", func(t *testing.T) { goesOnWithoutTheKey(t, server) })
	t.Run("a key that somebody wiped comes back", func(t *testing.T) { bringsTheKeyBack(t, server) })
	t.Run("a key that somebody chose is none", func(t *testing.T) { refusesAChosenKey(t, server) })
}

func refusesAForgery(t *testing.T, server *rest.Config, forge func(*plan.Plan)) {
	b := newBed(t, server, plan.Enforce, 5, 4, 3, 2, 1, 1)
	l, _ := b.start()
	b.cycles(l, 3)
	before, want := b.plan(), b.stands()
	forged := before.Clone()
	forged.Revision++
	forge(&forged)
	b.forge(forged, map[string]string{plan.AnnotationEnforcement: "off"})
	b.seen(l)
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.AnnotationEnforcement) })
	b.seen(l)
	b.quieten(l)
	b.eventually("the own plan is put back", func() bool { return b.plan().SameEnforced(before) })
	b.idle(l)
	b.cycles(l, 3)
	if diff := cmp.Diff(want, b.stands()); diff != "" {
		t.Errorf("what the forgery wrote (-want +got):\n%s", diff)
	}
	if p := b.plan(); !p.SameEnforced(before) || p.Revision <= before.Revision || p.Revision > before.Revision+3 {
		t.Errorf("revision %d after %d and another plan:\n%s", p.Revision, before.Revision, cmp.Diff(before, p))
	}
	if told := b.told(belief.PlanForeign); len(told) != 1 || !strings.Contains(told[0], "written by nobody of this installation") {
		t.Errorf("people were told %q", told)
	}
	if n := testutil.ToFloat64(l.Metrics.PlanRefused.WithLabelValues(belief.PlanForeign)); n != 1 {
		t.Errorf("counted %v times, want once", n)
	}
}

// refusesABomb stores 52 KB that a YAML library makes 600 MiB of.
func refusesABomb(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, 3, 2, 1)
	l, _ := b.start()
	b.cycles(l, 3)
	before, want := b.plan(), b.stands()
	bomb := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nz: &z \"" + strings.Repeat("a", 32<<10) + "\"\ny: [" + strings.Repeat("*z,", 6<<10) + "]\n"
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPlan], cm.Annotations[plan.AnnotationDigest] = bomb, plan.Digest(bomb)
	})
	b.seen(l)
	b.cycles(l, 1)
	b.idle(l)
	runtime.ReadMemStats(&is)
	if made := (is.TotalAlloc - was.TotalAlloc) >> 20; made > 256 {
		t.Errorf("%d MiB were made of it", made)
	}
	if p := b.plan(); !p.SameEnforced(before) {
		t.Errorf("another plan is put back (-want +got):\n%s", cmp.Diff(before, p))
	}
	if diff := cmp.Diff(want, b.stands()); diff != "" {
		t.Errorf("what the bomb wrote (-want +got):\n%s", diff)
	}
}

// refusesAnotherInstallations restores what another installation wrote, MAC and all.
func refusesAnotherInstallations(t *testing.T, server *rest.Config) {
	other := newBed(t, server, plan.Enforce, 1, 2, 3, 4, 5, 6)
	l, end := other.start()
	other.cycles(l, 3)
	foreign := other.planMap()
	end()
	b := newBed(t, server, plan.Enforce, 5, 4, 3, 2, 1, 1)
	l, _ = b.start()
	b.cycles(l, 3)
	before, want := b.plan(), b.stands()
	b.edit(func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = foreign.Data, foreign.Annotations })
	b.seen(l)
	b.quieten(l)
	b.eventually("the own plan is put back", func() bool { return b.plan().SameEnforced(before) })
	b.idle(l)
	if diff := cmp.Diff(want, b.stands()); diff != "" {
		t.Errorf("what another installation's plan wrote (-want +got):\n%s", diff)
	}
}

// refusesAWholeBackupFromElsewhere restores a plan, its history and the key's Secret into a namespace with another fleet, as
// Velero would. The first plan there is that fleet as it is.
func refusesAWholeBackupFromElsewhere(t *testing.T, server *rest.Config) {
	other := newBed(t, server, plan.Enforce, lognormal(6, 24)...)
	l, end := other.start()
	other.cycles(l, 25)
	end()
	b := newBed(t, server, plan.Hold, 1, 1, 1, 1)
	for _, name := range []string{"ballast-plan", "ballast-history"} {
		cm := &corev1.ConfigMap{}
		other.get(cm, name)
		restored := &corev1.ConfigMap{Data: cm.Data, BinaryData: cm.BinaryData}
		restored.Namespace, restored.Name, restored.Annotations = b.namespace, name, cm.Annotations
		b.must(b.client.Create(b.ctx, restored))
	}
	key, restored := &corev1.Secret{}, &corev1.Secret{}
	other.get(key, keySecret)
	b.get(restored, keySecret)
	restored.Data = key.Data
	b.must(b.client.Update(b.ctx, restored))
	revision := other.plan().Revision
	l, _ = b.start()
	b.cycles(l, 1)
	p := b.plan()
	replicas := map[string]int{}
	for name, row := range p.Clusters {
		replicas[name] = row.Replica
	}
	// Argo CD's legacy algorithm, by the UIDs of this fleet's own Secrets.
	want := map[string]int{}
	in, w, err := gather.Look(b.ctx, b.client, b.config, discover.Known{}, nil)
	b.must(err)
	fleet := standing.Fleet(input.Inputs{Discovered: in})
	for i, owner := range sharding.Owners(fleet.Clusters, sharding.Legacy, 3, nil) {
		if !fleet.Clusters[i].Implicit {
			want[fleet.Clusters[i].Shard.ID] = owner
		}
	}
	if diff := cmp.Diff(want, replicas); diff != "" || p.Replicas != w.Replicas {
		t.Errorf("%d replicas, rows (-as it is +got):\n%s", p.Replicas, diff)
	}
	if p.Revision <= revision {
		t.Errorf("revision %d after %d", p.Revision, revision)
	}
	if told := b.told(belief.PlanForeign); len(told) != 1 {
		t.Errorf("people were told %q", told)
	}
	if told := b.told("HistoryDropped"); len(told) != 1 || !strings.Contains(told[0], "is not this installation's own: its MAC is missing or wrong") {
		t.Errorf("of the history people were told %q", told)
	}
}

// repairsNothingUnjudged puts an older plan back while no planner leads. Repairs are faster than cycles, and must not be.
func repairsNothingUnjudged(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, end := b.start()
	b.cycles(l, 1)
	older := b.planMap()
	to := (b.plan().Clusters["c000"].Replica + 1) % 3
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: " + string(rune('0'+to)) + "\n" })
	b.seen(l)
	b.quieten(l)
	b.eventually("the pin is in force", func() bool { return b.shards()["c000"] == string(rune('0'+to)) })
	b.idle(l)
	end()
	want, writes := b.stands(), b.tried("patch c000")
	b.edit(func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = older.Data, older.Annotations })
	standby := b.newLoop() // a watch tells it of the plan long before its first cycle
	b.must(standby.Store.Unseal(b.ctx))
	b.seen(standby)
	if cycles, _ := standby.Woken(); len(cycles) != 1 {
		t.Error("no cycle is to judge the plan that was seen")
	}
	_, err := standby.Repair(b.ctx)
	if b.must(err); b.tried("patch c000") != writes {
		t.Error("a plan is enforced by who has compared it with nothing")
	}
	next, _ := b.launch()
	b.seen(next)
	b.eventually("the new leader puts the newest plan back", func() bool { return b.plan().Clusters["c000"].Replica == to })
	b.quieten(next)
	b.idle(next)
	b.cycles(next, 2)
	if diff := cmp.Diff(want, b.stands()); diff != "" || b.tried("patch c000") != writes {
		t.Errorf("%d writes to a Secret (-want +got):\n%s", b.tried("patch c000")-writes, diff)
	}
	if told := b.told(belief.PlanOlder); len(told) != 1 {
		t.Errorf("people were told %q", told)
	}
}

func saysThatTheKeyIsMissing(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	b.must(b.client.Delete(b.ctx, newKeySecret(b.namespace)))
	l, _ := b.start()
	b.clock.Step(time.Duration(b.config.Interval))
	b.idle(l)
	told := b.told("KeyMissing")
	if len(told) != 1 || !strings.Contains(told[0], "kubectl -n "+b.namespace+" create secret generic "+keySecret) {
		t.Errorf("people were told %q", told)
	}
	b.must(b.client.Create(b.ctx, newKeySecret(b.namespace)))
	b.cycles(l, 1)
	if got := len(b.plan().Clusters); got != 3 {
		t.Errorf("%d clusters once it is there, want 3", got)
	}
}

// bringsBackWithoutTheKey: a leader that believes no plan ends a stop of all replicas all the same, within what is configured.
func bringsBackWithoutTheKey(t *testing.T, server *rest.Config) {
	since := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	draining := func(from int) func(*plan.Plan) {
		return func(p *plan.Plan) {
			p.Replicas, p.Rollout = 0, &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: since,
				From: plan.Count{Replicas: from, ControllerReplicas: from}, Replicas: 3, ControllerReplicas: 3}
		}
	}
	chosen := func(immutable bool) *corev1.Secret {
		return &corev1.Secret{Immutable: &immutable, Data: map[string][]byte{"key": bytes.Repeat([]byte("a"), 32)}}
	}
	empty := &corev1.Secret{Immutable: new(bool)}
	*empty.Immutable = true
	type result struct{ Planned, Stands, Env, Written int }
	for name, c := range map[string]struct {
		change      func(*plan.Plan)
		annotations map[string]string
		key         *corev1.Secret // in place of the one that is gone; nil for none
		want        result
	}{
		"as ballast left it":                {draining(2), nil, nil, result{2, 2, 2, 1}},
		"beside another's key that stays":   {draining(2), nil, chosen(true), result{2, 2, 2, 1}},
		"beside a Secret that takes no key": {draining(2), nil, empty, result{2, 2, 2, 1}},
		"as nobody would have it":           {draining(900), nil, nil, result{16, 16, 16, 1}},
		"with break-glass":                  {draining(2), map[string]string{plan.AnnotationEnforcement: "off"}, nil, result{2, 2, 2, 1}},
		"at 0 though the plan is 4":         {func(p *plan.Plan) { p.Replicas, p.ControllerReplicas = 4, 4 }, nil, nil, result{4, 4, 4, 0}},
		"at 0 with break-glass":             {func(p *plan.Plan) { p.Replicas = 4 }, map[string]string{plan.AnnotationEnforcement: "off"}, nil, result{4, 0, 3, 0}},
		"at 0 with a number of nobody's":    {func(p *plan.Plan) { p.Replicas, p.MaxReplicas = 900, 999 }, nil, nil, result{900, 16, 3, 0}},
		"on its way back, with break-glass": {func(p *plan.Plan) {
			p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Restoring, Since: since,
				From: plan.Count{Replicas: 2, ControllerReplicas: 2}, Replicas: 3, ControllerReplicas: 3}
		}, map[string]string{plan.AnnotationEnforcement: "off"}, nil, result{3, 3, 3, 0}},
		"people's replicas": {func(p *plan.Plan) { p.FreeReplicas, p.ControllerReplicas = true, 9 }, nil, nil, result{3, 0, 3, 0}},
		"at 0 and observed": {func(p *plan.Plan) { p.Mode = plan.Observe }, nil, nil, result{3, 0, 3, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, server, plan.Enforce, 3, 2, 1)
			l, end := b.start()
			b.cycles(l, 1)
			end()
			p := b.plan()
			c.change(&p)
			b.forge(p, c.annotations)
			set := b.workload()
			set.Spec.Replicas = new(int32)
			b.must(b.client.Update(b.ctx, set))
			b.must(b.client.Delete(b.ctx, newKeySecret(b.namespace)))
			if c.key != nil {
				own := newKeySecret(b.namespace)
				own.Data, own.Immutable = c.key.Data, c.key.Immutable
				b.must(b.client.Create(b.ctx, own))
			}
			next, _ := b.start()
			b.clock.Step(time.Duration(b.config.Interval))
			b.idle(next)
			set, p = b.workload(), b.plan()
			env, err := strconv.Atoi(set.Spec.Template.Spec.Containers[0].Env[0].Value)
			b.must(err)
			written := slices.DeleteFunc(b.told("PlanWritten"), func(s string) bool { return !strings.Contains(s, broughtBack) })
			if diff := cmp.Diff(c.want, result{p.Replicas, int(*set.Spec.Replicas), env, len(written)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if told := b.told("KeyMissing"); c.want.Written == 1 && p.Rollout != nil || len(told) != 1 {
				t.Errorf("rollout %v is under way; people were told %q", p.Rollout, told)
			}
		})
	}
}

// goesOnWithoutTheKey: a leader without the key ends after it wrote the plan that brings a stopped fleet back, and before it wrote to
// the workload. The next one does that, with a key or without; and what people stop afterwards, stays stopped.
func goesOnWithoutTheKey(t *testing.T, server *rest.Config) {
	const workload = "argocd-application-controller"
	type result struct{ Planned, Stands, Written int }
	off := map[string]string{plan.AnnotationEnforcement: "off"}
	for name, c := range map[string]struct {
		annotations map[string]string
		key         bool // there is one again
		forge       func(*plan.Plan)
		want        result
		then        result // once a person scaled it to 0, and another leader came
	}{
		"without a key":                   {nil, false, nil, result{2, 2, 1}, result{2, 2, 1}},
		"without a key, by break-glass":   {off, false, nil, result{2, 2, 1}, result{2, 0, 1}},
		"with a key, by which no plan is": {nil, true, nil, result{Written: 1}, result{Written: 1}}, // as many as the Secrets' shards, which UIDs draw
		"a number of nobody's meanwhile":  {nil, false, func(p *plan.Plan) { p.Replicas, p.MaxReplicas = 900, 999 }, result{900, 16, 1}, result{900, 16, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, server, plan.Enforce, 3, 2, 1)
			l, end := b.start()
			b.cycles(l, 1)
			end()
			p := b.plan()
			p.Replicas, p.Rollout = 0, &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: epoch,
				From: plan.Count{Replicas: 2, ControllerReplicas: 2}, Replicas: 3, ControllerReplicas: 3}
			b.forge(p, c.annotations)
			b.scale(0)
			b.must(b.client.Delete(b.ctx, newKeySecret(b.namespace)))
			b.fail("patch "+workload, errors.New("the leader ends here"))
			_, end = b.start()
			end()
			b.fail("patch "+workload, nil)
			if p = b.plan(); p.Replicas != 2 || p.Rollout != nil || *b.workload().Spec.Replicas != 0 {
				t.Fatalf("the first leader left a plan of %d, %v, at %d", p.Replicas, p.Rollout, *b.workload().Spec.Replicas)
			}
			if c.forge != nil {
				c.forge(&p)
				b.forge(p, nil)
			}
			if c.key {
				b.must(b.client.Create(b.ctx, newKeySecret(b.namespace)))
				highest, err := strconv.Atoi(slices.Max(slices.Collect(maps.Values(b.shards())))) // of one digit each
				b.must(err)
				n := highest + 1
				c.want.Planned, c.want.Stands, c.then.Planned, c.then.Stands = n, n, n, n
			}
			look := func() result {
				next, end := b.start()
				for range 3 {
					b.settle()
					b.clock.Step(time.Duration(b.config.Interval))
					b.idle(next)
				}
				end()
				written := slices.DeleteFunc(b.told("PlanWritten"), func(s string) bool { return !strings.Contains(s, broughtBack) })
				return result{b.plan().Replicas, int(*b.workload().Spec.Replicas), len(written)}
			}
			if diff := cmp.Diff(c.want, look()); diff != "" {
				t.Errorf("the next leader (-want +got):\n%s", diff)
			}
			b.scale(0)
			if diff := cmp.Diff(c.then, look()); diff != "" {
				t.Errorf("after a person stopped it (-want +got):\n%s", diff)
			}
		})
	}
}

// scale is what a person does.
func (b *bed) scale(replicas int32) {
	b.Helper()
	set := b.workload()
	set.Spec.Replicas = &replicas
	b.must(b.client.Update(b.ctx, set))
	b.settle()
}

func bringsTheKeyBack(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, end := b.start()
	b.cycles(l, 1)
	key := &corev1.Secret{}
	b.get(key, keySecret)
	wiped := key.DeepCopy()
	wiped.Data = nil
	b.must(b.client.Update(b.ctx, wiped)) // as kubectl replace with the shipped manifest does
	b.cycles(l, 6)                        // the history is saved every five minutes
	back := &corev1.Secret{}
	b.get(back, keySecret)
	if len(key.Data["key"]) != 32 || !cmp.Equal(key.Data, back.Data) {
		t.Errorf("the Secret holds %d keys after it was wiped; want the one of before", len(back.Data))
	}
	end()
	before := b.plan()
	next, _ := b.start()
	b.cycles(next, 1)
	if p := b.plan(); p.Revision != before.Revision {
		t.Errorf("revision %d after a change of leaders, want %d", p.Revision, before.Revision)
	}
}

// refusesAChosenKey: neither under a leader, by a Secret that is made anew, nor while nobody leads.
func refusesAChosenKey(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, end := b.start()
	b.cycles(l, 1)
	chosen := bytes.Repeat([]byte("a"), 32)
	choose := func() {
		b.must(b.client.Delete(b.ctx, newKeySecret(b.namespace)))
		own := newKeySecret(b.namespace)
		own.Data = map[string][]byte{"key": chosen}
		b.must(b.client.Create(b.ctx, own))
	}
	isOwn := func(when string, told int) {
		var key corev1.Secret
		b.get(&key, keySecret)
		if bytes.Equal(key.Data["key"], chosen) || len(key.Data["key"]) != 32 || len(b.told("KeyReplaced")) != told {
			t.Errorf("%s: the chosen key stands: %t; told %q", when, bytes.Equal(key.Data["key"], chosen), b.told("KeyReplaced"))
		}
	}
	choose()
	b.cycles(l, 7) // the history is saved every five minutes
	isOwn("under a leader", 1)
	end()
	revision := b.plan().Revision
	next, stop := b.start()
	b.cycles(next, 1)
	if p := b.plan(); p.Revision != revision || len(b.told("HistoryDropped")) != 0 {
		t.Errorf("the next leader goes on with revision %d, want %d; told %q", p.Revision, revision, b.told("HistoryDropped"))
	}
	stop()
	choose()
	last, quit := b.start()
	b.cycles(last, 2)
	isOwn("while nobody led", 2)
	if p := b.plan(); len(p.Clusters) != 3 || p.Revision <= revision || len(b.told("HistoryDropped")) != 1 {
		t.Errorf("revision %d with %d clusters, told %q", p.Revision, len(p.Clusters), b.told("HistoryDropped"))
	}
	quit()
	choose()
	b.must(b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.config.Plan.History}}))
	again, _ := b.start()
	b.cycles(again, 2)
	isOwn("while nobody led, and the history is gone", 3)
}
