package inforce

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/controller/wiring"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// TestTheLatestWordsAreKept, whoever brings them: the watch may be behind what this leader read, and what etcd answers is the truth also
// after somebody restored it, by which versions begin again.
func TestTheLatestWordsAreKept(t *testing.T) {
	cm := func(version, why string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version,
			Annotations: map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: why}}}
	}
	for name, test := range map[string]struct {
		tell func(*Known)
		want string
	}{
		"a later one":                {func(k *Known) { k.RecordUserFields(cm("101", "later")) }, "later"},
		"one that is behind":         {func(k *Known) { k.RecordUserFields(cm("99", "behind")) }, "first"},
		"a read":                     {func(k *Known) { k.HearAfter(cm("101", "read"), k.LastHeard()) }, "read"},
		"a read of a restored etcd":  {func(k *Known) { k.HearAfter(cm("7", "restored"), k.LastHeard()) }, "restored"},
		"the watch after such a one": {func(k *Known) { k.HearAfter(cm("7", "restored"), k.LastHeard()); k.RecordUserFields(cm("8", "on")) }, "on"},
		"a read that the watch overtook": {func(k *Known) {
			last := k.LastHeard()
			k.RecordUserFields(cm("102", "watched"))
			k.HearAfter(cm("101", "read"), last)
		}, "watched"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &Known{Options: &wiring.Options{}}
			k.RecordUserFields(cm("100", "first"))
			test.tell(k)
			words, known := k.Words()
			want, err := store.Words(cm("", test.want))
			if err != nil {
				t.Fatal(err)
			}
			if !known || string(words) != string(want) {
				t.Errorf("known %t, %q is kept, want %q", known, words, want)
			}
		})
	}
}
