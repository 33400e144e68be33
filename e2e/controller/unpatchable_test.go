package controller_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// beyondJSON brings a manager's time that is in the year 10000 in UTC: the API server stores it, and answers each patch
// afterwards with the whole object, which it cannot read.
const beyondJSON = `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"9999-12-31T23:59:59-12:00","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`

// unpatchable makes an object one that the API server patches for nobody.
func (b *bed) unpatchable(o client.Object, name string) {
	b.Helper()
	o.SetNamespace(b.namespace)
	o.SetName(name)
	b.must(b.client.Patch(b.ctx, o, client.RawPatch(types.MergePatchType, []byte(beyondJSON))))
}

// comesBack has somebody meddle once while rollout.x0y has stopped every replica, and sees that the fleet comes back, a replica larger.
func comesBack(t *testing.T, meddles func(*bed)) {
	t.Helper()
	b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
	b.config.Rollout.Live, b.config.Rollout.Default = nil, nil
	b.config.Rollout.X0Y = &config.X0YRollout{}
	l, _ := b.start()
	b.cycles(l, 2)
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 3\n" })
	stopped := false
	for range 30 {
		b.cycles(l, 1)
		if b.plan().Replicas == 0 && !stopped {
			stopped = true
			meddles(b)
		}
	}
	p := b.plan()
	if runs := *b.workload().Spec.Replicas; !stopped || runs != 4 || p.Replicas != 4 || p.Rollout != nil {
		t.Errorf("stopped %t; the workload has %d replicas and the plan %d, rollout %v", stopped, runs, p.Replicas, p.Rollout)
	}
}

// TestNoPatchKeepsTheFleetStopped: somebody makes the plan ConfigMap one that nobody can patch, while rollout.x0y has
// stopped every replica.
func TestNoPatchKeepsTheFleetStopped(t *testing.T) {
	comesBack(t, func(b *bed) { b.unpatchable(&corev1.ConfigMap{}, b.config.Plan.ConfigMap) })
}

// TestPeopleCanPatchThePlanAtRest: where nothing is to be planned the planner mends it all the same.
func TestPeopleCanPatchThePlanAtRest(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
	l, _ := b.start()
	b.cycles(l, 3)
	before := b.plan().Revision
	b.unpatchable(&corev1.ConfigMap{}, b.config.Plan.ConfigMap)
	b.cycles(l, 1)
	off := []byte(`{"metadata":{"annotations":{"ballast.argoproj.io/enforcement":"off"}}}`)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.config.Plan.ConfigMap}}
	b.must(b.client.Patch(b.ctx, cm, client.RawPatch(types.MergePatchType, off)))
	if after := b.plan().Revision; after != before {
		t.Errorf("the plan of revision %d became %d", before, after)
	}
}

// tellsNothingOf fails the test where a secret, as it is or in base64, is in an event, in what the leader says of how things are, or
// in the log.
func (b *bed) tellsNothingOf(secret string) {
	b.Helper()
	var cm corev1.ConfigMap
	b.get(&cm, status.Name(b.config.Plan.ConfigMap))
	b.mu.Lock()
	defer b.mu.Unlock()
	said := append([]string{cm.Data[status.Key]}, b.logged...)
	for _, e := range b.events {
		said = append(said, e.Reason+": "+e.Message)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, text := range said {
		if strings.Contains(text, secret) || strings.Contains(text, encoded[:len(encoded)-4]) {
			b.Errorf("it tells of the secret: %.300s", text)
		}
	}
}

// TestNoCredentialIsToldOfAWriteThatIsRefused, though the API server answers it with the whole Secret, as it does where it
// cannot read that back.
func TestNoCredentialIsToldOfAWriteThatIsRefused(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
	const token = "CANARY-TOKEN-0123456789abcdef0123456789abcdef"
	const config = `{"bearerToken":"` + token + `"}`
	b.must(b.client.Patch(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "c000"}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"config":%q}}`, config))))
	l, _ := b.start()
	b.cycles(l, 2)
	whole := field.ErrorList{field.Invalid(field.NewPath("patch"), config, "parsing time")}
	b.fail("patch c000", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "", whole))
	to := (b.plan().Clusters["c000"].Replica + 1) % 3
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = fmt.Sprintf("c000: %d\n", to) })
	b.cycles(l, 12)
	b.tellsNothingOf(config)
	b.tellsNothingOf(token)
	if told := b.told("Unwritable"); len(told) == 0 || !strings.Contains(strings.Join(told, "\n"), `Invalid (FieldValueInvalid at "patch")`) {
		t.Errorf("people hear %q", told)
	}
}

// TestThePlansKeyIsToldToNobody, though the API server answers the write that puts it back with the whole Secret.
func TestThePlansKeyIsToldToNobody(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
	l, _ := b.start()
	b.cycles(l, 2)
	var secret corev1.Secret
	b.get(&secret, keySecret)
	key := string(secret.Data["key"])
	b.meddle = map[string]func(int){"patch " + keySecret: func(int) { b.unpatchable(&corev1.Secret{}, keySecret) }}
	other := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 32)))
	b.must(b.client.Patch(b.ctx, newKeySecret(b.namespace), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"`+other+`"}}`))))
	b.cycles(l, 8)
	b.tellsNothingOf(key)
	if told := b.told("KeyMissing"); len(told) == 0 || !strings.Contains(told[0], "takes no key") {
		t.Errorf("people hear %q", told)
	}
	b.mu.Lock()
	b.meddle = nil
	b.mu.Unlock()
	b.cycles(l, 8)
	if b.get(&secret, keySecret); string(secret.Data["key"]) != key {
		t.Error("the key is not put back")
	}
}

// TestNothingOfTheWorkloadKeepsTheFleetStopped: who may patch the workload or its status brings a time that JSON does not have, while
// rollout.x0y has stopped every replica, so that the API server takes no usual patch of it any more; or leaves it no container that is the
// controller's. Its replicas come back all the same.
func TestNothingOfTheWorkloadKeepsTheFleetStopped(t *testing.T) {
	const year10000, noContainer = "9999-12-31T23:59:59-12:00", "no container that is the controller's"
	for name, bring := range map[string]func(*bed, *appsv1.StatefulSet) error{
		"a condition of its status": func(b *bed, set *appsv1.StatefulSet) error {
			return b.client.Status().Patch(b.ctx, set, client.RawPatch(types.MergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"x","status":"True","lastTransitionTime":"`+year10000+`"}]}}`)))
		},
		"the template's metadata": func(b *bed, set *appsv1.StatefulSet) error {
			return b.client.Patch(b.ctx, set, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"template":{"metadata":{"creationTimestamp":"`+year10000+`","deletionTimestamp":"`+year10000+`"}}}}`)))
		},
		noContainer: func(b *bed, set *appsv1.StatefulSet) error {
			return b.client.Patch(b.ctx, set, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"i","command":["/a"]},{"name":"b","image":"i"}]}}}}`)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			comesBack(t, func(b *bed) {
				b.must(bring(b, b.workload()))
				err := b.client.Patch(b.ctx, b.workload(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
				if name != noContainer && !apierrors.IsInvalid(err) {
					t.Errorf("a usual patch of the workload: %v, want Invalid", err)
				}
			})
		})
	}
}
