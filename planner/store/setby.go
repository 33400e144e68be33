package store

import (
	"encoding/json"
	"time"
)

// SetBy tells which field manager wrote an annotation of the plan ConfigMap last, and when; the manager is empty where
// nothing tells. A field manager is what the client calls itself: the user stands in the API server's audit log alone.
func (s Snapshot) SetBy(annotation string) (manager string, at time.Time) {
	if s.object == nil {
		return "", at
	}
	for _, entry := range s.object.ManagedFields {
		var fields struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		_, owns := fields.Metadata.Annotations["f:"+annotation]
		if then := entry.Time; owns && then != nil && !then.Time.Before(at) {
			manager, at = entry.Manager, then.UTC()
		}
	}
	return manager, at
}
