package store

import (
	"context"
	"encoding/json"
	"maps"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// change is a strategic merge patch of a ConfigMap: what it does not name stays, and nil takes a key away. A merge
// patch, or a JSON patch, would go by JSON, which makes three bytes of each that is no text: who brought some 100 KB of
// those would keep every write away.
type change struct {
	Metadata   patchable.Meta     `json:"metadata"`
	Data       map[string]*string `json:"data,omitempty"`
	BinaryData map[string]*[]byte `json:"binaryData,omitempty"`
}

// withoutBytes takes out, too, what others brought that is no text: people's tools go by JSON, and would not get a word
// in beside it.
func (c change) withoutBytes(base *corev1.ConfigMap) change {
	data := maps.Clone(base.Data)
	if len(data[plan.KeyPins]) <= people.MaxPinsBytes {
		delete(data, plan.KeyPins) // people's, and told as what cannot be read
	}
	c.Data, c.Metadata.Annotations = withoutBytes(c.Data, data), withoutBytes(c.Metadata.Annotations, base.Annotations)
	return c
}

func withoutBytes(change map[string]*string, stands map[string]string) map[string]*string {
	out := change
	for key, value := range stands {
		if _, named := change[key]; named || utf8.ValidString(value) {
			continue
		}
		if len(out) == len(change) {
			if out = maps.Clone(change); out == nil {
				out = map[string]*string{}
			}
		}
		out[key] = nil
	}
	return out
}

// present leaves out what a patch takes away.
func present[V any](m map[string]*V) map[string]V {
	set := make(map[string]V, len(m))
	for name, value := range m {
		if value != nil {
			set[name] = *value
		}
	}
	return set
}

// labels mark what ballast made, so that uninstall and people find it.
func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner",
		"app.kubernetes.io/part-of": "ballast"}
}

// over patches the ConfigMap as it was read.
func (s *Store) over(ctx context.Context, base *corev1.ConfigMap, c change) (*corev1.ConfigMap, error) {
	c.Metadata.UID, c.Metadata.ResourceVersion = base.UID, base.ResourceVersion
	c.Metadata.ManagedFields = patchable.FewManagers(base.ManagedFields)
	patch, err := json.Marshal(c.withoutBytes(base))
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: base.Name}}
	return cm, s.Client.Patch(ctx, cm, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(plan.FieldManager))
}
