package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestAPodThatAnswers401RunsNoCredentialPlugin: a plugin may open a browser, or lock an account.
func TestAPodThatAnswers401RunsNoCredentialPlugin(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := fmt.Sprintf("#!/bin/sh\necho ran >> %s\n"+
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'`+"\n", ran)
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil { //nolint:gosec // it has to run
		t.Fatal(err)
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	p, err := newProxy(&rest.Config{Host: server.URL, ExecProvider: &api.ExecConfig{
		Command: plugin, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode}}, "argocd")
	if err != nil {
		t.Fatal(err)
	}
	p.pods["10.0.0.1:8082"] = "controller-0"
	client := &http.Client{Transport: p}
	const looks = 3
	for range looks {
		r, err := client.Get("http://10.0.0.1:8082/metrics")
		if err == nil {
			_ = r.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
			t.Fatalf("answered %v %+v, want an error that names 401", err, r)
		}
	}
	const want = "/api/v1/namespaces/argocd/pods/controller-0:8082/proxy/metrics Bearer t"
	if len(asked) != looks || asked[0] != want {
		t.Errorf("asked %q, want %q each time", asked, want)
	}
	if times, err := os.ReadFile(ran); err != nil || string(times) != "ran\n" { //nolint:gosec // the test's own
		t.Errorf("the plugin ran %q (%v), want once", times, err)
	}
}
