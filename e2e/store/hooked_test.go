package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// TestPeopleAndThePlannerWriteAtOnceThroughTheWebhook: one adds pins by hand, one edits rows, one overwrites the plan, and the
// planner goes on meanwhile. Everybody gets what is theirs: no pin is lost, no plan is another one's.
func TestPeopleAndThePlannerWriteAtOnceThroughTheWebhook(t *testing.T) {
	const writes = 25
	site := hooked.Start(t, hooked.Options{})
	as := site.As(hooked.Planner)
	s := store.New(store.Options{Client: as, Reader: as, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history"})
	base := newPlan()
	for i := range writes {
		base.Clusters[fmt.Sprintf("b%02d", i)] = plan.Row{Replica: 0, Load: "0.5"}
	}
	next := func(i int) plan.Plan {
		p := base.Clone()
		p.Clusters["moves"] = plan.Row{Replica: i % 2}
		return p
	}
	planned := func(i int) error {
		for {
			now, err := s.Read(t.Context())
			if err != nil {
				return err
			}
			if _, err = s.WritePlan(t.Context(), now, next(i), 0, meta); !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
	if err := planned(0); err != nil {
		t.Fatal(err)
	}
	p := editors{t.Context()}
	var all sync.WaitGroup
	each := func(what string, write func(i int) error) {
		all.Go(func() {
			for i := range writes {
				if err := write(i); err != nil {
					t.Errorf("%s, %d: %v", what, i, err)
					return
				}
			}
		})
	}
	alice, bob, carol := site.As("alice"), site.As("bob"), site.As("carol")
	each("the planner", func(i int) error { return planned(i + 1) })
	each("pins by hand", func(i int) error {
		return p.edit(alice, func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] += fmt.Sprintf("# because of %d\na%02d: 1\n", i, i) })
	})
	each("rows", func(i int) error {
		row := fmt.Sprintf("  b%02d: {replica: ", i)
		return p.edit(bob, func(cm *corev1.ConfigMap) {
			cm.Data[plan.KeyPlan] = strings.Replace(cm.Data[plan.KeyPlan], row+"0", row+"1", 1)
		})
	})
	each("another plan", func(i int) error {
		return p.edit(carol, func(cm *corev1.ConfigMap) {
			cm.Data[plan.KeyPlan] = []string{"", "{", strings.Replace(cm.Data[plan.KeyPlan], "replicas: 2", "replicas: 9", 1),
				strings.Replace(cm.Data[plan.KeyPlan], "\nrevision: ", "\nrevision: 900", 1)}[i%4]
			cm.Annotations[plan.AnnotationDigest] = plan.Digest(cm.Data[plan.KeyPlan])
		})
	})
	all.Wait()
	last, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := next(writes)
	want.Revision = writes + 1
	if diff := cmp.Diff(&want, last.Document.Plan); diff != "" {
		t.Errorf("the plan (-want +got), %v:\n%s", last.Document.PlanErr, diff)
	}
	pins := plan.Pins{}
	comments := ""
	for i := range writes {
		pins[fmt.Sprintf("a%02d", i)], pins[fmt.Sprintf("b%02d", i)] = 1, 1
		comments += fmt.Sprintf("# because of %d\n", i)
	}
	if diff := cmp.Diff(pins, last.Document.Pins); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
	kept := ""
	for line := range strings.Lines(read(t, as).Data[plan.KeyPins]) {
		if strings.HasPrefix(line, "#") {
			kept += line
		}
	}
	if diff := cmp.Diff(comments, kept); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
}

// editors edit the plan ConfigMap as kubectl edit does, until nobody was faster.
type editors struct{ ctx context.Context }

// edit answers an error where the write failed, or where the plan is another one afterwards.
func (p editors) edit(c client.Client, change func(*corev1.ConfigMap)) error {
	for {
		cm := &corev1.ConfigMap{}
		if err := c.Get(p.ctx, client.ObjectKey{Namespace: hooked.Namespace, Name: hooked.PlanConfigMap}, cm); err != nil {
			return err
		}
		stood, digest := cm.Data[plan.KeyPlan], cm.Annotations[plan.AnnotationDigest]
		change(cm)
		err := c.Update(p.ctx, cm)
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil && (cm.Data[plan.KeyPlan] != stood || cm.Annotations[plan.AnnotationDigest] != digest) {
			return fmt.Errorf("the plan was not put back: %q", cm.Data[plan.KeyPlan])
		}
		return err
	}
}
