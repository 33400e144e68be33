package certs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/plan"
)

// RotatorOptions make a Rotator.
type RotatorOptions struct {
	Client        client.WithWatch
	Settings      Settings
	Rules         Rules
	Configuration string // name of the MutatingWebhookConfiguration
	Clock         clock.PassiveClock
	Log           logr.Logger
}

// Rotator makes the certificates and puts them where they belong: two Secrets, and the caBundle of the webhooks.
// Several at once do not fight: each write names the version that it was decided on, and a lost race is decided anew.
type Rotator struct{ o RotatorOptions }

// NewRotator makes one; Once and Run do the work.
func NewRotator(o RotatorOptions) *Rotator { return &Rotator{o} }

// maxPasses bounds the reads and writes of one Once. From nothing to the end it takes three, one more a lost race.
const maxPasses = 10

// seen is a State with the objects that it was read from.
type seen struct {
	State
	ca, leaf      *corev1.Secret // nil = not there
	configuration *admissionv1.MutatingWebhookConfiguration
}

// Once does all that is due now. It gives the time at which more is due; zero, when nothing waits but the next renewal.
func (r *Rotator) Once(ctx context.Context) (time.Time, error) {
	for range maxPasses {
		s, err := r.read(ctx)
		if err != nil {
			return time.Time{}, err
		}
		actions := Next(r.o.Clock.Now(), s.State, r.o.Rules)
		if len(actions) == 0 {
			return time.Time{}, nil
		}
		if actions[0].Kind == Wait {
			r.o.Log.V(1).Info("waiting", "reason", actions[0].Why, "until", actions[0].Until)
			return actions[0].Until, nil
		}
		for _, a := range actions {
			if err := r.do(ctx, a, s); apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
				r.o.Log.V(1).Info("lost a race; deciding anew", "action", a.Kind)
				break
			} else if err != nil {
				return time.Time{}, err
			}
		}
	}
	return time.Time{}, errors.New("rotating certificates: somebody else changes them all the time; see who writes the Secrets and the caBundle (metadata.managedFields)")
}

func (r *Rotator) read(ctx context.Context) (seen, error) {
	var s seen
	var err error
	if s.ca, err = r.secret(ctx, CASecret); err != nil {
		return s, err
	}
	if s.leaf, err = r.secret(ctx, LeafTLS); err != nil {
		return s, err
	}
	if s.ca != nil {
		s.CA = Pair{s.ca.Data[corev1.TLSCertKey], s.ca.Data[corev1.TLSPrivateKeyKey]}
	}
	if s.leaf != nil {
		s.Leaf = Pair{s.leaf.Data[corev1.TLSCertKey], s.leaf.Data[corev1.TLSPrivateKeyKey]}
		s.LeafCA = s.leaf.Data[corev1.ServiceAccountRootCAKey]
	}
	configuration := &admissionv1.MutatingWebhookConfiguration{}
	err = r.o.Client.Get(ctx, client.ObjectKey{Name: r.o.Configuration}, configuration)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("getting MutatingWebhookConfiguration %q: %w", r.o.Configuration, err)
	}
	s.configuration = configuration
	for _, w := range configuration.Webhooks {
		s.Bundles = append(s.Bundles, w.ClientConfig.CABundle)
	}
	s.BundledAt, _ = time.Parse(time.RFC3339, configuration.Annotations[BundledAtKey]) // unreadable = unknown
	return s, nil
}

func (r *Rotator) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.o.Client.Get(ctx, client.ObjectKey{Namespace: r.o.Settings.Namespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting Secret %q: %w", name, err)
	}
	return s, nil
}

// do carries one action out.
func (r *Rotator) do(ctx context.Context, a Action, s seen) error {
	now := r.o.Clock.Now()
	switch a.Kind {
	case IssueCA:
		pair, err := NewCA(now)
		if err != nil {
			return err
		}
		if err := r.write(ctx, CASecret, s.ca, pair, pair.Cert); err != nil {
			return err
		}
		r.o.Log.Info("issued a CA", "secret", CASecret, "reason", a.Why, "notAfter", now.Add(CADuration).UTC())
	case IssueLeaf:
		pair, err := NewLeaf(s.CA, r.o.Rules.DNSNames, now)
		if err != nil {
			return err
		}
		if err := r.write(ctx, LeafTLS, s.leaf, pair, s.CA.Cert); err != nil {
			return err
		}
		r.o.Log.Info("issued a leaf", "secret", LeafTLS, "reason", a.Why, "notAfter", now.Add(LeafDuration).UTC())
	case WriteBundle:
		if err := r.writeBundle(ctx, a.Bundle, s.configuration, now); err != nil {
			return err
		}
		r.o.Log.Info("wrote the caBundle", "configuration", r.o.Configuration, "reason", a.Why, "webhooks",
			len(s.Bundles))
	case Wait:
	}
	return nil
}

// mostSecret bounds what is left beside a pair in a Secret: an API server takes 1 MiB of data, and etcd 1.5 MiB in all.
const mostSecret = 512 << 10

// write creates the Secret, or updates it as it was read.
func (r *Rotator) write(ctx context.Context, name string, before *corev1.Secret, pair Pair, ca []byte) error {
	data := map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key,
		corev1.ServiceAccountRootCAKey: ca}
	if before == nil {
		secret := &corev1.Secret{ObjectMeta: r.o.Settings.meta(name), Type: corev1.SecretTypeTLS, Data: data}
		if err := r.o.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %q: %w", name, answer.Unquoted(err))
		}
		return nil
	}
	if before.Immutable != nil && *before.Immutable {
		return fmt.Errorf("updating Secret %q: it is immutable: delete it (kubectl -n %s delete secret %s), and it is made anew",
			name, before.Namespace, name)
	}
	after := r.cleared(name, before)
	maps.Copy(after.Data, data)
	if err := r.o.Client.Update(ctx, after); err != nil {
		return fmt.Errorf("updating Secret %q: %w", name, answer.Unquoted(err))
	}
	return nil
}

// cleared is the Secret with what others put there, but for what has a write of it refused for good: what the policy
// keeps from ballast's Secrets (certs-policy.yaml), and more than there is room for.
func (r *Rotator) cleared(name string, before *corev1.Secret) *corev1.Secret {
	after := before.DeepCopy()
	if after.Size() > mostSecret {
		meta := r.o.Settings.meta(name)
		meta.UID, meta.ResourceVersion = before.UID, before.ResourceVersion
		after = &corev1.Secret{ObjectMeta: meta, Type: before.Type}
	}
	// Forgets all of them; with none the API server keeps those that were, and merges thousands for half a minute.
	after.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	if after.Data == nil {
		after.Data = map[string][]byte{}
	}
	delete(after.Labels, plan.SecretTypeLabel)
	delete(after.Annotations, corev1.ServiceAccountNameKey)
	delete(after.Annotations, corev1.ServiceAccountUIDKey)
	return after
}

// writeBundle patches the caBundle of each webhook, by its name, if the configuration still is the version that was
// read.
func (r *Rotator) writeBundle(ctx context.Context, bundle []byte, read *admissionv1.MutatingWebhookConfiguration, now time.Time) error {
	type webhook struct {
		Name         string            `json:"name"` // the list's merge key
		ClientConfig map[string][]byte `json:"clientConfig"`
	}
	var webhooks []webhook
	for _, w := range read.Webhooks {
		webhooks = append(webhooks, webhook{w.Name, map[string][]byte{"caBundle": bundle}})
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": read.ResourceVersion,
			"annotations":     map[string]string{BundledAtKey: now.UTC().Format(time.RFC3339Nano)},
		},
		"webhooks": webhooks,
	})
	if err != nil {
		return fmt.Errorf("encoding the caBundle's patch: %w", err)
	}
	object := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: read.Name}}
	if err := r.o.Client.Patch(ctx, object, client.RawPatch("application/strategic-merge-patch+json", patch)); err != nil {
		return fmt.Errorf("patching MutatingWebhookConfiguration %q: %w", read.Name, err)
	}
	return nil
}
