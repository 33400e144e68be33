package store

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/plan"
)

func TestSetByNamesTheManagerOfAnAnnotation(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	entry := func(manager string, minute int, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
		if minute >= 0 {
			e.Time = &metav1.Time{Time: at.Add(time.Duration(minute) * time.Minute)}
		}
		return e
	}
	const off, paused = `{"f:metadata":{"f:annotations":{".":{},"f:ballast.argoproj.io/enforcement":{}}}}`, `{"f:metadata":{"f:annotations":{"f:ballast.argoproj.io/paused":{}}}}`
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		manager string
		minute  int
	}{
		"one":               {[]metav1.ManagedFieldsEntry{entry("ballast-planner", 5, `{"f:data":{"f:plan":{}}}`), entry("kubectl-annotate", 3, off), entry("freeze", 9, paused)}, "kubectl-annotate", 3},
		"two, the last one": {[]metav1.ManagedFieldsEntry{entry("gitops", 7, off), entry("kubectl-annotate", 3, off)}, "gitops", 7},
		"none":              {[]metav1.ManagedFieldsEntry{entry("freeze", 9, paused)}, "", 0},
		"no time":           {[]metav1.ManagedFieldsEntry{entry("x", -1, off)}, "", 0},
		"no fields":         {[]metav1.ManagedFieldsEntry{entry("x", 1, `[`), {Manager: "y"}}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}}
			manager, when := s.SetBy(plan.AnnotationEnforcement)
			want := time.Time{}
			if c.manager != "" {
				want = at.Add(time.Duration(c.minute) * time.Minute)
			}
			if manager != c.manager || !when.Equal(want) {
				t.Errorf("%q at %s, want %q at %s", manager, when, c.manager, want)
			}
		})
	}
	if manager, _ := (Snapshot{}).SetBy(plan.AnnotationEnforcement); manager != "" {
		t.Errorf("a ConfigMap that is not there was written by %q", manager)
	}
}
