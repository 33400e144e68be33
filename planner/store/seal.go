package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// ErrForeign says that a plan which matches its digest was written by nobody who has the key: a forgery, a backup of
// another installation, or one from before the key was made.
var ErrForeign = errors.New("the plan is not this installation's own: its MAC is missing or wrong")

const (
	// keyMACs is the history's key for the MACs of all others.
	keyMACs = "macs.json"
	// maxMACs bounds what is read of it: a name and 64 digits for each of some dozens of keys.
	maxMACs = 64 << 10
)

// KeyName is the Secret that holds the key of a plan ConfigMap. It is shipped empty: a planner fills it once.
func KeyName(planConfigMap string) string { return planConfigMap + "-key" }

// judges reports whether this Store believes only what is vouched for; one without a Key is a reader for people.
func (s *Store) judges() bool { return s.Key != "" }

// planName and partName are what a MAC is for, beside the text.
func (s *Store) planName() string { return "plan " + s.Namespace + "/" + s.Plan }

func (s *Store) partName(key string) string {
	return "history " + s.Namespace + "/" + s.History + " " + key
}

// Judge reads the plan ConfigMap, and takes no plan out of it that this installation's planners did not write.
func (s *Store) Judge(cm *corev1.ConfigMap) configmap.Document {
	d := configmap.Parse(cm.Data, cm.Annotations)
	if d.Plan == nil || !s.judges() {
		return d
	}
	if !s.KnownKey().Holds(s.planName(), []byte(cm.Data[plan.KeyPlan]), cm.Annotations[plan.AnnotationMAC]) {
		d.Plan, d.PlanErr = nil, ErrForeign
	}
	return d
}

// vouch is the MAC of a plan's text; empty for a Store that has no key.
func (s *Store) vouch(text string) string {
	return s.KnownKey().MAC(s.planName(), []byte(text))
}

// vouchAll adds the MACs of a history's keys.
func (s *Store) vouchAll(data map[string][]byte) error {
	known := s.KnownKey()
	if known == nil {
		return nil
	}
	macs := make(map[string]string, len(data))
	for key, content := range data {
		macs[key] = known.MAC(s.partName(key), content)
	}
	text, err := json.Marshal(macs)
	if err != nil {
		return fmt.Errorf("packing the history's MACs: %w", err)
	}
	data[keyMACs] = text
	return nil
}

// own leaves out of a history what nobody vouches for, and names it.
func (s *Store) own(data map[string][]byte) (map[string][]byte, []string) {
	kept := maps.Clone(data)
	delete(kept, keyMACs)
	if !s.judges() {
		return kept, nil
	}
	macs, known := map[string]string{}, s.KnownKey()
	if text := data[keyMACs]; len(text) <= maxMACs {
		_ = json.Unmarshal(text, &macs) // what cannot be read vouches for nothing
	}
	var foreign []string
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if !known.Holds(s.partName(key), kept[key], macs[key]) {
			delete(kept, key)
			foreign = append(foreign, key+" is not this installation's own: its MAC is missing or wrong")
		}
	}
	return kept, foreign
}
