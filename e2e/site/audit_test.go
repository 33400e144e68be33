package site

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditLog = `{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/argocd/secrets/prod-eu-1?fieldManager=kubectl-patch","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"secrets","namespace":"argocd","name":"prod-eu-1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-08-01T12:00:00.000000Z","annotations":{"authorization.k8s.io/decision":"allow","clusters.ballast.argoproj.io/reason":"Restored","clusters.ballast.argoproj.io/revision":"7","clusters.ballast.argoproj.io/requested":"shard=1","clusters.ballast.argoproj.io/enforced":"shard=3","mutation.webhook.admission.k8s.io/round_0_index_0":"{\"configuration\":\"ballast\"}"}}
{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/argocd/statefulsets/c/scale?dryRun=All","verb":"update","user":{"username":"system:serviceaccount:argocd:ballast-planner"},"objectRef":{"resource":"statefulsets","name":"c","subresource":"scale"},"requestReceivedTimestamp":"2026-08-01T12:00:01.000000Z","annotations":{"failed-open.mutation.webhook.admission.k8s.io/round_0_index_2":"scale.ballast.argoproj.io"}}
{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/argocd/configmaps/other","verb":"get","user":{"username":"bob"},"objectRef":{"resource":"configmaps","name":"other"},"annotations":{"authorization.k8s.io/reason":"ballast.argoproj.io/"}}
{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/argocd/configmaps","verb":"create","user":{"username":"bob"},"objectRef":{"resource":"configmaps","name":"other"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-08-01T12:00:02.000000Z"}
{"kind":"Event","stage":"Panic","verb":"get"}
{"kind":"Event","stage":"Respo`

func TestReadAudit(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	want := []AuditEvent{
		{
			Time: at, User: "alice", Verb: "patch", Resource: "secrets", Name: "prod-eu-1", Code: 200, Webhook: "clusters",
			Reason: "Restored", Revision: 7, Requested: "shard=1", Enforced: "shard=3",
		},
		{
			Time: at.Add(time.Second), User: PlannerUser, Verb: "update", Resource: "statefulsets/scale", Name: "c",
			DryRun: true, FailedOpen: true,
		},
		{Time: at.Add(2 * time.Second), User: "bob", Verb: "create", Resource: "configmaps", Name: "other", Code: 201},
	}
	got, err := readAudit(strings.NewReader(auditLog))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i, want := range []bool{true, true, false} {
		if got[i].Ours() != want {
			t.Errorf("event %d: ballast saw it: %t, want %t", i, !want, want)
		}
	}
}

func TestReadAuditRefusesWhatIsNoAuditLog(t *testing.T) {
	if _, err := readAudit(strings.NewReader("no JSON\n")); err == nil {
		t.Error("a line that is not JSON is no error")
	}
}

func FuzzReadAudit(f *testing.F) {
	f.Add(auditLog)
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		events, err := readAudit(strings.NewReader(text))
		if err == nil && len(events) > strings.Count(text, "\n") {
			t.Errorf("%d events in %d lines", len(events), strings.Count(text, "\n"))
		}
	})
}
