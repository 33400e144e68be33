// Package store keeps the plan and its history in two ConfigMaps. It is the planner's only writer of state: optimistic
// about concurrency (a lost race is read again, never overwritten), and silent about what does not change. The plan's
// ConfigMap is shared with people, so that a write names ballast's own keys and nothing else.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/store/seal"
)

var (
	// ErrConflict says that somebody else wrote the ConfigMap since it was read: read it again and decide anew.
	ErrConflict = errors.New("the ConfigMap was written by somebody else meanwhile")
	// ErrNotKept says that the plan was written and another one stands: something changed it on its way.
	ErrNotKept = errors.New("the plan was changed on its way into the ConfigMap")
	// ErrFull says that other keys or annotations leave the ConfigMap no room for what ballast writes.
	ErrFull = errors.New("the ConfigMap has no room left")
	// ErrImmutable says that somebody made the ConfigMap immutable: nothing but deleting it lets it be written again.
	ErrImmutable = errors.New("the ConfigMap is immutable: delete it, and ballast makes it anew")
)

// Options say where the ConfigMaps are. Reader reads past any cache. Key is the Secret by whose key the planner knows
// its own plans; without one everything is shown as it stands, which is for people's commands.
type Options struct {
	Client    client.Client
	Reader    client.Reader
	Namespace string
	Plan      string
	History   string
	Key       string
}

// Store reads and writes the plan and its history. One with a Key believes neither before Unseal has read that.
type Store struct {
	Options
	*seal.Keeper
}

// New makes a Store.
func New(o Options) *Store {
	return &Store{Options: o, Keeper: seal.New(o.Client, o.Reader, o.Namespace, o.Key)}
}

// Snapshot is the plan ConfigMap at one moment. The zero value is one that does not exist.
type Snapshot struct {
	Document configmap.Document
	Meta     configmap.Meta // of the plan, as its annotations say
	object   *corev1.ConfigMap
	words    *words // to put back where there is no object
}

// Exists reports whether there is a plan ConfigMap, with or without a plan.
func (s Snapshot) Exists() bool { return s.object != nil }

// Blocked is what the annotation says that waits.
func (s Snapshot) Blocked() string {
	if s.object == nil {
		return ""
	}
	return s.object.Annotations[plan.AnnotationBlocked]
}

// Immutable reports whether somebody made the plan ConfigMap immutable.
func (s Snapshot) Immutable() bool { return immutable(s.object) }

func immutable(cm *corev1.ConfigMap) bool { return cm != nil && cm.Immutable != nil && *cm.Immutable }

// Read reads the plan ConfigMap.
func (s *Store) Read(ctx context.Context) (Snapshot, error) {
	cm, err := s.get(ctx, s.Plan)
	if err != nil || cm == nil {
		return Snapshot{}, err
	}
	return s.snapshotOf(cm), nil
}

func (s *Store) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q in %q: %w", name, s.Namespace, err)
	}
	return &cm, nil
}

func (s *Store) snapshotOf(cm *corev1.ConfigMap) Snapshot {
	at, _ := time.Parse(time.RFC3339, cm.Annotations[plan.AnnotationDecidedAt]) // for display only
	return Snapshot{
		Document: s.Judge(cm),
		Meta: configmap.Meta{DecidedAt: at, DecidedBy: cm.Annotations[plan.AnnotationDecidedBy],
			Reason: cm.Annotations[plan.AnnotationReason]},
		object: cm,
	}
}

// Claimed is what the ConfigMap says of itself, whoever wrote it.
func (s Snapshot) Claimed() configmap.Document {
	if s.object == nil {
		return configmap.Document{}
	}
	return configmap.Parse(s.object.Data, s.object.Annotations)
}

// WritePlan writes the next plan over the snapshot it was decided on, at a revision above every one that the snapshot
// shows and above floor, the highest that the caller knows: a plan restored from a backup must not turn the count back.
// Where neither knows any, it is above the one that the leader's status says.
// Only data.plan and ballast's own annotations are written; people's pins, annotations and labels stay to the letter.
// Where the snapshot's plan enforces the same, matches its digest and is not below floor, nothing is, and the snapshot
// is answered as it was.
func (s *Store) WritePlan(ctx context.Context, base Snapshot, next plan.Plan, floor int64, m configmap.Meta) (Snapshot, error) {
	if p := base.Document.Plan; p != nil && p.Revision >= floor && next.SameEnforced(*p) {
		return base, nil
	}
	newest := base.newest(floor)
	if base.Document.Plan == nil && floor <= 0 {
		newest = max(newest, s.saidRevision(ctx))
	}
	next.Revision = min(newest, plan.MaxRevision-1) + 1 // at the end of all revisions they stand still, and plans do not
	text, err := codec.Encode(next)
	if err != nil {
		return base, err
	}
	c := change{
		Metadata: patchable.Meta{Annotations: s.annotations(next, text, m)},
		Data:     map[string]*string{plan.KeyPlan: &text},
		// A key stands in data or in binaryData: what somebody put there would keep the plan out for good.
		BinaryData: map[string]*[]byte{plan.KeyPlan: nil},
	}
	if base.words != nil {
		base.words.into(&c)
	}
	cm, err := s.put(ctx, s.Plan, base.object, c)
	if err != nil {
		return base, err
	}
	if cm.Data[plan.KeyPlan] != text {
		return s.snapshotOf(cm), fmt.Errorf("writing plan revision %d: %w", next.Revision, ErrNotKept)
	}
	return s.snapshotOf(cm), nil
}

// Annotate writes annotations beside the plan, over the snapshot; nil takes one away.
func (s *Store) Annotate(ctx context.Context, base Snapshot, set map[string]*string) (Snapshot, error) {
	cm, err := s.put(ctx, s.Plan, base.object, change{Metadata: patchable.Meta{Annotations: set}})
	if err != nil {
		return base, err
	}
	return s.snapshotOf(cm), nil
}

// Patchable answers the snapshot as everybody can patch it: where somebody brought a list of managers that the API
// server cannot read back, or what is no text, nobody but the planner knows how to, and break-glass and freeze would
// fail.
func (s *Store) Patchable(ctx context.Context, base Snapshot) (Snapshot, error) {
	if base.object == nil {
		return base, nil
	}
	clean := change{}.withoutBytes(base.object)
	texts := len(clean.Data)+len(clean.Metadata.Annotations) == 0
	if texts && !patchable.Unpatchable(base.object.ManagedFields) {
		return base, nil
	}
	return s.Annotate(ctx, base, nil)
}

// maxJump is how far a number that nobody vouches for may carry the revisions on: past those of a history that was
// lost, and far from their end however often somebody forges one.
const maxJump = 1_000_000

// newest is the highest revision that the snapshot shows, or floor. Where the plan was deleted or cannot be believed,
// its text and its annotation may still know.
func (s Snapshot) newest(floor int64) int64 {
	newest := min(max(floor, 0), plan.MaxRevision)
	if s.object == nil {
		return newest
	}
	if p := s.Document.Plan; p != nil {
		return max(newest, p.Revision)
	}
	most := newest + maxJump
	if p, err := codec.Decode(s.object.Data[plan.KeyPlan]); err == nil && p.Revision <= most {
		newest = max(newest, p.Revision)
	}
	annotated, err := strconv.ParseInt(s.object.Annotations[plan.AnnotationRevision], 10, 64)
	if err == nil && annotated <= most {
		newest = max(newest, annotated)
	}
	return newest
}

// saidRevision is the one that the leader's status says, 0 where that is none that could be: nobody vouches for it.
func (s *Store) saidRevision(ctx context.Context) int64 {
	says, err := s.ReadStatus(ctx)
	if err != nil || says == nil || says.Revision > maxJump {
		return 0
	}
	return max(says.Revision, 0)
}

// annotations are ballast's; nil takes one away.
func (s *Store) annotations(p plan.Plan, text string, m configmap.Meta) map[string]*string {
	set := map[string]*string{plan.AnnotationStage: nil, plan.AnnotationMAC: nil}
	for name, value := range map[string]string{
		plan.AnnotationRevision:  strconv.FormatInt(p.Revision, 10),
		plan.AnnotationDecidedAt: m.DecidedAt.UTC().Format(time.RFC3339),
		plan.AnnotationDecidedBy: m.DecidedBy,
		plan.AnnotationReason:    m.Reason,
		plan.AnnotationDigest:    plan.Digest(text),
	} {
		set[name] = &value
	}
	if p.Rollout != nil {
		stage := string(p.Rollout.Stage)
		set[plan.AnnotationStage] = &stage
	}
	if mac := s.vouch(text); mac != "" {
		set[plan.AnnotationMAC] = &mac
	}
	return set
}

// change is a strategic merge patch of a ConfigMap: what it does not name stays, and nil takes a key away. A merge
// patch, or a JSON patch, would go by JSON, which makes three bytes of each that is no text: who brought some 100 KB of
// those would keep every write away.
type change struct {
	Metadata   patchable.Meta     `json:"metadata"`
	Data       map[string]*string `json:"data,omitempty"`
	BinaryData map[string]*[]byte `json:"binaryData,omitempty"`
}

// labels mark what ballast made, so that uninstall and people find it.
func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner",
		"app.kubernetes.io/part-of": "ballast"}
}

// put patches the ConfigMap as it was read, or creates it where it was not there, and answers it as it is stored. A
// race is lost and never won by force, but for one over what the planner does not go by.
func (s *Store) put(ctx context.Context, name string, base *corev1.ConfigMap, c change) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	var err error
	if base == nil {
		cm.Labels, cm.Annotations, cm.Data, cm.BinaryData = labels(), present(c.Metadata.Annotations), present(c.Data),
			present(c.BinaryData)
		err = s.Client.Create(ctx, cm, client.FieldOwner(plan.FieldManager))
	} else {
		cm, err = s.over(ctx, base, c)
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // by what somebody brought meanwhile, or by this write
			if written := s.insist(ctx, base, c); written != nil {
				return written, nil
			}
		}
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), base != nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, ErrConflict)
	case immutable(base) && apierrors.IsInvalid(err): // asked all the same: it may be gone meanwhile
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, ErrImmutable)
	case answer.TooLarge(err) && base != nil:
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w: %s; the API server says: %w", name, s.Namespace,
			ErrFull, roomiest(base), err)
	case apierrors.IsInvalid(err): // with the whole ConfigMap where no patch of it can be made
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, answer.Unquoted(err))
	case err != nil:
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, err)
	}
	return cm, nil
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
