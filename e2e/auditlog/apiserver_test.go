package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"ballast/planner/plan"
	"ballast/webhook/auditlog"
)

// canary stands in every Secret, and may stand in no output.
const canary = "eyJhbGciOiJSUzI1NiJ9.canary"

// TestOnARealAPIServer reads what a real API server logged under the policy that we recommend.
func TestOnARealAPIServer(t *testing.T) {
	s := startSite(t)
	alice, server := s.client(t, s.user(t, "alice")), s.client(t, s.account(t, "argocd-server"))
	carol := s.client(t, s.user(t, "carol")) // the policy has her objects logged
	bob := s.client(t, impersonate(s.user(t, "alice"), "bob"))

	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: workload, Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 9}}
	s.must(t)(alice.AppsV1().StatefulSets(namespace).UpdateScale(t.Context(), workload, scale, metav1.UpdateOptions{}))
	s.must(t)(editShard(alice, "prod-eu", "1"))
	s.must(t)(editShard(alice, "prod-eu", "2", metav1.DryRunAll))
	s.must(t)(editShard(alice, "prod-eu", "3")) // which is the plan's
	s.must(t)(server.CoreV1().Secrets(namespace).Update(t.Context(), clusterSecret("prod-us", "0"), metav1.UpdateOptions{}))
	s.must(t)(editShard(carol, "prod-us", canary))
	s.must(t)(carol.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "new-", Labels: clusterLabels(), Annotations: map[string]string{plan.AnnotationUnmanaged: "true"}},
	}, metav1.CreateOptions{}))
	_, err := bob.CoreV1().ConfigMaps(namespace).Patch(t.Context(), planName, types.MergePatchType, []byte(`{"data":{"pins":"prod-eu: 99\n"}}`), metav1.PatchOptions{})
	if err == nil {
		t.Error("a pin above maxReplicas was accepted")
	}
	_, err = alice.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "not-ours"}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
	s.meddle(t)
	if got, err := meddleWith(t, alice); err != nil || string(got.Data[plan.ShardKey]) != "2" {
		t.Errorf("after another webhook's change, shard %s: %v", got.Data[plan.ShardKey], err)
	}
	s.stopServer()
	s.must(t)(editShard(alice, "prod-eu", "1"))
	s.failClosed(t)
	if _, err := editShard(alice, "prod-eu", "2"); err == nil {
		t.Error("a write passed without a webhook under failurePolicy Fail")
	}

	got := s.read(t, 11)
	const eu, us = "prod-eu", "prod-us"
	person, app := auditlog.Account{Kind: auditlog.Person}, auditlog.Account{Kind: auditlog.ServiceAccount, StandsFor: "people in Argo CD's UI and CLI"}
	want := []auditlog.Write{
		{User: "alice", Account: person, Verb: "update", Kind: "statefulset", Name: workload, Subresource: "scale", Effect: auditlog.Rewritten, Reason: "Restored", Revision: 7, Requested: "replicas=9", Enforced: "replicas=4", Code: 200},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: eu, Effect: auditlog.Rewritten, Reason: "Restored", Revision: 7, Requested: "shard=1", Enforced: "shard=3", Code: 200},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: eu, Effect: auditlog.Rewritten, Reason: "Restored", Revision: 7, Requested: "shard=2", Enforced: "shard=3", Code: 200, DryRun: true},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: eu, Effect: auditlog.Agreed, Reason: "InPlan", Revision: 7, Requested: "shard=3", Enforced: "shard=3", Code: 200},
		{User: "system:serviceaccount:argocd:argocd-server", Account: app, Verb: "update", Kind: "secret", Name: us, Effect: auditlog.Rewritten, Reason: "Restored", Revision: 7, Requested: "shard=0", Enforced: "shard=2", Code: 200},
		{User: "carol", Account: person, Verb: "patch", Kind: "secret", Name: us, Effect: auditlog.Rewritten, Reason: "Restored", Revision: 7, Requested: "shard=invalid", Enforced: "shard=2", Code: 200},
		{User: "carol", Account: person, Verb: "create", Kind: "secret", Effect: auditlog.Steered, Reason: "Unmanaged", Revision: 7, Requested: "shard=- unmanaged=true", Enforced: "unmanaged=true", Code: 201},
		{User: "bob", By: "alice", Account: person, Verb: "patch", Kind: "configmap", Name: planName, Effect: auditlog.Refused, Reason: "PinRefused", Revision: 7, Requested: "pins.prod-eu=99", Enforced: "-", Code: 422},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: us, Effect: auditlog.Rewritten, Reason: "InPlan", Revision: 7, Requested: "shard=2", Enforced: "shard=2", Code: 200},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: eu, Effect: auditlog.Bypassed, Reason: auditlog.FailedOpen, Requested: "-", Enforced: "-", Code: 200},
		{User: "alice", Account: person, Verb: "patch", Kind: "secret", Name: eu, Effect: auditlog.Refused, Reason: auditlog.FailedClosed, Requested: "-", Enforced: "-", Code: 500},
	}
	for i := range want {
		want[i].Namespace = namespace
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(auditlog.Write{}, "Time", "AuditID")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	s.showsNoSecret(t, got)
}

// editShard writes a shard as kubectl edit does: every other value stays.
func editShard(c kubernetes.Interface, name, shard string, dry ...string) (*corev1.Secret, error) {
	body := `{"stringData":{"shard":"` + shard + `"}}`
	return c.CoreV1().Secrets(namespace).Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry})
}

// must ends the test where a write failed.
func (s *site) must(t *testing.T) func(metav1.Object, error) {
	return func(_ metav1.Object, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// failClosed sets failurePolicy Fail and waits until the API server acts on it.
func (s *site) failClosed(t *testing.T) {
	t.Helper()
	admin := s.client(t, s.admin)
	c, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "ballast.argocd", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fail := admissionregistration.Fail
	c.Webhooks[0].FailurePolicy = &fail
	if _, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	probe := s.client(t, s.user(t, "probe"))
	eventually(t, "a refusal without a webhook", func() bool {
		_, err := editShard(probe, "prod-eu", "1", metav1.DryRunAll)
		return err != nil
	})
}

// read waits for as many writes of people in the API server's log, and returns them.
func (s *site) read(t *testing.T, count int) []auditlog.Write {
	t.Helper()
	filter := auditlog.Filter{Users: auditlog.NewGlobs("!probe", "!admin")}
	var got []auditlog.Write
	eventually(t, "the last write in the audit log", func() bool {
		got = nil
		log := &auditlog.Log{}
		err := log.Read(s.audit, bytes.NewReader(s.log(t)), func(w auditlog.Write) error {
			if filter.Covers(w) {
				got = append(got, w)
			}
			return nil
		})
		if err != nil || log.Broken.Count+log.TooLong.Count != 0 {
			t.Fatalf("reading the log: %v; %+v", err, log)
		}
		return len(got) >= count
	})
	return got
}

func (s *site) log(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// showsNoSecret makes sure that the log holds a token, where the policy is careless, and what is read of it does not.
func (s *site) showsNoSecret(t *testing.T, got []auditlog.Write) {
	t.Helper()
	if !bytes.Contains(s.log(t), []byte(canary)) {
		t.Error("the log of level RequestResponse holds no token: this test proves nothing")
	}
	said, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(said), "canary") || strings.Contains(string(said), "eyJ") {
		t.Errorf("a token is shown: %s", said)
	}
}

// eventually waits for what another process brings about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come about", what)
		case <-tick.C:
		}
	}
}
