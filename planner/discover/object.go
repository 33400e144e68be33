package discover

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// What ballast reads from a cluster Secret besides data.shard.
const (
	AnnotationSkipReconcile = "argocd.argoproj.io/skip-reconcile"

	keyName   = "name"
	keyServer = "server"
	keyShard  = "shard"
	keyConfig = "config"
)

// FromSecret keeps of a Secret what is planned with. A Secret without data, or without any at all, is one like any other.
func FromSecret(s *corev1.Secret) Secret {
	pin, pinned := s.Annotations[plan.AnnotationPin]
	skip, _ := strconv.ParseBool(s.Annotations[AnnotationSkipReconcile])
	return Secret{
		UID: string(s.UID), Name: s.Name, Namespace: s.Namespace,
		Cluster: string(s.Data[keyName]), Server: string(s.Data[keyServer]), Shard: ParseShard(s.Data[keyShard]),
		Pin:           parsePin(pin, pinned),
		SkipReconcile: skip,
		Unmanaged:     s.Annotations[plan.AnnotationUnmanaged] == "true",
		Immutable:     s.Immutable != nil && *s.Immutable,
		HasData:       len(s.Data) > 0,
		Unread:        !configReads(s.Data[keyConfig]),
		Deleting:      s.DeletionTimestamp != nil,
		Created:       s.CreationTimestamp.UTC(),
	}
}
