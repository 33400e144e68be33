package store_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/apiserver"
	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
	"ballast/planner/store"
)

// beyondJSON brings a manager's time that is in the year 10000 in UTC, which the API server stores and cannot read back:
// it patches such an object no more, whoever asks.
const beyondJSON = `"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"9999-12-31T23:59:59-12:00","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]`

// own is what ballast keeps.
func own() map[string]client.Object {
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: hooked.Namespace, Name: name} }
	return map[string]client.Object{
		"the plan":    &corev1.ConfigMap{ObjectMeta: object(hooked.PlanConfigMap)},
		"the history": &corev1.ConfigMap{ObjectMeta: object("ballast-history")},
		"the status":  &corev1.ConfigMap{ObjectMeta: object(status.Name(hooked.PlanConfigMap))},
		"the key":     &corev1.Secret{ObjectMeta: object("ballast-plan-key")},
	}
}

func merge(t *testing.T, c client.Client, o client.Object, patch string) error {
	t.Helper()
	return c.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// TestNobodyMakesWhatBallastKeepsUnpatchable: by a patch that the API server takes and after which it takes none. The
// policies refuse it; where it got in all the same (here it is the planner's user that brings it, whom they leave alone) the
// planner's next write starts the list of managers anew, and people's writes pass again.
func TestNobodyMakesWhatBallastKeepsUnpatchable(t *testing.T) {
	site := hooked.Start(t, hooked.Options{})
	as := site.As(hooked.Planner)
	s := store.New(store.Options{Client: as, Reader: as, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history", Key: "ballast-plan-key"})
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%.300s ... %s", err, err.Error()[max(0, len(err.Error())-200):])
		}
	}
	must(t, s.Unseal(t.Context()))
	now, err := s.WritePlan(t.Context(), store.Snapshot{}, newPlan("c", "d"), 0, configmap.Meta{Reason: "first"})
	must(t, err)
	h, err := s.WriteHistory(t.Context(), store.History{}.WithPlan(now), at)
	must(t, err)
	must(t, s.WriteStatus(t.Context(), status.Status{}))
	for name, o := range own() {
		t.Run(name+" by a person", func(t *testing.T) {
			err := merge(t, site.As("alice"), o, `{"metadata":{"annotations":{"note":"x"},`+beyondJSON+`}}`)
			if want := "outside the years 0000 to 9999"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			must(t, merge(t, site.As("alice"), o, `{"metadata":{"managedFields":[{}]}}`))
		})
	}
	poisoned := func(t *testing.T, name string) {
		t.Helper()
		must(t, merge(t, as, own()[name], `{"metadata":{`+beyondJSON+`}}`))
		if err := merge(t, site.As("bob"), own()[name], `{"metadata":{"labels":{"a":"b"}}}`); err == nil {
			t.Fatal("bob patches it")
		}
	}
	read := func(t *testing.T) store.Snapshot {
		t.Helper()
		now, err := s.Read(t.Context())
		must(t, err)
		return now
	}
	replica := 0
	planned := func(base store.Snapshot) error {
		replica = 1 - replica
		next := newPlan("c", "d")
		next.Clusters["c"] = plan.Row{Replica: replica}
		_, err := s.WritePlan(t.Context(), base, next, 0, configmap.Meta{Reason: "next"})
		return err
	}
	trip := "why"
	for name, write := range map[string]struct {
		of string
		by func(t *testing.T) error
	}{
		"a plan": {"the plan", func(t *testing.T) error { return planned(read(t)) }},
		"an annotation": {"the plan", func(t *testing.T) error {
			_, err := s.Annotate(t.Context(), read(t), map[string]*string{plan.AnnotationTripped: &trip})
			return err
		}},
		"at rest": {"the plan", func(t *testing.T) error {
			before := read(t)
			after, err := s.Patchable(t.Context(), before)
			if after.Document.Plan == nil || after.Document.Plan.Revision != before.Document.Plan.Revision {
				t.Errorf("the plan became another: %v", after.Document.Plan)
			}
			return err
		}},
		"a history": {"the history", func(t *testing.T) error {
			h, _, err := s.ReadHistory(t.Context())
			must(t, err)
			h.Parts = map[string][]byte{"limits.json.gz": []byte("y")}
			_, err = s.WriteHistory(t.Context(), h, at.AddDate(0, 0, 1))
			return err
		}},
		"a status":  {"the status", func(t *testing.T) error { return s.WriteStatus(t.Context(), status.Status{LookedAt: at}) }},
		"a new key": {"the key", func(t *testing.T) error { return s.Renew(t.Context()) }},
	} {
		t.Run("the planner writes "+name, func(t *testing.T) {
			poisoned(t, write.of)
			must(t, write.by(t))
			label := time.Now().Format("150405.000")
			must(t, merge(t, site.As("bob"), own()[write.of], `{"metadata":{"labels":{"a":"`+label+`"}}}`))
		})
	}
	t.Run("the planner is overtaken by it", func(t *testing.T) {
		must(t, s.Unseal(t.Context()))
		must(t, planned(read(t)))
		base := read(t)
		poisoned(t, "the plan")
		must(t, planned(base))
		must(t, merge(t, site.As("bob"), own()["the plan"], `{"metadata":{"annotations":{"ballast.argoproj.io/enforcement":"off"}}}`))
	})
	_ = h
}

// TestWhatIsNoTextKeepsNobodyAway: who may update the plan ConfigMap brings by protobuf what JSON has three bytes of for each, while no policy
// is there. The planner's next write takes it out, and people's patches, which go by JSON, are taken again.
func TestWhatIsNoTextKeepsNobodyAway(t *testing.T) {
	const namespace = "default"
	admin, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(store.Options{Client: admin, Reader: admin, Namespace: namespace, Plan: "ballast-plan", History: "ballast-history"})
	now, err := s.WritePlan(t.Context(), store.Snapshot{}, newPlan("c", "d"), 0, configmap.Meta{Reason: "first"})
	if err != nil {
		t.Fatal(err)
	}
	cm := now.ConfigMap().DeepCopy()
	cm.Annotations["note"], cm.Data["x"], cm.Data[plan.KeyPins] = strings.Repeat("\xff", 200_000), strings.Repeat("\xff", 5_500), "c: 1\n"
	if err := admin.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	patched := func() error {
		return admin.Patch(t.Context(), cm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)), client.DryRunAll)
	}
	if err := patched(); !apierrors.IsInvalid(err) {
		t.Fatalf("a person's patch: %v, want Invalid", err)
	}
	now, err = s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stale := now
	if now, err = s.Patchable(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := patched(); err != nil {
		t.Errorf("a person's patch afterwards: %v", err)
	}
	cm = now.ConfigMap()
	_, note := cm.Annotations["note"]
	_, x := cm.Data["x"]
	if note || x || cm.Data[plan.KeyPins] != "c: 1\n" || now.Document.Plan == nil || now.Document.Plan.Revision != 1 {
		t.Errorf("note %t, x %t, pins %q, plan %v", note, x, cm.Data[plan.KeyPins], now.Document.Plan)
	}
	cm = cm.DeepCopy()
	cm.Annotations["another"] = strings.Repeat("\xff", 200_000)
	if err := admin.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	next := newPlan("c", "d", "e")
	if now, err = s.WritePlan(t.Context(), stale, next, 0, configmap.Meta{Reason: "overtaken by such bytes"}); err != nil {
		t.Fatal(err)
	}
	if _, stays := now.ConfigMap().Annotations["another"]; stays || now.Document.Plan == nil || now.Document.Plan.Revision != 2 {
		t.Errorf("after a race: it stays %t, plan %v", stays, now.Document.Plan)
	}
}
