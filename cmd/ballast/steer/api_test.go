package steer_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/steer"
	"ballast/e2e/site"
	"ballast/planner/plan"
)

func tellsOfLostRaces(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	n := 0
	m := s.Racing(t, 100, func() { n++; s.Annotates(t, "somebody/else", strings.Repeat("x", n)) })
	yes := "true"
	_, written, err := m.Annotate(t.Context(), func(steer.State) (steer.Edits, error) { return steer.Edits{plan.AnnotationPaused: &yes}, nil })
	if !apierrors.IsConflict(err) || written || n < 3 {
		t.Errorf("after %d tries: written %t, %v", n, written, err)
	}
	if _, frozen := s.Stored(t).Annotations[plan.AnnotationPaused]; frozen {
		t.Error("it is frozen all the same")
	}
	m = s.Racing(t, 1, func() { s.Plans(t, fixture.Revision(18, nil), nil) }) // deleted and made anew: another one
	if _, written, err = m.Annotate(t.Context(), func(steer.State) (steer.Edits, error) { return steer.Edits{plan.AnnotationPaused: &yes}, nil }); err != nil || !written {
		t.Errorf("over one that was made anew: written %t, %v", written, err)
	}
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true"})
}

func tellsOfChangedWrites(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	m := &steer.PlanMap{Key: client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, Client: interceptor.NewClient(s.Planner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
			return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{}`)), opts...) // as a webhook that takes it out
		}})}
	yes := "true"
	_, written, err := m.Annotate(t.Context(), func(steer.State) (steer.Edits, error) { return steer.Edits{plan.AnnotationPaused: &yes}, nil })
	const want = `annotating the plan ConfigMap "ballast-plan" in "argocd": something changed the annotations on their way; look for other webhooks on ConfigMaps`
	if written || err == nil || err.Error() != want {
		t.Errorf("written %t, %v", written, err)
	}
}

// steersWhatNobodyPatches: somebody's list of managers has a time that the API server cannot read back.
func steersWhatNobodyPatches(t *testing.T, s *fixture.Site) {
	s.Plans(t, fixture.Steered(nil), nil)
	const beyondJSON = `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"9999-12-31T23:59:59-12:00","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`
	fixture.MustDo(t, s.Planner.Patch(t.Context(), s.Stored(t), client.RawPatch(types.MergePatchType, []byte(beyondJSON))))
	m := s.Racing(t, 0, nil)
	yes := "true"
	_, written, err := m.Annotate(t.Context(), func(steer.State) (steer.Edits, error) { return steer.Edits{plan.AnnotationPaused: &yes}, nil })
	if err != nil || !written {
		t.Errorf("written %t, %v", written, err)
	}
	s.Stands(t, map[string]string{plan.AnnotationPaused: "true"})
}

// TestAnnotatingOnARealAPIServer: a write is made of what stood when it was decided, and arrives as it was sent.
func TestAnnotatingOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	for name, run := range map[string]func(*testing.T, *fixture.Site){
		"a race that is lost for ever is told":       tellsOfLostRaces,
		"a write that is changed on its way is told": tellsOfChangedWrites,
		"what nobody can patch is steered":           steersWhatNobodyPatches,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}
