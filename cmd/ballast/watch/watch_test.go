package watch

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/nudge"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
)

// pod is a controller's pod that shows what it is told to.
type pod struct {
	mu     sync.Mutex
	shows  string
	server *httptest.Server
}

func newPod(t *testing.T) *pod {
	p := &pod{}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = io.WriteString(w, p.shows)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// has makes it responsible for an Application of each server, and read those clusters.
func (p *pod) has(servers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shows = "process_resident_memory_bytes 1e+08\n"
	for _, s := range servers {
		p.shows += fmt.Sprintf("argocd_cluster_cache_age_seconds{server=%q} 3\n", s)
	}
	p.shows += applicationsOf(servers...)
}

// alsoShows has it show Applications of servers that it does not read.
func (p *pod) alsoShows(servers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shows += applicationsOf(servers...)
}

func applicationsOf(servers ...string) (shown string) {
	for _, s := range servers {
		shown += fmt.Sprintf("argocd_app_info{dest_server=%q,name=\"app\",namespace=\"argocd\"} 1\n", s)
	}
	return shown
}

// fleet is a workload of two pods on a real API server, and a watcher of it by a clock that the test sets.
type fleet struct {
	*testing.T
	pods  [2]*pod
	live  [2]*corev1.Pod
	site  *fixture.Site
	clock *clocktesting.FakeClock
	*watcher
	before *look
	named  bool // as --owners asks for
}

func newFleet(t *testing.T, kubeconfig func(*fixture.Site) string) *fleet {
	t.Helper()
	f := &fleet{T: t, site: fixture.StartSite(t), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
	w := fixture.QuietWorld()
	set := w.Workload.(*appsv1.StatefulSet)
	set.Labels = map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	*set.Spec.Replicas = 2
	f.site.Makes(t, set)
	for i := range f.pods {
		f.pods[i] = newPod(t)
		_, port, err := net.SplitHostPort(f.pods[i].server.Listener.Addr().String())
		fixture.MustDo(t, err)
		number, err := strconv.Atoi(port)
		fixture.MustDo(t, err)
		p := fixture.ControllerPod(fmt.Sprint(fixture.ControllerName, "-", i), func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: int32(number)}}
			p.OwnerReferences[0].UID = set.UID
		})
		status := p.Status
		f.site.Makes(t, p)
		p.Status = status
		p.Status.PodIP, p.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
		fixture.MustDo(t, f.site.Planner.Status().Update(t.Context(), p))
		f.live[i] = p
	}
	o := options{cluster: connect.Options{Kubeconfig: kubeconfig(f.site), Namespace: "argocd"}, via: viaPods}
	var err error
	f.watcher, err = o.watcher()
	fixture.MustDo(t, err)
	c, err := o.cluster.Client()
	fixture.MustDo(t, err)
	f.watcher.clock = f.clock
	f.applications = nudge.New(nudge.Options{Client: c, Reader: c, Clock: f.clock})
	return f
}

// after is what is said once that time has passed, without the time of day and what could not be seen.
func (f *fleet) after(d time.Duration) string {
	f.Helper()
	f.clock.Step(d)
	l, err := f.look(f.Context())
	fixture.MustDo(f.T, err)
	var b bytes.Buffer
	l.tell(&b, f.before, f.named)
	f.before = l
	var lines []string
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, "not seen: ") {
			lines = append(lines, strings.ReplaceAll(line, l.At.Format(time.TimeOnly)+"  ", ""))
		}
	}
	return strings.Join(lines, "")
}

const dev, prod, stage = "https://dev.example", "https://prod.example", "https://stage.example"

// Whoever may read pods and the workload alone sees which cluster is lost, by its server, and which is had twice.
func TestWatchFindsOrphansFromThePodsAlone(t *testing.T) {
	f := newFleet(t, func(s *fixture.Site) string {
		// There are no Applications here, and who may not ask for them misses what somebody had.
		rules := slices.DeleteFunc(shippedRules(t), func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == "argoproj.io" || r.Resources[0] == "configmaps"
		})
		return s.Granted("nina", rules...)
	})
	registry := prometheus.NewRegistry()
	f.figures = NewFigures(registry)
	f.pods[0].has(dev, prod)
	f.pods[1].has(stage)
	whole := "REPLICA  POD                              READY  CLUSTERS  OWNS\n" +
		"0        argocd-application-controller-0  true   2         https://dev.example, https://prod.example\n" +
		"1        argocd-application-controller-1  true   1         https://stage.example\n"
	says := func(after time.Duration, want string) {
		t.Helper()
		if diff := cmp.Diff(want, f.after(after)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	says(0, whole)
	if f.before.settled() {
		t.Error("one look is taken for a verdict")
	}
	says(3*time.Minute, "")
	lost := f.clock.Now().Add(time.Minute)
	f.pods[0].has(prod)
	says(time.Minute, strings.Replace(whole, "true   2         https://dev.example, ", "true   1         ", 1))
	orphan := fmt.Sprintf("nobody reconciles cluster %q since %s: replica 0 does not have it", dev, lost.UTC().Format(time.RFC3339))
	says(3*time.Minute, orphan+"\n")
	if got := testutil.ToFloat64(f.figures.orphaned); got != 1 {
		t.Errorf("ballast_watch_orphaned_clusters is %v", got)
	}
	if err := f.before.fault(nil); say.ExitCode(err) != faults {
		t.Errorf("--once ends with %v", err)
	}
	f.pods[1].has(stage, dev, prod)
	doubled := f.after(time.Minute) + f.after(time.Minute)
	fixture.Holds(t, doubled, "over: "+orphan, fmt.Sprintf("cluster %q", prod), "argocd-application-controller-1  true   3")
	f.pods[0].has()
	fixture.Holds(t, f.after(time.Minute), "over: ")
	if got := testutil.ToFloat64(f.figures.clusters.WithLabelValues("1")); got != 3 {
		t.Errorf("replica 1 has %v clusters", got)
	}
}

// Who owns what is summarised, and with --owners a line each; later looks say what changed.
func TestWatchSaysWhoOwnsWhat(t *testing.T) {
	f := newFleet(t, func(s *fixture.Site) string {
		return s.Granted("nina", slices.DeleteFunc(shippedRules(t), func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == "argoproj.io" })...)
	})
	f.named = true
	f.pods[0].has(dev, prod, stage, "https://a.example", "https://b.example")
	f.pods[1].has("https://c.example")
	got := f.after(0)
	f.pods[0].has(dev, prod, stage, "https://b.example")
	f.pods[1].has("https://a.example", "https://c.example")
	want := `REPLICA  POD                              READY  CLUSTERS  OWNS
0        argocd-application-controller-0  true   5         https://a.example, https://b.example, https://dev.example and 2 more
1        argocd-application-controller-1  true   1         https://c.example
CLUSTER                REPLICA  POD
https://a.example      0        argocd-application-controller-0
https://b.example      0        argocd-application-controller-0
https://dev.example    0        argocd-application-controller-0
https://prod.example   0        argocd-application-controller-0
https://stage.example  0        argocd-application-controller-0
https://c.example      1        argocd-application-controller-1
every cluster that pods show has one owner, and every replica is well
--
REPLICA  POD                              READY  CLUSTERS  OWNS
0        argocd-application-controller-0  true   4         https://b.example, https://dev.example, https://prod.example and 1 more
1        argocd-application-controller-1  true   2         https://a.example, https://c.example
CLUSTER            REPLICA  POD
https://a.example  1        argocd-application-controller-1
`
	if diff := cmp.Diff(want, got+"--\n"+f.after(time.Minute)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if said := f.after(time.Minute); said != "" {
		t.Errorf("at rest it says %q", said)
	}
}

// A pod that says nothing hides its clusters: they are neither had nor lost.
func TestWhatASilentPodHasIsNotLost(t *testing.T) {
	f := newFleet(t, func(s *fixture.Site) string { return s.Alice })
	f.pods[0].has(dev)
	f.pods[1].has(prod)
	f.after(0)
	f.after(3 * time.Minute)
	f.pods[0].server.Close()
	said := f.after(time.Minute) + f.after(5*time.Minute)
	fixture.Holds(t, said, "argocd-application-controller-0  true   it does not say")
	if strings.Contains(said, "nobody reconciles") || len(f.before.Trouble) == 0 {
		t.Errorf("said is %q, not seen %v", said, f.before.Trouble)
	}
}

// A person's machine reaches pods by the API server's proxy, with that person's own credentials.
func TestPodsAreAskedThroughTheAPIServer(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization")+" "+r.URL.Path)
		_, _ = io.WriteString(w, "argocd_app_info{dest_server=\"https://dev\",name=\"app\",namespace=\"argocd\"} 1\n")
	}))
	defer server.Close()
	p, err := newProxy(&rest.Config{Host: server.URL + "/behind", BearerToken: "hers"}, "argocd")
	fixture.MustDo(t, err)
	pods := []observed.Controller{{Address: "10.0.0.7:8082", Running: true}, {Address: "10.0.0.9:8082", Running: true}}
	pods[0].Name, pods[1].Name = "controller-0", "controller-1"
	p.knows(pods[:1])
	got := scrape.NewScraper(scrape.Options{Client: &http.Client{Transport: p}}).Scrape(t.Context(), pods, time.Now)
	if diff := cmp.Diff([]string{"Bearer hers /behind/api/v1/namespaces/argocd/pods/controller-0:8082/proxy/metrics"}, asked); diff != "" {
		t.Errorf("asked is (-want +got):\n%s", diff)
	}
	if got[0].Servers["https://dev"].Apps != 1 || !strings.Contains(got[1].Err, `no pod is known to have the address "10.0.0.9:8082"`) {
		t.Errorf("the pods said %v", got)
	}
}

// Before Argo CD 3.0.6 an Application whose server no cluster has is shown by every pod. That is neither a cluster with several owners
// nor, once it is gone, one without an owner.
func TestAServerThatArgoCDDoesNotFindIsNoCluster(t *testing.T) {
	f := newFleet(t, func(s *fixture.Site) string {
		return s.Granted("nina", slices.DeleteFunc(shippedRules(t), func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == "argoproj.io" })...)
	})
	const nowhere = "https://user:word@nowhere.example"
	for i, has := range []string{dev, prod} {
		f.pods[i].has(has)
		f.pods[i].alsoShows(nowhere)
	}
	f.after(0)
	if said := f.after(5 * time.Minute); said != "" {
		t.Errorf("said is %q", said)
	}
	want := "Argo CD finds no cluster of 1 server that Applications name, " +
		"so that several pods show them and none reads it: https://***@nowhere.example"
	if !slices.Contains(f.before.Trouble, want) {
		t.Errorf("not seen is %q", f.before.Trouble)
	}
	f.pods[0].has(dev)
	f.pods[1].has(prod)
	if said := f.after(time.Minute) + f.after(5*time.Minute); len(f.before.Orphans)+len(f.before.Doubled) > 0 {
		t.Errorf("once it is gone said is %q", said)
	}
	f.pods[1].has(prod, dev)
	fixture.Holds(t, f.after(time.Minute)+f.after(time.Minute), fmt.Sprintf("cluster %q is reconciled by 2 pods at once", dev))
}

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want options
	}{
		"as shipped": {nil, options{interval: 30 * time.Second, via: viaAPIServer, installed: "ballast-config"}},
		"each": {[]string{"--interval=2m", "--via=pods", "--once", "--metrics-port=1", "--bind-address=b", "--selector=a=b", "--config-configmap=c"},
			options{interval: 2 * time.Minute, via: viaPods, once: true, metricsPort: 1, bind: "b", selector: "a=b", installed: "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got options
			fixture.MustDo(t, command(&got).ParseFlags(test.args))
			got.cluster = connect.Options{} // of package connect
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(options{}), cmpopts.IgnoreUnexported(connect.Options{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A watch in a pod shows each documented metric at its port, once it has looked.
func TestARunningWatchShowsTheDocumentedMetrics(t *testing.T) {
	page, err := os.ReadFile(fixture.Checkout(t, "docs", "metrics.md"))
	fixture.MustDo(t, err)
	_, own, _ := strings.Cut(string(page), "## ballast watch")
	names := regexp.MustCompile("(?m)^\\| `(ballast_watch_[a-z_]+)`").FindAllStringSubmatch(own, -1)
	f := newFleet(t, func(s *fixture.Site) string { return s.Granted("nina", shippedRules(t)...) })
	f.pods[0].has(dev)
	f.pods[1].has()
	port, err := strconv.Atoi(fixture.FreePort(t))
	fixture.MustDo(t, err)
	stop, err := (&options{metricsPort: port, bind: fixture.ApiServer}).serves(f.watcher)
	fixture.MustDo(t, err)
	defer stop()
	f.after(0)
	answer, err := http.Get(fmt.Sprintf("http://%s:%d/metrics", fixture.ApiServer, port))
	fixture.MustDo(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fixture.MustDo(t, err)
	for _, name := range names {
		if !regexp.MustCompile("(?m)^" + name[1] + "[{ ]").Match(text) {
			t.Errorf("%s is not shown", name[1])
		}
	}
	if len(names) < 6 || !strings.Contains(string(text), `ballast_watch_clusters{replica="0"} 1`) {
		t.Errorf("%d metrics are documented; shown is\n%s", len(names), text)
	}
}

func TestWatchRefusesWhatItCannotDo(t *testing.T) {
	o := options{via: "magic", interval: time.Millisecond, metricsPort: 70000}
	want := "--via: \"magic\" is neither api-server nor pods\n--interval: 1ms is less than a second: " +
		"each look asks every pod for all that it shows\n--metrics-port: 70000 is no port"
	if diff := cmp.Diff(want, o.check().Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// shippedRules are those of manifests/watch: nobody who is installed so may do more.
func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", "watch", "rbac.yaml"))
	fixture.MustDo(t, err)
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.Role
		fixture.MustDo(t, yaml.Unmarshal([]byte(doc), &role))
		if role.Kind == "Role" {
			return role.Rules
		}
	}
	t.Fatal("manifests/watch has no Role")
	return nil
}

// Each metric that the shipped alerts ask for is one that watch shows.
func TestTheAlertsAskForWhatIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := NewFigures(registry)
	f.show(&look{Replicas: []replica{{}}})
	families, err := registry.Gather()
	fixture.MustDo(t, err)
	shown := map[string]bool{}
	for _, family := range families {
		shown[family.GetName()] = true
	}
	text, err := os.ReadFile(fixture.Checkout(t, "manifests", "watch", "alerts", "alerts.yaml"))
	fixture.MustDo(t, err)
	asked := regexp.MustCompile(`ballast_watch_\w+`).FindAllString(string(text), -1)
	if len(asked) < 5 {
		t.Errorf("the alerts ask for %q alone", asked)
	}
	for _, name := range asked {
		if !shown[name] {
			t.Errorf("an alert asks for %s, and shown are %v", name, shown)
		}
	}
}
