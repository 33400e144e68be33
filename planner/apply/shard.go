package apply

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/diff"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

func (a *Applier) shardWrite(namespace string, s diff.PatchShard) write {
	attempt, stay := 0, 0
	if s.Follows { // one server may have thousands
		stay = a.BudgetPerMinute / 2
	}
	return write{stay: stay, secret: s.Secret, value: strconv.Itoa(s.Shard), try: func(ctx context.Context) (string, error) {
		attempt++
		return a.writeShard(ctx, types.NamespacedName{Namespace: namespace, Name: s.Secret}, s.Shard,
			attempt < attempts)
	}}
}

// writeShard reads the Secret whole, since its shard is data, and keeps nothing of it; what the API server answers to
// the patch is metadata only. It is for what was read; where others write faster than that, for the Secret of that UID,
// whatever else is in it meanwhile: the API server applies it to each newer version by itself.
func (a *Applier) writeShard(ctx context.Context, key types.NamespacedName, shard int, asRead bool) (string, error) {
	var live corev1.Secret
	if err := a.Reader.Get(ctx, key, &live); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("writing the shard of Secret %q: it is gone: %w", key, errRefused)
	} else if err != nil {
		return "", fmt.Errorf("reading Secret %q: %w", key, err)
	}
	if why := mayWrite(live.ObjectMeta, live.Immutable != nil && *live.Immutable); why != "" {
		return "", fmt.Errorf("writing the shard of Secret %q: %s: %w", key, why, errRefused)
	}
	if string(live.Data[plan.ShardKey]) == strconv.Itoa(shard) {
		return "", errUnchanged
	}
	precondition := map[string]any{"uid": string(live.UID)}
	if asRead {
		precondition = map[string]any{"resourceVersion": live.ResourceVersion}
	}
	if few := patchable.FewManagers(live.ManagedFields); few != nil {
		precondition["managedFields"] = few
	}
	patch, err := shardPatch(precondition, shard)
	if err != nil {
		return "", fmt.Errorf("writing the shard of Secret %q: %w", key, err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	manager := shardManager(live.ManagedFields)
	err = a.Client.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(plan.FieldManager))
	if err != nil {
		return manager, fmt.Errorf("writing the shard of Secret %q: %w", key, answer.Unquoted(err))
	}
	return manager, nil
}

// shardPatch is the merge patch of data.shard alone, for a Secret of those metadata.
func shardPatch(precondition map[string]any, shard int) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": precondition,
		"data":     map[string]string{plan.ShardKey: base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(shard)))},
	})
}

// mayWrite says why a Secret that was read just now must not be written; an empty reason says that it may.
func mayWrite(s metav1.ObjectMeta, immutable bool) string {
	switch {
	case s.DeletionTimestamp != nil:
		return "it is being deleted"
	case s.Labels[plan.SecretTypeLabel] != plan.SecretTypeCluster:
		return "it is no cluster Secret of Argo CD any more"
	case s.Annotations[plan.AnnotationUnmanaged] == "true":
		return "it is annotated as unmanaged"
	case immutable:
		return "it is immutable"
	}
	return ""
}

// shardManager is the field manager, other than ballast's, that wrote data.shard last; empty where nobody is known. Who
// takes a field away owns nothing of it afterwards: where nobody else has the shard, it is the last writer of the data
// around it.
func shardManager(entries []metav1.ManagedFieldsEntry) string {
	type writer struct {
		name string
		at   time.Time
	}
	var ofShard, ofData writer
	for _, e := range entries {
		if e.Manager == plan.FieldManager || e.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil || fields.Data == nil {
			continue
		}
		w, last := writer{name: e.Manager}, &ofData
		if e.Time != nil {
			w.at = e.Time.Time
		}
		if fields.Data["f:"+plan.ShardKey] != nil {
			last = &ofShard
		}
		if last.name == "" || w.at.After(last.at) {
			*last = w
		}
	}
	return cmp.Or(ofShard.name, ofData.name)
}
