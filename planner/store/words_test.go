package store

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// back is what a plan ConfigMap that was deleted is made anew with.
func back(t interface {
	Helper()
	Fatal(...any)
}, cm *corev1.ConfigMap) (data, annotations map[string]string) {
	t.Helper()
	part, err := Words(cm)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Snapshot{}.WithWords(part)
	if err != nil {
		t.Fatal(err)
	}
	c := change{Metadata: patchable.Meta{Annotations: map[string]*string{}}, Data: map[string]*string{}}
	if s.Restores() {
		s.words.into(&c)
	}
	return present(c.Data), present(c.Metadata.Annotations)
}

// TestWordsComeBackToTheLetter, whatever they are, and nothing else does.
func TestWordsComeBackToTheLetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := rapid.MapOf(rapid.SampledFrom(lastingWords()), rapid.StringN(1, 50, plan.MaxNoteBytes)).Draw(t, "annotations")
		pins := rapid.String().Draw(t, "pins")
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plan.AnnotationRollback: "3", plan.AnnotationRevision: "9", "example.org/x": "y"}},
			Data: map[string]string{plan.KeyPlan: "a plan", plan.KeyPins: pins, "other": "z"}}
		for name, value := range kept {
			cm.Annotations[name] = value
		}
		data, annotations := back(t, cm)
		want := map[string]string{}
		if pins != "" {
			want[plan.KeyPins] = pins
		}
		if diff := cmp.Diff(want, data); diff != "" {
			t.Fatalf("data (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(kept, annotations); diff != "" {
			t.Fatalf("annotations (-want +got):\n%s", diff)
		}
	})
}

// TestWordsAreBounded: pins that nobody would read, and those that do not pack, push no plan out of the history, and take
// no freeze along.
func TestWordsAreBounded(t *testing.T) {
	noise := make([]byte, 190<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for name, pins := range map[string]string{
		"too long": strings.Repeat("#", people.MaxPinsBytes+1),
		"noise":    "#" + base64.StdEncoding.EncodeToString(noise[:180<<10]),
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plan.AnnotationPaused: "true", plan.AnnotationCordon: strings.Repeat("x", plan.MaxNoteBytes+1)}},
			Data: map[string]string{plan.KeyPins: pins}}
		part, err := Words(cm)
		if err != nil || len(part) > 1<<10 {
			t.Errorf("%s: %d bytes are kept, %v", name, len(part), err)
		}
		data, annotations := back(t, cm)
		if diff := cmp.Diff(map[string]string{plan.AnnotationPaused: "true"}, annotations); diff != "" || len(data) > 0 {
			t.Errorf("%s: %d keys come back, and the annotations (-want +got):\n%s", name, len(data), diff)
		}
	}
}

// TestWordsSpeakForNoConfigMapThatIsThere, and nothing speaks for people but what they may say.
func TestWordsSpeakForNoConfigMapThatIsThere(t *testing.T) {
	part, err := wordBounds().PackJSON(words{Pins: "a: 1\n", Annotations: map[string]string{plan.AnnotationPaused: "true", plan.AnnotationRevision: "99"}})
	if err != nil {
		t.Fatal(err)
	}
	there := Snapshot{object: &corev1.ConfigMap{}}
	if s, err := there.WithWords(part); err != nil || s.Restores() || s.Document.Paused {
		t.Errorf("a ConfigMap that is there is frozen: %+v, %v", s.Document, err)
	}
	s, err := Snapshot{}.WithWords(part)
	if err != nil || !s.Document.Paused || s.Document.Pins["a"] != 1 || s.words.Annotations[plan.AnnotationRevision] != "" {
		t.Errorf("of one that is gone stands %+v with %v, %v", s.Document, s.words, err)
	}
	for _, broken := range [][]byte{nil, []byte("{}"), part[:len(part)/2]} {
		if s, _ := (Snapshot{}).WithWords(broken); s.Restores() {
			t.Errorf("%q restores something", broken)
		}
	}
}
