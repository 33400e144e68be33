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
	"ballast/planner/store/seal"
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

// voucher vouches for what the planner writes, and says of what stands whether one of its planners did.
type voucher struct {
	Options
	key *seal.Key // nil: none is known yet
}

func (s *Store) voucher() voucher { return voucher{s.Options, s.KnownKey()} }

// Judge reads the plan ConfigMap, and takes no plan out of it that this installation's planners did not write.
func (s *Store) Judge(cm *corev1.ConfigMap) configmap.Document { return s.voucher().judge(cm) }

// judges reports whether only what is vouched for is believed; a Store without a Key is a reader for people.
func (v voucher) judges() bool { return v.Key != "" }

// planName and partName are what a MAC is for, beside the text.
func (v voucher) planName() string { return "plan " + v.Namespace + "/" + v.Plan }

func (v voucher) partName(key string) string {
	return "history " + v.Namespace + "/" + v.History + " " + key
}

func (v voucher) judge(cm *corev1.ConfigMap) configmap.Document {
	d := configmap.Parse(cm.Data, cm.Annotations)
	if d.Plan == nil || !v.judges() {
		return d
	}
	if !v.key.Holds(v.planName(), []byte(cm.Data[plan.KeyPlan]), cm.Annotations[plan.AnnotationMAC]) {
		d.Plan, d.PlanErr = nil, ErrForeign
	}
	return d
}

// vouch is the MAC of a plan's text; empty where there is no key.
func (v voucher) vouch(text string) string {
	return v.key.MAC(v.planName(), []byte(text))
}

// vouchAll adds the MACs of a history's keys.
func (v voucher) vouchAll(data map[string][]byte) error {
	if v.key == nil {
		return nil
	}
	macs := make(map[string]string, len(data))
	for key, content := range data {
		macs[key] = v.key.MAC(v.partName(key), content)
	}
	text, err := json.Marshal(macs)
	if err != nil {
		return fmt.Errorf("packing the history's MACs: %w", err)
	}
	data[keyMACs] = text
	return nil
}

// own leaves out of a history what nobody vouches for, and names it.
func (v voucher) own(data map[string][]byte) (map[string][]byte, []string) {
	kept := maps.Clone(data)
	delete(kept, keyMACs)
	if !v.judges() {
		return kept, nil
	}
	macs := map[string]string{}
	if text := data[keyMACs]; len(text) <= maxMACs {
		_ = json.Unmarshal(text, &macs) // what cannot be read vouches for nothing
	}
	var foreign []string
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if !v.key.Holds(v.partName(key), kept[key], macs[key]) {
			delete(kept, key)
			foreign = append(foreign, key+" is not this installation's own: its MAC is missing or wrong")
		}
	}
	return kept, foreign
}
