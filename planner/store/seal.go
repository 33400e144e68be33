package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// ErrForeign says that a plan which matches its digest was written by nobody who has the key: a forgery, a backup of
// another installation, or one from before the key was made.
var ErrForeign = errors.New("the plan is not this installation's own: its MAC is missing or wrong")

// ErrNoKey says that the key's Secret is missing, or holds none and takes none, and not that it could not be asked for.
var ErrNoKey = errors.New("no key can be had")

// noKeyError is an ErrNoKey that says what is the matter.
type noKeyError struct{ error }

// Is lets errors.Is find ErrNoKey.
func (noKeyError) Is(target error) bool { return target == ErrNoKey }

// Unwrap is what the API server said, if it did.
func (e noKeyError) Unwrap() error { return errors.Unwrap(e.error) }

const (
	// keyOfSecret is the Secret's key under which the MAC's key stands.
	keyOfSecret = "key"
	keyBytes    = 32
	// keyMACs is the history's key for the MACs of all others.
	keyMACs = "macs.json"
	// maxMACs bounds what is read of it: a name and 64 digits for each of some dozens of keys.
	maxMACs = 64 << 10
)

// KeyName is the Secret that holds the key of a plan ConfigMap. It is shipped empty: a planner fills it once.
func KeyName(planConfigMap string) string { return planConfigMap + "-key" }

// seal proves that a planner of this installation wrote a text. The Secret's UID is part of the proof, so that a Secret
// which was restored elsewhere, or anew, vouches for nothing that came along with it.
type seal struct {
	uid  types.UID
	key  []byte
	made bool // by this process
}

// mac is the proof for a text that stands under a name.
func (s *seal) mac(name string, text []byte) string {
	h := hmac.New(sha256.New, s.key)
	for _, part := range []string{string(s.uid), name} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// holds reports whether a text is vouched for.
func (s *seal) holds(name string, text []byte, mac string) bool {
	return hmac.Equal([]byte(s.mac(name, text)), []byte(mac))
}

// secretPatch fills the key in, for the Secret as it was read and no other.
type secretPatch struct {
	Metadata patchable.Meta    `json:"metadata"`
	Data     map[string][]byte `json:"data"`
}

// Unseal reads the key by which this installation's own plans are known, and makes one where there is none yet. A key
// that went missing or became another while this process knew it is put back; a Secret that was made anew meanwhile
// gets a new one. Until it was called a Store believes no plan and no history.
func (s *Store) Unseal(ctx context.Context) error {
	if !s.judges() {
		return nil
	}
	secret, err := s.keySecret(ctx)
	if err != nil {
		return err
	}
	next := &seal{uid: secret.UID, key: secret.Data[keyOfSecret], made: s.MadeKey()}
	if len(next.key) != keyBytes && ptr.Deref(secret.Immutable, false) {
		return noKeyError{fmt.Errorf("the plan's key, Secret %q in %q, holds no key and is immutable: run kubectl -n %s delete secret %s, then kubectl -n %s create secret generic %s",
			s.Key, s.Namespace, s.Namespace, s.Key, s.Namespace, s.Key)}
	}
	if len(next.key) != keyBytes || s.another(next) {
		if next, err = s.makeKey(ctx, secret); err != nil {
			return err
		}
	}
	s.seal.Store(next)
	return nil
}

// Peek reads the key as it stands, and makes none: for a planner that does not lead, and only wants to know which plan is
// its installation's own. Without a key none is.
func (s *Store) Peek(ctx context.Context) error {
	secret, err := s.keySecret(ctx)
	if errors.Is(err, ErrNoKey) || err == nil && len(secret.Data[keyOfSecret]) != keyBytes {
		return nil
	}
	if err != nil {
		return err
	}
	s.seal.Store(&seal{uid: secret.UID, key: secret.Data[keyOfSecret]})
	return nil
}

// Renew makes a new key, in place of one that vouches for nothing that stands: whoever may write the Secret while no
// planner leads must not choose the key either.
func (s *Store) Renew(ctx context.Context) error {
	if !s.judges() {
		return nil
	}
	s.seal.Store(nil)
	secret, err := s.keySecret(ctx)
	if err != nil {
		return err
	}
	next, err := s.makeKey(ctx, secret)
	if err == nil {
		s.seal.Store(next)
	}
	return err
}

func (s *Store) keySecret(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Key}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, noKeyError{fmt.Errorf("the plan's key, Secret %q, is missing in %q: apply ballast's manifests again, or run: kubectl -n %s create secret generic %s",
			s.Key, s.Namespace, s.Namespace, s.Key)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan's key, Secret %q in %q: %w", s.Key, s.Namespace, err)
	}
	return &secret, nil
}

// another reports whether there is another key than the one that this process knows: whoever may write the Secret, or
// make it anew, must not choose the key.
func (s *Store) another(found *seal) bool {
	known := s.seal.Load()
	return known != nil && !bytes.Equal(known.key, found.key)
}

// KeySecret is the UID of the Secret whose key is gone by; empty before the first.
func (s *Store) KeySecret() types.UID {
	if known := s.seal.Load(); known != nil {
		return known.uid
	}
	return ""
}

// MadeKey reports whether this process made the key that is gone by.
func (s *Store) MadeKey() bool {
	known := s.seal.Load()
	return known != nil && known.made
}

// makeKey writes a new key into the Secret, or puts back the one that it lost. A Secret that was made anew gets a new
// one, whatever it holds.
func (s *Store) makeKey(ctx context.Context, secret *corev1.Secret) (*seal, error) {
	next := &seal{uid: secret.UID, key: make([]byte, keyBytes), made: true}
	if known := s.seal.Load(); known != nil && known.uid == secret.UID {
		next = known
	} else if _, err := rand.Read(next.key); err != nil {
		return nil, fmt.Errorf("making the plan's key: %w", err)
	}
	meta := patchable.Meta{UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		ManagedFields: patchable.FewManagers(secret.ManagedFields)}
	patch, err := json.Marshal(secretPatch{meta, map[string][]byte{keyOfSecret: next.key}})
	if err != nil {
		return nil, fmt.Errorf("making the plan's key: %w", err)
	}
	target := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Key}}
	if err := s.Client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(plan.FieldManager)); err != nil {
		said := answer.Unquoted(err)
		if apierrors.IsInvalid(said) || apierrors.IsForbidden(said) || answer.TooLarge(err) { // somebody filled it up, or it is refused: no write of a key fits any more
			return nil, noKeyError{fmt.Errorf("the plan's key, Secret %q in %q, takes no key: run kubectl -n %s delete secret %s, then kubectl -n %s create secret generic %s: %w",
				s.Key, s.Namespace, s.Namespace, s.Key, s.Namespace, s.Key, answer.Unquoted(err))}
		}
		return nil, fmt.Errorf("writing the plan's key into Secret %q in %q: %w", s.Key, s.Namespace, answer.Unquoted(err))
	}
	return next, nil
}

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
	known := s.seal.Load()
	if known == nil || !known.holds(s.planName(), []byte(cm.Data[plan.KeyPlan]), cm.Annotations[plan.AnnotationMAC]) {
		d.Plan, d.PlanErr = nil, ErrForeign
	}
	return d
}

// vouch is the MAC of a plan's text; empty for a Store that has no key.
func (s *Store) vouch(text string) string {
	if known := s.seal.Load(); known != nil {
		return known.mac(s.planName(), []byte(text))
	}
	return ""
}

// vouchAll adds the MACs of a history's keys.
func (s *Store) vouchAll(data map[string][]byte) error {
	known := s.seal.Load()
	if known == nil {
		return nil
	}
	macs := make(map[string]string, len(data))
	for key, content := range data {
		macs[key] = known.mac(s.partName(key), content)
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
	macs, known := map[string]string{}, s.seal.Load()
	if text := data[keyMACs]; len(text) <= maxMACs {
		_ = json.Unmarshal(text, &macs) // what cannot be read vouches for nothing
	}
	var foreign []string
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if known == nil || !known.holds(s.partName(key), kept[key], macs[key]) {
			delete(kept, key)
			foreign = append(foreign, key+" is not this installation's own: its MAC is missing or wrong")
		}
	}
	return kept, foreign
}
