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

// What no cluster's name or URL is longer than. Who may create Secrets makes each as large as etcd takes it, and the planner keeps
// all of them, several times over.
const (
	longestCluster = 1 << 10
	longestServer  = 2 << 10
)

func short(value []byte, most int) string { return string(value[:min(len(value), most)]) }

// FromSecret keeps of a Secret what is planned with. A Secret without data, or without any at all, is one like any other.
func FromSecret(s *corev1.Secret) Secret {
	pin, pinned := s.Annotations[plan.AnnotationPin]
	skip, _ := strconv.ParseBool(s.Annotations[AnnotationSkipReconcile])
	return Secret{
		UID: string(s.UID), Name: s.Name, Namespace: s.Namespace,
		Cluster: short(s.Data[keyName], longestCluster), Server: short(s.Data[keyServer], longestServer), Shard: ParseShard(s.Data[keyShard]),
		Pin:           parsePin(pin, pinned),
		SkipReconcile: skip,
		Unmanaged:     s.Annotations[plan.AnnotationUnmanaged] == "true",
		Immutable:     s.Immutable != nil && *s.Immutable,
		HasData:       len(s.Data) > 0,
		Unread:        !configReads(s.Data[keyConfig]),
		Deleting:      s.DeletionTimestamp != nil,
		TooLong:       len(s.Data[keyName]) > longestCluster || len(s.Data[keyServer]) > longestServer,
		Created:       s.CreationTimestamp.UTC(),
	}
}
