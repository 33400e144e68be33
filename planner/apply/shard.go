package apply

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/plan"
)

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
