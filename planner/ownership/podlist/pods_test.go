package podlist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

const controllerName = "argocd-application-controller"

func target(kind string) plan.Target {
	return plan.Target{Kind: kind, Namespace: "argocd", Name: controllerName, Container: "application-controller"}
}

// newPod is a ready pod of the StatefulSet or, with a name as a Deployment gives it, of the ReplicaSet of its hash.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "argocd", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: controllerName, Controller: &yes}}},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "proxy"}, {Name: "application-controller"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.0.7",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "proxy", RestartCount: 9, LastTerminationState: ended("OOMKilled", time.Minute)},
				{Name: "application-controller", State: begun(time.Hour)},
			},
		},
	}
	if hash := strings.Split(strings.TrimPrefix(name, controllerName+"-"), "-"); len(hash) == 2 {
		p.Labels = map[string]string{"pod-template-hash": hash[0]}
		set := replicaSet(hash[0])
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// replicaSet is the Deployment's of that hash.
func replicaSet(hash string) *appsv1.ReplicaSet {
	owner := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: controllerName, UID: "the-deployments"}}
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: controllerName + "-" + hash, Namespace: "argocd", UID: types.UID("uid-" + hash),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
}

// cluster has the objects, and the Deployment's ReplicaSets of every hash that tests use.
func cluster(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(objects...).WithObjects(replicaSet("5d9f7"), replicaSet("66f00"), replicaSet("5b7cf")).Build()
}

func begun(ago time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon().Add(-ago))}}
}

func ended(reason string, ago time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, FinishedAt: metav1.NewTime(noon().Add(-ago))}}
}

func status(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Status.ContainerStatuses[1]) }
}

func env(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func probe(seconds int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[1].ReadinessProbe = &corev1.Probe{PeriodSeconds: seconds}
	}
}

func list(t *testing.T, of plan.Target, objects ...client.Object) Controllers {
	t.Helper()
	c, err := List(t.Context(), cluster(objects...), of, "", noon())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPodIsReadAsItStands(t *testing.T) {
	const ip = "10.1.0.7:8082"
	deleted := func(p *corev1.Pod) {
		now := metav1.NewTime(noon())
		p.DeletionTimestamp, p.Finalizers = &now, []string{"batch.kubernetes.io/job-tracking"}
	}
	idle := observed.Pod{Replica: 2, Name: controllerName + "-2", Ready: true, Claimed: true}
	ordinary := idle
	ordinary.Started = noon().Add(-time.Hour)
	with := func(change func(*observed.Pod)) observed.Pod {
		p := ordinary
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   observed.Controller
	}{
		"an ordinary one": {func(*corev1.Pod) {}, observed.Controller{Pod: ordinary, Address: ip, Running: true}},
		"not ready": {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
			observed.Controller{Pod: with(func(p *observed.Pod) { p.Ready = false }), Address: ip, Running: true}},
		"being deleted: not ready, but it still owns": {deleted,
			observed.Controller{Pod: with(func(p *observed.Pod) { p.Ready = false }), Address: ip, Running: true, Terminating: true}},
		"without an address": {func(p *corev1.Pod) { p.Status.PodIP = "" }, observed.Controller{Pod: ordinary, Running: true}},
		"with an IPv6 address": {func(p *corev1.Pod) { p.Status.PodIP = "fd00::7" },
			observed.Controller{Pod: ordinary, Address: "[fd00::7]:8082", Running: true}},
		"with another metrics port": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 1}}
			p.Spec.Containers[1].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 2}, {Name: "metrics", ContainerPort: 9102}}
		}, observed.Controller{Pod: ordinary, Address: "10.1.0.7:9102", Running: true}},
		"with a memory limit": {func(p *corev1.Pod) {
			p.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
		}, observed.Controller{Pod: with(func(p *observed.Pod) { p.MemoryLimit = 4 << 30 }), Address: ip, Running: true}},
		"restarted": {status(func(s *corev1.ContainerStatus) {
			s.RestartCount, s.State, s.LastTerminationState = 2, begun(5*time.Minute), ended("Error", 6*time.Minute)
		}), observed.Controller{Pod: with(func(p *observed.Pod) {
			p.Restarts, p.RestartedAt, p.Started = 2, noon().Add(-5*time.Minute), noon().Add(-5*time.Minute)
		}), Address: ip, Running: true}},
		"restarted for its memory": {status(func(s *corev1.ContainerStatus) {
			s.RestartCount, s.State, s.LastTerminationState = 1, begun(5*time.Minute), ended("OOMKilled", 6*time.Minute)
		}), observed.Controller{Pod: with(func(p *observed.Pod) {
			p.Restarts, p.RestartedAt, p.OOMKilled, p.KilledAt = 1, noon().Add(-5*time.Minute), true, noon().Add(-6*time.Minute)
			p.Started = p.RestartedAt
		}), Address: ip, Running: true}},
		"ended for its memory just now": {status(func(s *corev1.ContainerStatus) { s.State = ended("OOMKilled", time.Second) }),
			observed.Controller{Pod: with(func(p *observed.Pod) {
				p.RestartedAt, p.OOMKilled, p.KilledAt, p.Started = noon().Add(-time.Second), true, noon().Add(-time.Second), time.Time{}
			}), Address: ip}},
		"waiting to begin again": {status(func(s *corev1.ContainerStatus) {
			s.RestartCount, s.LastTerminationState = 4, ended("OOMKilled", 2*time.Minute)
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}), observed.Controller{Pod: with(func(p *observed.Pod) {
			p.Restarts, p.RestartedAt, p.OOMKilled, p.KilledAt, p.Started = 4, noon().Add(-2*time.Minute), true, noon().Add(-2*time.Minute), time.Time{}
		}), Address: ip}},
		"not begun yet": {func(p *corev1.Pod) { p.Status.ContainerStatuses, p.Status.Phase = nil, corev1.PodPending },
			observed.Controller{Pod: idle, Address: ip}},
		"without the container": {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, observed.Controller{Pod: idle}},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(t, target(plan.StatefulSet), newPod(controllerName+"-2", test.change))
			if sized := got.Pods[0].Size != nil; sized == (test.want.Terminating || name == "without the container") {
				t.Errorf("its size is known: %t", sized)
			}
			got.Pods[0].Size = nil // TestAPodsSizeIsRead
			if diff := cmp.Diff([]observed.Controller{test.want}, got.Pods); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheContainerIsFoundWithoutAName(t *testing.T) {
	nameless := target(plan.StatefulSet)
	nameless.Container = ""
	limited := newPod(controllerName+"-0", func(p *corev1.Pod) {
		p.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
	if got := list(t, nameless, limited).Pods[0].MemoryLimit; got != 1<<30 {
		t.Errorf("the memory limit is %d, want %d", got, 1<<30)
	}
	puzzling := newPod(controllerName+"-0", func(p *corev1.Pod) { p.Spec.Containers[1].Name = "sidecar" })
	want := []observed.Controller{{Pod: observed.Pod{Name: controllerName + "-0", Ready: true, Claimed: true}}}
	if diff := cmp.Diff(want, list(t, nameless, puzzling).Pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyTheTargetsPodsCount(t *testing.T) {
	no, yes := false, true
	foreign := func(change func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }
	}
	objects := []client.Object{
		newPod(controllerName + "-10"), newPod(controllerName + "-2"), newPod(controllerName + "-0"),
		newPod(controllerName+"-3", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		newPod(controllerName+"-4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		newPod(controllerName+"-5", foreign(func(o *metav1.OwnerReference) { o.Name = controllerName + "-canary" })),
		newPod(controllerName+"-6", foreign(func(o *metav1.OwnerReference) { o.Controller = &no })),
		newPod(controllerName+"-7", foreign(func(o *metav1.OwnerReference) { o.APIVersion = "apps.example.com/v1" })),
		newPod(controllerName+"-8", foreign(func(o *metav1.OwnerReference) { o.Kind = "DaemonSet" })),
		newPod(controllerName+"-9", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		newPod(controllerName + "-x"), newPod(controllerName + "-01"), newPod("argocd-server-7d4b-abcde"),
		newPod(controllerName+"-5d9f7-aaaaa", env("ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", "false")),
		newPod(controllerName+"-66f00-bbbbb", func(p *corev1.Pod) { p.Labels = nil }),
		newPod(controllerName+"-x-5d9f7-ccccc", func(p *corev1.Pod) {
			p.Labels = map[string]string{"pod-template-hash": "5d9f7"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: controllerName + "-x-5d9f7", Controller: &yes}}
		}),
	}
	elsewhere := newPod(controllerName + "-1")
	elsewhere.Namespace = "other"
	objects = append(objects, elsewhere)
	for kind, want := range map[string][]string{
		plan.StatefulSet: {"0 " + controllerName + "-0", "2 " + controllerName + "-2", "10 " + controllerName + "-10"},
		plan.Deployment:  {"0 " + controllerName + "-5d9f7-aaaaa"},
	} {
		if diff := cmp.Diff(want, numbered(list(t, target(kind), objects...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// TestAPodOfAnotherUIDIsNone: whoever may make pods writes their owner, a version that nobody serves and a UID that nobody has, which keeps
// Kubernetes from deleting them.
func TestAPodOfAnotherUIDIsNone(t *testing.T) {
	owned := func(version, uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].UID = version, types.UID(uid)
		}
	}
	c := fake.NewClientBuilder().WithObjects(newPod(controllerName+"-0", owned("apps/v1", "ours")),
		newPod(controllerName+"-1", owned("apps/v1", "theirs")), newPod(controllerName+"-2", owned("apps/v9", "ours"))).Build()
	for uid, want := range map[string][]string{
		"ours": {"0 " + controllerName + "-0"},
		"":     {"0 " + controllerName + "-0", "1 " + controllerName + "-1"}, // nobody knows the UID
	} {
		got, err := List(t.Context(), c, target(plan.StatefulSet), uid, noon())
		if diff := cmp.Diff(want, numbered(got)); err != nil || diff != "" {
			t.Errorf("uid %q: %v (-want +got):\n%s", uid, err, diff)
		}
	}
}

// TestAPodOfNoReplicaSetOfTheDeploymentIsNone: a name is anybody's to write, a UID is the API server's. Where ReplicaSets may not be
// listed, as under the roles of an older installation, names have to do, and that is said.
func TestAPodOfNoReplicaSetOfTheDeploymentIsNone(t *testing.T) {
	ours, theirs := controllerName+"-5d9f7-aaaaa", controllerName+"-5d9f7-bbbbb"
	forged := newPod(theirs, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "nobodys" })
	beside := newPod(controllerName + "-0dd0d-ccccc")
	set := replicaSet("0dd0d") // as one of the Deployment's, and another's
	set.OwnerReferences[0].UID = "another-deployments"
	swapped := newPod(controllerName+"-66f00-ddddd", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "uid-5d9f7" })
	c := cluster(newPod(ours), forged, beside, set, swapped)
	denied := interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, r client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
		if _, sets := l.(*metav1.PartialObjectMetadataList); sets {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "", nil)
		}
		return r.List(ctx, l, o...)
	}})
	all := []string{"0 " + beside.Name, "0 " + ours, "0 " + theirs, "0 " + swapped.Name}
	for name, test := range map[string]struct {
		reader   client.Reader
		uid      string
		want     []string
		problems []string
	}{
		"known":              {c, "the-deployments", []string{"0 " + ours}, nil},
		"the UID is unknown": {c, "", []string{"0 " + beside.Name, "0 " + ours}, nil},
		"of another's UID":   {c, "another-deployments", []string{"0 " + beside.Name}, nil},
		"may not be listed":  {denied, "the-deployments", all, []string{`the ReplicaSets in "argocd" may not be listed, so the pods of Deployment "argocd-application-controller" are known by their owners' names alone: allow list on replicasets.apps`}},
	} {
		got, err := List(t.Context(), test.reader, target(plan.Deployment), test.uid, noon())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, numbered(got)) + cmp.Diff(test.problems, got.Problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPodsWithoutNumberEndNobody: so many are kept, and the rest is told of.
func TestPodsWithoutNumberEndNobody(t *testing.T) {
	var objects []client.Object
	for i := range mostPods + 2 {
		objects = append(objects, newPod(fmt.Sprintf("%s-%d", controllerName, i)))
	}
	got := list(t, target(plan.StatefulSet), objects...)
	want := []string{fmt.Sprintf(`StatefulSet %q has 5002 pods, of which 2 are not looked at`, controllerName)}
	if diff := cmp.Diff(want, got.Problems); len(got.Pods) != 5000 || diff != "" {
		t.Errorf("%d pods are kept (-want +got):\n%s", len(got.Pods), diff)
	}
}

// numbered lists the pods as "replica name", with what their claim lacks.
func numbered(c Controllers) []string {
	var out []string
	for _, p := range c.Pods {
		line := fmt.Sprintf("%d %s", p.Replica, p.Name)
		if !p.Claimed {
			line += " unclaimed"
		}
		out = append(out, line)
	}
	return out
}

const dynamicEnv = "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION"

func mapping(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ClaimsConfigMap, Namespace: "argocd"}, Data: map[string]string{ClaimsKey: text}}
}

func TestADeploymentsPodsAreWhatTheyClaim(t *testing.T) {
	const a, b, c = controllerName + "-5d9f7-aaaaa", controllerName + "-5d9f7-bbbbb", controllerName + "-66f00-ccccc"
	on := env(dynamicEnv, "true")
	fresh, stale := `"2026-03-01T11:59:35Z"`, `"2026-03-01T11:59:25Z"` // 25 s and 35 s ago
	byReference := func(p *corev1.Pod) {
		p.Spec.Containers[1].Env = []corev1.EnvVar{{Name: dynamicEnv, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}}}}
	}
	claim := func(shard, name, beat string) string {
		return `{"ShardNumber":` + shard + `,"ControllerName":"` + name + `","HeartbeatTime":` + beat + `}`
	}
	const slow = "the readiness probe of the application-controller runs every 1m0s, but Argo CD gives a slot away after 30s without a heartbeat, which only the probe writes: set periodSeconds to 10 or less"
	for name, test := range map[string]struct {
		objects  []client.Object
		want     []string
		dynamic  bool
		patience Patience
		problems []string
	}{
		"each has its slot": {
			objects: []client.Object{newPod(a, on), newPod(b, on), mapping("[" + claim("0", b, fresh) + "," + claim("1", a, fresh) + "]")},
			want:    []string{"0 " + b, "1 " + a}, dynamic: true,
		},
		"a heartbeat is old: the slot may be taken, but the pod believes in it": {
			objects: []client.Object{newPod(a, on), newPod(b, on), mapping("[" + claim("0", b, stale) + "," + claim("1", a, fresh) + "]")},
			want:    []string{"0 " + b + " unclaimed", "1 " + a}, dynamic: true,
		},
		"a longer heartbeat is kept to": {
			objects: []client.Object{newPod(a, on, env("ARGOCD_CONTROLLER_HEARTBEAT_TIME", "20")), mapping("[" + claim("0", a, stale) + "]")},
			want:    []string{"0 " + a}, dynamic: true, patience: Patience{20 * time.Second, 10 * time.Second},
		},
		"a heartbeat that Argo CD would not take is 10 s": {
			objects: []client.Object{newPod(a, on, env("ARGOCD_CONTROLLER_HEARTBEAT_TIME", "61")), newPod(b, on, env("ARGOCD_CONTROLLER_HEARTBEAT_TIME", "9")), mapping("[" + claim("0", a, stale) + "]")},
			want:    []string{"-1 " + b + " unclaimed", "0 " + a + " unclaimed"}, dynamic: true,
		},
		"a slow probe is kept to, and warned about": {
			objects: []client.Object{newPod(a, on, probe(60)), mapping("[" + claim("0", a, stale) + "]")},
			want:    []string{"0 " + a}, dynamic: true, patience: Patience{10 * time.Second, time.Minute}, problems: []string{slow},
		},
		"no free slot": {
			objects: []client.Object{newPod(a, on), newPod(b, on), newPod(c, on), mapping("[" + claim("0", b, fresh) + "," + claim("1", a, fresh) + "]")},
			want:    []string{"-1 " + c + " unclaimed", "0 " + b, "1 " + a}, dynamic: true,
		},
		"the mapping was reset": {
			objects: []client.Object{newPod(a, on), mapping("[" + claim("0", "", "null") + "]")},
			want:    []string{"-1 " + a + " unclaimed"}, dynamic: true,
		},
		"a pod has two slots: Argo CD takes the first": {
			objects: []client.Object{newPod(a, on), mapping("[" + claim("2", a, stale) + "," + claim("1", a, fresh) + "]")},
			want:    []string{"2 " + a + " unclaimed"}, dynamic: true,
		},
		"a bad entry does not hide the others": {
			objects: []client.Object{newPod(a, on), mapping("[" + claim("-2", b, fresh) + "," + claim("1", a, fresh) + "]")},
			want:    []string{"1 " + a}, dynamic: true, problems: []string{"reading shardControllerMapping: entry 0: ShardNumber is not a replica's number"},
		},
		"a broken mapping": {
			objects: []client.Object{newPod(a, on), mapping("{")},
			want:    []string{"-1 " + a + " unclaimed"}, dynamic: true, problems: []string{"reading shardControllerMapping: unexpected end of JSON input"},
		},
		"no mapping yet": {
			objects: []client.Object{newPod(a, on)},
			want:    []string{"-1 " + a + " unclaimed"}, dynamic: true, problems: []string{`ConfigMap "argocd-app-controller-shard-cm" is not there yet, so no pod has claimed a slot`},
		},
		"not dynamic: every pod is shard 0, whatever an old mapping says": {
			objects: []client.Object{newPod(a), newPod(b, env(dynamicEnv, "no")), mapping("[" + claim("1", a, fresh) + "]")},
			want:    []string{"0 " + a, "0 " + b},
		},
		"by reference, with a mapping": {
			objects: []client.Object{newPod(a, byReference), mapping("[" + claim("1", a, fresh) + "]")},
			want:    []string{"1 " + a}, dynamic: true,
		},
		"by reference, without one": {
			objects: []client.Object{newPod(a, byReference)},
			want:    []string{"0 " + a},
		},
		"half of the pods are": {
			objects: []client.Object{newPod(a), newPod(b, on), mapping("[" + claim("1", b, fresh) + "]")},
			want:    []string{"-1 " + a + " unclaimed", "1 " + b}, dynamic: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(t, target(plan.Deployment), test.objects...)
			if diff := cmp.Diff(test.want, numbered(got)); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if test.patience == (Patience{}) {
				test.patience = Patience{10 * time.Second, 10 * time.Second}
			}
			if diff := cmp.Diff(Controllers{Dynamic: test.dynamic, Patience: test.patience, Problems: test.problems},
				Controllers{Dynamic: got.Dynamic, Patience: got.Patience, Problems: got.Problems}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	down := errors.New("the API server is away")
	objects := []client.Object{newPod(controllerName+"-5d9f7-aaaaa", env(dynamicEnv, "true"))}
	for want, funcs := range map[string]interceptor.Funcs{
		`listing the ReplicaSets in "argocd": the API server is away`: {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return down
		}},
		`listing the pods in "argocd": the API server is away`: {List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			if _, pods := l.(*corev1.PodList); pods {
				return down
			}
			return c.List(ctx, l, o...)
		}},
		`reading ConfigMap "argocd-app-controller-shard-cm" in "argocd": the API server is away`: {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		}},
	} {
		reader := interceptor.NewClient(cluster(objects...), funcs)
		got, err := List(t.Context(), reader, target(plan.Deployment), "", noon())
		if !errors.Is(err, down) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if diff := cmp.Diff(Controllers{}, got); diff != "" {
			t.Errorf("beside the error (-want +got):\n%s", diff)
		}
	}
}

// TestNoNodeTellsATimeThatJSONDoesNotHave: what is known of moves holds it, and would be written no more.
func TestNoNodeTellsATimeThatJSONDoesNotHave(t *testing.T) {
	far := metav1.Time{Time: time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	began, ended := &corev1.ContainerStateRunning{StartedAt: far}, &corev1.ContainerStateTerminated{Reason: oomKilled, FinishedAt: far}
	want := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for name, s := range map[string]corev1.ContainerStatus{
		"it ended":           {State: corev1.ContainerState{Terminated: ended}},
		"it begins again":    {RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended}},
		"it has begun again": {RestartCount: 1, State: corev1.ContainerState{Running: began}, LastTerminationState: corev1.ContainerState{Terminated: ended}},
	} {
		if at, _ := lastKill(&s); !at.Equal(want) {
			t.Errorf("%s: killed at %s", name, at)
		}
		if at := lastRestart(&s); !at.Equal(want) {
			t.Errorf("%s: restarted at %s", name, at)
		}
	}
}

// TestAPodWhoseKubeletCannotWriteItIsTold: who may write pods' status may bring a time by which what it says stands for good.
func TestAPodWhoseKubeletCannotWriteItIsTold(t *testing.T) {
	frozen := fmt.Sprintf("the status of pod %q has a time that JSON does not have, which somebody else than its kubelet wrote: the kubelet cannot write it any more, "+
		"and what it says stands for good; delete the pod, and see with `ballast audit` who may write pods' status", controllerName+"-1")
	for name, test := range map[string]struct {
		started metav1.Time
		want    []string
	}{
		"one within": {metav1.Now(), nil},
		"one beyond": {metav1.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{frozen}},
	} {
		c := interceptor.NewClient(cluster(newPod(controllerName+"-0"), newPod(controllerName+"-1")), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, into, opts...) // the fake one goes by JSON, the API server by protobuf
				pods := into.(*corev1.PodList)
				pods.Items[1].Status.StartTime = &test.started
				return err
			}})
		got, err := List(t.Context(), c, target(plan.StatefulSet), "", noon())
		if diff := cmp.Diff(test.want, got.Problems); diff != "" || err != nil || len(got.Pods) != 2 {
			t.Errorf("%s: %v, %d pods (-want +got):\n%s", name, err, len(got.Pods), diff)
		}
	}
}
