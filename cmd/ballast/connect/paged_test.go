package connect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
)

// TestACommandReadsNoAnswerOfSecretsBeyondItsBound: one that is too large is asked for anew with fewer of them.
func TestACommandReadsNoAnswerOfSecretsBeyondItsBound(t *testing.T) {
	const secret = `{"metadata":{"name":%q,"namespace":"argocd"},"data":{"name":"YQ==","server":"YQ==","config":%q}}`
	const list = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`
	var mu sync.Mutex
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list"]},`+
				`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get"]}]}`)
		case "/api/v1/namespaces/argocd/secrets":
			limit, next := r.URL.Query().Get("limit"), r.URL.Query().Get("continue")
			mu.Lock()
			defer mu.Unlock()
			switch asked = append(asked, limit+" of "+next); {
			case limit == "500":
				fmt.Fprintf(w, list, "", fmt.Sprintf(secret, "all", strings.Repeat("e30K", 11<<18)))
			case next == "":
				fmt.Fprintf(w, list, "b", fmt.Sprintf(secret, "a", "e30K"))
			default:
				fmt.Fprintf(w, list, "", fmt.Sprintf(secret, "b", "e30K"))
			}
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	t.Cleanup(api.Close)
	kubeconfig, _, _ := fixture.SilentServer(t)
	o := &connect.Options{}
	cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
	o.Register(cmd)
	if err := fixture.RunLine(t.Context(), cmd, "status", "--kubeconfig="+kubeconfig, "--server="+api.URL); err != nil {
		t.Fatal(err)
	}
	c, err := o.Client()
	if err != nil {
		t.Fatal(err)
	}
	in, err := secrets.ReadInput(t.Context(), c, "argocd", labels.Everything(), discover.Known{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range in.Secrets {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"500 of ", "50 of ", "50 of b"}, asked); diff != "" {
		t.Errorf("it asked for (-want +got):\n%s", diff)
	}
}
