// Package sizes asserts on a real control plane what size policies make of running pods: the API server's resize
// subresource and its checks are real, and the plane's nodes accept, defer and refuse what is asked of them.
package sizes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

const (
	// patience is how long anything is waited for on a busy machine; startPatience has the first build of a machine in it.
	patience      = 6 * time.Minute
	startPatience = 25 * time.Minute
)

// replicas are the application-controllers.
const replicas = 3

// world is one installation that all steps share: they run in this order.
type world struct {
	*testing.T
	*site.Site
	alice string      // her kubeconfig: she works in Argo CD's namespace
	added map[int]int // Applications that came to a replica's clusters, by replica

	rollout, restarts map[string]any // of the configuration
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start installs Argo CD with three replicas of eight clusters each, and ballast over it.
func start(t *testing.T) *world {
	w := &world{T: t, added: map[int]int{}, rollout: map[string]any{"default": map[string]any{}}, restarts: map[string]any{"every": "24h"}}
	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	binaries, err := assets.Build(ctx, os.Stderr)
	w.must(err)
	ballast := t.TempDir() + "/ballast"
	w.must(site.BuildBallast(ctx, ballast, false))
	w.Site, err = site.Start(context.WithoutCancel(ctx),
		site.Options{Binaries: binaries, Ballast: ballast, Fleet: fleet.Options{Seed: 1}, Log: os.Stderr})
	w.must(err)
	t.Cleanup(w.Stop)
	w.must(w.Plane.StartCertManager(ctx))
	w.must(w.InstallArgoCD(ctx, func(s *corev1.Secret) { s.Data["shard"] = []byte(strconv.Itoa(shardOf(w.Fleet, s.Name))) }))
	w.kubectlAdmin("patch", "statefulset", fleet.Workload, "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"`+fleet.Workload+
		`","resources":{"requests":{"cpu":"250m","memory":"512Mi"},"limits":{"memory":"1Gi"}}}]}}}}`)
	w.must(w.WaitReady(ctx, replicas))
	w.must(w.Monitor(ctx))
	w.alice, err = w.Person(ctx, "alice")
	w.must(err)
	w.must(w.InstallBallast(ctx, w.config(nil)))
	return w
}

// config sizes each replica by the number of its Applications, and moves none. Each change differs by what shape says.
func (w *world) config(shape func(size, up map[string]any)) map[string]any {
	size := map[string]any{"interval": "0s", "policies": []any{map[string]any{"name": "ours", "rules": []any{map[string]any{
		"list": "requests", "resource": "memory", "base": "1Gi", "slope": "16Mi", "input": "apps"}}}}}
	up := map[string]any{}
	if shape != nil {
		shape(size, up)
	}
	c := w.Config("Enforce")
	c["failover"], c["size"], c["rollout"] = nil, size, w.rollout
	c["poll"] = map[string]any{"prometheus": map[string]any{"url": w.Prometheus, "timeout": "5s", "metrics": []any{map[string]any{
		"id": "apps", "query": `count by (dest_server) (group by (dest_server, namespace, exported_namespace, name) (` + // a pod that is gone shows for a while
			`argocd_app_info{ {{.pods}},dest_server!="" } {{.ofTargets}}))`,
		"match": map[string]any{"label": "dest_server", "to": "server"}, "noData": "0"}}}}
	c["index"] = map[string]any{"pNorm": map[string]any{"weights": map[string]any{"apps": "1"}}}
	moves, down := map[string]any{"mode": "Off", "rate": []any{}}, map[string]any{"stabilizationWindow": "0s"}
	c["change"] = map[string]any{"moves": moves, "up": up, "down": down, "restarts": w.restarts}
	return c
}

func (w *world) configure(shape func(size, up map[string]any)) {
	w.Helper()
	leader, err := w.Leader(w.Context())
	w.must(err)
	before, version := w.takenOver(leader), w.configVersion()
	w.must(w.Configure(w.Context(), w.config(shape)))
	if w.configVersion() == version {
		return
	}
	// Its node brings the file some time later; what comes first would be decided by the configuration of before.
	w.soon("the new configuration taken over", func(context.Context) error {
		if now := w.takenOver(leader); now <= before {
			return fmt.Errorf("planner %q took over %d", leader, now)
		}
		return nil
	})
}

// takenOver is how many new configurations a planner has taken over.
func (w *world) takenOver(planner string) int {
	w.Helper()
	text, err := w.Plane.PodLog(planner)
	w.must(err)
	return strings.Count(text, "took over a new configuration")
}

func (w *world) configVersion() string {
	w.Helper()
	cm, err := w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Get(w.Context(), "ballast-config", metav1.GetOptions{})
	w.must(err)
	return cm.ResourceVersion
}

func (w *world) kubectl(args ...string) (stdout string) {
	w.Helper()
	return w.kubectlAs(w.alice, args...)
}

func (w *world) kubectlAdmin(args ...string) (stdout string) {
	w.Helper()
	return w.kubectlAs("", args...)
}

func (w *world) kubectlAs(kubeconfig string, args ...string) string {
	w.Helper()
	out, _, err := w.Plane.Kubectl(w.Context(), kubeconfig, append([]string{"-n", w.Fleet.Namespace}, args...)...)
	w.must(err)
	return out
}

// soon waits until something is so.
func (w *world) soon(what string, check func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := site.Poll(ctx, check); err != nil {
		w.Fatalf("%s: %v\n%s", what, err, w.LastWords(w.Context(), 15))
	}
}

// life is what tells one pod, and one process in it, from another.
type life struct {
	UID      types.UID
	Restarts int32
	Started  time.Time
}

// size is a container's memory: what it asks for, its limit, and what its node has given it.
type size struct{ Request, Limit, Has string }

func (w *world) pod(replica int) *corev1.Pod {
	w.Helper()
	p, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(w.Context(), podName(replica), metav1.GetOptions{})
	w.must(err)
	return p
}

func podName(replica int) string { return fleet.Workload + "-" + strconv.Itoa(replica) }

func sizeOf(p *corev1.Pod) size {
	asks := p.Spec.Containers[0].Resources
	s := size{Request: asks.Requests.Memory().String(), Limit: asks.Limits.Memory().String()}
	if st := p.Status.ContainerStatuses; len(st) > 0 && st[0].Resources != nil {
		s.Has = st[0].Resources.Requests.Memory().String()
	}
	return s
}

func both(request, limit string) size { return size{request, limit, request} }

// sizesSoon waits until the replicas have these sizes.
func (w *world) sizesSoon(want ...size) {
	w.Helper()
	w.soon(fmt.Sprintf("sizes %v", want), func(ctx context.Context) error {
		var got []size
		for replica := range want {
			p, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, podName(replica), metav1.GetOptions{})
			if err != nil {
				return err
			}
			got = append(got, sizeOf(p))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

func (w *world) lives() (lives []life) {
	w.Helper()
	for replica := range replicas {
		lives = append(lives, w.life(replica))
	}
	return lives
}

func (w *world) life(replica int) life {
	w.Helper()
	p := w.pod(replica)
	st := p.Status.ContainerStatuses[0]
	if st.State.Running == nil {
		w.Fatalf("pod %s does not run: %+v", p.Name, st.State)
	}
	return life{p.UID, st.RestartCount, st.State.Running.StartedAt.Time}
}

func (w *world) statefulSet() *appsv1.StatefulSet {
	w.Helper()
	s, err := w.StatefulSet(w.Context())
	w.must(err)
	return s
}

// resizes are the writes to a pod's size that were let pass since then, by user.
func (w *world) resizes(replica int, since time.Time) map[string]int {
	w.Helper()
	events, err := w.Audit()
	w.must(err)
	by := map[string]int{}
	for _, e := range events {
		if e.Resource == "pods/resize" && e.Name == podName(replica) && e.Code == 200 && !e.DryRun && !e.Time.Before(since) {
			by[e.User]++
		}
	}
	return by
}

// at is the size of a replica as its Applications make it: 1Gi, and 16Mi for each.
func (w *world) at(replica int) size {
	apps := w.added[replica]
	for i, c := range w.Fleet.Clusters {
		if shardOf(w.Fleet, c.Name) == replica {
			apps += w.Fleet.Clusters[i].Work.Apps
		}
	}
	if replica == 0 { // and the cluster that Argo CD runs in
		apps += w.Fleet.InCluster.Work.Apps
	}
	bytes := int64(1<<30 + apps<<24)
	return both(inBytes(bytes), inBytes(2*bytes))
}

// all are the sizes of all replicas as their Applications make them.
func (w *world) all() (sizes []size) {
	for replica := range replicas {
		sizes = append(sizes, w.at(replica))
	}
	return sizes
}

// shardOf is the replica that a cluster has.
func shardOf(f *fleet.Fleet, name string) int { return slices.Index(f.Names(), name) % replicas }

func inBytes(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// largest is the size of the replica that has the most Applications by a plan.
func (w *world) largest(p site.Plan) size {
	apps, most := map[int]int{p.Clusters[w.Fleet.InCluster.Name].Replica: w.Fleet.InCluster.Work.Apps}, 0
	for _, c := range w.Fleet.Clusters {
		apps[p.Clusters[c.Name].Replica] += c.Work.Apps
	}
	for replica, more := range w.added {
		apps[p.Clusters[w.grows(replica).Name].Replica] += more
	}
	for _, n := range apps {
		most = max(most, n)
	}
	bytes := int64(1<<30 + most<<24)
	return both(inBytes(bytes), inBytes(2*bytes))
}

// grows is the cluster of a replica that gets more Applications.
func (w *world) grows(replica int) fleet.Cluster {
	i := slices.IndexFunc(w.Fleet.Clusters, func(c fleet.Cluster) bool { return shardOf(w.Fleet, c.Name) == replica && c.Work.Apps > 0 })
	return w.Fleet.Clusters[i]
}

// add gives a cluster of a replica so many Applications more.
func (w *world) add(replica, apps int) {
	w.Helper()
	c := w.grows(replica)
	w.added[replica] += apps
	w.Exporter.SetApps(c, c.Work.Apps+w.added[replica])
}

// blocked is what the plan says of changes of sizes that wait: moves are Off here, and wait all the time.
func (w *world) blocked(ctx context.Context) (string, error) {
	p, err := w.Plan(ctx)
	if err != nil || p == nil {
		return "", err
	}
	said := strings.Split(p.Annotation("blocked"), "; ")
	return strings.Join(slices.DeleteFunc(said, func(one string) bool { return strings.HasPrefix(one, "levelling ") }), "; "), nil
}

// blockedSoon waits until what waits has those words; none: nothing waits.
func (w *world) blockedSoon(words ...string) {
	w.Helper()
	w.soon(fmt.Sprintf("blocked %q", words), func(ctx context.Context) error {
		text, err := w.blocked(ctx)
		missing := slices.IndexFunc(words, func(word string) bool { return !strings.Contains(text, word) })
		if err == nil && (missing >= 0 || len(words) == 0 && text != "") {
			err = fmt.Errorf("the plan says %q", text)
		}
		return err
	})
}

// statusSoon waits until `ballast status` says that.
func (w *world) statusSoon(words string) {
	w.Helper()
	last := ""
	w.soon("status "+words, func(ctx context.Context) error {
		out, _, err := w.RunBallast(ctx, w.alice, "status")
		if strings.Contains(out, words) {
			return err
		}
		if out != "" {
			last = out
		}
		return errors.Join(fmt.Errorf("ballast status says\n%s", last), err)
	})
}

// metricSoon waits until the leader shows that line of ballast_size_blocked, and no other; empty: none.
func (w *world) metricSoon(line string) {
	w.Helper()
	w.soon("metric "+line, func(ctx context.Context) error {
		leader, err := w.Leader(ctx)
		if err != nil {
			return err
		}
		pod, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).Get(ctx, leader, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := w.Metrics(ctx, *pod)
		if err != nil {
			return err
		}
		var got []string
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "ballast_size_blocked{") {
				got = append(got, strings.TrimSpace(l))
			}
		}
		if strings.Join(got, "\n") != line {
			return fmt.Errorf("planner %q shows %q", leader, got)
		}
		return nil
	})
}

// eventSoon waits until people were told that, by an event of that reason.
func (w *world) eventSoon(reason, words string) {
	w.Helper()
	w.soon("event "+reason, func(ctx context.Context) error {
		events, err := w.Client.EventsV1().Events(w.Fleet.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		var got []string
		for _, e := range events.Items {
			got = append(got, e.Note)
			if strings.Contains(e.Note, words) {
				return nil
			}
		}
		return fmt.Errorf("the events say %q", got)
	})
}

// neighbour is a pod that takes a node's memory.
const neighbour = "neighbour"

// crowd leaves a node half a gibibyte of memory beside what its other pods have.
func (w *world) crowd(node string) {
	w.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
	w.must(err)
	pods, err := w.Client.CoreV1().Pods("").List(w.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	w.must(err)
	free := n.Status.Allocatable.Memory().Value() - 1<<29
	for _, p := range pods.Items {
		for _, c := range p.Spec.Containers {
			free -= c.Resources.Requests.Memory().Value()
		}
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(free, resource.BinarySI)}
	_, err = w.Client.CoreV1().Pods(w.Fleet.Namespace).Create(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: neighbour},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: memory}}}}}, metav1.CreateOptions{})
	w.must(err)
	w.kubectlAdmin("wait", "pod/"+neighbour, "--for=condition=Ready", "--timeout=60s")
}

// told is how much memory people are told of that a replica is to have: up to a sixteenth more, of a round number, so that what
// they are told is the same for a while.
func told(memory string) string {
	q := resource.MustParse(memory)
	unit := int64(1)
	for unit*2 <= q.Value()/16 {
		unit *= 2
	}
	return inBytes((q.Value() + unit - 1) / unit * unit)
}

// waits is what people are told of a replica that is to have that much memory, and has another size.
func waits(who, memory string, stands size) string {
	return fmt.Sprintf("%s: memory %s instead of %s", who, told(memory), stands.Request)
}
