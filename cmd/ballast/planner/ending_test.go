package planner

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/telemetry"
)

// mute is an API server of an Argo CD without clusters that leaves some requests without an answer.
type mute struct {
	hangs   func(*http.Request) bool
	refuses func(*http.Request) bool // the streams of lists, as an API server without them does

	release chan struct{} // closed: it answers everything

	mu   sync.Mutex
	seen []string
}

const muteController = `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"argocd-application-controller","namespace":"argocd","labels":{
	"app.kubernetes.io/part-of":"argocd","app.kubernetes.io/component":"application-controller"}},
	"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"application-controller","image":"argocd"}]}}}}`

// muteAnswers are by path.
func muteAnswers() map[string]string {
	list := func(kind, items string) string {
		return fmt.Sprintf(`{"kind":"%sList","metadata":{"resourceVersion":"7"},"items":[%s]}`, kind, items)
	}
	resource := func(names, kind string, namespaced bool) string {
		return fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":%t,"verbs":["get"]}`, names, kind, namespaced)
	}
	resources := func(version string, all ...string) string {
		return fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, version, strings.Join(all, ","))
	}
	group := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%[1]s/v1","version":"v1"}]}`, name)
	}
	const core, apps, reviews = "/api/v1", "/apis/apps/v1", "/apis/authentication.k8s.io/v1"
	const ours = "/namespaces/argocd/"
	return map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","groups":[` + group("apps") + `,` + group("authentication.k8s.io") + `]}`,
		core:    resources("v1", resource("secrets", "Secret", true), resource("configmaps", "ConfigMap", true)),
		apps: resources("apps/v1", resource("statefulsets", "StatefulSet", true),
			resource("deployments", "Deployment", true)),
		reviews: resources("authentication.k8s.io/v1", resource("selfsubjectreviews", "SelfSubjectReview", false)),

		reviews + "/selfsubjectreviews": `{"kind":"SelfSubjectReview","status":{"userInfo":{"username":"planner"}}}`,
		core + ours + "secrets":         list("Secret", ""),
		core + ours + "configmaps":      list("ConfigMap", ""),
		apps + ours + "deployments":     list("Deployment", ""),
		apps + ours + "statefulsets":    list("StatefulSet", muteController),

		apps + ours + "statefulsets/argocd-application-controller": muteController,
	}
}

// ServeHTTP implements http.Handler.
func (m *mute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case m.refuses(r):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		return
	case isWatch(r):
		_ = http.NewResponseController(w).Flush() // of a watch the head comes at once
	}
	m.note(r)
	if m.hangs(r) {
		select {
		case <-m.release:
		case <-r.Context().Done():
		}
	}
	if isWatch(r) {
		m.watched(w, r)
		return
	}
	answer, ok := muteAnswers()[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		for _, kind := range []string{"StatefulSet", "Deployment"} {
			answer = strings.Replace(answer, `{"kind":"`+kind+`List"`, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList"`, 1)
		}
	}
	_, _ = w.Write([]byte(answer))
}

// watched ends the list that a stream begins with, and tells of nothing after it.
func (m *mute) watched(w http.ResponseWriter, r *http.Request) {
	const whole = `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,
		"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	switch filepath.Base(r.URL.Path) {
	case "secrets":
		fmt.Fprintf(w, whole, "Secret", "v1")
	case "configmaps":
		fmt.Fprintf(w, whole, "ConfigMap", "v1")
	case "statefulsets":
		fmt.Fprintf(w, whole, "StatefulSet", "apps/v1")
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func (m *mute) note(r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, r.URL.String())
}

// asked reports whether it was asked for a path, whatever the query.
func (m *mute) asked(url string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, seen := range m.seen {
		if strings.Contains(seen, url) {
			return true
		}
	}
	return false
}

// TestAPlannersCachesReadNoAnswerBeyondItsBound: one that is too large is asked for anew with fewer objects.
func TestAPlannersCachesReadNoAnswerBeyondItsBound(t *testing.T) {
	server := &mute{hangs: func(*http.Request) bool { return false }, release: make(chan struct{}),
		refuses: func(r *http.Request) bool { return r.URL.Query().Has("sendInitialEvents") }}
	fewer := make(chan struct{}, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch limit := r.URL.Query().Get("limit"); {
		case filepath.Base(r.URL.Path) != "secrets":
		case limit == "500":
			w.Header().Set("Content-Type", "application/json")
			const list = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"data":{"config":%q}}]}`
			_, _ = fmt.Fprintf(w, list, strings.Repeat("x", 11<<20))
			return
		case limit == "50":
			select {
			case fewer <- struct{}{}:
			default:
			}
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	_, app := plannerOn(t, api.URL, time.Minute)
	ctx, stop := context.WithCancelCause(t.Context())
	app.stop = stop
	ended := make(chan error, 1)
	go func() { ended <- app.run(ctx) }()
	select {
	case <-fewer:
	case <-time.After(time.Minute):
		t.Error("it asks for no fewer objects")
	}
	stop(nil)
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// TestAPlannerThatIsToldToEndEnds, whatever the API server leaves without an answer.
func TestAPlannerThatIsToldToEndEnds(t *testing.T) {
	const atOnce, stopped = 10 * time.Millisecond, "Wait completed"
	const waiting = "waiting for the application-controller's workload"
	none := func(*http.Request) bool { return false }
	lists := func(r *http.Request) bool { return filepath.Base(r.URL.Path) == "secrets" && !isWatch(r) }
	streams := func(r *http.Request) bool { return r.URL.Query().Has("sendInitialEvents") }
	discovery := func(r *http.Request) bool { return r.URL.Path == "/apis/apps/v1" }
	for name, tc := range map[string]struct {
		hangs, refuses func(*http.Request) bool
		asked          string // part of the URL that it is told behind
		grace          time.Duration
		logs           string
		ends           string // logged when what was left behind ends as well
	}{
		"nothing hangs": {none, none, "/leases/", time.Minute, `"msg"="stopped"`, stopped},
		"watches say never that their list is whole": {isWatch, none, "secrets?", atOnce, leftBehind, stopped},
		"lists hang":      {lists, streams, "%3Dcluster&limit=500", atOnce, leftBehind, stopped},
		"discovery hangs": {discovery, none, "/apis/apps/v1", atOnce, leftBehind, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			server := &mute{hangs: tc.hangs, refuses: tc.refuses, release: make(chan struct{})}
			api := httptest.NewServer(server)
			t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
			p, app := plannerOn(t, api.URL, tc.grace)
			ctx, stop := context.WithCancelCause(t.Context())
			app.stop = stop
			ended := make(chan error, 1)
			go func() { ended <- app.run(ctx) }()
			fixture.WaitFor(t, "the planner asks "+tc.asked, func() bool { return server.asked(tc.asked) })
			stop(nil)
			select {
			case err := <-ended:
				if err != nil || !p.logged(tc.logs) {
					t.Errorf("it ends with %v, and logs %q", err, p.log)
				}
			case <-time.After(30 * time.Second):
				t.Error("it does not end")
			}
			close(server.release) // the library's goroutines would turn a core for as long as this process runs
			fixture.WaitFor(t, "what was left behind ends", func() bool { return p.logged(tc.ends) })
		})
	}
}

const leftBehind = "ending before everything has stopped"

// plannerOn is a planner on an API server, and what it logs.
func plannerOn(t *testing.T, url string, grace time.Duration) (*planning, *plannerApp) {
	t.Helper()
	p := &planning{t: t}
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n" +
		"poll: {prometheus: {url: \"http://127.0.0.1:1\", timeout: 1s}}\n"
	fixture.MustDo(t, os.WriteFile(file, []byte(text), 0o600))
	return p, &plannerApp{rest: &rest.Config{Host: url}, metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		options: &options{config: file, bindAddress: "127.0.0.1", identity: "planner", stopGrace: grace},
		log:     funcr.New(func(_, args string) { p.write(args) }, funcr.Options{})}
}
