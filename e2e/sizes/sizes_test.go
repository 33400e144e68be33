package sizes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// TestSizes is the life of an installation with size policies.
func TestSizes(t *testing.T) {
	w := start(t)
	for _, step := range []struct {
		name string
		run  func(*world)
	}{
		{"the pods that run get their sizes in place", (*world).inPlace},
		{"a load step raises one replica's request in its window, once, and no pod restarts", (*world).loadStep},
		{"a pod that was deleted comes back with its size", (*world).deleted},
		{"what a person makes of a pod's size is put back", (*world).putBack},
		{"a shrink below what a pod uses is its node's to say, and done once it uses less", (*world).refusedShrink},
		{"under break-glass sizes are people's, and once it is over the plan's", (*world).breakGlass},
		{"what a node puts off or refuses is shown, asked for once, and done when there is room", (*world).noRoom},
		{"a pod that was OOM-killed goes up at once", (*world).oomKilled},
		{"rollouts become live, and pods come back with their sizes", (*world).live},
		{"by the template it waits for the waves under way, is one rollout, and no second one that day", (*world).template},
		{"what a person makes of the template's size is put back", (*world).templatePutBack},
	} {
		ended := t.Run(step.name, func(t *testing.T) {
			scene := *w
			scene.T = t
			step.run(&scene)
		})
		if !ended { // what follows stands on it
			return
		}
	}
}

func (w *world) inPlace() {
	before, generation := w.lives(), w.statefulSet().Generation
	w.sizesSoon(w.all()...)
	w.same(before, generation)
	if r := w.statefulSet().Spec.Template.Spec.Containers[0].Resources; r.Requests.Memory().String() != "512Mi" {
		w.Errorf("the pod template was written: %v", r)
	}
	w.blockedSoon()
}

// same asserts that no pod and no process is another one, and that nobody wrote to the workload.
func (w *world) same(before []life, generation int64) {
	w.Helper()
	if diff := cmp.Diff(before, w.lives()); diff != "" {
		w.Errorf("a pod restarted (-before +after):\n%s", diff)
	}
	if now := w.statefulSet().Generation; now != generation {
		w.Errorf("the workload was written: generation %d after %d", now, generation)
	}
}

// window is one that begins so much from now, and lasts two hours.
func window(from time.Duration) func(size, up map[string]any) {
	begin := time.Now().UTC().Add(from)
	return func(_, up map[string]any) {
		up["mode"] = "MaintenanceWindow"
		up["windows"] = []any{map[string]any{"begin": begin.Format("15:04"), "end": begin.Add(2 * time.Hour).Format("15:04")}}
	}
}

// loadStep has a window that begins in three hours, and then one that it is in the middle of.
func (w *world) loadStep() {
	before, generation, since, sizes := w.lives(), w.statefulSet().Generation, time.Now(), w.all()
	w.configure(window(3 * time.Hour))
	w.add(1, 128)
	waiting := waits("replica 1", w.at(1).Request, sizes[1])
	w.blockedSoon(waiting, "MaintenanceWindow")
	w.metricSoon(`ballast_size_blocked{direction="up",reason="MaintenanceWindow"} 1`)
	w.statusSoon(waiting + " waits since")
	w.eventSoon("ChangeBlocked", waiting)
	w.sizesSoon(sizes...)
	w.configure(window(-time.Hour))
	w.sizesSoon(w.all()...)
	w.blockedSoon()
	w.metricSoon("")
	w.same(before, generation)
	w.resizedBy("in its window", since, map[string]int{}, map[string]int{site.PlannerUser: 1}, map[string]int{})
}

func (w *world) deleted() {
	before, since := w.life(1), time.Now()
	w.kubectl("delete", "pod", podName(1), "--wait=false")
	w.soon("another pod", func(ctx context.Context) error {
		p, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, podName(1), metav1.GetOptions{})
		if err == nil && (p.UID == before.UID || len(p.Status.ContainerStatuses) == 0) {
			err = fmt.Errorf("it is %s", p.UID)
		}
		return err
	})
	w.must(w.WaitReady(w.Context(), replicas))
	w.sizesSoon(w.all()...)
	if diff := cmp.Diff(map[string]int{}, w.resizes(1, since)); diff != "" {
		w.Errorf("it did not come with its size, and was resized by (-want +got):\n%s", diff)
	}
	events, err := w.Audit()
	w.must(err)
	var got []string
	for _, e := range events {
		if e.Verb == "create" && e.Resource == "pods" && e.Name == podName(1) && !e.Time.Before(since) {
			got = append(got, fmt.Sprintf("%s %s, %s -> %s", e.Webhook, e.Reason, e.Requested, e.Enforced))
		}
	}
	want := []string{fmt.Sprintf("pods Restored, limits.memory=1Gi requests.memory=512Mi -> limits.memory=%s requests.memory=%s",
		w.at(1).Limit, w.at(1).Request)}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("the audit log of its creation (-want +got):\n%s", diff)
	}
}

// resize is what alice makes of a pod's size by hand.
func (w *world) resize(replica int, memory string) {
	w.Helper()
	w.kubectl("patch", "pod", podName(replica), "--subresource=resize", "-p", memoryPatch("", memory))
}

// memoryPatch is a strategic merge patch of the controller's memory request, below that much of JSON.
func memoryPatch(above, memory string) string {
	const patch = `"spec":{"containers":[{"name":"argocd-application-controller","resources":{"requests":{"memory":"%s"}}}]}`
	if above == "" {
		return fmt.Sprintf("{"+patch+"}", memory)
	}
	return fmt.Sprintf(`{"spec":{%q:{`+patch+`}}}`, above, memory)
}

func (w *world) putBack() {
	before, generation, since := w.lives(), w.statefulSet().Generation, time.Now()
	w.resize(2, "1Gi")
	w.soon("alice's size put back by the planner", func(context.Context) error {
		if by := w.resizes(2, since); by["alice"] != 1 || by[site.PlannerUser] != 1 {
			return fmt.Errorf("resized by %v", by)
		}
		return nil
	})
	w.sizesSoon(w.all()...)
	w.same(before, generation)
}

// refusedShrink has a person raise a limit, which the pod then uses more of than the plan gives it: its node shrinks it once it
// uses less, and says so until then.
func (w *world) refusedShrink() {
	before, generation := w.lives(), w.statefulSet().Generation
	held := resource.MustParse(w.at(2).Limit)
	raised, used := held.DeepCopy(), held.DeepCopy()
	raised.Add(resource.MustParse("1Gi"))
	used.Add(resource.MustParse("512Mi"))
	w.kubectlAdmin("annotate", "pod", podName(2), "plane.ballast/memory-in-use="+used.String())
	w.kubectl("patch", "pod", podName(2), "--subresource=resize", "-p",
		fmt.Sprintf(`{"spec":{"containers":[{"name":"argocd-application-controller","resources":{"limits":{"memory":"%s"}}}]}}`, raised.String()))
	w.statusSoon(fmt.Sprintf("Failed (attempting to set pod memory limit (%d) below current usage (%d))", held.Value(), used.Value()))
	w.kubectlAdmin("annotate", "pod", podName(2), "plane.ballast/memory-in-use-")
	w.sizesSoon(w.all()...)
	w.same(before, generation)
}

// breakGlass has a person resize a pod, and another pod made anew, while nothing is enforced.
func (w *world) breakGlass() {
	since, before := time.Now(), w.life(1)
	w.kubectl("annotate", "configmap", site.PlanConfigMap, "ballast.argoproj.io/enforcement=off")
	w.eventSoon("EnforcementOff", "every write passes")
	w.resize(2, "1Gi")
	w.kubectl("delete", "pod", podName(1), "--wait=false")
	w.soon("another pod", func(ctx context.Context) error {
		p, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, podName(1), metav1.GetOptions{})
		if err == nil && (p.UID == before.UID || len(p.Status.ContainerStatuses) == 0) {
			err = fmt.Errorf("it is %s", p.UID)
		}
		return err
	})
	w.must(w.WaitReady(w.Context(), replicas))
	w.sizesSoon(w.at(0), both("512Mi", "1Gi"), both("1Gi", w.at(2).Limit))
	w.resizedBy("under break-glass", since, map[string]int{}, map[string]int{}, map[string]int{"alice": 1})
	lives := w.lives()
	w.kubectl("annotate", "configmap", site.PlanConfigMap, "ballast.argoproj.io/enforcement-")
	w.sizesSoon(w.all()...)
	w.resizedBy("once it is over", since, map[string]int{}, map[string]int{site.PlannerUser: 1}, map[string]int{"alice": 1, site.PlannerUser: 1})
	if diff := cmp.Diff(lives, w.lives()); diff != "" {
		w.Errorf("a pod restarted (-before +after):\n%s", diff)
	}
}

// resizedBy asserts who resized each replica's pod since then.
func (w *world) resizedBy(when string, since time.Time, want ...map[string]int) {
	w.Helper()
	for replica, by := range want {
		if diff := cmp.Diff(by, w.resizes(replica, since)); diff != "" {
			w.Errorf("%s: resizes of replica %d by user (-want +got):\n%s", when, replica, diff)
		}
	}
}

// noRoom takes a replica's node first so that its growth has to wait for room, and then so that it refuses all growth.
func (w *world) noRoom() {
	before, generation, since, had, node := w.lives(), w.statefulSet().Generation, time.Now(), w.at(1), w.pod(1).Spec.NodeName
	w.crowd(node)
	w.add(1, 64)
	asked := w.all()
	asked[1].Has = had.Has
	w.sizesSoon(asked...)
	w.statusSoon("Deferred")
	w.kubectlAdmin("annotate", "node", node, "plane.ballast/resizes=refused")
	w.statusSoon("Infeasible")
	w.eventSoon("NodeFull", fmt.Sprintf("the node of pod %q has no room for the size of replica 1", podName(1)))
	w.kubectlAdmin("annotate", "node", node, "plane.ballast/resizes-")
	w.kubectlAdmin("delete", "pod", neighbour, "--wait=false")
	w.sizesSoon(w.all()...)
	w.same(before, generation)
	if diff := cmp.Diff(map[string]int{site.PlannerUser: 1}, w.resizes(1, since)); diff != "" {
		w.Errorf("resizes by user (-want +got):\n%s", diff)
	}
}

// oomKilled has waits that hold every other growth, and a kill that waits for none of them.
func (w *world) oomKilled() {
	w.configure(func(_, up map[string]any) { up["cooldown"], up["stabilizationWindow"] = "1h", "1h" })
	asked := w.all()
	w.add(1, 64)
	w.blockedSoon(waits("replica 1", w.at(1).Request, asked[1]), "StabilizationWindow")
	before, generation := w.lives(), w.statefulSet().Generation
	w.kubectlAdmin("annotate", "pod", podName(0), "plane.ballast/state=OOMKilled")
	asked[0].Limit = raisedBy(asked[0].Limit)
	w.sizesSoon(asked...)
	w.kubectlAdmin("annotate", "pod", podName(0), "plane.ballast/state-")
	w.must(w.WaitReady(w.Context(), replicas))
	before[0].Restarts, before[0].Started = 1, w.life(0).Started // by the kill
	w.same(before, generation)
}

// raisedBy is the limit after a kill at that one: a fifth more, each in steps of 64Mi.
func raisedBy(limit string) string {
	const step = 64 << 20
	q := resource.MustParse(limit)
	steps := (q.Value() + step - 1) / step
	return inBytes((steps*6 + 4) / 5 * step)
}

// templated is the template's size.
func (w *world) templated() size {
	w.Helper()
	r := w.statefulSet().Spec.Template.Spec.Containers[0].Resources
	return both(r.Requests.Memory().String(), r.Limits.Memory().String())
}

// live is the one restart after which clusters move in waves.
func (w *world) live() {
	delete(w.rollout, "default")
	w.rollout["live"], w.restarts["every"] = map[string]any{"nudge": false}, "0s" // Applications are none
	w.configure(nil)
	w.soon("live rollouts", func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		if err == nil && (p.ControllerReplicas != 16 || p.Rollout != nil) {
			err = fmt.Errorf("the plan has %d, under way: %+v", p.ControllerReplicas, p.Rollout)
		}
		return err
	})
	w.must(w.WaitReady(w.Context(), replicas))
	want := w.all()
	want[0].Limit = raisedBy(want[0].Limit) // it was killed
	w.sizesSoon(want...)
}

// template has one size for all, which the largest replica makes. While clusters leave replica 2 in waves it waits.
func (w *world) template() {
	before, generation := w.lives(), w.statefulSet().Generation
	w.slowWave(2)
	w.configure(func(size, _ map[string]any) { size["apply"] = "template" })
	w.blockedSoon("every replica: memory", "RolloutInProgress")
	w.statusSoon("every replica: memory")
	w.eventSoon("ChangeBlocked", "every replica: memory")
	w.same(before, generation)
	w.Exporter.Late()
	var want size
	w.soon("the template's size", func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		if err != nil || p.Rollout != nil {
			return errors.Join(err, errors.New("clusters move"))
		}
		want = w.largest(*p)
		if got := w.templated(); got != want {
			return fmt.Errorf("the template has %v, want %v", got, want)
		}
		return nil
	})
	w.must(w.WaitReady(w.Context(), replicas))
	w.sizesSoon(want, want, want)
	w.eventSoon("PlanWritten", "the pod template gets another size, for which every replica restarts")
	after := w.lives()
	for replica := range after {
		if after[replica].UID == before[replica].UID {
			w.Errorf("replica %d did not restart for the template", replica)
		}
	}
	w.restarts["every"] = "24h"
	w.configure(func(size, _ map[string]any) { size["apply"] = "template" })
	w.add(1, 64)
	p, err := w.Plan(w.Context())
	w.must(err)
	w.blockedSoon(waits("every replica", w.largest(*p).Request, want), "RateLimit")
	w.same(after, generation+1)
}

// slowWave has a person empty a replica, whose clusters no other one takes up for the time being.
func (w *world) slowWave(replica int) {
	w.Helper()
	var leave []fleet.Cluster
	for _, c := range w.Fleet.Clusters {
		if shardOf(w.Fleet, c.Name) == replica {
			leave = append(leave, c)
		}
	}
	w.Exporter.Late(leave...)
	until := time.Now().UTC().Add(2 * time.Hour).Format(time.RFC3339)
	w.kubectl("annotate", "configmap", site.PlanConfigMap, fmt.Sprintf("ballast.argoproj.io/cordon=%d=%s", replica, until))
	w.soon("a wave off the replica", func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		if err == nil && (p.Rollout == nil || len(p.Rollout.Moves) == 0) {
			err = fmt.Errorf("under way: %+v", p.Rollout)
		}
		return err
	})
}

func (w *world) templatePutBack() {
	before, generation, want := w.lives(), w.statefulSet().Generation, w.templated()
	w.kubectl("patch", "statefulset", "argocd-application-controller", "-p", memoryPatch("template", "600Mi"))
	if got := w.templated(); got != want {
		w.Errorf("the template has %v, want %v", got, want)
	}
	w.same(before, generation)
}
