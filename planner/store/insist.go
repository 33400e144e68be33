package store

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// insistTries is how often a write is tried as others are, over the version that was read just now.
const insistTries = 3

// insist writes over a ConfigMap of which somebody else changed what the planner does not go by. As other writes it
// keeps bytes, and takes out what is no text; against who writes faster than that it is by content. It answers nil
// where the content is another one: that race is lost.
func (s *Store) insist(ctx context.Context, base *corev1.ConfigMap, c change) *corev1.ConfigMap {
	for range insistTries {
		now, err := s.get(ctx, base.Name)
		if err != nil || now == nil || !s.alike(base, now) {
			return nil
		}
		written, err := s.over(ctx, now, c)
		if err == nil {
			return written
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return s.overContent(ctx, base, c)
}

// overContent is a patch for the content that was read, and not for the version, so that the API server repeats it by
// itself.
func (s *Store) overContent(ctx context.Context, base *corev1.ConfigMap, c change) *corev1.ConfigMap {
	now, err := s.get(ctx, base.Name)
	if err != nil || now == nil || !s.alike(base, now) {
		return nil
	}
	path, value := "/metadata/annotations/"+patchable.Pointer(plan.AnnotationDigest),
		now.Annotations[plan.AnnotationDigest]
	if base.Name == s.History {
		path, value = "/data/"+patchable.Pointer(keySavedAt), now.Data[keySavedAt]
	}
	if value == "" {
		return nil
	}
	c = c.withoutBytes(now)
	ops := []operation{{"test", "/metadata/uid", now.UID}, {"test", path, value}}
	if base.Name == s.Plan {
		ops = append(ops, peoples(now)...)
	}
	ops = append(ops, sets("/metadata/annotations/", c.Metadata.Annotations, now.Annotations)...)
	ops = append(ops, sets("/data/", c.Data, now.Data)...)
	ops = append(ops, sets("/binaryData/", c.BinaryData, now.BinaryData)...)
	if few := patchable.FewManagers(now.ManagedFields); few != nil {
		ops = append(ops, operation{"replace", "/metadata/managedFields", few})
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: base.Name}}
	if err := s.Client.Patch(ctx, cm, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(plan.FieldManager)); err != nil {
		return nil
	}
	return cm
}

// absent is what a test of a key that is not there compares with.
var absent = json.RawMessage("null")

// askedFor are the annotations by which people and the leader ask something of each other: what a cycle goes by, beside
// plan and pins.
func askedFor() []string {
	return []string{plan.AnnotationPaused, plan.AnnotationEnforcement, plan.AnnotationCordon,
		plan.AnnotationAcceptDiscovery,
		plan.AnnotationRollback, plan.AnnotationRebase, plan.AnnotationTripped}
}

// peoples are the tests of what people ask for beside the plan, so that a write that the API server repeats passes over
// no freeze, break-glass, cordon or pin that came meanwhile, and takes away no rollback but the one that it answers.
func peoples(now *corev1.ConfigMap) []operation {
	var ops []operation
	for _, name := range askedFor() {
		ops = append(ops, still("/metadata/annotations/", name, now.Annotations, mostWord)...)
	}
	if len(now.Data) > 0 {
		ops = append(ops, still("/data/", plan.KeyPins, now.Data, mostPins)...)
	}
	return ops
}

// mostWord is as much JSON as an annotation may be that a write by content tests, and mostPins data.pins, so that the
// plan has room beside them in the API server's 3 MiB: whatever is read of either. JSON makes six bytes of a control
// character and of each "<", and the API server compares it so. Whoever brings some 100 KB of those asks for nothing.
const (
	mostWord = 2 + 6*plan.MaxNoteBytes
	mostPins = 2 + 6*people.MaxPinsBytes
)

// still tests that a key has the value that it had, or none. What is no text is none of JSON's, and goes anyway; what
// is too much for any that is read is not tested.
func still(path, key string, stands map[string]string, most int) []operation {
	value, there := stands[key]
	switch {
	case !there:
		return []operation{{"test", path + patchable.Pointer(key), absent}}
	case !utf8.ValidString(value):
		return nil
	}
	if text, err := json.Marshal(value); err != nil || len(text) > most {
		return nil
	}
	return []operation{{"test", path + patchable.Pointer(key), value}}
}

// alike reports whether a cycle would go by the same: of the plan's ConfigMap the plan with the planner's annotations,
// people's pins as they are read, and what is asked for; of the history all of its data. Whatever else of ballast's
// group stands there nobody goes by.
func (s *Store) alike(a, b *corev1.ConfigMap) bool {
	if a.UID != b.UID || immutable(a) != immutable(b) {
		return false
	}
	if a.Name == s.History {
		return maps.Equal(a.Data, b.Data) && maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
	}
	for _, name := range slices.Concat(plan.PlannersAnnotations(), askedFor()) {
		is, there := a.Annotations[name]
		if was, wasThere := b.Annotations[name]; is != was || there != wasThere {
			return false
		}
	}
	return a.Data[plan.KeyPlan] == b.Data[plan.KeyPlan] && samePins(a.Data[plan.KeyPins], b.Data[plan.KeyPins])
}

// samePins reports whether two texts of pins ask for the same, their comments aside. Of one with a problem nothing but
// the text tells.
func samePins(a, b string) bool {
	if a == b {
		return true
	}
	pins, problems := people.ParsePins(a, 0)
	others, more := people.ParsePins(b, 0)
	return len(problems)+len(more) == 0 && maps.Equal(pins, others)
}

// sets are the operations that give keys of a map their values; what has none goes, if it is there. Without the map
// they are none.
func sets[V any, W any](path string, change map[string]*V, stands map[string]W) []operation {
	var ops []operation
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, there := stands[key]
		switch value := change[key]; {
		case value != nil:
			ops = append(ops, operation{"add", path + patchable.Pointer(key), *value})
		case there:
			ops = append(ops, operation{Op: "remove", Path: path + patchable.Pointer(key)})
		}
	}
	return ops
}
