package newcomer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// step is a heading of docs/quick-start.md: what the newcomer does there, and the commands of ballast's that run in it.
type step struct {
	name     string
	do       func(w *walk, t *testing.T)
	commands []string
}

// steps are the whole way. planner, webhook, watch and certs run as pods.
func steps() []step {
	return []step{
		{"get the binary", (*walk).getsTheBinary, []string{"version", "help",
			"completion bash", "completion fish", "completion powershell", "completion zsh",
			"config default", "config check", "config convert", "config explain"}},
		{"look", (*walk).looks, []string{"doctor", "plan", "explain", "whatif", "replay"}},
		{"observe", (*walk).observes, []string{"planner", "webhook", "watch", "status", "explain"}},
		{"read the page", (*walk).readsThePage, []string{"status"}},
		{"hold", (*walk).holds, []string{"status"}},
		{"enforce", (*walk).enforces, []string{"status", "doctor"}},
		{"pin", (*walk).pins, []string{"explain"}},
		{"steer", (*walk).steers, []string{"freeze", "evacuate", "rebase", "calibrate"}},
		{"audit", (*walk).audits, []string{"audit"}},
		{"roll back", (*walk).rollsBack, []string{"rollback", "resume"}},
		{"uninstall", (*walk).uninstalls, []string{"uninstall"}},
	}
}

// walkIt takes the steps in turn, and stops at the first that does not do what it says.
func walkIt(t *testing.T, by way) {
	w := start(t, by)
	for _, s := range steps() {
		began := time.Now()
		w.commands = nil
		if !t.Run(s.name, func(t *testing.T) { s.do(w, t) }) {
			t.FailNow()
		}
		same(t, "the commands of step "+s.name, alone(s.commands), alone(w.commands))
		t.Logf("%s took %.1f s", s.name, time.Since(began).Seconds())
	}
}

const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"

func (w *walk) getsTheBinary(t *testing.T) {
	w.run(t, w.bob, "version", nil, `^proven with Kubernetes v?\d+\.\d+\.\d+ and Argo CD v?\d+\.\d+\.\d+$`)
	w.run(t, w.bob, "help", []string{"plan"}, `^Show what ballast would change|^  ballast plan \[flags\]$`)
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		w.run(t, w.bob, "completion "+shell, nil, "__complete")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	shipped := w.run(t, w.bob, "config default", nil, "^kind: PlannerConfig$", "^mode: Observe")
	w.run(t, w.bob, "config check", []string{file("shipped.yaml", shipped)}, "")
	converted := w.run(t, w.bob, "config convert", []string{file("cpvps.yaml", scalingPolicy)}, "^    - base: 1Gi$", "^      input: clusters$")
	w.run(t, w.bob, "config explain", []string{file("sized.yaml", converted)}, "memory", "clusters")
}

const scalingPolicy = `apiVersion: scalingpolicy.kope.io/v1alpha1
kind: ScalingPolicy
metadata: {name: controller, namespace: argocd}
spec:
  scaleTargetRef: {kind: StatefulSet, name: argocd-application-controller}
  containers:
  - name: application-controller
    resources:
      requests:
      - {resource: memory, max: 8Gi, function: {base: 1Gi, input: clusters, slope: 64Mi}}
`

// looks at an existing fleet: nothing is installed, nothing is written.
func (w *walk) looks(t *testing.T) {
	before, owners := w.versions(t), w.owners(t)
	from := "--prometheus=" + w.Prometheus
	w.run(t, w.bob, "doctor", []string{from}, `^OK +scrapes +every \d+ s`, `^0 faults, `)
	lpt := filepath.Join(t.TempDir(), "lpt.yaml")
	must(t, os.WriteFile(lpt, []byte(head+"partition: {lpt: {}, capacity: \"0.3\"}\n"), 0o600))
	saved := w.plans(t, w.bob, []string{from, "--config=" + lpt, "--all", "--save-inputs=" + w.inputs},
		`^Would be: makespan over mean 1\.\d+ on 4 replicas, \d+ moves$`)
	again := w.plans(t, w.bob, []string{"--all", "--inputs=" + w.inputs})
	same(t, "the plan of the cycle that was saved", saved, again)
	w.run(t, w.bob, "explain", []string{w.moved, "--inputs=" + w.inputs},
		fmt.Sprintf(`^%s \(https://\S+\) is on replica %d: `, w.moved, owners[w.moved]), `^By the partition `)
	w.run(t, w.bob, "whatif", []string{"--lose=2", "--inputs=" + w.inputs},
		`^2 +\S+ \(\d+\) +\S+ \(\d+\) +lost \(0\)$`, `^Nothing was changed\.$`)
	w.run(t, w.bob, "replay", []string{from, "--last=1h", "--config=shipped", "--config=legacy"},
		`^asking \S+ about 24 cluster Secrets every 5m of the last 1h$`, `^the last 1h: `, `^shipped +`, `^legacy +`)
	same(t, "what a look changes", before, w.versions(t))
	p, err := w.Plan(t.Context())
	must(t, err)
	if p != nil {
		t.Errorf("a look wrote a plan: %s", p.Text)
	}
}

// observes installs ballast as it ships: its first plan is the fleet as it is, and nothing of Argo CD's is written.
func (w *walk) observes(t *testing.T) {
	before, owners := w.versions(t), w.owners(t)
	must(t, w.way.install(t.Context(), w))
	must(t, w.RunBallastsPods(t.Context()))
	p := w.planSoon(t, "the first plan is there", func(p site.Plan) bool { return p.Revision > 0 })
	same(t, "the first plan", owners, p.Replica())
	same(t, "its mode and replicas", []any{"Observe", 3, int64(3)}, []any{p.Mode, p.Replicas, int64(p.ControllerReplicas)})
	w.run(t, w.bob, "status", nil, `^Plan revision \d+, Observe, decided `)
	w.run(t, w.bob, "explain", []string{w.moved}, fmt.Sprintf(`^%s \(https://\S+\) is on replica %d: `, w.moved, owners[w.moved]))
	same(t, "what observing changes", before, w.versions(t))
	w.ranAsPods(t)
	w.watches(t, owners)
}

// ranAsPods notes the commands that the installed Deployments run.
func (w *walk) ranAsPods(t *testing.T) {
	t.Helper()
	for component, command := range map[string]string{"planner": "planner", "webhook": "webhook", "watch": "watch", "certs": "certs"} {
		pods, err := w.Pods(t.Context(), component)
		must(t, err)
		for _, pod := range pods {
			if args := pod.Spec.Containers[0].Args; args[0] != command {
				t.Errorf("pod %s runs %q", pod.Name, args)
			}
			if command != "certs" { // with Helm alone
				w.commands = append(w.commands, command)
			}
		}
		if want := !w.way.certManager || component != "certs"; (len(pods) > 0) != want {
			t.Errorf("%d pods are a %s's", len(pods), component)
		}
	}
}

// watches reads what ballast watch shows: nobody is orphaned, and each replica has its clusters.
func (w *walk) watches(t *testing.T, owners map[string]int) {
	t.Helper()
	want := map[int]int{0: 1} // the in-cluster
	for name, replica := range owners {
		if name != fleet.Idle { // no pod shows a cluster without Applications
			want[replica]++
		}
	}
	w.soon(t, "ballast watch shows who has which cluster", func(ctx context.Context) error {
		pods, err := w.Pods(ctx, "watch")
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods: %w", len(pods), err)
		}
		text, err := w.Metrics(ctx, pods[0])
		if err != nil {
			return err
		}
		for replica, n := range want {
			if line := fmt.Sprintf("ballast_watch_clusters{replica=\"%d\"} %d\n", replica, n); !strings.Contains(text, line) {
				return fmt.Errorf("no line %q in %s", line, text)
			}
		}
		for _, none := range []string{"orphaned_clusters", "doubled_clusters", "unwell_replicas", "silent_pods"} {
			if !strings.Contains(text, "ballast_watch_"+none+" 0\n") {
				return fmt.Errorf("not 0 %s", none)
			}
		}
		return nil
	})
}

// readsThePage at each planner, and by a command with no right but his own.
func (w *walk) readsThePage(t *testing.T) {
	p := w.planSoon(t, "there is a plan", func(site.Plan) bool { return true })
	w.soon(t, "each planner shows the page", func(ctx context.Context) error {
		pods, err := w.Pods(ctx, "planner")
		if err != nil || len(pods) != 2 {
			return fmt.Errorf("%d planners: %w", len(pods), err)
		}
		for _, pod := range pods {
			text, err := w.podsPage(ctx, pod)
			if err = errors.Join(err, reads(text, p)); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, reads(w.served(t), p))
}

// holds: each cluster's present owner is written into its Secret; nothing moves, nothing restarts.
func (w *walk) holds(t *testing.T) {
	owners := w.owners(t)
	sts, err := w.StatefulSet(t.Context())
	must(t, err)
	must(t, w.way.mode(t.Context(), w, "Hold"))
	p := w.planSoon(t, "the mode is Hold", func(p site.Plan) bool { return p.Mode == "Hold" })
	same(t, "the plan", owners, p.Replica())
	w.soon(t, "each Secret has its owner", w.shardsAre(owners))
	same(t, "who has which cluster", owners, w.owners(t))
	after, err := w.StatefulSet(t.Context())
	must(t, err)
	same(t, "the workload's template", sts.Status.UpdateRevision, after.Status.UpdateRevision)
	w.run(t, w.bob, "status", nil, `^Plan revision \d+, Hold, decided `, `^Nothing differs from the plan\.$`)
	w.beforeLevel = p
}

// enforces: the fleet is spread over four replicas, each cluster where the plan has it.
func (w *walk) enforces(t *testing.T) {
	must(t, w.way.mode(t.Context(), w, "Enforce"))
	p := w.levelled(t)
	same(t, "the replicas", []int{4, 4}, []int{p.Replicas, p.ControllerReplicas})
	w.run(t, w.bob, "status", nil, fmt.Sprintf(`^Plan revision %d, Enforce, decided `, p.Revision), `^Nothing differs from the plan\.$`)
	w.run(t, w.Plane.KubeconfigPath(), "doctor", nil, `^OK +webhook +ballast\.argocd is as shipped`, `^0 faults, `)
}

// levelled waits until nothing is under way and the replicas are four.
func (w *walk) levelled(t *testing.T) site.Plan {
	t.Helper()
	since := time.Now()
	w.planSoon(t, "the plan is in force", func(p site.Plan) bool { return p.Mode == "Enforce" && p.Replicas == 4 && p.Rollout == nil })
	w.soon(t, "it rests", func(ctx context.Context) error { return w.Settled(ctx, since) })
	return w.agreed(t, "the fleet is level", func(p site.Plan) bool { return p.Replicas == 4 })
}

// agreed waits for a plan at rest that everything agrees with: the Secrets, Argo CD's own code, and what the replicas show.
func (w *walk) agreed(t *testing.T, what string, is func(p site.Plan) bool) site.Plan {
	t.Helper()
	var agreed site.Plan
	w.soon(t, what, func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		if err != nil {
			return err
		}
		if p == nil || p.Rollout != nil || !is(*p) {
			return fmt.Errorf("the plan is %+v", p)
		}
		agreed = *p
		if err := errors.Join(w.Ready(ctx, p.Replicas), w.shardsAre(p.Replica())(ctx)); err != nil {
			return err
		}
		owners, err := w.view(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(p.Replica(), owners); diff != "" {
			return fmt.Errorf("who has which cluster by Argo CD's code (-plan +has):\n%s", diff)
		}
		return w.shown(*p)
	})
	return agreed
}

// shown is nil where the replicas' metrics show the plan's owners.
func (w *walk) shown(p site.Plan) error {
	for name, pods := range w.Exporter.Owners() {
		row, planned := p.Clusters[name]
		if want := []string{fleet.Workload + "-" + strconv.Itoa(row.Replica)}; planned && !slices.Equal(want, pods) {
			return fmt.Errorf("%s is owned by %q, want %q", name, pods, want)
		}
	}
	return nil
}

// pins a cluster, as kubectl edit would: to a replica that there was before ballast came, so that there is a way back.
func (w *walk) pins(t *testing.T) {
	p := w.planSoon(t, "there is a plan", func(site.Plan) bool { return true })
	target := (p.Clusters[w.moved].Replica + 1) % w.beforeLevel.Replicas
	patch := fmt.Sprintf(`{"data":{"pins":"%s: %d\n"}}`, w.moved, target)
	_, err := w.patches(t, "configmap", site.PlanConfigMap, patch)
	must(t, err)
	w.agreed(t, "the cluster is where it is pinned", func(p site.Plan) bool {
		return p.Clusters[w.moved].Pinned && p.Clusters[w.moved].Replica == target
	})
	w.run(t, w.bob, "explain", []string{w.moved},
		fmt.Sprintf(`^%s \(https://\S+\) is on replica %d: it is pinned to replica %[2]d\.$`, w.moved, target))
}

// patches runs kubectl patch as alice, and gives what it warns of.
func (w *walk) patches(t *testing.T, kind, name, patch string) (warned string, err error) {
	t.Helper()
	_, warned, err = w.Plane.Kubectl(t.Context(), w.alice, "-n", w.Fleet.Namespace, "patch", kind, name, "--type=merge", "-p", patch)
	return warned, err
}

// steers: what people do besides, in a freeze, so that nothing but what they ask for moves.
func (w *walk) steers(t *testing.T) {
	w.run(t, w.alice, "freeze", []string{"--reason=a sale"}, `^Frozen: `, `^Reason +a sale$`)
	p := w.agreed(t, "it rests", func(site.Plan) bool { return true })
	emptied := 0 // of neither the pinned cluster nor the heaviest
	for emptied == p.Clusters[w.moved].Replica || emptied == p.Clusters[fleet.Giant].Replica {
		emptied++
	}
	its := strconv.Itoa(emptied)
	w.run(t, w.alice, "evacuate", []string{its, "--dry-run"},
		`^Replica `+its+` would take nothing and be emptied until `, `^Nothing was changed\.$`)
	w.run(t, w.alice, "evacuate", []string{its, "--for=1h"}, `^Replica `+its+` takes nothing and is emptied until `)
	w.agreed(t, "the replica is empty", func(p site.Plan) bool {
		return !slices.Contains(slices.Collect(maps.Values(p.Replica())), emptied)
	})
	w.run(t, w.alice, "evacuate", []string{its, "--off"}, `^Replica `+its+` is no longer cordoned`)
	// The simulated pods have no memory of their own: let it be 2000 bytes an object, beside 200 MB. The clusters have just moved,
	// and on a busy machine the objects are not yet asked for as of the same moment: the fit need not be exact here.
	memory := "--memory-query=200e6 + 2000 * sum by (pod) (argocd_cluster_api_resource_objects)"
	w.run(t, w.bob, "calibrate", []string{"--prometheus=" + w.Prometheus, memory, "--memory-limit=4Gi", "--range=3m", "--step=5s"},
		`^memory +\d+ +[34] +(0\.9\d|1\.00) `, `^Memory of a pod: \d+\.\d MiB, and$`)
	w.run(t, w.alice, "rebase", []string{"--yes"}, `^Asked: the planner takes the references anew`)
}

// audits who tried what, where the API server keeps an audit log.
func (w *walk) audits(t *testing.T) {
	p := w.planSoon(t, "there is a plan", func(site.Plan) bool { return true })
	right := p.Clusters[fleet.Giant].Replica
	wrong := (right + 1) % p.Replicas
	patch := fmt.Sprintf(`{"stringData":{"shard":"%d"}}`, wrong)
	warned, err := w.patches(t, "secret", fleet.Giant, patch)
	must(t, err)
	if !strings.Contains(warned, fmt.Sprintf("Warning: ballast: shard %d was asked, %d stays", wrong, right)) {
		t.Errorf("kubectl told alice %q", warned)
	}
	w.run(t, w.bob, "audit", []string{"--namespace=" + w.Fleet.Namespace, "--user=alice", w.Plane.AuditLogPath()},
		fmt.Sprintf(`secret/%s .*shard=%d .*shard=%d`, fleet.Giant, wrong, right))
}

// rollsBack to the fleet as it was found, but for the pin, and ends the freeze: nothing that levels begins so soon after it.
func (w *walk) rollsBack(t *testing.T) {
	to := strconv.Itoa(w.beforeLevel.Revision)
	w.run(t, w.alice, "rollback", nil, `^Revision \d+ is in force\.$`, `^`+to+` +`)
	w.run(t, w.alice, "rollback", []string{to, "--yes"}, `^The planner begins within its interval, in waves`)
	p := w.agreed(t, "the fleet is as it was found", func(p site.Plan) bool { return p.Replicas == 3 })
	want := w.beforeLevel.Replica()
	want[w.moved] = p.Clusters[w.moved].Replica
	same(t, "the plan", want, p.Replica())
	w.run(t, w.alice, "resume", []string{"--yes"}, `^Not frozen: `)
}

// uninstalls: every cluster keeps its owner, and one that is added later has one.
func (w *walk) uninstalls(t *testing.T) {
	before, owners := w.planSoon(t, "there is a plan", func(p site.Plan) bool { return p.Rollout == nil }), w.owners(t)
	same(t, "who has which cluster before", before.Replica(), owners)
	w.run(t, w.Plane.KubeconfigPath(), "uninstall", []string{"--yes"}, `^ballast is gone\. Every cluster Secret keeps its shard\.$`)
	must(t, w.way.forget(t.Context(), w))
	must(t, w.WaitReady(t.Context(), before.Replicas))
	same(t, "who has which cluster after", owners, w.owners(t))
	w.soon(t, "no pod of ballast's is left", func(ctx context.Context) error {
		for _, component := range []string{"planner", "webhook", "watch", "certs"} {
			pods, err := w.Pods(ctx, component)
			if err = errors.Join(err, gone(pods)); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, w.Apply(t.Context(), w.alice, w.Fleet.Secret(w.Fleet.Another("after-1"))))
	if owner, has := w.owners(t)["after-1"]; !has || owner >= before.Replicas {
		t.Errorf("a cluster that is added then has the owner %d, %t", owner, has)
	}
	left, _, err := w.Plane.Kubectl(t.Context(), "", "get", "-A", "-l", "app.kubernetes.io/part-of=ballast", "--ignore-not-found",
		"-o=name",
		"deployments,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,configmaps,secrets,poddisruptionbudgets,networkpolicies,"+
			"priorityclasses,mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings")
	must(t, err)
	same(t, "what is left of ballast", "", left)
	releases, _, err := w.Plane.Kubectl(t.Context(), "", "get", "secrets", "-n", w.Fleet.Namespace, "-l", "owner=helm", "-o=name")
	must(t, err)
	same(t, "what is left of Helm", "", releases)
}

func gone(pods []corev1.Pod) error {
	if len(pods) > 0 {
		return fmt.Errorf("pod %s is there", pods[0].Name)
	}
	return nil
}

// subcommands are what a command's help lists, below its name.
func subcommands(help string) []string {
	_, list, found := strings.Cut(help, "\nAvailable Commands:\n")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) `).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}
