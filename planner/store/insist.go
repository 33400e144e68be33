package store

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// insist writes over a ConfigMap of which somebody else changed what the planner does not go by, however fast: the patch is for the
// plan that was read, and not for the version, so that the API server repeats it by itself. ok is false where the plan, the pins or
// one of ballast's annotations is another one: that race is lost.
func (s *Store) insist(ctx context.Context, base *corev1.ConfigMap, c change) (cm *corev1.ConfigMap, ok bool, err error) {
	now, err := s.get(ctx, base.Name)
	if err != nil || now == nil || !alike(base, now) || now.Annotations[plan.AnnotationDigest] == "" {
		return nil, false, nil
	}
	ops := []operation{{"test", "/metadata/uid", now.UID}, {"test", pointer("/metadata/annotations/", plan.AnnotationDigest), now.Annotations[plan.AnnotationDigest]}}
	ops = append(ops, sets("/metadata/annotations/", c.Metadata.Annotations, now.Annotations)...)
	ops = append(ops, sets("/data/", c.Data, now.Data)...)
	ops = append(ops, sets("/binaryData/", c.BinaryData, now.BinaryData)...)
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, false, err
	}
	cm = &corev1.ConfigMap{ObjectMeta: base.ObjectMeta}
	err = s.Client.Patch(ctx, cm, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	return cm, err == nil, err
}

// alike reports whether a cycle would go by the same: the plan, people's pins, and ballast's annotations.
func alike(a, b *corev1.ConfigMap) bool {
	ours := func(cm *corev1.ConfigMap) map[string]string {
		kept := maps.Clone(cm.Annotations)
		maps.DeleteFunc(kept, func(key, _ string) bool { return !strings.HasPrefix(key, plan.Group+"/") })
		return kept
	}
	same := a.UID == b.UID && a.Data[plan.KeyPlan] == b.Data[plan.KeyPlan] && a.Data[plan.KeyPins] == b.Data[plan.KeyPins]
	return same && maps.Equal(ours(a), ours(b)) && immutable(a) == immutable(b)
}

// sets are the operations that give keys of a map their values; what has none goes, if it is there. Without the map they are none.
func sets[V any, W any](path string, change map[string]*V, stands map[string]W) []operation {
	var ops []operation
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, there := stands[key]
		switch value := change[key]; {
		case value != nil:
			ops = append(ops, operation{"add", pointer(path, key), *value})
		case there:
			ops = append(ops, operation{Op: "remove", Path: pointer(path, key)})
		}
	}
	return ops
}

func pointer(path, key string) string {
	return path + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
