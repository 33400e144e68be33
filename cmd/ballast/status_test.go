package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/cycle"
	"ballast/planner/failover"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// TestStatusGolden: each state, as people and as machines read it.
func TestStatusGolden(t *testing.T) {
	for name, change := range map[string]func(*statusWorld){
		"quiet":                func(*statusWorld) {},
		"live-wave":            liveWave,
		"live-grows":           liveGrows,
		"x0y-draining":         x0yDraining,
		"tripped-and-cordoned": trippedAndCordoned,
		"deployment-silent":    deploymentSilent,
		"unwell-and-orphaned":  unwellAndOrphaned,
		"owned-by-another":     ownedByAnother,
		"x0y-that-nobody-ends": x0yThatNobodyEnds,
		"live-lacks-a-shard":   liveLacksAShard,
		"another-leader-looks": func(w *statusWorld) { liveWave(w); w.said.Revision-- },
		"a-leader-is-away":     leaderIsAway,
		"nothing-beside-is-seen": func(w *statusWorld) {
			w.forbidden = []string{"pods", "leases", "horizontalpodautoscalers", "poddisruptionbudgets", "ballast-history", "ballast-config", "ballast-plan-status"}
		},
		"before-the-first-word": func(w *statusWorld) { w.said, w.lease, w.config = nil, nil, "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := quietWorld()
			change(w)
			s := w.look(t)
			var table, text bytes.Buffer
			mustDo(t, s.write(&table))
			e := json.NewEncoder(&text)
			e.SetIndent("", "  ")
			mustDo(t, e.Encode(s))
			golden(t, "status/"+name, table.String()+"--- json\n"+text.String())
		})
	}
}

// optedOut adds a Secret without a shard that only people may write.
func (w *statusWorld) optedOut() {
	w.objects = append(w.objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "own", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster},
		Annotations: map[string]string{plan.AnnotationUnmanaged: "true"}}, Data: map[string][]byte{"name": []byte("own"), "server": []byte("https://own.example")}})
}

// liveWave is the second wave of an elected plan: one Secret is not written yet, and three clusters come after.
func liveWave(w *statusWorld) {
	w.plan.Clusters["prod-us"], w.plan.Clusters["dev"] = plan.Row{Replica: 2, Load: "0.35"}, plan.Row{Replica: 0, Load: "0.02"}
	w.shards["dev"] = 2
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: noon.Add(-80 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16,
		Wave: 2, Waves: 4, Moves: map[string]int{"prod-us": 2, "dev": 0}, Was: map[string]int{"prod-us": 1, "dev": 2}}
	w.said.Budget = budgetOf("no cluster may move before 2026-11-20T12:50:00Z: made 3 of 3 within 1h, 3 of 7 within 24h (Balance 2, Drain 1)", 0)
	w.waits(`1 Secrets do not carry their replica yet, the first is "dev"`, 20*time.Minute)
	w.said.Rollout.After = 3
}

// liveGrows waits for the fourth pod.
func liveGrows(w *statusWorld) {
	w.plan.Replicas = 4
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Scaling, Since: noon.Add(-11 * time.Minute), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 4, ControllerReplicas: 16}
	w.stands(4, 16)
	w.workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 3
	w.pods = append(w.pods, controllerPod(controllerName+"-3", notReady))
	w.waits("of 4 replicas 4 are updated and 3 ready", 10*time.Minute)
}

// x0yDraining waits for the last pod to stop.
func x0yDraining(w *statusWorld) {
	w.plan.Replicas = 0
	w.plan.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: noon.Add(-20 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 4,
		Moves: map[string]int{"prod-us": 3, "stage-us": 3, "prod-ap": 3, "lab": 1, "dev": 0, "stage-eu": 1}}
	w.plan.ControllerReplicas = 3
	w.stands(0, 3)
	w.workload.(*appsv1.StatefulSet).Status.Replicas = 1
	w.pods = []*corev1.Pod{controllerPod(controllerName+"-0", func(p *corev1.Pod) {
		at := metav1.NewTime(noon.Add(-20 * time.Second))
		p.DeletionTimestamp, p.Finalizers = &at, []string{"kubernetes.io/test"}
	})}
	w.waits("1 pods run", 5*time.Minute)
}

// trippedAndCordoned has everything that people and ballast itself may say on the plan ConfigMap.
func trippedAndCordoned(w *statusWorld) {
	maps.Copy(w.people, map[string]string{
		plan.AnnotationTripped: `cluster "dev" has no owner since the wave of 11:50`, plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice", plan.AnnotationPausedReason: "a sale\nand more",
		plan.AnnotationEnforcement: "off", plan.AnnotationRollback: "14", plan.AnnotationCordon: "2=2026-11-20T13:30:00Z,0=2026-11-20T11:59:59Z,x=1",
	})
	w.pins = "stage-eu: 2\nlab: 99\n"
	w.turns(status.Planning, status.False, "Tripped", "ballast stopped itself after a wave that did harm; look into it, then: ballast resume")
	w.turns(status.Enforced, status.False, "BreakGlass", "a person switched it off by the annotation "+plan.AnnotationEnforcement)
	w.said.HeldUntil, w.said.Candidate = noon.Add(5*time.Minute), &status.Candidate{Replicas: 4, Moves: 2, Verdict: "better by 3%, and nothing is decided while ballast is frozen"}
	eight := int32(8)
	all := intstr.FromString("100%")
	w.objects = []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "grow"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: controllerName}, MaxReplicas: eight}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "keep"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": controllerName}}}},
	}
}

// deploymentSilent has a controller without a heartbeat, a slot that nobody took and a pod that has none.
func deploymentSilent(w *statusWorld) {
	names := []string{controllerName + "-abc-aaaaa", controllerName + "-abc-bbbbb", controllerName + "-abc-ccccc"}
	w.clustered(names, fmt.Sprintf(`[{"ShardNumber":0,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:59:56Z"},{"ShardNumber":1,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:58:50Z"},{"ShardNumber":2,"ControllerName":"","HeartbeatTime":null}]`, names[0], names[1]))
	w.unwell(failover.Sick{Replica: 2, Reason: failover.Unclaimed, Since: noon.Add(-8 * time.Minute)})
}

// unwellAndOrphaned has what the leader knows of pods and owners, a minute of it too young to count.
func unwellAndOrphaned(w *statusWorld) {
	w.pods[1] = controllerPod(controllerName+"-1", killed(4, 5*time.Minute))
	w.pods = w.pods[:2]
	w.workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 2
	w.unwell(failover.Sick{Replica: 1, Reason: failover.OOMKilled, Since: noon.Add(-5 * time.Minute), Pod: controllerName + "-1"},
		failover.Sick{Replica: 2, Reason: failover.Missing, Since: noon.Add(-8 * time.Minute)})
	w.said.FailoverHeld = failover.Verdict{Sick: make([]failover.Sick, 2), Held: failover.WholeFleet}.String()
	two := 2
	w.said.Orphaned = []status.Fault{{Cluster: "prod-ap", Since: noon.Add(-25 * time.Hour)}, {Cluster: "lab", Since: noon.Add(-20 * time.Minute), Last: &two}}
	w.said.Doubled = []status.Fault{{Cluster: "prod-eu", Since: noon.Add(-4 * time.Minute), Owners: []int{0, 2}}}
	w.said.Omitted = 7
}

// waits is what the leader says that the rollout waits for, in a stage that may take that long.
func (w *statusWorld) waits(why string, deadline time.Duration) {
	r := w.plan.Rollout
	w.said.Rollout = &status.Rollout{Stage: r.Stage, Since: r.Since, Waits: why, Deadline: r.Since.Add(deadline), Late: r.Since.Add(deadline).Before(noon)}
	if w.said.Rollout.Late {
		w.said.Rollout.Deadline = time.Time{}
	}
	w.turns(status.Progressing, status.True, status.Reason(r.Stage), r.Mode+": it waits: "+why)
}

func (w *statusWorld) unwell(sick ...failover.Sick) {
	for _, s := range sick {
		w.said.Unwell = append(w.said.Unwell, status.Unwell{Replica: s.Replica, Reason: s.Reason, Since: s.Since, Pod: s.Pod, Message: s.String()})
	}
	w.turns(status.Degraded, status.True, "Unwell", sick[0].String())
}

func liveLacksAShard(w *statusWorld) {
	w.optedOut()
	w.said.Problems = []cycle.Problem{{Phase: cycle.PhaseRollout, Kind: "LiveNotReady",
		Message: `rollout.live begins nothing yet but a failover and a drain: unmanaged Secret "own" carries no shard: give it one from 0 to 2, or take the annotation ballast.argoproj.io/unmanaged off`}}
}

// leaderIsAway: nobody has planned for hours, and a Secret of a fleet that nobody looks at is broken meanwhile.
func leaderIsAway(w *statusWorld) {
	renewed := metav1.NewMicroTime(noon.Add(-3 * time.Hour))
	w.lease.Spec.RenewTime, w.said.LookedAt = &renewed, noon.Add(-3*time.Hour)
	w.objects = append(w.objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "empty", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}}})
}

// x0yThatNobodyEnds has stopped every replica, and the Lease is held by nobody there is, for ever.
func x0yThatNobodyEnds(w *statusWorld) {
	x0yDraining(w)
	w.plan.Rollout.Since = noon.Add(-plan.StopHeld - time.Second)
	w.workload.(*appsv1.StatefulSet).Status.Replicas, w.pods = 0, nil
	holder, renewed := "x", metav1.NewMicroTime(noon.AddDate(73, 0, 0))
	w.lease.Spec.HolderIdentity, w.lease.Spec.RenewTime = &holder, &renewed
}

func ownedByAnother(w *statusWorld) {
	w.lease = leaseOf("other/ballast-plan", "system:serviceaccount:other:ballast-planner")
}

func TestStatusEndsAsItDidBefore(t *testing.T) {
	drifted := quietWorld()
	drifted.shards["dev"] = 1
	got := drifted.look(t)
	var steps []string
	for _, d := range got.Drift {
		steps = append(steps, d.String())
	}
	if diff := cmp.Diff([]string{"shard of dev: 1 -> 2 (Drifted)"}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var table bytes.Buffer
	mustDo(t, (&overview{PlanError: "the plan does not match its digest annotation"}).write(&table))
	if want := "There is no plan in force. the plan does not match its digest annotation\n"; table.String() != want {
		t.Errorf("without a plan it prints %q, want %q", table.String(), want)
	}
	o := &statusOptions{output: "wide"}
	if err := o.run(t.Context(), &table); err == nil || err.Error() != `--output: "wide" is none of table, json and yaml` {
		t.Errorf("another form: %v", err)
	}
}

func TestStatusNeedsSecretsAndWorkloads(t *testing.T) {
	w := quietWorld()
	w.forbidden = []string{"secrets"}
	o := &statusOptions{cluster: clusterOptions{namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: time.Now}
	_, err := o.read(t.Context(), w.client(t))
	if err == nil || !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "plan needs get and list on secrets, configmaps, statefulsets and deployments in \"argocd\"") {
		t.Errorf("got %v", err)
	}
}

func TestSpansAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1499 * time.Millisecond: "1s", 80 * time.Second: "1m20s", 2 * time.Hour: "2h", time.Minute: "1m", 10 * time.Minute: "10m",
		time.Hour + time.Second: "1h0m1s", 26*time.Hour + 5*time.Minute + 9*time.Second: "26h5m", 24 * time.Hour: "24h", math.MaxInt64: "over 100 years",
	} {
		if got := short(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}
