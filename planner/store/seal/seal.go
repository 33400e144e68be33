// Package seal knows by which key a planner of this installation proves that it wrote a text, and keeps that key in its
// Secret.
package seal

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
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

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
)

// Key proves that a planner of this installation wrote a text. The Secret's UID is part of the proof, so that a Secret
// which was restored elsewhere, or anew, vouches for nothing that came along with it. Without a key nothing is proved.
type Key struct {
	uid   types.UID
	bytes []byte
	made  bool // by this process
}

// MAC is the proof for a text that stands under a name; empty without a key.
func (k *Key) MAC(name string, text []byte) string {
	if k == nil {
		return ""
	}
	h := hmac.New(sha256.New, k.bytes)
	for _, part := range []string{string(k.uid), name} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// Holds reports whether a text is vouched for.
func (k *Key) Holds(name string, text []byte, mac string) bool {
	return k != nil && hmac.Equal([]byte(k.MAC(name, text)), []byte(mac))
}

// Keeper knows the key, once Unseal or Peek has read it.
type Keeper struct {
	client            client.Client
	reader            client.Reader
	namespace, secret string
	known             atomic.Pointer[Key]
}

// New makes the Keeper of a Secret's key; without a name there is none to know.
func New(c client.Client, r client.Reader, namespace, secret string) *Keeper {
	return &Keeper{client: c, reader: r, namespace: namespace, secret: secret}
}

// KnownKey is the key that is gone by; nil before it was read.
func (k *Keeper) KnownKey() *Key { return k.known.Load() }

// secretPatch fills the key in, for the Secret as it was read and no other.
type secretPatch struct {
	Metadata patchable.Meta    `json:"metadata"`
	Data     map[string][]byte `json:"data"`
}

// Unseal reads the key by which this installation's own plans are known, and makes one where there is none yet. A key
// that went missing or became another while this process knew it is put back; a Secret that was made anew meanwhile
// gets a new one. Until it was called no plan and no history is believed.
func (k *Keeper) Unseal(ctx context.Context) error {
	if k.secret == "" {
		return nil
	}
	secret, err := k.keySecret(ctx)
	if err != nil {
		return err
	}
	next := &Key{uid: secret.UID, bytes: secret.Data[keyOfSecret], made: k.MadeKey()}
	if len(next.bytes) != keyBytes && ptr.Deref(secret.Immutable, false) {
		return noKeyError{fmt.Errorf("the plan's key, Secret %q in %q, holds no key and is immutable: "+
			"run kubectl -n %s delete secret %s, then kubectl -n %s create secret generic %s",
			k.secret, k.namespace, k.namespace, k.secret, k.namespace, k.secret)}
	}
	if len(next.bytes) != keyBytes || k.another(next) {
		if next, err = k.makeKey(ctx, secret); err != nil {
			return err
		}
	}
	k.known.Store(next)
	return nil
}

// Peek reads the key as it stands, and makes none: for a planner that does not lead, and only wants to know which plan
// is its installation's own. Without a key none is.
func (k *Keeper) Peek(ctx context.Context) error {
	secret, err := k.keySecret(ctx)
	if errors.Is(err, ErrNoKey) || err == nil && len(secret.Data[keyOfSecret]) != keyBytes {
		return nil
	}
	if err != nil {
		return err
	}
	k.known.Store(&Key{uid: secret.UID, bytes: secret.Data[keyOfSecret]})
	return nil
}

// Renew makes a new key, in place of one that vouches for nothing that stands: whoever may write the Secret while no
// planner leads must not choose the key either.
func (k *Keeper) Renew(ctx context.Context) error {
	if k.secret == "" {
		return nil
	}
	k.known.Store(nil)
	secret, err := k.keySecret(ctx)
	if err != nil {
		return err
	}
	next, err := k.makeKey(ctx, secret)
	if err == nil {
		k.known.Store(next)
	}
	return err
}

func (k *Keeper) keySecret(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := k.reader.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: k.secret}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, noKeyError{fmt.Errorf("the plan's key, Secret %q, is missing in %q: "+
			"apply ballast's manifests again, or run: kubectl -n %s create secret generic %s",
			k.secret, k.namespace, k.namespace, k.secret)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan's key, Secret %q in %q: %w", k.secret, k.namespace, err)
	}
	return &secret, nil
}

// another reports whether there is another key than the one that this process knows: whoever may write the Secret, or
// make it anew, must not choose the key.
func (k *Keeper) another(found *Key) bool {
	known := k.known.Load()
	return known != nil && !bytes.Equal(known.bytes, found.bytes)
}

// KeySecret is the UID of the Secret whose key is gone by; empty before the first.
func (k *Keeper) KeySecret() types.UID {
	if known := k.known.Load(); known != nil {
		return known.uid
	}
	return ""
}

// MadeKey reports whether this process made the key that is gone by.
func (k *Keeper) MadeKey() bool {
	known := k.known.Load()
	return known != nil && known.made
}

// makeKey writes a new key into the Secret, or puts back the one that it lost. A Secret that was made anew gets a new
// one, whatever it holds.
func (k *Keeper) makeKey(ctx context.Context, secret *corev1.Secret) (*Key, error) {
	next := &Key{uid: secret.UID, bytes: make([]byte, keyBytes), made: true}
	if known := k.known.Load(); known != nil && known.uid == secret.UID {
		next = known
	} else if _, err := rand.Read(next.bytes); err != nil {
		return nil, fmt.Errorf("making the plan's key: %w", err)
	}
	meta := patchable.Meta{UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		ManagedFields: patchable.FewManagers(secret.ManagedFields)}
	patch, err := json.Marshal(secretPatch{meta, map[string][]byte{keyOfSecret: next.bytes}})
	if err != nil {
		return nil, fmt.Errorf("making the plan's key: %w", err)
	}
	target := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.secret}}
	err = k.client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(plan.FieldManager))
	if err != nil {
		said := answer.Unquoted(err)
		if apierrors.IsInvalid(said) || apierrors.IsForbidden(said) || answer.TooLarge(err) { // it is filled up, or refused: no key fits any more
			return nil, noKeyError{fmt.Errorf("the plan's key, Secret %q in %q, takes no key: "+
				"run kubectl -n %s delete secret %s, then kubectl -n %s create secret generic %s: %w",
				k.secret, k.namespace, k.namespace, k.secret, k.namespace, k.secret, said)}
		}
		return nil, fmt.Errorf("writing the plan's key into Secret %q in %q: %w", k.secret, k.namespace, said)
	}
	return next, nil
}
