package complete

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"ballast/cmd/ballast/audit"
	"ballast/cmd/ballast/evacuate"
	"ballast/cmd/ballast/explain"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/plan"
	"ballast/cmd/ballast/whatif"
	plans "ballast/planner/plan"
)

// complete is what cobra's own completion command offers for a line.
func complete(t *testing.T, args ...string) (offered, notes string) {
	t.Helper()
	root := &cobra.Command{Use: "ballast", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(audit.NewCommand(), plan.NewCommand(), explain.NewCommand(), evacuate.NewCommand(), whatif.NewCommand())
	Register(root)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// serve answers for the plan ConfigMap of one namespace, and for nothing else.
func serve(t *testing.T, p plans.Plan) (kubeconfig string) {
	t.Helper()
	cm, err := fixture.PlanMapOf(p, "", nil)
	fixture.MustDo(t, err)
	body, err := json.Marshal(cm)
	fixture.MustDo(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/gitops/configmaps/ballast-plan" || r.Header.Get("Impersonate-Group") != "a" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	fixture.MustDo(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"one",
		"clusters":[{"name":"a","cluster":{"server":%q}}],"contexts":[{"name":"one","context":{"cluster":"a","user":"a"}},{"name":"other","context":{}}],
		"users":[{"name":"a","user":{}}]}`, server.URL), 0o600))
	return kubeconfig
}

func TestNamesAndReplicasOfThePlanAreOffered(t *testing.T) {
	p := fixture.Revision(3, func(p *plans.Plan) {
		p.Replicas = 3
		p.Clusters = map[string]plans.Row{"prod-eu": {Replica: 1}, "edge": {Replica: 2}}
	})
	flags := []string{"--kubeconfig=" + serve(t, p), "--namespace=gitops", "--as=alice", "--as-group=a"}
	for line, want := range map[string]string{
		"explain":             "edge\nprod-eu\n:4\n",
		"explain edge":        ":4\n",
		"evacuate":            "0\n1\n2\n:4\n",
		"whatif --remove":     "edge\nprod-eu\n:4\n",
		"whatif --like":       "edge\nprod-eu\n:4\n",
		"whatif --lose":       "0\n1\n2\n:4\n",
		"evacuate --output":   "table\njson\nyaml\n:4\n",
		"plan --output":       "table\nwide\njson\nyaml\nhtml\npatch\nexternal-secrets\nhelm-values\n:4\n",
		"explain --context":   "one\nother\n:4\n",
		"explain --namespace": ":4\n",
	} {
		words := strings.Fields(line)
		args := append([]string{words[0]}, flags...)
		if got, _ := complete(t, append(append(args, words[1:]...), "")...); got != want {
			t.Errorf("%s: %s", line, cmp.Diff(want, got))
		}
	}
}

func TestTheFormsOfTheAuditAreOffered(t *testing.T) {
	if got, _ := complete(t, "audit", "--output", ""); got != "table\njson\ntotals\n:4\n" {
		t.Errorf("offered: %q", got)
	}
}

// No names that a terminal or a shell could take for something else: whoever may write the ConfigMap chose them.
func TestOddNamesAreNotOffered(t *testing.T) {
	names := map[string]plans.Row{"plain": {}, "a b": {}, "$(reboot)": {}, "x\x1b[2J": {}, "-o": {}, "a\nb": {}, "a\tb": {}, "": {}}
	if got := clusters(&plans.Plan{Clusters: names}); !cmp.Equal(got, []string{"plain"}) {
		t.Errorf("%q are offered", got)
	}
}

func TestNothingIsOfferedAndNothingSaidWithoutAnAnswer(t *testing.T) {
	silent, _, _ := fixture.SilentServer(t)
	for name, kubeconfig := range map[string]string{"no kubeconfig": filepath.Join(t.TempDir(), "none"), "a silent API server": silent} {
		begun := time.Now()
		offered, notes := complete(t, "explain", "--kubeconfig="+kubeconfig, "")
		if offered != ":4\n" || strings.Contains(strings.ToLower(notes), "error") {
			t.Errorf("%s: %q and %q", name, offered, notes)
		}
		if took := time.Since(begun); took > patience+5*time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}
