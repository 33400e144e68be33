package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestTheShippedWebhookStarts holds the shipped Deployment's arguments against the command's flags.
func TestTheShippedWebhookStarts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "base", "webhook.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var d appsv1.Deployment
		if yaml.Unmarshal([]byte(doc), &d) != nil || d.Kind != "Deployment" {
			continue
		}
		args := d.Spec.Template.Spec.Containers[0].Args
		root := newRootCommand()
		cmd, rest, err := root.Find(args)
		if err != nil || cmd.Name() != "webhook" {
			t.Fatalf("%q runs %v: %v", args, cmd.Name(), err)
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%q: %v", rest, err)
		}
		return
	}
	t.Fatal("no Deployment is shipped")
}

func TestThePlannerIsTheShippedServiceAccountUnlessSaid(t *testing.T) {
	for want, o := range map[string]webhookOptions{
		"system:serviceaccount:cd:ballast-planner": {namespace: "cd"},
		"somebody": {namespace: "cd", plannerUser: "somebody"},
	} {
		if got := o.planner(); got != want {
			t.Errorf("planner %q, want %q", got, want)
		}
	}
}

func TestHealthSaysWhatItWaitsFor(t *testing.T) {
	type answer struct {
		Code int
		Body string
	}
	waits := func(*http.Request) error { return errors.New("the plan ConfigMap was not listed yet") }
	late := func(*http.Request) error { return errors.New("no cycle has ended for 10m0s") }
	fine := func(*http.Request) error { return nil }
	for name, tc := range map[string]struct {
		live, ready checks
		path        string
		want        answer
	}{
		"live while it waits":     {nil, checks{"plan": waits}, "/healthz", answer{http.StatusOK, "ok\n"}},
		"unready while one waits": {nil, checks{"a": fine, "plan": waits}, "/readyz", answer{http.StatusServiceUnavailable, "the plan ConfigMap was not listed yet\n"}},
		"ready when none does":    {nil, checks{"a": fine, "b": fine}, "/readyz", answer{http.StatusOK, "ok\n"}},
		"all that it waits for":   {nil, checks{"cycles": late, "plan": waits}, "/readyz", answer{http.StatusServiceUnavailable, "no cycle has ended for 10m0s\nthe plan ConfigMap was not listed yet\n"}},
		"one check alone":         {nil, checks{"cycles": late, "plan": waits}, "/readyz/plan", answer{http.StatusServiceUnavailable, "the plan ConfigMap was not listed yet\n"}},
		"not live":                {checks{"cycles": late}, checks{"plan": fine}, "/healthz", answer{http.StatusServiceUnavailable, "no cycle has ended for 10m0s\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			healthHandler(tc.live, tc.ready).ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
			if diff := cmp.Diff(tc.want, answer{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
