package seal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A MAC holds for the text, the name and the Secret that it was made for, and for no other.
func TestAMACHoldsForWhatItWasMadeFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string { return rapid.StringN(0, 8, -1).Draw(t, label) }
		key := rapid.SliceOfN(rapid.Byte(), keyBytes, keyBytes)
		s := &Key{uid: types.UID(draw("uid")), bytes: key.Draw(t, "key")}
		name, text := draw("name"), draw("text")
		mac := s.MAC(name, []byte(text))
		if !s.Holds(name, []byte(text), mac) {
			t.Fatal("it does not hold for what it was made for")
		}
		o := &Key{uid: types.UID(draw("other uid")), bytes: key.Draw(t, "other key")}
		otherName, otherText := draw("other name"), draw("other text")
		for what, other := range map[string]struct {
			same  bool
			holds bool
		}{
			"another text":   {otherText == text, s.Holds(name, []byte(otherText), mac)},
			"another name":   {otherName == name, s.Holds(otherName, []byte(text), mac)},
			"another Secret": {o.uid == s.uid, (&Key{uid: o.uid, bytes: s.bytes}).Holds(name, []byte(text), mac)},
			"another key":    {string(o.bytes) == string(s.bytes), (&Key{uid: s.uid, bytes: o.bytes}).Holds(name, []byte(text), mac)},
			// What stands on the two sides of a border must not be moved over it.
			"a moved border": {name == "", s.Holds("", []byte(name+text), mac)},
		} {
			if other.holds != other.same {
				t.Errorf("%s: holds %v", what, other.holds)
			}
		}
	})
}

// keyed is a Keeper over a fake API server: what is asked here is what it makes of the Secret, and not how that is served.
func keyed(objects ...client.Object) (*Keeper, client.Client) {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return New(c, c, "argocd", "ballast-plan-key"), c
}

func keySecret(uid string, key []byte) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan-key", UID: types.UID(uid)}}
	if key != nil {
		s.Data = map[string][]byte{"key": key}
	}
	return s
}

func keyOf(t *testing.T, c client.Client) string {
	t.Helper()
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-plan-key"}, s); err != nil {
		t.Fatal(err)
	}
	return string(s.Data["key"])
}

func TestUnseal(t *testing.T) {
	full := []byte(strings.Repeat("k", keyBytes))
	for name, secret := range map[string]*corev1.Secret{"empty": keySecret("1", nil), "too short": keySecret("1", []byte("k")), "too long": keySecret("1", append(full, 'k'))} {
		s, c := keyed(secret)
		if err := s.Unseal(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made := keyOf(t, c)
		if len(made) != keyBytes || made != string(s.KnownKey().bytes) || s.KnownKey().uid != "1" {
			t.Errorf("%s: a key of %d bytes stands, and it is known: %v", name, len(made), made == string(s.KnownKey().bytes))
		}
		other, c2 := keyed(secret.DeepCopy())
		if err := other.Unseal(t.Context()); err != nil || keyOf(t, c2) == made {
			t.Errorf("%s: error %v, or two installations have one key", name, err)
		}
	}
	s, c := keyed(keySecret("1", full))
	if err := s.Unseal(t.Context()); err != nil || keyOf(t, c) != string(full) {
		t.Errorf("a key that stands is taken: %v", err)
	}
	missing, _ := keyed()
	if err := missing.Unseal(t.Context()); err == nil || !strings.Contains(err.Error(), "kubectl -n argocd create secret generic ballast-plan-key") {
		t.Errorf("without the Secret: %v", err)
	}
	shut := keySecret("1", []byte("k"))
	shut.Immutable = ptr.To(true)
	locked, _ := keyed(shut)
	want := `the plan's key, Secret "ballast-plan-key" in "argocd", holds no key and is immutable: run kubectl -n argocd delete secret ballast-plan-key, ` +
		"then kubectl -n argocd create secret generic ballast-plan-key"
	if err := locked.Unseal(t.Context()); err == nil || err.Error() != want {
		t.Errorf("an immutable one without a key: %v, want %s", err, want)
	}
}

// TestNobodyChoosesTheKey: one that became another is put back, and a new Secret gets a new one (want ""), whatever it holds.
func TestNobodyChoosesTheKey(t *testing.T) {
	first, chosen := strings.Repeat("k", keyBytes), strings.Repeat("a", keyBytes)
	s, c := keyed(keySecret("1", []byte(first)))
	for _, step := range []struct{ uid, write, want string }{{"1", first, first}, {"1", chosen, first}, {"2", first, first}, {"3", chosen, ""}} {
		var secret corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-plan-key"}, &secret); err != nil {
			t.Fatal(err)
		}
		secret.UID, secret.Data = types.UID(step.uid), map[string][]byte{"key": []byte(step.write)}
		if err := c.Update(t.Context(), &secret); err != nil {
			t.Fatal(err)
		}
		if err := s.Unseal(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, known := keyOf(t, c), string(s.KnownKey().bytes)
		if got != known || step.want != "" && got != step.want || step.want == "" && (got == first || got == chosen || len(got) != keyBytes) {
			t.Errorf("%+v: the Secret has key %.4q, and %.4q is known", step, got, known)
		}
	}
}

// TestAFullKeySecretIsToldWithItsMend: whoever may patch it can leave no room for a key.
func TestAFullKeySecretIsToldWithItsMend(t *testing.T) {
	s, c := keyed(keySecret("1", nil))
	s.client = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "ballast-plan-key", nil)
		}})
	want := `the plan's key, Secret "ballast-plan-key" in "argocd", takes no key: run kubectl -n argocd delete secret ballast-plan-key, ` +
		"then kubectl -n argocd create secret generic ballast-plan-key: "
	if err := s.Unseal(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a full one: %v, want %s...", err, want)
	}
}

// TestAKeyThatIsRefusedIsNone: a policy, or a right that was withdrawn, keeps every key away; who waited for one would leave a fleet that
// was stopped as it is.
func TestAKeyThatIsRefusedIsNone(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ballast-plan-key", errors.New("by a policy")),
		"denied":    &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "a.example.com" denied the request: no`}},
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "ballast-plan-key", nil),
	} {
		s, c := keyed(keySecret("1", nil))
		s.client = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return refusal
			}})
		if err := s.Unseal(t.Context()); !errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %v, want %v", name, err, ErrNoKey)
		}
	}
}

// Two planners that start at once agree on the key of who came first.
func TestTwoPlannersMakeOneKey(t *testing.T) {
	s, c := keyed(keySecret("1", nil))
	first := strings.Repeat("f", keyBytes)
	s.client = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		current := &corev1.Secret{}
		if err := w.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
			return err
		}
		if current.Data == nil { // somebody was faster
			current.Data = map[string][]byte{"key": []byte(first)}
			if err := w.Update(ctx, current); err != nil {
				return err
			}
		}
		return w.Patch(ctx, o, p, opts...)
	}})
	if err := s.Unseal(t.Context()); err == nil {
		t.Error("a key was written over another planner's")
	}
	if err := s.Unseal(t.Context()); err != nil || keyOf(t, c) != first || string(s.KnownKey().bytes) != first {
		t.Errorf("the second time: %v", err)
	}
}

// TestNoKeyIsAnotherMatterThanNoAnswer: a leader acts on the first, and waits for the second.
func TestNoKeyIsAnotherMatterThanNoAnswer(t *testing.T) {
	away := errors.New("the API server is away")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":           {noKeyError{errors.New("it is missing")}, true},
		"one that fails": {noKeyError{fmt.Errorf("it takes no key: %w", away)}, true},
		"no answer":      {fmt.Errorf("reading the key: %w", away), false},
	} {
		if got := errors.Is(fmt.Errorf("taking over: %w", tc.err), ErrNoKey); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if !errors.Is(noKeyError{fmt.Errorf("it takes no key: %w", away)}, away) {
		t.Error("what the API server said is lost")
	}
}
