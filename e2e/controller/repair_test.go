package controller_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/plan"
)

// stamped is a fleet in Hold whose Secrets carry their owners, and another replica for c000 than its own.
func stamped(t *testing.T, server *rest.Config) (b *bed, l *controller.Loop, own, other string) {
	t.Helper()
	b = newBed(t, server, plan.Hold, 3, 2, 1)
	l, _ = b.start()
	b.eventually("every Secret is stamped", func() bool { return cmp.Equal(b.planned(), b.shards()) })
	b.idle(l)
	b.clock.Step(2 * time.Second) // beyond the backoff of the stamps
	replica := b.plan().Clusters["c000"].Replica
	return b, l, strconv.Itoa(replica), strconv.Itoa((replica + 1) % 3)
}

func pinsAtOnce(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	asked := b.prometheus.asked()
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: " + other + "\n" })
	b.seen(l)
	b.eventually("the pin is in the Secret", func() bool { return b.shards()["c000"] == other })
	if b.prometheus.asked() != asked || b.plan().Clusters["c000"].Replica != mustAtoi(t, own) {
		t.Error("it took a cycle")
	}
	b.quieten(l)
	b.eventually("the pin is in the plan", func() bool { return b.plan().Clusters["c000"].Pinned })
	b.idle(l)
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Data, plan.KeyPins) })
	b.seen(l)
	b.stirred(l)
	if got := b.shards()["c000"]; got != other {
		t.Errorf("a pin that was taken away moved its cluster from %s to %s", other, got)
	}
}

// wakesWhomItRepairs: Argo CD's new owner of a cluster does nothing for it before its next resync.
func wakesWhomItRepairs(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	b.config.Rollout.Default, b.config.Rollout.Live = nil, &config.LiveRollout{MaxMovesPerWave: 5, Nudge: true}
	l, _ := b.start()
	b.eventually("every Secret is stamped", func() bool { return cmp.Equal(b.planned(), b.shards()) })
	b.idle(l)
	b.clock.Step(2 * time.Second) // beyond the backoff of the stamps
	own := b.shards()["c000"]
	other := strconv.Itoa((mustAtoi(t, own) + 1) % 3)
	b.stamp("c000", other, "kubectl-edit")
	l.Changed()
	b.eventually("the new owner was nudged", func() bool { return len(b.nudged()) == 1 })
	b.stirred(l)
	b.clock.Step(lookSoon)
	b.eventually("and once more, a second later", func() bool { return len(b.nudged()) == 2 })
	if diff := cmp.Diff([]string{"c000", "c000"}, b.nudged()); diff != "" || b.shards()["c000"] != own {
		t.Errorf("c000 is on %s; nudged (-want +got):\n%s", b.shards()["c000"], diff)
	}
}

func mustAtoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readsPinsBeforeItWrites: the watch of the plan and the watch of Secrets are not of one moment.
func readsPinsBeforeItWrites(t *testing.T, server *rest.Config) {
	b, l, _, other := stamped(t, server)
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: " + other + "\n" })
	b.stamp("c000", other, "a-webhook") // enforces the pin already
	patches := b.tried("patch c000")
	l.Changed()
	b.stirred(l)
	if got := b.shards()["c000"]; got != other || b.tried("patch c000") != patches {
		t.Errorf("c000 is on %s after %d writes, want it to stay on %s, where the person pinned it", got, b.tried("patch c000")-patches, other)
	}
}

func repairsDrift(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	ran := cycled(l)
	b.stamp("c000", other, "kubectl-edit")
	l.Changed()
	b.eventually("a watch told of the drift", func() bool { return b.shards()["c000"] == own })
	b.quieten(l)
	b.eventually("the change ran a cycle", func() bool { return cycled(l) == ran+1 })
	b.idle(l)
	b.stamp("c000", other, "kubectl-edit")
	b.clock.Step(lookAgain)
	b.eventually("nobody told of the drift", func() bool { return b.shards()["c000"] == own })
	b.idle(l)
	if cycled(l) != ran+1 {
		t.Error("the repair took a cycle")
	}
	if p := b.plan(); p.Revision != 1 {
		t.Errorf("drift wrote revision %d of the plan", p.Revision)
	}
}

func breaksTheGlass(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationEnforcement, "off") })
	b.stamp("c000", other, "kubectl-edit")
	zero := int32(0)
	set := b.workload()
	set.Spec.Replicas = &zero
	b.must(b.client.Update(b.ctx, set))
	before := b.versions()
	l.Changed() // the watch of Secrets tells; that of the plan is behind
	b.stirred(l)
	if diff := cmp.Diff(before, b.versions()); diff != "" {
		t.Errorf("something was written before the watch of the plan told of break-glass:\n%s", diff)
	}
	b.seen(l)
	b.eventually("people are told before the clock moves", func() bool { return len(b.told("EnforcementOff")) == 1 })
	b.stirred(l)
	for range 3 {
		b.clock.Step(time.Minute)
		b.idle(l)
	}
	if diff := cmp.Diff(before, b.versions()); diff != "" {
		t.Errorf("something was written while the glass was broken:\n%s", diff)
	}
	manager, at := b.enforcementOffBy()
	want := fmt.Sprintf("field manager %q, at %s, wrote the annotation ballast.argoproj.io/enforcement: \"off\": every write passes but one to data.plan, and what the API server's policies refuse, and ballast writes nothing of Argo CD's, once replicas that rollout.x0y stopped are back; `ballast audit` names the user; remove it to enforce again", manager, at)
	if diff := cmp.Diff([]string{want}, b.told("EnforcementOff")); diff != "" || manager == "" {
		t.Errorf("EnforcementOff events (-want +got):\n%s", diff)
	}
	b.edit(func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.AnnotationEnforcement) })
	b.seen(l)
	b.eventually("the workload is put back", func() bool { return *b.workload().Spec.Replicas == 3 })
	l.Changed() // as the watch of the workload tells: now there is a replica to own the cluster
	b.eventually("the Secret is put back", func() bool { return b.shards()["c000"] == own })
	b.stirred(l)
}

// enforcementOffBy is whose entry of the plan ConfigMap's managedFields names break-glass, by its text alone.
func (b *bed) enforcementOffBy() (manager, at string) {
	for _, entry := range b.planMap().ManagedFields {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+plan.AnnotationEnforcement+`"`) {
			manager, at = entry.Manager, entry.Time.UTC().Format(time.RFC3339)
		}
	}
	return manager, at
}

func bringsTheWorkloadBack(t *testing.T, server *rest.Config) {
	b, l, _, _ := stamped(t, server)
	asked, zero := b.prometheus.asked(), int32(0)
	set := b.workload()
	set.Spec.Replicas = &zero
	b.must(b.client.Update(b.ctx, set))
	l.Changed()
	b.eventually("it has its replicas again", func() bool { return *b.workload().Spec.Replicas == 3 })
	b.stirred(l)
	if p := b.plan(); p.Revision != 1 || p.Replicas != 3 || b.prometheus.asked() != asked {
		t.Errorf("it took revision %d with %d replicas and %d cycles, want none", p.Revision, p.Replicas, b.prometheus.asked()-asked)
	}
}

// staysWithItsWorkload: whoever may create Deployments keeps ballast neither from its repairs nor from its cycles.
func staysWithItsWorkload(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, end := b.start()
	b.cycles(l, 1)
	own := b.shards()["c000"]
	end()
	b.must(b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.config.Plan.History}}))
	labels, other := b.workload().Labels, map[string]string{"0": "1", "1": "0", "2": "0"}[own]
	b.must(b.client.Create(b.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.workload().Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: b.workload().Spec.Template}}))
	next, _ := b.start() // which knows of no plan but the one that stands
	b.stamp("c000", other, "kubectl-edit")
	next.Changed()
	b.eventually("it is repaired", func() bool { return b.shards()["c000"] == own })
	b.eventually("a cycle tells of it", func() bool { return len(b.told("TargetAmbiguous")) == 1 })
	want := []string{"several workloads may be the application-controller: the plan stays with StatefulSet argocd-application-controller; " +
		"set target.kind and target.name, or delete what is none: Deployment argocd-application-controller"}
	if diff := cmp.Diff(want, b.told("TargetAmbiguous")); diff != "" || b.plan().Target.Kind != plan.StatefulSet {
		t.Errorf("the plan is of %s; told (-want +got):\n%s", b.plan().Target.Kind, diff)
	}
}

func namesASecondWriter(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	for range 3 {
		b.stamp("c000", other, "a-gitops-tool")
		l.Changed()
		b.eventually("it is put back", func() bool {
			b.clock.Step(time.Second) // for the backoff, which doubles
			return b.shards()["c000"] == own
		})
		b.calm(l)
	}
	want := []string{`a-gitops-tool writes data.shard of Secret "c000" back again and again (3 times): stop it, pin the cluster, or annotate the object with ballast.argoproj.io/unmanaged: "true"`}
	if diff := cmp.Diff(want, b.told("Contested")); diff != "" {
		t.Errorf("Contested events (-want +got):\n%s", diff)
	}
}

// namesARefusedSecret: what the API server refuses for good is no fault of the moment.
func namesARefusedSecret(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	b.fail("patch c000", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "c000", field.ErrorList{field.TooLong(field.NewPath("data"), "", 1<<20)}))
	b.stamp("c000", other, "kubectl-edit")
	l.Changed()
	b.eventually("it was tried often enough", func() bool {
		b.clock.Step(time.Second) // for the backoff, which doubles
		return b.logs("a step was not written") >= 3
	})
	b.calm(l)
	b.cycles(l, 1)
	if barred := b.problems("Unwritable"); len(barred) != 1 {
		t.Errorf("the status has %q, want c000", barred)
	}
	want := []string{`ballast cannot write Secret "c000", so its cluster stays where it is, and nothing waits for it; it is tried again from time to time: Invalid (FieldValueTooLong at "data"); what else the API server said is left out, since it may quote the object`}
	if diff := cmp.Diff(want, b.told("Unwritable")); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	b.fail("patch c000", nil)
	b.clock.Step(barredFor)
	l.Changed()
	b.eventually("it is written when it can be", func() bool { b.clock.Step(time.Second); return b.shards()["c000"] == own })
	b.calm(l)
	b.cycles(l, 1)
	if barred := b.problems("Unwritable"); len(barred) > 0 {
		t.Errorf("%q cannot be written still", barred)
	}
}

func triesAgain(t *testing.T, server *rest.Config) {
	b, l, own, other := stamped(t, server)
	b.fail("patch c000", errors.New("the API server is away"))
	b.stamp("c000", other, "kubectl-edit")
	tried := b.tried("patch c000")
	l.Changed()
	b.eventually("it is tried", func() bool { return b.tried("patch c000") == tried+1 })
	b.stirred(l)
	looked := b.tried("get ballast-plan")
	for _, test := range []struct {
		after time.Duration
		tries int
	}{{time.Second, 1}, {time.Second, 2}, {time.Second, 2}, {2 * time.Second, 2}, {time.Second, 3}} { // a backoff of 2 s, then 4 s
		b.clock.Step(test.after)
		b.idle(l)
		if n := b.tried("patch c000") - tried; n != test.tries {
			t.Errorf("%d tries, want %d", n, test.tries)
		}
	}
	b.fail("patch c000", nil)
	b.clock.Step(8 * time.Second)
	b.eventually("it is written when it can be", func() bool { return b.shards()["c000"] == own })
	b.idle(l)
	if n := b.tried("get ballast-plan") - looked; n > 10 {
		t.Errorf("the plan was read %d times for three tries", n)
	}
}

// leavesWhatItMayNotWrite: a Secret that is being deleted cannot be written until its finalizers go, however often one asks.
func leavesWhatItMayNotWrite(t *testing.T, server *rest.Config) {
	b, l, _, other := stamped(t, server)
	var s corev1.Secret
	b.get(&s, "c000")
	s.Finalizers = []string{"example.org/stays"}
	s.Data[plan.ShardKey] = []byte(other)
	b.must(b.client.Update(b.ctx, &s))
	b.must(b.client.Delete(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "c000"}}))
	l.Changed()
	b.quieten(l) // the cycle for the change
	b.idle(l)
	looked := b.tried("get ballast-plan")
	for range 20 {
		b.clock.Step(time.Second)
		b.idle(l)
	}
	if n := b.tried("get ballast-plan") - looked; n > 1 {
		t.Errorf("it was looked at %d times in 20 seconds, want a look every 30 s", n)
	}
	if got := b.told("BeingDeleted"); len(got) != 1 || !strings.Contains(got[0], `"c000"`) {
		t.Errorf("BeingDeleted events: %q", got)
	}
	b.get(&s, "c000")
	s.Finalizers = nil
	b.must(b.client.Update(b.ctx, &s))
}
