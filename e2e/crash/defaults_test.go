package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ballast/e2e/hooked"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/controller/gather"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/probe"
	"ballast/planner/sim"
)

// TestTheShippedConfigurationRunsAsItIs takes a fleet through its first hours under the configuration that is shipped:
// it observes; then a person sets mode: Enforce, and everything else is what the defaults make of it. The API server
// has the shipped webhook configuration and Roles, with the real webhook behind it; Prometheus answers over HTTP; the
// StatefulSet's controller, kubelets and Argo CD are simulated, and the clock is injected.
func TestTheShippedConfigurationRunsAsItIs(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	c := defaultsCase()
	r := newCrashRunIn(t, site.Admin, hooked.Namespace, c)
	r.planner = r.memo.Over(site.As(hooked.Planner))
	r.fetcher = func(c config.PlannerConfig, t plan.Target) (poll.Fetcher, error) {
		return gather.NewFetcher(c, t)
	}
	r.probe = func(ctx context.Context, h probe.Held) probe.Result { return probe.Ask(ctx, r.planner, h) }
	r.planned = func() { // as a webhook hears of it within a second
		hooked.Eventually(t, "the webhook has the plan", func() bool {
			v := site.Source.State().View
			return v != nil && v.Plan.Revision >= r.watch.plan.Revision
		})
	}
	prometheus := httptest.NewServer(defaultsPrometheus{r})
	t.Cleanup(prometheus.Close)
	r.watch.mode = plan.ModeLive
	owners := map[string]int{}
	for _, name := range r.fleet.Clusters {
		owners[name] = r.fleet.Algorithm(name, c.replicas)
	}

	r.config = shippedConfig(t, plan.Observe, prometheus.URL)
	r.lead()
	r.passes(5 * time.Minute)
	r.isObserved(owners)

	r.configure(func(c *config.PlannerConfig) { *c = shippedConfig(t, plan.Enforce, prometheus.URL) })
	rests := func() bool { return r.watch.plan.Rollout == nil }
	r.until("the one restart", 15*time.Minute, func() bool { return r.fleet.Made == 2*c.replicas && rests() })
	r.isPrepared(owners)

	// The four that mend the overload of replica 2 cost 240 for a quarter of an hour, and it is 128 above its bound.
	r.until("an overload that has paid for its moves", time.Hour, func() bool { return !rests() })
	if lasted := r.clock.Since(epoch); lasted < 25*time.Minute { // what is seen in Observe counts
		r.fatal("it was decided after %s, and half an hour of what is too much is what the moves cost", lasted)
	}
	r.until("the last move", time.Hour, func() bool { return r.movedSoFar() == 4 && rests() })
	r.settle()
	r.isLevel(owners)
	r.rests()
	r.holds(site)
	t.Logf("%s simulated, moves %v", r.clock.Since(epoch), r.watch.moves)
}

// shippedConfig is the base's own configuration, with the mode and the Prometheus that the README tells to set.
func shippedConfig(t *testing.T, mode plan.Mode, url string) config.PlannerConfig {
	t.Helper()
	data, err := os.ReadFile("../../manifests/base/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(data, &cm); err != nil {
		t.Fatal(err)
	}
	text := cm.Data["config.yaml"]
	if strings.Count(text, "mode: Observe\n") != 1 {
		t.Fatalf("the shipped configuration does not observe:\n%s", text)
	}
	text = strings.Replace(text, "mode: Observe\n", fmt.Sprintf("mode: %s\n", mode), 1)
	text += fmt.Sprintf("poll: {prometheus: {url: %q}}\n", url)
	c, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Mode, want.Target.Namespace, want.Target.Name = mode, hooked.Namespace, crashWorkload
	want.Poll.Prometheus.URL = url
	if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, c)); diff != "" {
		t.Fatalf("the shipped configuration differs from the defaults (-default +shipped):\n%s", diff)
	}
	return c
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// defaultsCase is a fleet of forty clusters on three replicas, as Argo CD's algorithm gave them out. Most weigh what
// the others of their replica weigh. But one on replica 2 is as heavy as sixteen others of it, and its replica above what
// the shipped partition lets one have of an even share.
func defaultsCase() crashCase {
	c := crashCase{seed: 13, mode: crashLive, replicas: 3, env: "3", loads: map[string]float64{}}
	f := newCrashFleet(c.seed, nil)
	f.Found = c.replicas
	on := map[int]int{}
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		owner := f.Algorithm(name, c.replicas)
		c.loads[name] = []float64{75, 98, 60}[owner]
		if on[owner]++; owner == 1 && on[owner] <= 5 {
			c.loads[name] = 60
		}
	}
	c.loads["c00"] = 1000
	return c
}

// passes lets simulated time pass.
func (r *crashRun) passes(d time.Duration) {
	for until := r.clock.Now().Add(d); r.clock.Now().Before(until); {
		r.second()
	}
}

// isObserved: the plan is the fleet as it is, and nothing else was written.
func (r *crashRun) isObserved(owners map[string]int) {
	r.Helper()
	p := r.watch.plan
	if p == nil || p.Mode != plan.Observe || p.Revision != 1 || p.Replicas != 3 || p.ControllerReplicas != 3 {
		r.fatal("after five minutes of Observe the plan is %+v", p)
	}
	if diff := cmp.Diff(owners, r.end().Rows); diff != "" {
		r.fatal("the first plan is not the fleet as it is (-fleet +plan):\n%s", diff)
	}
	if len(r.fleet.Shards) > 0 || r.fleet.Replicas != 3 || r.fleet.Env != "3" {
		r.fatal("Observe wrote: shards %v, %d replicas, env %s", r.fleet.Shards, r.fleet.Replicas, r.fleet.Env)
	}
}

// isPrepared: each Secret has the owner it had, and every pod restarted once, for the env.
func (r *crashRun) isPrepared(owners map[string]int) {
	r.Helper()
	if diff := cmp.Diff(owners, r.fleet.Shards); diff != "" {
		r.fatal("adoption changed owners (-before +after):\n%s", diff)
	}
	if r.fleet.Made != 6 || r.fleet.Env != "16" || r.fleet.Replicas != 3 {
		r.fatal("%d pods were started, env %s, %d replicas; want three and as many again, 16, and 3",
			r.fleet.Made, r.fleet.Env, r.fleet.Replicas)
	}
}

// movedSoFar is how many clusters plans have given another replica.
func (r *crashRun) movedSoFar() int {
	n := 0
	for _, m := range r.watch.moves {
		n += m.n
	}
	return n
}

// isLevel: four of the eleven light clusters beside the heavy one left its replica, for the one that has least; no pod
// restarted for it, and there are as many replicas as before.
func (r *crashRun) isLevel(owners map[string]int) {
	r.Helper()
	want := crashEnd{Replicas: 3, Env: 16, Makespan: 1420, Rows: maps.Clone(owners)}
	var light []string
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if owners[name] == 2 && r.fleet.loads[name] == 60 {
			light = append(light, name)
		}
	}
	for _, name := range append(light[:1:1], light[len(light)-3:]...) {
		want.Rows[name] = 0
	}
	if diff := cmp.Diff(want, r.end()); diff != "" {
		r.fatal("the elected plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1215, 1280, 1420}, r.carried()[:3]); diff != "" {
		r.fatal("the replicas' loads (-want +got):\n%s", diff)
	}
	var waves []int
	for _, m := range r.watch.moves {
		waves = append(waves, m.n)
	}
	if diff := cmp.Diff([]int{4}, waves); diff != "" {
		r.fatal("the clusters of each wave (-want +got):\n%s", diff)
	}
	if r.fleet.Made != 6 {
		r.fatal("%d pods were started, want three, and as many again for the env", r.fleet.Made)
	}
}

// rests: an hour without a change writes neither the plan nor anything else.
func (r *crashRun) rests() {
	r.Helper()
	before := r.versions()
	r.passes(time.Hour)
	if diff := cmp.Diff(before, r.versions()); diff != "" {
		r.fatal("an idle hour wrote (-before +after):\n%s", diff)
	}
}

// versions are the resourceVersions of the plan, the workload and the Secrets.
func (r *crashRun) versions() map[string]string {
	versions := map[string]string{"the plan": r.planMap().ResourceVersion}
	set := &appsv1.StatefulSet{}
	r.get(set, crashWorkload)
	versions[crashWorkload] = set.ResourceVersion
	for _, name := range r.fleet.Clusters {
		s := &corev1.Secret{}
		r.get(s, name)
		versions[name] = s.ResourceVersion
	}
	return versions
}

// holds: what a person writes by hand is answered with the plan's values.
func (r *crashRun) holds(site *hooked.Site) {
	r.Helper()
	alice := site.As("alice")
	write := func(o client.Object, patch string) {
		r.must(alice.Patch(r.ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: crashWorkload}}
	write(set, `{"spec":{"replicas":1}}`)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "c00"}}
	write(secret, `{"stringData":{"shard":"0"}}`)
	if replicas, shard := *set.Spec.Replicas, string(secret.Data[plan.ShardKey]); replicas != 3 || shard != "2" {
		r.fatal("after a person wrote 1 and 0 the workload has %d replicas and c00 shard %s, want 3 and 2", replicas, shard)
	}
}

// defaultsPrometheus answers the queries of the default metrics, and who owns what, as a Prometheus would.
type defaultsPrometheus struct{ run *crashRun }

// ServeHTTP implements http.Handler.
func (p defaultsPrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type series struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	query, at := r.FormValue("query"), r.FormValue("time")
	vector := []series{}
	add := func(value string, labels map[string]string) {
		vector = append(vector, series{labels, [2]any{json.Number(at), value}})
	}
	f := p.run.fleet
	for _, c := range f.Clusters {
		switch {
		case strings.Contains(query, `"owner"`):
			for _, ordinal := range f.countedOwners(c) {
				add("1", map[string]string{"owner": sim.PodName(ordinal) + "|" + server(c)})
			}
		case strings.Contains(query, "timestamp("):
			add(at, map[string]string{"server": server(c), "dest_server": server(c)})
		default:
			add(strconv.FormatFloat(f.loads[c], 'f', -1, 64), map[string]string{"server": server(c), "dest_server": server(c)})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	data := map[string]any{"resultType": "vector", "result": vector}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
}
