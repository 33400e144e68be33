package store

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/gz"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// PartWords is the history's part that keeps what people wrote beside the plan.
const PartWords = "words.json.gz"

// words are what people wrote into the plan ConfigMap, and what the leader asked them to answer. Whoever deletes the
// ConfigMap takes none of it back: it says what is done, as long as it says anything, and a plan made anew without it
// would move what was pinned and begin what was frozen. To take a word back is an edit.
type words struct {
	Pins        string            `json:"pins,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// lastingWords are the annotations that stand until somebody takes them away. What is asked for once, a rollback and a
// discovery to accept, ends with the ConfigMap that asked.
func lastingWords() []string {
	return []string{plan.AnnotationPaused, plan.AnnotationPausedReason, plan.AnnotationPausedBy,
		plan.AnnotationEnforcement, plan.AnnotationCordon, plan.AnnotationTripped}
}

// mostWords bounds the part: pins of names that do not pack must not push the plans out of a history. wordBounds are
// what a ConfigMap's pins may have, and room for the annotations; people's comments may have brackets.
const mostWords = 128 << 10

func wordBounds() gz.Bounds { return gz.Bounds{Bytes: 1 << 20, Nested: 1 << 20} }

// Words packs what is kept of a plan ConfigMap, nil where there is nothing. Pins that nobody would read, or that are
// too many, are left out.
func Words(cm *corev1.ConfigMap) ([]byte, error) {
	w := words{Annotations: map[string]string{}}
	for _, name := range lastingWords() {
		if value := cm.Annotations[name]; value != "" && len(value) <= plan.MaxNoteBytes {
			w.Annotations[name] = value
		}
	}
	if pins := cm.Data[plan.KeyPins]; len(pins) <= people.MaxPinsBytes {
		w.Pins = pins
	}
	if w.Pins == "" && len(w.Annotations) == 0 {
		return nil, nil
	}
	packed, err := wordBounds().PackJSON(w)
	if err == nil && len(packed) > mostWords {
		w.Pins = ""
		return wordBounds().PackJSON(w)
	}
	return packed, err
}

// ForgetWords takes what people wrote out of the history. They wrote it for the installation that was: the next one
// goes by them where they stand beside the plan, and by nothing where somebody deletes that first. No MAC is needed to
// leave out a part.
func (s *Store) ForgetWords(ctx context.Context) error {
	cm := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.History}, cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch, err := json.Marshal(change{Metadata: patchable.Meta{ManagedFields: patchable.FewManagers(cm.ManagedFields)},
		BinaryData: map[string]*[]byte{PartWords: nil}})
	if err != nil {
		return fmt.Errorf("encoding the patch of ConfigMap %q: %w", s.History, err)
	}
	if err := s.Client.Patch(ctx, cm, client.RawPatch(types.StrategicMergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking what people wrote out of ConfigMap %q: %w", s.History, err)
	}
	return nil
}

func (w words) data() map[string]string {
	if w.Pins == "" {
		return nil
	}
	return map[string]string{plan.KeyPins: w.Pins}
}

// into adds the words to what is written; what the planner writes itself stands above them.
func (w words) into(c *change) {
	for name, text := range w.data() {
		c.Data[name] = &text
	}
	for name, value := range w.Annotations {
		if _, own := c.Metadata.Annotations[name]; !own {
			c.Metadata.Annotations[name] = &value
		}
	}
}
