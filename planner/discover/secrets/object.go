package secrets

import (
	"bytes"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// What ballast reads from a cluster Secret besides data.shard.
const (
	keyName   = "name"
	keyServer = "server"
	keyShard  = "shard"
	keyConfig = "config"
)

// FromSecret keeps of a Secret what is planned with. A Secret without data, or without any at all, is one like any
// other. Of one that is too long, which is not planned, it keeps what is not.
func FromSecret(s *corev1.Secret) discover.Secret {
	if isPacked(s) {
		return unpacked(s)
	}
	pin, pinned := s.Annotations[plan.AnnotationPin]
	skip, _ := strconv.ParseBool(s.Annotations[discover.AnnotationSkipReconcile])
	name, server := s.Data[keyName], s.Data[keyServer]
	if len(server) > discover.LongestServer { // Argo CD reads it without the slashes behind it, however many: it may be another's
		server = bytes.TrimRight(server, "/")
	}
	kept := discover.Secret{
		UID: string(s.UID), Name: s.Name, Namespace: s.Namespace,
		Shard:         discover.ParseShard(s.Data[keyShard]),
		Pin:           discover.ParsePin(pin, pinned),
		SkipReconcile: skip,
		Unmanaged:     s.Annotations[plan.AnnotationUnmanaged] == "true",
		Immutable:     s.Immutable != nil && *s.Immutable,
		HasData:       len(s.Data) > 0,
		Unread:        !configReads(s.Data[keyConfig]),
		Deleting:      s.DeletionTimestamp != nil,
		TooLong:       len(name) > discover.LongestCluster || len(server) > discover.LongestServer,
		NoText:        !plan.IsText(s.ObjectMeta) || !plan.IsText(s.Type),
		Created:       s.CreationTimestamp.UTC(),
	}
	if len(name) <= discover.LongestCluster {
		kept.Cluster = string(name)
	}
	if len(server) <= discover.LongestServer {
		kept.Server = string(server)
	}
	return kept
}
