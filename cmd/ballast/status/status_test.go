package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/status"
)

// TestStatusGolden: each state, as people and as machines read it.
func TestStatusGolden(t *testing.T) {
	for name, change := range map[string]func(*fixture.World){
		"quiet":                func(*fixture.World) {},
		"live-wave":            liveWave,
		"live-grows":           liveGrows,
		"x0y-draining":         x0yDraining,
		"tripped-and-cordoned": trippedAndCordoned,
		"deployment-silent":    deploymentSilent,
		"unwell-and-orphaned":  unwellAndOrphaned,
		"owned-by-another":     ownedByAnother,
		"x0y-that-nobody-ends": x0yThatNobodyEnds,
		"live-lacks-a-shard":   liveLacksAShard,
		"sizes-and-owners":     sizesAndOwners,
		"a-shrink-is-refused":  aShrinkIsRefused,
		"restart-waits":        restartWaits,
		"changes-wait":         changesWait,
		"another-leader-looks": func(w *fixture.World) { liveWave(w); w.Said.Revision-- },
		"a-leader-is-away":     leaderIsAway,
		"nothing-beside-is-seen": func(w *fixture.World) {
			w.Forbidden = []string{"pods", "leases", "horizontalpodautoscalers", "poddisruptionbudgets", "ballast-history", "ballast-config", "ballast-plan-status"}
		},
		"two-are-full":          func(w *fixture.World) { w.Plan.MaxClusters, w.Plan.Full = 3, []int{0, 2} },
		"after-three-decisions": func(w *fixture.World) { kept(t, w) },
		"before-the-first-word": func(w *fixture.World) { w.Said, w.Lease, w.Config = nil, nil, "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture.QuietWorld()
			change(w)
			s := look(t, w)
			var table, text bytes.Buffer
			fixture.MustDo(t, s.WriteTable(&table))
			e := json.NewEncoder(&text)
			e.SetIndent("", "  ")
			fixture.MustDo(t, e.Encode(s))
			fixture.Golden(t, name, table.String()+"--- json\n"+text.String())
		})
	}
}

// liveWave is the second wave of an elected plan: one Secret is not written yet, and three clusters come after.
func liveWave(w *fixture.World) {
	w.Plan.Clusters["prod-us"], w.Plan.Clusters["dev"] = plan.Row{Replica: 2, Load: "0.35"}, plan.Row{Replica: 0, Load: "0.02"}
	w.Shards["dev"] = 2
	w.Plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: fixture.Noon.Add(-80 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16,
		Wave: 2, Waves: 4, Moves: map[string]int{"prod-us": 2, "dev": 0}, Was: map[string]int{"prod-us": 1, "dev": 2}}
	w.Said.Budget = fixture.BudgetOf("no cluster may move before 2026-11-20T12:50:00Z: made 3 of 3 within 1h, 3 of 7 within 24h (Balance 2, Drain 1)", 0)
	w.Waits(`1 Secrets do not carry their replica yet, the first is "dev"`, 20*time.Minute)
	w.Said.Rollout.After = 3
}

// liveGrows waits for the fourth pod.
func liveGrows(w *fixture.World) {
	w.Plan.Replicas = 4
	w.Plan.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Scaling, Since: fixture.Noon.Add(-11 * time.Minute), From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 4, ControllerReplicas: 16}
	w.Stands(4, 16)
	w.Workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 3
	w.Pods = append(w.Pods, fixture.ControllerPod(fixture.ControllerName+"-3", fixture.NotReady))
	w.Waits("of 4 replicas 4 are updated and 3 ready", 10*time.Minute)
}

// x0yDraining waits for the last pod to stop.
func x0yDraining(w *fixture.World) {
	w.Plan.Replicas = 0
	w.Plan.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: fixture.Noon.Add(-20 * time.Second), From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 4, ControllerReplicas: 4,
		Moves: map[string]int{"prod-us": 3, "stage-us": 3, "prod-ap": 3, "lab": 1, "dev": 0, "stage-eu": 1}}
	w.Plan.ControllerReplicas = 3
	w.Stands(0, 3)
	w.Workload.(*appsv1.StatefulSet).Status.Replicas = 1
	w.Pods = []*corev1.Pod{fixture.ControllerPod(fixture.ControllerName+"-0", func(p *corev1.Pod) {
		at := metav1.NewTime(fixture.Noon.Add(-20 * time.Second))
		p.DeletionTimestamp, p.Finalizers = &at, []string{"kubernetes.io/test"}
	})}
	w.Waits("1 pods run", 5*time.Minute)
}

// trippedAndCordoned has everything that people and ballast itself may say on the plan ConfigMap.
func trippedAndCordoned(w *fixture.World) {
	maps.Copy(w.People, map[string]string{
		plan.AnnotationTripped: `cluster "dev" has no owner since the wave of 11:50`, plan.AnnotationPaused: "true", plan.AnnotationPausedBy: "alice", plan.AnnotationPausedReason: "a sale\nand more",
		plan.AnnotationEnforcement: "off", plan.AnnotationRollback: "14", plan.AnnotationCordon: "2=2026-11-20T13:30:00Z,0=2026-11-20T11:59:59Z,x=1",
	})
	w.Pins = "stage-eu: 2\nlab: 99\n"
	w.Turns(status.Planning, status.False, "Tripped", "ballast stopped itself after a wave that did harm, or a rollout that failed three times in a day; look into it, then: ballast resume")
	w.Turns(status.Enforced, status.False, "BreakGlass", "a person switched it off by the annotation "+plan.AnnotationEnforcement)
	w.Said.HeldUntil, w.Said.Candidate = fixture.Noon.Add(5*time.Minute), &status.Candidate{Replicas: 4, Moves: 2, Verdict: "better by 3%, and nothing is decided while ballast is frozen"}
	eight := int32(8)
	all := intstr.FromString("100%")
	w.Objects = []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "grow"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: plan.StatefulSet, Name: fixture.ControllerName}, MaxReplicas: eight}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "keep"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": fixture.ControllerName}}}},
	}
}

// deploymentSilent has a controller without a heartbeat, a slot that nobody took and a pod that has none.
func deploymentSilent(w *fixture.World) {
	names := []string{fixture.ControllerName + "-abc-aaaaa", fixture.ControllerName + "-abc-bbbbb", fixture.ControllerName + "-abc-ccccc"}
	w.Clustered(names, fmt.Sprintf(`[{"ShardNumber":0,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:59:56Z"},{"ShardNumber":1,"ControllerName":%q,"HeartbeatTime":"2026-11-20T11:58:50Z"},{"ShardNumber":2,"ControllerName":"","HeartbeatTime":null}]`, names[0], names[1]))
	w.Unwell(health.Sick{Replica: 2, Reason: health.Unclaimed, Since: fixture.Noon.Add(-8 * time.Minute)})
}

// unwellAndOrphaned has what the leader knows of pods and owners, a minute of it too young to count.
func unwellAndOrphaned(w *fixture.World) {
	w.Pods[1] = fixture.ControllerPod(fixture.ControllerName+"-1", fixture.Killed(4, 5*time.Minute))
	w.Pods = w.Pods[:2]
	w.Workload.(*appsv1.StatefulSet).Status.ReadyReplicas = 2
	w.Unwell(health.Sick{Replica: 1, Reason: health.OOMKilled, Since: fixture.Noon.Add(-5 * time.Minute), Pod: fixture.ControllerName + "-1"},
		health.Sick{Replica: 2, Reason: health.Missing, Since: fixture.Noon.Add(-8 * time.Minute)})
	w.Said.FailoverHeld = health.Verdict{Sick: make([]health.Sick, 2), Held: health.WholeFleet}.String()
	two := 2
	w.Said.Orphaned = []status.Fault{{Cluster: "prod-ap", Since: fixture.Noon.Add(-25 * time.Hour)}, {Cluster: "lab", Since: fixture.Noon.Add(-20 * time.Minute), Last: &two}}
	w.Said.Doubled = []status.Fault{{Cluster: "prod-eu", Since: fixture.Noon.Add(-4 * time.Minute), Owners: []int{0, 2}}}
	w.Said.Omitted = 7
	w.Said.PutBack = &probing.PutBack{Webhook: "all", Since: fixture.Noon.Add(-26 * time.Hour), Users: []probing.UserWrites{
		{User: "alice", PutBack: 3, Refused: 1, Last: fixture.Noon.Add(-time.Hour)}, {User: "bob", PutBack: 1, Last: fixture.Noon.Add(-time.Hour)},
		{User: "carol", Refused: 1, Last: fixture.Noon.Add(-time.Hour)}, {User: "dave", PutBack: 1, Last: fixture.Noon.Add(-time.Hour)}}}
}

// sizesAndOwners is a fleet whose replicas are sized one by one: the first as it is to be, the second waits for its node, the third
// has another size than the plan's. Some clusters are not where the plan has them.
// changesWait are a size, a move and a number of replicas, each kept from happening by a rule of change.
func changesWait(w *fixture.World) {
	at := func(ago time.Duration) time.Time { return fixture.Noon.Add(-ago) }
	w.Said.Blocked = []resize.Blocked{
		{Replica: 1, Resource: "memory", Direction: change.Up, Reason: change.UpdatePolicy, From: "2Gi", To: "3Gi", Since: at(time.Hour)},
		{Replica: plan.NoReplica, Resource: resize.ResourceClusters, Direction: change.Moves, Reason: change.OutsideMaintenance, To: "2",
			Since: at(20 * time.Minute), Until: at(-6 * time.Hour)},
		{Replica: plan.NoReplica, Resource: resize.ResourceReplicas, Direction: change.Out, Reason: change.RateLimit, From: "3", To: "4",
			Since: at(5 * time.Minute), Why: "1 of 1 within 1h"},
	}
}

func sizesAndOwners(w *fixture.World) {
	of := func(cpu, memory string) plan.Resources {
		return plan.Resources{Requests: map[string]string{"cpu": cpu, "memory": memory}, Limits: map[string]string{"memory": memory}}
	}
	w.Plan.Sizes = &plan.Sizes{Default: of("1", "2Gi"), Replicas: map[int]plan.Resources{1: of("1", "3Gi"), 2: of("2", "4Gi")}}
	sized := func(pod int, asks, has plan.Resources) {
		p := w.Pods[pod]
		p.Spec.Containers[0].Resources = requirements(asks)
		r := requirements(has)
		p.Status.ContainerStatuses[0].Resources = &r
	}
	sized(0, of("1000m", "2048Mi"), of("1", "2Gi"))
	sized(1, of("1", "3Gi"), of("1", "2Gi"))
	sized(2, of("1", "4Gi"), of("1", "4Gi"))
	w.Pods[1].Status.Conditions = append(w.Pods[1].Status.Conditions,
		corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred})
	w.Plan.Replicas = 4 // the fourth is as the first
	w.Stands(4, 16)
	w.Pods = append(w.Pods, fixture.ControllerPod(fixture.ControllerName+"-3"))
	sized(3, of("1", "2Gi"), of("1", "2Gi"))
	one, three := 1, 3
	w.Said.Replicas = []status.Replica{
		{Replica: 0, Owns: &one, Sampled: fixture.Noon.Add(-42 * time.Second), Wanted: of("1", "2Gi")},
		{Replica: 1, Owns: &three, Sampled: fixture.Noon.Add(-3 * time.Hour), Wanted: of("1", "5Gi")},
		{Replica: 2, Wanted: of("2", "4Gi")},
	}
	w.Said.Elsewhere = []status.Elsewhere{{Cluster: "dev", Planned: 2, Owners: []int{1}}, {Cluster: "lab", Planned: 2},
		{Cluster: "prod-ap", Planned: 2, Owners: []int{0, 1}},
		{Cluster: "prod-eu", Planned: 0, Owners: []int{1}}, {Cluster: "prod-us", Planned: 1, Owners: []int{2}}, {Cluster: "stage-eu", Planned: 2}}
}

// aShrinkIsRefused is a replica whose node keeps it larger than the plan holds it, since it has more in use than the new limit.
func aShrinkIsRefused(w *fixture.World) {
	of := func(memory string) plan.Resources {
		return plan.Resources{Requests: map[string]string{"memory": memory}, Limits: map[string]string{"memory": memory}}
	}
	w.Plan.Sizes = &plan.Sizes{Replicas: map[int]plan.Resources{1: of("2Gi")}}
	p, has := w.Pods[1], requirements(of("3Gi"))
	p.Spec.Containers[0].Resources, p.Status.ContainerStatuses[0].Resources = requirements(of("2Gi")), &has
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonError, Message: "memory limit below current usage"})
}

func requirements(r plan.Resources) corev1.ResourceRequirements {
	list := func(of map[string]string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range of {
			out[corev1.ResourceName(name)] = resource.MustParse(text)
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: list(r.Requests), Limits: list(r.Limits)}
}

// restartWaits has adopted everything but the env, which joins whatever changes the pod template next.
func restartWaits(w *fixture.World) {
	w.Stands(3, 3)
	w.Plan.ControllerReplicas, w.Plan.NextControllerReplicas = 3, 16
	w.Said.Problems = []problem.Problem{{Phase: problem.PhaseRollout, Kind: "RestartWaits", Message: gate.RestartWaits}}
}

func liveLacksAShard(w *fixture.World) {
	w.OptedOut()
	w.Said.Problems = []problem.Problem{{Phase: problem.PhaseRollout, Kind: "LiveNotReady",
		Message: `rollout.live begins nothing yet but a failover and a drain: unmanaged Secret "own" carries no shard: give it one from 0 to 2, or take the annotation ballast.argoproj.io/unmanaged off`}}
}

// leaderIsAway: nobody has planned for hours, and a Secret of a fleet that nobody looks at is broken meanwhile.
func leaderIsAway(w *fixture.World) {
	renewed := metav1.NewMicroTime(fixture.Noon.Add(-3 * time.Hour))
	w.Lease.Spec.RenewTime, w.Said.LookedAt = &renewed, fixture.Noon.Add(-3*time.Hour)
	w.Objects = append(w.Objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "empty", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}}})
}

// x0yThatNobodyEnds has stopped every replica, and the Lease is held by nobody there is, for ever.
func x0yThatNobodyEnds(w *fixture.World) {
	x0yDraining(w)
	w.Plan.Rollout.Since = fixture.Noon.Add(-plan.StopHeld - time.Second)
	w.Workload.(*appsv1.StatefulSet).Status.Replicas, w.Pods = 0, nil
	holder, renewed := "x", metav1.NewMicroTime(fixture.Noon.AddDate(73, 0, 0))
	w.Lease.Spec.HolderIdentity, w.Lease.Spec.RenewTime = &holder, &renewed
}

func ownedByAnother(w *fixture.World) {
	w.Lease = fixture.LeaseOf("other/ballast-plan", "system:serviceaccount:other:ballast-planner")
}

func TestStatusEndsAsItDidBefore(t *testing.T) {
	drifted := fixture.QuietWorld()
	drifted.Shards["dev"] = 1
	got := look(t, drifted)
	var steps []string
	for _, d := range got.Drift {
		steps = append(steps, d.String())
	}
	if diff := cmp.Diff([]string{"shard of dev: 1 -> 2 (Drifted)"}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var table bytes.Buffer
	fixture.MustDo(t, (&overview.Overview{PlanError: "the plan does not match its digest annotation"}).WriteTable(&table))
	if want := "There is no plan in force. the plan does not match its digest annotation\n"; table.String() != want {
		t.Errorf("without a plan it prints %q, want %q", table.String(), want)
	}
	o := &options{output: "wide"}
	if err := o.run(t.Context(), &table, io.Discard); err == nil || err.Error() != `--output: "wide" is none of table, json and yaml` {
		t.Errorf("another form: %v", err)
	}
}

func TestStatusNeedsSecretsAndWorkloads(t *testing.T) {
	w := fixture.QuietWorld()
	w.Forbidden = []string{"secrets"}
	o := &options{cluster: connect.Options{Namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: time.Now}
	_, err := o.read(t.Context(), w.Client(t))
	if err == nil || !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "plan needs get and list on secrets, configmaps, statefulsets and deployments in \"argocd\"") {
		t.Errorf("got %v", err)
	}
}

func TestSpansAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1499 * time.Millisecond: "1s", 80 * time.Second: "1m20s", 2 * time.Hour: "2h", time.Minute: "1m", 10 * time.Minute: "10m",
		time.Hour + time.Second: "1h0m1s", 26*time.Hour + 5*time.Minute + 9*time.Second: "26h5m", 24 * time.Hour: "24h", math.MaxInt64: "over 100 years",
	} {
		if got := say.Span(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
}

// look is what status says of a world.
func look(t *testing.T, w *fixture.World) overview.Overview {
	t.Helper()
	o := &options{cluster: connect.Options{Namespace: "argocd"}, plan: "ballast-plan", config: "ballast-config", now: func() time.Time { return fixture.Noon }}
	seen, err := o.read(t.Context(), w.Client(t))
	fixture.MustDo(t, err)
	return seen.overview()
}

func TestWhateverStatusPrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{"status": func() say.Result { return &overview.Overview{Now: fixture.Noon, SeesPods: true} }})
}
