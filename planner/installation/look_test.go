package installation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestKubernetesBelowTheLowestVersionIsTooOld(t *testing.T) {
	const old = "the API server is Kubernetes 1.%s, and ballast needs 1.30 or newer: no ValidatingAdmissionPolicy bounds what ballast's own accounts may write, none refuses " +
		"another writer of the plan while no webhook answers, filler, oversize, immutable, owners or another writer of the history, and " +
		"webhooks may be asked without matchConditions; the plan is enforced all the same; upgrade Kubernetes"
	for version, want := range map[string]string{
		"v1.30.0": "", "v1.36.1": "", "v2.0.0": "", "v1.30.0-eks-1234567": "", "v1.31.2-gke.100": "", "v1.100.3+k3s1": "",
		"v1.29.15": fmt.Sprintf(old, "29"), "v1.27.3-gke.100": fmt.Sprintf(old, "27"), "v1.9.0": fmt.Sprintf(old, "9"),
		"": "unreadable", "devel": "unreadable",
	} {
		found, err := Kubernetes(version)
		got := ""
		switch {
		case err != nil:
			got = "unreadable"
		case len(found) > 0:
			got = found[0].Message
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}

// cluster is an API server whose answers change.
type cluster struct {
	configuration *admissionv1.MutatingWebhookConfiguration
	err           error
	version       string
	gets, asks    int
}

func (c *cluster) looker(t *testing.T) (*Looker, *clocktesting.FakeClock) {
	t.Helper()
	time := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			c.gets++
			switch {
			case c.err != nil:
				return c.err
			case c.configuration == nil || key.Name != c.configuration.Name:
				return apierrors.NewNotFound(resource(), key.Name)
			}
			c.configuration.DeepCopyInto(o.(*admissionv1.MutatingWebhookConfiguration))
			return nil
		}})
	return &Looker{Reader: reader, Clock: time, Version: func(context.Context) (string, error) {
		c.asks++
		if c.version == "" {
			return "", errors.New("the API server is away")
		}
		return c.version, nil
	}}, time
}

func resource() schema.GroupResource {
	return schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}
}

// looked is what a look found, on one line.
func looked(t *testing.T, l *Looker) string {
	t.Helper()
	seen, err := l.Look(t.Context(), names())
	said := "unknown"
	if seen.Matches != nil {
		said = fmt.Sprint(*seen.Matches)
	}
	for _, f := range seen.Findings {
		said += fmt.Sprintf(", %s %s", f.Kind, f.Subject)
	}
	if err != nil {
		said += ", error"
	}
	return said
}

// TestALookHoldsForItsTime: the configuration for five minutes, the version for an hour, and what failed is asked again.
func TestALookHoldsForItsTime(t *testing.T) {
	c := &cluster{configuration: shipped(t), version: "v1.36.1"}
	l, clock := c.looker(t)
	var got []string
	looks := func() { got = append(got, looked(t, l)) }
	looks()
	of(c.configuration, "plan").TimeoutSeconds, c.version = ptr.To(int32(30)), "v1.29.1"
	clock.Step(configurationEvery - 1)
	looks()
	clock.Step(1)
	looks()
	c.err = errors.New("the API server is away")
	clock.Step(versionEvery - configurationEvery)
	looks()
	c.err, c.configuration, c.version = nil, shipped(t), "v1.30.0"
	looks()
	clock.Step(versionEvery)
	c.version = ""
	looks()
	want := []string{
		"true",
		"true",
		"false, WebhookConfigurationChanged plan.ballast.argoproj.io timeoutSeconds",
		"false, WebhookConfigurationChanged plan.ballast.argoproj.io timeoutSeconds, KubernetesTooOld Kubernetes, error",
		"true, KubernetesTooOld Kubernetes",
		"true, KubernetesTooOld Kubernetes, error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("looks (-want +got):\n%s", diff)
	}
	if c.asks != 3 {
		t.Errorf("the version was asked for %d times, want 3", c.asks)
	}
}

func TestALookSaysWhatItMayNotRead(t *testing.T) {
	c := &cluster{configuration: shipped(t), version: "v1.36.1", err: apierrors.NewForbidden(resource(), "x", errors.New("no"))}
	l, _ := c.looker(t)
	seen, err := l.Look(t.Context(), names())
	if err != nil || seen.Matches != nil || len(seen.Findings) != 1 {
		t.Fatalf("%+v, %v", seen, err)
	}
	want := Finding{Unreadable, shipped(t).Name, fmt.Sprintf("ballast may not read MutatingWebhookConfiguration %q, so it cannot say whether it is the one that is shipped: "+
		"apply the manifests again, which grant that by ClusterRole ballast-planner.gitops", shipped(t).Name)}
	if diff := cmp.Diff(want, seen.Findings[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAConfigurationThatIsNotThereDiffers(t *testing.T) {
	c := &cluster{version: "v1.36.1"}
	l, _ := c.looker(t)
	want := "false, WebhookConfigurationChanged clusters.ballast.argoproj.io, WebhookConfigurationChanged controllers.ballast.argoproj.io, " +
		"WebhookConfigurationChanged scale.ballast.argoproj.io, WebhookConfigurationChanged plan.ballast.argoproj.io, WebhookConfigurationChanged pods.ballast.argoproj.io"
	if got := looked(t, l); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
