package watch

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/nudge"
)

// oneNamespace lists what is in argocd, and nothing else.
type oneNamespace struct{}

func (oneNamespace) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.(*corev1.ConfigMap).Data = map[string]string{"application.namespaces": "team"}
	return nil
}

func (oneNamespace) List(_ context.Context, _ client.ObjectList, how ...client.ListOption) error {
	var o client.ListOptions
	if o.ApplyOptions(how); o.Namespace != "argocd" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "applications"}, "", nil)
	}
	return nil
}

// TestWatchSaysWhichApplicationsItMayNotList, once a look: of a cluster of which it sees none it cannot tell whether somebody misses its owner.
func TestWatchSaysWhichApplicationsItMayNotList(t *testing.T) {
	w := &watcher{applications: nudge.New(nudge.Options{Reader: oneNamespace{}})}
	counted, _, err := w.applications.Count(t.Context(), "argocd", []nudge.Destination{{Server: "https://a"}}, time.Minute)
	if err != nil || counted["https://a"] != nudge.Unknown {
		t.Fatalf("%v, %v", counted, err)
	}
	l := &look{}
	if setting := w.unlisted(l); setting == "" || setting != w.unlisted(l) {
		t.Errorf("listed by %q", setting)
	}
	want := []string{"not all Applications that Argo CD's setting application.namespaces names may be listed: let `ballast watch` list them in all namespaces" +
		"; a cluster of which none is listed, and that nobody had since this began, is not missed"}
	if !slices.Equal(l.Trouble, want) {
		t.Errorf("told %q, want %q", l.Trouble, want)
	}
}
