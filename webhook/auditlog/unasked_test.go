package auditlog

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeletionsAreShownWhereBallastIsAtWork: a deletion tells no label, and a log may be a whole cluster's.
func TestDeletionsAreShownWhereBallastIsAtWork(t *testing.T) {
	in := func(namespace, group, resource, name string) map[string]any {
		o := object(group, resource, "", name)
		o["namespace"] = namespace
		return o
	}
	deleted := func(namespace, group, resource, name string) map[string]any {
		verb := "delete"
		if name == "" {
			verb = "deletecollection"
		}
		return map[string]any{"verb": verb, "annotations": nil, "objectRef": in(namespace, group, resource, name)}
	}
	asked := func(namespace, group, resource, name, webhook string) map[string]any {
		return map[string]any{"annotations": said(webhook, "InPlan", "-", "-"), "objectRef": in(namespace, group, resource, name)}
	}
	resized := func(namespace, name, user string) map[string]any {
		o := object("", "pods", "resize", name)
		o["namespace"] = namespace
		return map[string]any{"verb": "patch", "annotations": nil, "objectRef": o, "user": map[string]any{"username": user}}
	}
	written := func(namespace, name, verb, user string) map[string]any {
		by := map[string]any{"username": user}
		return map[string]any{"verb": verb, "annotations": nil, "objectRef": in(namespace, "", "secrets", name), "user": by}
	}
	posed := written("argocd", "c", "update", "alice")
	posed["impersonatedUser"] = map[string]any{"username": controllerManager}
	for name, c := range map[string]struct {
		known  []string
		events []map[string]any
		want   []string // the objects that are shown of what no webhook was asked about
	}{
		"Secrets of the given namespace": {[]string{"argocd"}, []map[string]any{deleted("argocd", "", "secrets", "a"), deleted("other", "", "secrets", "b"), deleted("argocd", "", "secrets", "")},
			[]string{"secret/a", "secret/(all that match)"}},
		"Secrets of one that the log tells of": {nil, []map[string]any{deleted("hub", "", "secrets", "before"), asked("hub", "", "secrets", "a", "clusters"), deleted("hub", "", "secrets", "b"), deleted("other", "", "secrets", "c")},
			[]string{"secret/b"}},
		"ballast's ConfigMaps, wherever they are": {nil, []map[string]any{deleted("hub", "", "configmaps", "ballast-plan"), deleted("hub", "", "configmaps", "ballast-history"), deleted("hub", "", "configmaps", "argocd-cm")},
			[]string{"configmap/ballast-plan", "configmap/ballast-history"}},
		"a plan of another name": {nil, []map[string]any{deleted("hub", "", "configmaps", "plan-b"), asked("hub", "", "configmaps", "plan-b", "plan"), deleted("hub", "", "configmaps", "plan-b"), deleted("other", "", "configmaps", "plan-b")},
			[]string{"configmap/plan-b"}},
		"the workload by its name": {nil, []map[string]any{deleted("hub", "apps", "statefulsets", "openshift-gitops-application-controller"), deleted("hub", "apps", "statefulsets", "redis")},
			[]string{"statefulset/openshift-gitops-application-controller"}},
		"a workload of another name": {nil, []map[string]any{asked("hub", "apps", "deployments", "acd", "controllers"), deleted("hub", "apps", "deployments", "acd"), deleted("hub", "apps", "statefulsets", "acd")},
			[]string{"deployment/acd"}},
		"all ConfigMaps there": {[]string{"argocd"}, []map[string]any{deleted("argocd", "", "configmaps", ""), deleted("other", "", "configmaps", "")}, []string{"configmap/(all that match)"}},
		"resizes of the workload's pods": {nil, []map[string]any{resized("hub", "openshift-gitops-application-controller-2", "alice"), resized("hub", "redis-0", "alice"),
			resized("hub", "openshift-gitops-application-controller-2", "system:serviceaccount:hub:ballast-planner"), resized("hub", "acd-7d9-x", "alice"),
			asked("hub", "apps", "deployments", "acd", "controllers"), resized("hub", "acd-7d9-x", "alice"), resized("other", "acd-7d9-x", "alice")},
			[]string{"pod/openshift-gitops-application-controller-2", "pod/acd-7d9-x"}},
		"Secrets that Kubernetes puts a token into": {[]string{"argocd"}, []map[string]any{written("argocd", "a", "create", "alice"),
			written("argocd", "a", "update", controllerManager), written("other", "b", "update", controllerManager), posed,
			written("argocd", "d", "update", "alice")}, []string{"secret/a"}},
		"webhook configurations": {nil, []map[string]any{registration("mutatingwebhookconfigurations", "ballast.argocd", "delete"), registration("mutatingwebhookconfigurations", "", "deletecollection")},
			[]string{"mutatingwebhookconfiguration/ballast.argocd", "mutatingwebhookconfiguration/(all that match)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			for i, e := range c.events {
				e["auditID"] = fmt.Sprint(i)
				text.Write(append(secretWrite(t, e), '\n'))
			}
			var got []string
			err := NewLog(Options{Namespaces: c.known}).Read("a", &text, func(w Write) error {
				if w.Effect == Unasked {
					got = append(got, w.Object())
				}
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v shown (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestAPlannersUpkeepIsNotShown: who keeps the history and the key is one account, or those that are named.
func TestAPlannersUpkeepIsNotShown(t *testing.T) {
	const shipped, renamed, foreign = "system:serviceaccount:argocd:ballast-planner", "system:serviceaccount:hub:my-argo-ballast-planner", "system:serviceaccount:other:ballast-planner"
	for name, c := range map[string]struct {
		planners []string
		want     []string // whose writes to the history and to the key of two namespaces are shown
	}{
		"the shipped one":    {nil, []string{"argocd " + renamed, "argocd " + foreign, "hub " + shipped, "hub " + renamed, "hub " + foreign}},
		"a renamed one":      {[]string{renamed}, []string{"argocd " + shipped, "argocd " + foreign, "hub " + shipped, "hub " + foreign}},
		"two that are named": {[]string{renamed, shipped}, []string{"argocd " + foreign, "hub " + foreign}},
	} {
		for _, object := range []struct{ resource, name string }{{"configmaps", "ballast-history"}, {"secrets", "ballast-plan-key"}} {
			var text bytes.Buffer
			for _, at := range []string{"argocd", "hub"} {
				for _, user := range []string{shipped, renamed, foreign} {
					ref := map[string]any{"apiGroup": "", "resource": object.resource, "namespace": at, "name": object.name}
					text.Write(append(secretWrite(t, map[string]any{"auditID": at + user, "user": map[string]any{"username": user}, "annotations": nil, "objectRef": ref}), '\n'))
				}
			}
			var got []string
			err := NewLog(Options{Planners: c.planners}).Read("a", &text, func(w Write) error {
				got = append(got, w.Namespace+" "+w.User)
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v shown (-want +got):\n%s", name, object.name, err, diff)
			}
		}
	}
}

// TestTokensOfBallastsAccountsAreShown, and a planner's, whatever its account is called; not those that the kubelet has made for its pods.
func TestTokensOfBallastsAccountsAreShown(t *testing.T) {
	var text bytes.Buffer
	for _, account := range []string{"my-planner", "ballast-webhook", "ballast-certs", "argocd-server"} {
		for _, user := range []string{"alice", "system:node:a"} {
			by, of := map[string]any{"username": user}, object("", "serviceaccounts", "token", account)
			line := secretWrite(t, map[string]any{"auditID": user + account, "verb": "create", "annotations": nil, "user": by, "objectRef": of})
			text.Write(append(line, '\n'))
		}
	}
	var got []string
	planners := []string{"system:serviceaccount:argocd:my-planner"}
	err := NewLog(Options{Namespaces: []string{"argocd"}, Planners: planners}).Read("a", &text, func(w Write) error {
		got = append(got, w.User+" "+w.Kind+"/"+w.Name)
		return nil
	})
	want := []string{"alice serviceaccount/my-planner", "alice serviceaccount/ballast-webhook", "alice serviceaccount/ballast-certs"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v shown (-want +got):\n%s", err, diff)
	}
}

// TestAStatusThatOthersWriteIsShown: whoever writes a workload's status may opt it out, and no webhook is asked.
func TestAStatusThatOthersWriteIsShown(t *testing.T) {
	const workload, controller = "argocd-application-controller", "system:serviceaccount:kube-system:statefulset-controller"
	for name, c := range map[string]struct {
		verb, resource, name, user, as string
		want                           []string
	}{
		"a person":                        {"patch", "statefulsets", workload, "eve", "", []string{"eve patch status statefulset/" + workload + " NotAsked"}},
		"of a Deployment":                 {"update", "deployments", workload, "eve", "", []string{"eve update status deployment/" + workload + " NotAsked"}},
		"its controller":                  {"update", "statefulsets", workload, controller, "", nil},
		"a Deployment's":                  {"update", "deployments", workload, "system:serviceaccount:kube-system:deployment-controller", "", nil},
		"all controllers in one":          {"update", "statefulsets", workload, "system:kube-controller-manager", "", nil},
		"one of that name elsewhere":      {"patch", "statefulsets", workload, "system:serviceaccount:eve:statefulset-controller", "", []string{"system:serviceaccount:eve:statefulset-controller patch status statefulset/" + workload + " NotAsked"}},
		"who impersonates the controller": {"patch", "statefulsets", workload, "eve", controller, []string{controller + " patch status statefulset/" + workload + " NotAsked"}},
		"as the controller":               {"patch", "statefulsets", workload, controller, "eve", []string{"eve patch status statefulset/" + workload + " NotAsked"}},
		"who reads it":                    {"get", "statefulsets", workload, "eve", "", nil},
		"another's":                       {"patch", "statefulsets", "redis", "eve", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := map[string]any{"verb": c.verb, "annotations": nil, "user": map[string]any{"username": c.user}, "objectRef": object("apps", c.resource, "status", c.name)}
			if c.as != "" {
				e["impersonatedUser"] = map[string]any{"username": c.as}
			}
			var got []string
			err := NewLog(Options{}).Read("a", bytes.NewReader(append(secretWrite(t, e), '\n')), func(w Write) error {
				got = append(got, fmt.Sprintf("%s %s %s %s", w.User, w.Action(), w.Object(), w.Reason))
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v shown (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhereBallastIsAtWorkIsBounded(t *testing.T) {
	var s sites
	for i := range 10 * maxSites {
		s.learn(Write{Namespace: fmt.Sprint(i), Kind: kindConfigMap, Name: "a"})
	}
	if len(s.namespaces) != maxSites || len(s.objects) != maxSites {
		t.Errorf("%d namespaces and %d objects are remembered, want %d", len(s.namespaces), len(s.objects), maxSites)
	}
}
