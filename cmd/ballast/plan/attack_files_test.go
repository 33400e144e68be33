package plan

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/controller/gather"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// asked is what a Prometheus of somebody's heard, in all of its requests.
type asked struct {
	mu   sync.Mutex
	text strings.Builder
	n    int
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	_ = r.Header.Write(&a.text)
	w.WriteHeader(http.StatusTeapot)
}

// TestNoInstalledConfigurationSendsAPersonsFiles: the files that ballast-config names are in the planner's pod. Who writes
// that ConfigMap must not be sent those of the machine on which somebody runs `ballast plan`, such as a kubeconfig.
func TestNoInstalledConfigurationSendsAPersonsFiles(t *testing.T) {
	const line, lines = "hvs.Q0FOQVJZLVRPS0VO", "users: []\nclient-key-data: Q0FOQVJZLVRPS0VO"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, test := range map[string]struct{ http, holds, sent string }{
		"a password": {"basic_auth: {username: u, password_file: FILE}", lines, encoded("u:" + lines)},
		"a user":     {"basic_auth: {username_file: FILE, password: p}", lines, encoded(lines + ":p")},
		"a token":    {"authorization: {credentials_file: FILE}", line, line},
		"a bearer":   {"bearer_token_file: FILE", line, line},
		"a header":   {"http_headers: {X-Some: {files: [FILE]}}", line, line},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.MustDo(t, os.WriteFile(file, []byte(test.holds+"\n"), 0o600))
			heard := &asked{}
			server := httptest.NewServer(heard)
			defer server.Close()
			text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npoll: {prometheus: {url: '" + server.URL + "', http: {" +
				strings.ReplaceAll(test.http, "FILE", file) + "}}}\n"
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"}, Data: map[string]string{"config.yaml": text}}).Build()
			o := &options{installed: "ballast-config"}
			o.cluster.Namespace = "argocd"
			var said bytes.Buffer
			cfg, err := o.loadConfig(t.Context(), c, &said, false)
			fixture.MustDo(t, err)
			f, err := gather.NewFetcher(cfg, plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "c"})
			fixture.MustDo(t, err)
			gather.Measure(t.Context(), f, cfg, discover.Input{}, fixture.Noon)
			if whole := heard.text.String(); strings.Contains(whole, test.sent) {
				t.Errorf("in %d requests the file was sent: %s", heard.n, whole)
			}
			if heard.n == 0 {
				t.Error("nobody was asked")
			}
			const want = "note: the planner's configuration names files for its Prometheus, which are in the planner's pod: " +
				"none is read here, and the Prometheus is asked without its settings of HTTP; where it takes credentials give a file with --config\n"
			if !strings.HasSuffix(said.String(), want) {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}
