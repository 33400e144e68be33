package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/cmd/ballast/fixture"
)

// hurried is a clock by which whoever waits has waited at once.
type hurried struct{ *clocktesting.FakeClock }

func (h hurried) After(d time.Duration) <-chan time.Time {
	h.Step(d)
	over := make(chan time.Time, 1)
	over <- h.Now()
	return over
}

// inFront is a kubeconfig of the API server as it is with a network of pods: it answers for them under pods/proxy, which the one of a
// test cannot, for it asks no pod at a loopback address. All else is the real one's, as that user.
func (f *fleet) inFront(kubeconfig string) string {
	f.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	fixture.MustDo(f.T, err)
	transport, err := rest.TransportFor(cfg)
	fixture.MustDo(f.T, err)
	at, err := url.Parse(cfg.Host)
	fixture.MustDo(f.T, err)
	behind := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	mux := http.NewServeMux()
	mux.Handle("/", behind)
	for i, p := range f.pods {
		_, port, _ := strings.Cut(p.server.Listener.Addr().String(), ":")
		mux.Handle(fmt.Sprintf("GET /api/v1/namespaces/argocd/pods/%s:%s/proxy/metrics", f.live[i].Name, port), p.server.Config.Handler)
	}
	front := httptest.NewServer(mux)
	f.Cleanup(front.Close)
	file := filepath.Join(f.TempDir(), "kubeconfig")
	fixture.MustDo(f.T, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: c, cluster: {server: \""+front.URL+"\"}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"+
		"users: [{name: c, user: {}}]\n"), 0o600))
	return file
}

// TestWatchOnceAsksThroughTheAPIServer, as it does unless it is told otherwise, and ends with its verdict.
func TestWatchOnceAsksThroughTheAPIServer(t *testing.T) {
	nina := ""
	f := newFleet(t, func(s *fixture.Site) string {
		nina = s.Granted("nina", shippedRules(t)...)
		return nina
	})
	kubeconfig := f.inFront(nina)
	once := func() (out, failure string) {
		cmd := command(&options{clock: hurried{clocktesting.NewFakeClock(time.Now())}})
		out, notes, failure := fixture.AsPerson(t, fixture.RootOf(cmd), kubeconfig, "", "watch", "--once", "--namespace", "argocd")
		fixture.Holds(t, notes, "looking at the application-controllers in argocd every 30s")
		return out, failure
	}
	f.pods[0].has(dev, prod)
	f.pods[1].has(stage)
	out, failure := once()
	fixture.Holds(t, out, "argocd-application-controller-0  true   2         https://dev.example, https://prod.example",
		"argocd-application-controller-1  true   1         https://stage.example")
	if diff := cmp.Diff("", failure); diff != "" {
		t.Errorf("each cluster has one owner, and it ends with (-want +got):\n%s\n%s", diff, out)
	}
	f.pods[1].has(stage, dev)
	out, failure = once()
	fixture.Holds(t, out, fmt.Sprintf("cluster %q is reconciled by 2 pods at once", dev))
	if diff := cmp.Diff("1 fault", failure); diff != "" {
		t.Errorf("one has two, and it ends with (-want +got):\n%s\n%s", diff, out)
	}
}
