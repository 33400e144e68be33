package auditlog

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = `{"kind":"Event","apiVersion":"audit.k8s.io/v1",`

// secretWrite is a person's edit of a shard; what a case gives replaces a field or adds one, and nil takes it away.
func secretWrite(t testing.TB, change map[string]any) []byte {
	t.Helper()
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "a-1", "stage": "ResponseComplete",
		"requestURI": "/api/v1/namespaces/argocd/secrets/prod-eu?fieldManager=kubectl-edit", "verb": "patch", "user": map[string]any{"username": "alice"},
		"objectRef":      map[string]any{"resource": "secrets", "namespace": "argocd", "name": "prod-eu", "apiVersion": "v1"},
		"responseStatus": map[string]any{"code": 200}, "requestReceivedTimestamp": "2026-08-01T12:00:00.5Z",
		"annotations": said("clusters", "Restored", "shard=1", "shard=3"),
	}
	maps.Copy(e, change)
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// said are the annotations of a webhook's answer.
func said(webhook, reason, requested, enforced string) map[string]string {
	key := webhook + ".ballast.argoproj.io/"
	return map[string]string{key + "reason": reason, key + "revision": "7", key + "requested": requested, key + "enforced": enforced, "authorization.k8s.io/decision": "allow"}
}

func with(annotations map[string]string, key, value string) map[string]string {
	annotations[key] = value
	return annotations
}

// mutated is how the API server tells of a webhook's part in a round.
func mutated(webhook string, yes bool) string {
	return fmt.Sprintf(`{"configuration":"ballast.argocd","webhook":"%s.ballast.argoproj.io","mutated":%t}`, webhook, yes)
}

func object(group, resource, subresource, name string) map[string]any {
	return map[string]any{"apiGroup": group, "resource": resource, "subresource": subresource, "namespace": "argocd", "name": name}
}

// shardEdit is what secretWrite says.
func shardEdit(change func(*Write)) *Write {
	w := Write{
		Time: time.Date(2026, 8, 1, 12, 0, 0, 5e8, time.UTC), AuditID: "a-1", User: "alice", Account: Account{Kind: Person}, Verb: "patch",
		Namespace: "argocd", Kind: "secret", Name: "prod-eu", Effect: Rewritten, Reason: "Restored", Revision: 7, Requested: "shard=1", Enforced: "shard=3", Code: 200,
	}
	change(&w)
	return &w
}

func TestParse(t *testing.T) {
	const second = "mutation.webhook.admission.k8s.io/round_1_index_3"
	const roundTwo = "failed-open.mutation.webhook.admission.k8s.io/round_1_index_2"
	type fields = map[string]any
	for name, c := range map[string]struct {
		event fields
		want  *Write // nil for no concern of ballast's
	}{
		"a rewritten write":         {nil, shardEdit(func(*Write) {})},
		"a request that has begun":  {fields{"stage": "RequestReceived"}, nil},
		"a response that has begun": {fields{"stage": "ResponseStarted"}, nil},
		"a panic of the API server": {fields{"stage": "Panic", "responseStatus": fields{"code": 500}}, shardEdit(func(w *Write) { w.Panicked, w.Code = true, 500 })},
		"a request for no object":   {fields{"objectRef": nil}, nil},
		"an object of another kind": {fields{"objectRef": object("apps", "daemonsets", "", "x")}, nil},
		"the kind in another group": {fields{"objectRef": object("example.com", "secrets", "", "x")}, nil},
		"a Secret that is not ours": {fields{"annotations": map[string]string{"authorization.k8s.io/reason": "clusters.ballast.argoproj.io/reason"}}, nil},
		"another webhook's words":   {fields{"annotations": said("scale", "Restored", "replicas=1", "replicas=2")}, nil},
		"no answer's reason":        {fields{"annotations": map[string]string{"clusters.ballast.argoproj.io/enforced": "shard=3"}}, nil},
		"no response":               {fields{"responseStatus": nil}, shardEdit(func(w *Write) { w.Code = 0 })},
		"a generated name":          {fields{"verb": "create", "objectRef": object("", "secrets", "", "")}, shardEdit(func(w *Write) { w.Verb, w.Name = "create", "" })},
		"a dry run":                 {fields{"requestURI": "/api/v1/namespaces/argocd/secrets/prod-eu?fieldManager=x&dryRun=All"}, shardEdit(func(w *Write) { w.DryRun = true })},
		"a dry run, escaped":        {fields{"requestURI": "/x?dry%52un=%41ll"}, shardEdit(func(w *Write) { w.DryRun = true })},
		"a dry run in a value":      {fields{"requestURI": "/x?fieldManager=dryRun%3DAll"}, shardEdit(func(*Write) {})},
		"a pin":                     {planWrite("InPlan", "pins.prod-eu=3", "pins.prod-eu=3"), planEdit(Steered, "InPlan", "pins.prod-eu=3", "pins.prod-eu=3")},
		"many pins":                 {planWrite("InPlan", "pins=37", "pins=37"), planEdit(Steered, "InPlan", "pins=37", "pins=37")},
		"break-glass":               {planWrite("Observing", "enforcement=off", "enforcement=off"), planEdit(Steered, "Observing", "enforcement=off", "enforcement=off")},
		"a freeze, mistyped":        {planWrite("InPlan", "paused=invalid", "paused=-"), planEdit(Steered, "InPlan", "paused=invalid", "paused=-")},
		"a trip that is cleared":    {planWrite("InPlan", "tripped=-", "tripped=-"), planEdit(Steered, "InPlan", "tripped=-", "tripped=-")},
		"a row that became a pin":   {planWrite("PinAdded", "plan=0123456789ab clusters.prod-eu=3", "plan=0123456789ab pins.prod-eu=3"), planEdit(Rewritten, "PinAdded", "plan=0123456789ab clusters.prod-eu=3", "plan=0123456789ab pins.prod-eu=3")},
		"a pin that is refused":     {planWrite("PinRefused", "pins.prod-eu=99", "-"), planEdit(Refused, "PinRefused", "pins.prod-eu=99", "-")},
		"an opt-out": {fields{"annotations": said("clusters", "Unmanaged", "shard=1 unmanaged=true", "unmanaged=true")}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Requested, w.Enforced = Steered, "Unmanaged", "shard=1 unmanaged=true", "unmanaged=true"
		})},
		"a Secret that leaves": {fields{"annotations": said("clusters", "Unmanaged", "shard=1 secret-type=-", "secret-type=-")}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Requested, w.Enforced = Steered, "Unmanaged", "shard=1 secret-type=-", "secret-type=-"
		})},
		"a Secret that becomes a cluster's": {fields{"annotations": said("clusters", "Unmanaged", "shard=1 unmanaged=true secret-type=cluster", "unmanaged=true secret-type=cluster")}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Requested, w.Enforced = Steered, "Unmanaged", "shard=1 unmanaged=true secret-type=cluster", "unmanaged=true secret-type=cluster"
		})},
		"a pin of a Secret's own": {fields{"annotations": said("clusters", "Pinned", "shard=3 pin=3", "shard=3 pin=3")}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Requested, w.Enforced = Steered, "Pinned", "shard=3 pin=3", "shard=3 pin=3"
		})},
		"and put back its shard":     {fields{"annotations": said("clusters", "Pinned", "shard=1 pin=3", "shard=3 pin=3")}, shardEdit(func(w *Write) { w.Reason, w.Requested, w.Enforced = "Pinned", "shard=1 pin=3", "shard=3 pin=3" })},
		"a deleted Secret":           {fields{"verb": "delete", "annotations": nil}, unasked("delete", "secret", "prod-eu")},
		"all Secrets deleted":        {fields{"verb": "deletecollection", "annotations": nil, "objectRef": object("", "secrets", "", "")}, unasked("deletecollection", "secret", "")},
		"a Secret that is another's": {fields{"verb": "update", "annotations": nil}, nil},
		"a deleted plan":             {fields{"verb": "delete", "annotations": nil, "objectRef": object("", "configmaps", "", "ballast-plan")}, unasked("delete", "configmap", "ballast-plan")},
		"a deleted workload":         {fields{"verb": "delete", "annotations": nil, "objectRef": object("apps", "statefulsets", "", "c")}, unasked("delete", "statefulset", "c")},
		"a deleted Deployment":       {fields{"verb": "delete", "annotations": nil, "objectRef": object("apps", "deployments", "", "c")}, unasked("delete", "deployment", "c")},
		"an edited history":          {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history")}, unasked("patch", "configmap", "ballast-history")},
		"the planner's history":      {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}}, nil},
		"a foreign planner's": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "user": fields{"username": "system:serviceaccount:evil:ballast-planner"}},
			by("system:serviceaccount:evil:ballast-planner", "", unasked("patch", "configmap", "ballast-history"))},
		"an edited history, in a forged webhook's words": {fields{"annotations": said("plan", "InPlan", "-", "-"), "objectRef": object("", "configmaps", "", "ballast-history")}, unasked("patch", "configmap", "ballast-history")},
		"who ends as the planner does": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "user": fields{"username": "system:serviceaccount:argocd:eve-ballast-planner"}},
			by("system:serviceaccount:argocd:eve-ballast-planner", "", unasked("patch", "configmap", "ballast-history"))},
		"a configuration by who ends so": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-config"), "user": fields{"username": "system:serviceaccount:argocd:eve-ballast-planner"}},
			by("system:serviceaccount:argocd:eve-ballast-planner", "", unasked("patch", "configmap", "ballast-config"))},
		"a configuration by the planner": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-config"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "", unasked("patch", "configmap", "ballast-config"))},
		"the planner's plan without a webhook": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-plan"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}}, nil},
		"the planner's own history, deleted by it": {fields{"verb": "delete", "annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "", unasked("delete", "configmap", "ballast-history"))},
		"an edited key":                  {fields{"annotations": nil, "objectRef": object("", "secrets", "", "ballast-plan-key")}, unasked("patch", "secret", "ballast-plan-key")},
		"a replaced key":                 {fields{"verb": "update", "annotations": nil, "objectRef": object("", "secrets", "", "ballast-plan-key")}, unasked("update", "secret", "ballast-plan-key")},
		"a key by another":               {fields{"verb": "create", "annotations": nil, "objectRef": object("", "secrets", "", "ballast-plan-key")}, unasked("create", "secret", "ballast-plan-key")},
		"a key that is made a cluster's": {fields{"annotations": said("clusters", "InPlan", "shard=3", "shard=3"), "objectRef": object("", "secrets", "", "ballast-plan-key")}, unasked("patch", "secret", "ballast-plan-key")},
		"the planner's key":              {fields{"annotations": nil, "objectRef": object("", "secrets", "", "ballast-plan-key"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}}, nil},
		"a shard by the planner's name and a token of no pod": {fields{"annotations": nil, "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "", unasked("patch", "secret", "prod-eu"))},
		"a token of the planner's account": {fields{"verb": "create", "annotations": nil, "objectRef": object("", "serviceaccounts", "token", "ballast-planner")},
			func() *Write {
				w := unasked("create", "serviceaccount", "ballast-planner")
				w.Subresource = "token"
				return w
			}()},
		"a token whose query says dry run": {fields{"verb": "create", "annotations": nil, "objectRef": object("", "serviceaccounts", "token", "ballast-planner"),
			"requestURI": "/api/v1/namespaces/argocd/serviceaccounts/ballast-planner/token?dryRun=All"}, func() *Write {
			w := unasked("create", "serviceaccount", "ballast-planner")
			w.Subresource = "token"
			return w
		}()},
		"its pod's own": {fields{"verb": "create", "annotations": nil, "objectRef": object("", "serviceaccounts", "token", "ballast-planner"),
			"user": fields{"username": "system:node:a"}}, nil},
		"by who impersonates a kubelet": {fields{"verb": "create", "annotations": nil, "objectRef": object("", "serviceaccounts", "token", "ballast-planner"),
			"impersonatedUser": fields{"username": "system:node:a"}}, func() *Write {
			w := by("system:node:a", "alice", unasked("create", "serviceaccount", "ballast-planner"))
			w.Subresource = "token"
			return w
		}()},
		"a token of another account": {fields{"verb": "create", "annotations": nil, "objectRef": object("", "serviceaccounts", "token", "argocd-server")}, nil},
		"the planner's shard, which nobody asks about": {fields{"annotations": nil, "user": fields{"username": "system:serviceaccount:argocd:ballast-planner",
			"extra": fields{"authentication.kubernetes.io/pod-name": []string{"ballast-planner-7d9-x"}}}}, func() *Write {
			w := by("system:serviceaccount:argocd:ballast-planner", "", unasked("patch", "secret", "prod-eu"))
			w.Effect = Agreed
			return w
		}()},
		"a shard by who impersonates the planner, which nobody asks about either": {fields{"annotations": nil,
			"impersonatedUser": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "alice", unasked("patch", "secret", "prod-eu"))},
		"a shard by who ends as the planner does": {fields{"annotations": nil, "user": fields{"username": "system:serviceaccount:argocd:eve-ballast-planner"}}, nil},
		"a Secret that the planner deletes": {fields{"verb": "delete", "annotations": nil, "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "", unasked("delete", "secret", "prod-eu"))},
		"a read of the key": {fields{"verb": "get", "annotations": nil, "objectRef": object("", "secrets", "", "ballast-plan-key")}, nil},
		"a certificate":     {fields{"annotations": nil, "objectRef": object("", "secrets", "", "ballast-webhook-tls")}, unasked("patch", "secret", "ballast-webhook-tls")},
		"the planner's certificate": {fields{"annotations": nil, "objectRef": object("", "secrets", "", "ballast-webhook-tls"), "user": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "", unasked("patch", "secret", "ballast-webhook-tls"))},
		"a deletion whose query says dry run":     {fields{"verb": "delete", "annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "requestURI": "/x?dryRun=All"}, unasked("delete", "configmap", "ballast-history")},
		"all deleted, and the query says dry run": {fields{"verb": "deletecollection", "annotations": nil, "objectRef": object("", "secrets", "", ""), "requestURI": "/x?dryRun=All"}, unasked("deletecollection", "secret", "")},
		"an edited history in a dry run": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "requestURI": "/x?dryRun=All"},
			func() *Write { w := unasked("patch", "configmap", "ballast-history"); w.DryRun = true; return w }()},
		"who impersonates the planner": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history"), "impersonatedUser": fields{"username": "system:serviceaccount:argocd:ballast-planner"}},
			by("system:serviceaccount:argocd:ballast-planner", "alice", unasked("patch", "configmap", "ballast-history"))},
		"a plan whose webhook is gone": {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "ballast-plan")}, unasked("patch", "configmap", "ballast-plan")},
		"a read of the history":        {fields{"verb": "get", "annotations": nil, "objectRef": object("", "configmaps", "", "ballast-history")}, nil},
		"another ConfigMap":            {fields{"annotations": nil, "objectRef": object("", "configmaps", "", "argocd-cm")}, nil},
		"a webhook configuration":      {registration("mutatingwebhookconfigurations", "ballast.argocd", "patch"), clusterScoped("patch", "mutatingwebhookconfiguration", "ballast.argocd")},
		"a deleted configuration":      {registration("mutatingwebhookconfigurations", "ballast", "delete"), clusterScoped("delete", "mutatingwebhookconfiguration", "ballast")},
		"all configurations deleted":   {registration("mutatingwebhookconfigurations", "", "deletecollection"), clusterScoped("deletecollection", "mutatingwebhookconfiguration", "")},
		"a policy":                     {registration("validatingadmissionpolicies", "ballast-planner.argocd", "update"), clusterScoped("update", "validatingadmissionpolicy", "ballast-planner.argocd")},
		"a policy's binding":           {registration("validatingadmissionpolicybindings", "ballast-planner.argocd", "delete"), clusterScoped("delete", "validatingadmissionpolicybinding", "ballast-planner.argocd")},
		"another's configuration":      {registration("mutatingwebhookconfigurations", "istio", "delete"), nil},
		"an impersonated user":         {fields{"impersonatedUser": fields{"username": "bob"}}, shardEdit(func(w *Write) { w.User, w.By = "bob", "alice" })},
		"a fault":                      {fields{"annotations": said("clusters", "Faulted", "-", "-")}, shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested, w.Enforced = Faulted, "Faulted", "-", "-" })},
		"agreement":                    {fields{"annotations": said("clusters", "InPlan", "shard=3", "shard=3")}, shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested = Agreed, "InPlan", "shard=3" })},
		"an assignment":                {fields{"annotations": said("clusters", "Assigned", "shard=-", "shard=3")}, shardEdit(func(w *Write) { w.Reason, w.Requested = "Assigned", "shard=-" })},
		"an assignment that stood":     {fields{"annotations": said("clusters", "Assigned", "shard=3", "shard=3")}, shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested = Agreed, "Assigned", "shard=3" })},
		"a reason that does not be":    {fields{"annotations": said("clusters", "Bogus", "-", "-")}, shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested, w.Enforced = Unknown, Invalid, "-", "-" })},
		"a webhook that was away": {fields{"annotations": map[string]string{roundTwo: "clusters.ballast.argoproj.io"}}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Revision, w.Requested, w.Enforced = Bypassed, FailedOpen, 0, "-", "-"
		})},
		"away in the second round": {fields{"annotations": with(said("clusters", "Restored", "shard=1", "shard=3"), roundTwo, "clusters.ballast.argoproj.io")}, shardEdit(func(w *Write) { w.Effect, w.Reason = Bypassed, FailedOpen })},
		"another webhook was away": {fields{"annotations": with(said("clusters", "Restored", "shard=1", "shard=3"), roundTwo, "istio.example")}, shardEdit(func(*Write) {})},
		"put back in the second round": {fields{"annotations": with(said("clusters", "InPlan", "shard=3", "shard=3"), second, mutated("clusters", true))},
			shardEdit(func(w *Write) { w.Reason, w.Requested = "InPlan", "shard=3" })},
		"put back after it had passed": {fields{"annotations": with(said("clusters", "Unmanaged", "shard=3", "-"), second, mutated("clusters", true))},
			shardEdit(func(w *Write) { w.Reason, w.Requested, w.Enforced = "Unmanaged", "shard=3", "-" })},
		"asked again for nothing": {fields{"annotations": with(said("clusters", "InPlan", "shard=3", "shard=3"), second, mutated("clusters", false))},
			shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested = Agreed, "InPlan", "shard=3" })},
		"another webhook's second round": {fields{"annotations": with(said("clusters", "InPlan", "shard=3", "shard=3"), second, mutated("scale", true))},
			shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested = Agreed, "InPlan", "shard=3" })},
		"forged words of a second round": {fields{"annotations": with(said("clusters", "InPlan", "shard=3", "shard=3"), second, `"clusters.ballast.argoproj.io"`)},
			shardEdit(func(w *Write) { w.Effect, w.Reason, w.Requested = Agreed, "InPlan", "shard=3" })},
		"away, and refused for that": {fields{"annotations": nil, "responseStatus": refusedByPolicy("clusters")}, shardEdit(func(w *Write) {
			w.Effect, w.Reason, w.Revision, w.Requested, w.Enforced, w.Code = Refused, FailedClosed, 0, "-", "-", 500
		})},
		"refused for another's": {fields{"annotations": nil, "responseStatus": refusedByPolicy("plan")}, nil},
		"quoted by another webhook": {fields{"annotations": nil, "responseStatus": fields{"code": 500,
			"message": `Internal error occurred: Internal error occurred: failed calling webhook "clusters.ballast.argoproj.io"`}}, nil},
		"quoted by a person": {fields{"annotations": nil, "responseStatus": fields{"code": 422,
			"message": `Invalid value: "Internal error occurred: failed calling webhook \"clusters.ballast.argoproj.io\""`}}, nil},
		"kubectl scale": {
			fields{"verb": "update", "objectRef": object("apps", "statefulsets", "scale", "c"), "annotations": said("scale", "Restored", "replicas=9", "replicas=4")},
			shardEdit(func(w *Write) {
				w.Verb, w.Kind, w.Name, w.Subresource, w.Requested, w.Enforced = "update", "statefulset", "c", "scale", "replicas=9", "replicas=4"
			}),
		},
		"a Deployment": {
			fields{"objectRef": object("apps", "deployments", "", "c"), "annotations": said("controllers", "InPlan", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=-", "replicas=4")},
			shardEdit(func(w *Write) {
				w.Kind, w.Name, w.Effect, w.Reason, w.Requested, w.Enforced = "deployment", "c", Agreed, "InPlan", "replicas=4 ARGOCD_CONTROLLER_REPLICAS=-", "replicas=4"
			}),
		},
		"a pod that gets its size": {
			fields{"verb": "create", "objectRef": object("", "pods", "", "c-3"), "annotations": said("pods", "Restored", "requests.cpu=250m limits.memory=-", "requests.cpu=1 limits.memory=4Gi")},
			shardEdit(func(w *Write) {
				w.Verb, w.Kind, w.Name, w.Requested, w.Enforced = "create", "pod", "c-3", "requests.cpu=250m limits.memory=-", "requests.cpu=1 limits.memory=4Gi"
			}),
		},
		"a pod that no webhook was asked about": {fields{"verb": "create", "objectRef": object("", "pods", "", "c-3"), "annotations": nil}, nil},
		"forged words": {
			fields{"verb": "pat\x1bch", "user": fields{"username": "al\x1b[2Jice\u202e"}, "auditID": "id\n", "objectRef": object("", "secrets", "", "eyJhbGciOi"),
				"annotations": with(said("clusters", "Restored", "token=eyJhbGciOi shard=eyJhbGciOi", "shard=3\x1b[31m eyJhbGciOi"), "clusters.ballast.argoproj.io/revision", "eyJhbGciOi")},
			shardEdit(func(w *Write) {
				w.Verb, w.User, w.AuditID, w.Name, w.Requested, w.Enforced, w.Revision = Invalid, `al\u001b[2Jice\u202e`, "id ", Invalid, "invalid shard=invalid", "shard=invalid invalid", 0
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			line := secretWrite(t, c.event)
			got, ours, err := parse(line, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ours && !NewLog(Options{}).concerned(line) {
				t.Error("the line is left out before it is decoded")
			}
			if !ours {
				if c.want != nil {
					t.Error("the write is no concern of ballast's, want it to be")
				}
				return
			}
			if diff := cmp.Diff(c.want, &got); diff != "" {
				t.Errorf("write (-want +got):\n%s", diff)
			}
		})
	}
}

// planWrite is a write to the plan ConfigMap with what its webhook said.
func planWrite(reason, requested, enforced string) map[string]any {
	return map[string]any{"annotations": said("plan", reason, requested, enforced), "objectRef": object("", "configmaps", "", "ballast-plan")}
}

func planEdit(effect Effect, reason, requested, enforced string) *Write {
	return shardEdit(func(w *Write) {
		w.Kind, w.Name, w.Effect, w.Reason, w.Requested, w.Enforced = "configmap", "ballast-plan", effect, reason, requested, enforced
	})
}

// unasked is what no webhook was asked about.
func unasked(verb, kind, name string) *Write {
	return shardEdit(func(w *Write) {
		w.Verb, w.Kind, w.Name, w.Effect, w.Reason, w.Requested, w.Enforced, w.Revision = verb, kind, name, Unasked, NotAsked, "-", "-", 0
	})
}

func clusterScoped(verb, kind, name string) *Write {
	w := unasked(verb, kind, name)
	w.Namespace = ""
	return w
}

func by(user, impersonator string, w *Write) *Write {
	w.User, w.By, w.Account = user, impersonator, AccountOf(user)
	return w
}

func registration(resource, name, verb string) map[string]any {
	o := object("admissionregistration.k8s.io", resource, "", name)
	delete(o, "namespace")
	return map[string]any{"verb": verb, "annotations": nil, "objectRef": o}
}

func refusedByPolicy(webhook string) map[string]any {
	return map[string]any{"code": 500, "message": `Internal error occurred: failed calling webhook "` + webhook + `.ballast.argoproj.io": failed to call webhook: EOF`}
}

func TestParseRefusesWhatIsNoEvent(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":             `{`,
		"two events":          header + `"stage":"Panic"}{"kind":"Event"}`,
		"another kind":        `{"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`,
		"an event of the API": `{"kind":"Event","apiVersion":"v1","message":"audit.k8s.io/v1"}`,
		"a value's type":      header + `"annotations":{"clusters.ballast.argoproj.io/reason":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if w, _, err := parse([]byte(line), nil); err == nil {
				t.Errorf("%s was read as %+v, want an error", line, w)
			}
		})
	}
}

// FuzzParse: whatever stands in a line, what is handed on is printable and of the closed sets.
func FuzzParse(f *testing.F) {
	f.Add(secretWrite(f, nil))
	f.Add(secretWrite(f, map[string]any{"annotations": said("clusters", "Faulted", "pins.a=1 clusters.b=- plan=0123456789ab", "requests.cpu=1500m")}))
	f.Add(secretWrite(f, map[string]any{"annotations": said("clusters", "eyJhbGciOi", "token=eyJhbGciOi", "shard=\u001b[31m")}))
	f.Add(secretWrite(f, map[string]any{"user": map[string]any{"username": strings.Repeat("é\x00", 400)}}))
	f.Add([]byte(header + `"stage":"Panic","objectRef":{"resource":"secrets"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		w, ours, err := parse(line, nil)
		if err != nil || !ours {
			return
		}
		checkSafe(t, w)
	})
}
