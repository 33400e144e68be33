package certs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// world is an API server with a webhook configuration, and what a rotator says.
type world struct {
	client.WithWatch
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	mu    sync.Mutex
	log   bytes.Buffer
}

func newWorld(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *world {
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &world{WithWatch: c, t: t, clock: clocktesting.NewFakePassiveClock(start())}
}

func (w *world) rotator() *Rotator {
	log := funcr.New(func(prefix, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprintln(&w.log, prefix, args)
	}, funcr.Options{Verbosity: 9})
	return NewRotator(RotatorOptions{Client: w, Settings: DefaultSettings(), Rules: rules(), Configuration: DefaultSettings().Configuration(), Clock: w.clock, Log: log})
}

func configuration() *admissionv1.MutatingWebhookConfiguration {
	c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: DefaultSettings().Configuration(), Annotations: map[string]string{"theirs": "stays"}}}
	for _, name := range []string{"clusters", "controllers", "scale", "plan"} {
		path := "/" + name
		c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{
			Name:         name + ".ballast.argoproj.io",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "argocd", Name: "ballast-webhook", Path: &path}},
		})
	}
	return c
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	var s corev1.Secret
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "argocd", Name: name}, &s); err != nil {
		w.t.Fatal(err)
	}
	return &s
}

func (w *world) configuration() *admissionv1.MutatingWebhookConfiguration {
	w.t.Helper()
	var c admissionv1.MutatingWebhookConfiguration
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: DefaultSettings().Configuration()}, &c); err != nil {
		w.t.Fatal(err)
	}
	return &c
}

// once runs a rotator and gives how long it waits.
func (w *world) once() time.Duration {
	w.t.Helper()
	again, err := w.rotator().Once(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if again.IsZero() {
		return 0
	}
	return again.Sub(w.clock.Now())
}

// problems are those of every webhook, and how many CAs each trusts.
func (w *world) problems() (found []Flaw, cas []int) {
	w.t.Helper()
	leaf := w.secret(LeafTLS)
	for _, h := range w.configuration().Webhooks {
		bundle := h.ClientConfig.CABundle
		found = append(found, Check(leaf.Data["tls.crt"], leaf.Data["tls.key"], bundle, rules().DNSNames, w.clock.Now())...)
		cas = append(cas, bytes.Count(bundle, []byte("BEGIN CERTIFICATE")))
	}
	return found, cas
}

func (w *world) wantWell(cas ...int) {
	w.t.Helper()
	problems, got := w.problems()
	if diff := cmp.Diff(cas, got); diff != "" || len(problems) > 0 {
		w.t.Errorf("%v; CAs -want +got:\n%s", problems, diff)
	}
}

func TestOnceMakesAllFromNothingAndThenChangesNothing(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	if wait := w.once(); wait != 0 {
		t.Errorf("it waits %s", wait)
	}
	w.wantWell(1, 1, 1, 1)
	for name, component := range map[string]string{CASecret: "webhook", LeafTLS: "webhook"} {
		s := w.secret(name)
		if got := slices.Sorted(maps.Keys(s.Data)); !cmp.Equal(got, []string{"ca.crt", "tls.crt", "tls.key"}) || s.Type != corev1.SecretTypeTLS {
			t.Errorf("%s has %v and type %s", name, got, s.Type)
		}
		if s.Labels["app.kubernetes.io/part-of"] != "ballast" || s.Labels["app.kubernetes.io/component"] != component {
			t.Errorf("%s has labels %v", name, s.Labels)
		}
	}
	c := w.configuration()
	if got := *c.Webhooks[3].ClientConfig.Service.Path + c.Annotations["theirs"]; got != "/planstays" {
		t.Errorf("the patch changed more than the caBundle: %s", got)
	}
	before := []string{w.secret(CASecret).ResourceVersion, w.secret(LeafTLS).ResourceVersion, c.ResourceVersion}
	w.clock.SetTime(start().Add(day))
	w.once()
	after := []string{w.secret(CASecret).ResourceVersion, w.secret(LeafTLS).ResourceVersion, w.configuration().ResourceVersion}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("it wrote though all was well:\n%s", diff)
	}
}

func TestOnceTakesACAOutInThreeSteps(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	w.once()
	w.clock.SetTime(start().Add(day))
	if err := w.Delete(t.Context(), w.secret(CASecret)); err != nil {
		t.Fatal(err)
	}
	leaf := w.secret(LeafTLS).ResourceVersion
	for i, c := range []struct {
		wait time.Duration
		cas  int
		same bool // the leaf
	}{{DefaultSettle, 2, true}, {DefaultOverlap, 2, false}, {0, 1, false}} {
		wait := w.once()
		if same := leaf == w.secret(LeafTLS).ResourceVersion; wait != c.wait || same != c.same {
			t.Errorf("step %d waits %s, the leaf is the same: %t", i, wait, same)
		}
		w.wantWell(c.cas, c.cas, c.cas, c.cas)
		w.clock.SetTime(w.clock.Now().Add(wait))
	}
}

func TestOnceKeepsWhatElseStandsInASecret(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: LeafTLS, Labels: map[string]string{"team": "a"}}, Data: map[string][]byte{"note": []byte("x")}}
	w := newWorld(t, interceptor.Funcs{}, configuration(), theirs)
	w.once()
	if s := w.secret(LeafTLS); string(s.Data["note"]) != "x" || s.Labels["team"] != "a" {
		t.Errorf("it has keys %v and labels %v", slices.Sorted(maps.Keys(s.Data)), s.Labels)
	}
	w.wantWell(1, 1, 1, 1)
}

// TestWhatOthersPutIntoASecretKeepsNoWriteOfItFromSucceeding: what the policy refuses, and what there is no room for.
func TestWhatOthersPutIntoASecretKeepsNoWriteOfItFromSucceeding(t *testing.T) {
	own := DefaultSettings().meta(LeafTLS).Labels
	credentials := map[string]string{"argocd.argoproj.io/secret-type": "cluster", "team": "a"}
	account := map[string]string{"kubernetes.io/service-account.name": "x", "kubernetes.io/service-account.uid": "y", "note": "z"}
	for name, c := range map[string]struct {
		theirs                corev1.Secret
		wantLabels, wantNotes map[string]string
		wantKeys              []string
	}{
		"the label of Argo CD's credentials": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: credentials}},
			map[string]string{"team": "a"}, nil, []string{"ca.crt", "tls.crt", "tls.key"}},
		"a ServiceAccount's name": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: account}},
			nil, map[string]string{"note": "z"}, []string{"ca.crt", "tls.crt", "tls.key"}},
		"half a mebibyte": {corev1.Secret{Data: map[string][]byte{"note": make([]byte, 500<<10)}},
			nil, nil, []string{"ca.crt", "note", "tls.crt", "tls.key"}},
		"more than that": {corev1.Secret{Data: map[string][]byte{"note": make([]byte, 1<<20-1)}},
			own, nil, []string{"ca.crt", "tls.crt", "tls.key"}},
		"managers of its fields": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{ManagedFields: slices.Repeat([]metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 100)}}, 6000)}},
			own, nil, []string{"ca.crt", "tls.crt", "tls.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.theirs.Name, c.theirs.Namespace, c.theirs.Type = LeafTLS, "argocd", corev1.SecretTypeTLS
			before := c.theirs.DeepCopy()
			after := newWorld(t, interceptor.Funcs{}).rotator().cleared(LeafTLS, before)
			if !reflect.DeepEqual(&c.theirs, before) { // a diff of thousands of managers takes minutes
				t.Error("it changed what was read")
			}
			if diff := cmp.Diff(c.wantLabels, after.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.wantNotes, after.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]metav1.ManagedFieldsEntry{{}}, after.ManagedFields); diff != "" {
				t.Errorf("managers -want +got:\n%s", diff)
			}
			c.theirs.ManagedFields = nil // which the fake client does not keep
			w := newWorld(t, interceptor.Funcs{}, configuration(), &c.theirs)
			w.once()
			w.wantWell(1, 1, 1, 1)
			if got := slices.Sorted(maps.Keys(w.secret(LeafTLS).Data)); !cmp.Equal(c.wantKeys, got) {
				t.Errorf("it has keys %v", got)
			}
		})
	}
}

// TestAnImmutableSecretIsNamedWithItsMend: nobody can write it any more, and `ballast certs` may not delete it.
func TestAnImmutableSecretIsNamedWithItsMend(t *testing.T) {
	for name, want := range map[string]string{
		CASecret: `updating Secret "ballast-webhook-ca": it is immutable: delete it (kubectl -n argocd delete secret ballast-webhook-ca), and it is made anew`,
		LeafTLS:  `updating Secret "ballast-webhook-tls": it is immutable: delete it (kubectl -n argocd delete secret ballast-webhook-tls), and it is made anew`,
	} {
		t.Run(name, func(t *testing.T) {
			junk := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}, Type: corev1.SecretTypeTLS,
				Immutable: ptr.To(true), Data: map[string][]byte{"tls.crt": []byte("junk"), "tls.key": []byte("junk")}}
			w := newWorld(t, interceptor.Funcs{}, configuration(), junk)
			if _, err := w.rotator().Once(t.Context()); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if err := w.Delete(t.Context(), junk); err != nil {
				t.Fatal(err)
			}
			w.once()
			w.wantWell(1, 1, 1, 1)
		})
	}
}

// TestOnceMendsALeafThatNoClientTakes: a certificate that somebody appended is gone at the next look.
func TestOnceMendsALeafThatNoClientTakes(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	w.once()
	s := w.secret(LeafTLS)
	s.Data["tls.crt"] = slices.Concat(s.Data["tls.crt"], vastCertificate(t, issue(t, nil, asCA)))
	if err := w.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.once()
	w.wantWell(1, 1, 1, 1)
	if got := bytes.Count(w.secret(LeafTLS).Data["tls.crt"], []byte("BEGIN")); got != 1 {
		t.Errorf("tls.crt holds %d certificates", got)
	}
}

func TestOnceWorksBeforeTheConfigurationIsThere(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.once()
	leaf := w.secret(LeafTLS).ResourceVersion
	if err := w.Create(t.Context(), configuration()); err != nil {
		t.Fatal(err)
	}
	w.once()
	w.wantWell(1, 1, 1, 1)
	if got := w.secret(LeafTLS).ResourceVersion; got != leaf {
		t.Error("the leaf was made anew without need")
	}
}

// TestManyAtOnceDoNotFight: several rotators begin together; none fails, and what stands is one rotator's.
func TestManyAtOnceDoNotFight(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = w.rotator().Once(t.Context()) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("rotator %d: %v", i, err)
		}
	}
	w.wantWell(1, 1, 1, 1)
	if got := strings.Count(w.log.String(), "issued a CA"); got != 1 {
		t.Errorf("%d CAs were issued", got)
	}
}

// TestALostRaceIsDecidedAnew: between the read and the write of each kind, somebody else writes.
func TestALostRaceIsDecidedAnew(t *testing.T) {
	conflicts := map[string]int{}
	lose := func(kind string, err error) error {
		if conflicts[kind]++; conflicts[kind] == 1 {
			return err
		}
		return nil
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "any"}, "any", nil)
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "any"}, "any")
	w := newWorld(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := lose("create "+o.GetName(), exists); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := lose("patch "+o.GetName(), conflict); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
	}, configuration())
	w.once()
	w.wantWell(1, 1, 1, 1)
	if diff := cmp.Diff(map[string]int{"create ballast-webhook-ca": 2, "create ballast-webhook-tls": 2, "patch ballast.argocd": 2}, conflicts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAWriteThatWasDecidedOnAnOldVersionIsRefused(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	w.once()
	r := w.rotator()
	old, err := r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{w.secret(CASecret), w.secret(LeafTLS), w.configuration()} {
		o.SetLabels(map[string]string{"changed": "meanwhile"})
		if err := w.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []ActionKind{IssueCA, IssueLeaf, WriteBundle} {
		if err := r.do(t.Context(), Action{Kind: kind, Bundle: old.CA.Cert}, old); !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

func TestAFightEndsWithAnErrorThatSaysSo(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil // as if somebody put it back at once
		},
	}, configuration())
	_, err := w.rotator().Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "somebody else changes them") {
		t.Errorf("got %v", err)
	}
}

func TestAForbiddenReadNamesWhatItWas(t *testing.T) {
	for resource, want := range map[string]string{"Secret": `getting Secret "ballast-webhook-ca": `, "Configuration": `getting MutatingWebhookConfiguration "ballast.argocd": `} {
		w := newWorld(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if strings.HasSuffix(fmt.Sprintf("%T", o), resource) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, key.Name, nil)
				}
				return c.Get(ctx, key, o, options...)
			},
		}, configuration())
		if _, err := w.rotator().Once(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
}

// TestRunMendsAtOnce: what somebody deletes or empties is back before the interval, which is a day.
func TestRunMendsAtOnce(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.rotator().Run(ctx, day) }()
	defer func() { stop(); <-done }()
	well := func() bool {
		for _, name := range []string{CASecret, LeafTLS} {
			if err := w.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: name}, &corev1.Secret{}); err != nil {
				return false
			}
		}
		problems, _ := w.problems()
		return len(problems) == 0
	}
	eventually(t, "all made", well)
	if err := w.Delete(ctx, w.secret(LeafTLS)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the leaf is back", well)
	c := w.configuration()
	c.Webhooks[1].ClientConfig.CABundle = nil
	if err := w.Update(ctx, c); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the caBundle is back", well)
}

func TestNothingOfAKeyIsLogged(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, configuration())
	w.once()
	for _, name := range []string{CASecret, LeafTLS} {
		line := strings.Split(string(w.secret(name).Data["tls.key"]), "\n")[1]
		if strings.Contains(w.log.String(), line[:16]) || strings.Contains(w.log.String(), "PRIVATE") {
			t.Errorf("the key of %s shows in the log", name)
		}
	}
	if !strings.Contains(w.log.String(), `"msg"="issued a leaf"`) {
		t.Errorf("the log says %s", w.log.String())
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("not within two minutes: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
