package discover

import (
	"bytes"
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

// What no cluster's name or URL is longer than: a host's name has 253 letters at most. Who may create Secrets makes
// each as large as etcd takes it, and the planner keeps all of them.
const (
	longestCluster = 512
	LongestServer  = 512
)

// FromSecret keeps of a Secret what is planned with. A Secret without data, or without any at all, is one like any
// other. Of one that is too long, which is not planned, it keeps what is not.
func FromSecret(s *corev1.Secret) Secret {
	if isPacked(s) {
		return unpacked(s)
	}
	pin, pinned := s.Annotations[plan.AnnotationPin]
	skip, _ := strconv.ParseBool(s.Annotations[AnnotationSkipReconcile])
	name, server := s.Data[keyName], s.Data[keyServer]
	if len(server) > LongestServer { // Argo CD reads it without the slashes behind it, however many: it may be another's
		server = bytes.TrimRight(server, "/")
	}
	kept := Secret{
		UID: string(s.UID), Name: s.Name, Namespace: s.Namespace,
		Shard:         ParseShard(s.Data[keyShard]),
		Pin:           parsePin(pin, pinned),
		SkipReconcile: skip,
		Unmanaged:     s.Annotations[plan.AnnotationUnmanaged] == "true",
		Immutable:     s.Immutable != nil && *s.Immutable,
		HasData:       len(s.Data) > 0,
		Unread:        !configReads(s.Data[keyConfig]),
		Deleting:      s.DeletionTimestamp != nil,
		TooLong:       len(name) > longestCluster || len(server) > LongestServer,
		NoText:        !plan.IsText(s.ObjectMeta) || !plan.IsText(s.Type),
		Created:       s.CreationTimestamp.UTC(),
	}
	if len(name) <= longestCluster {
		kept.Cluster = string(name)
	}
	if len(server) <= LongestServer {
		kept.Server = string(server)
	}
	return kept
}
