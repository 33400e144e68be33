package secrets

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/patchable"
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
		NoText:        !patchable.IsText(s.ObjectMeta) || !patchable.IsText(s.Type),
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

// A cache keeps a packed Secret: one whose finalizers are the mark and what is planned with, without a map of its own.
// Of a Secret with a name and a URL of 40 letters the maps of data and annotations would take three quarters of the
// memory, and who may create Secrets makes as many as etcd takes. No Secret of an API server has such a finalizer: the
// mark is no name.
const packedMark = "\x00ballast"

// What the finalizers of a packed Secret are.
const (
	packedAsMark = iota
	packedFlags
	packedShard
	packedPin
	packedCluster
	packedServer
	packedLabels
	packedLength
)

// The letters of what holds for a packed Secret.
const (
	packedSkips     = "s"
	packedUnmanaged = "u"
	packedImmutable = "i"
	packedHasData   = "d"
	packedUnread    = "r"
	packedTooLong   = "l"
	packedNoText    = "t"
)

func isPacked(s *corev1.Secret) bool {
	return len(s.Finalizers) == packedLength && s.Finalizers[packedAsMark] == packedMark
}

// packed is a Secret for a cache.
func packed(s discover.Secret, of *corev1.Secret, labels map[string]string) *corev1.Secret {
	text := s.Cluster + s.Server // one piece of memory
	var flags strings.Builder
	for _, f := range flagsOf(&s) {
		if *f.set {
			flags.WriteString(f.letter)
		}
	}
	return &corev1.Secret{TypeMeta: of.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: s.Name, Namespace: s.Namespace, UID: of.UID, ResourceVersion: of.ResourceVersion,
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp, Labels: labels,
		Finalizers: []string{packedMark, flags.String(), textOf(s.Shard), s.Pin, text[:len(s.Cluster)],
			text[len(s.Cluster):], string(s.Labels)},
	}}
}

// unpacked is what was packed. It shares its texts with the cache.
func unpacked(s *corev1.Secret) discover.Secret {
	parts := s.Finalizers
	kept := discover.Secret{
		UID: string(s.UID), Name: s.Name, Namespace: s.Namespace, Cluster: parts[packedCluster],
		Server: parts[packedServer],
		Labels: labeltext.Labels(parts[packedLabels]), Shard: shardOf(parts[packedShard]), Pin: parts[packedPin],
		Deleting: s.DeletionTimestamp != nil, Created: s.CreationTimestamp.UTC(),
	}
	for _, f := range flagsOf(&kept) {
		*f.set = strings.Contains(parts[packedFlags], f.letter)
	}
	return kept
}

// packedFlag is one thing that holds for a Secret or does not.
type packedFlag struct {
	letter string
	set    *bool
}

func flagsOf(s *discover.Secret) [7]packedFlag {
	return [...]packedFlag{
		{packedSkips, &s.SkipReconcile}, {packedUnmanaged, &s.Unmanaged}, {packedImmutable, &s.Immutable},
		{packedHasData, &s.HasData}, {packedUnread, &s.Unread}, {packedTooLong, &s.TooLong},
		{packedNoText, &s.NoText},
	}
}

// textOf is a data.shard that shardOf reads as this value.
func textOf(v discover.ShardValue) string {
	if v.State == discover.ShardValid {
		return strconv.Itoa(v.N)
	}
	return string(v.State)
}

func shardOf(text string) discover.ShardValue {
	if slices.Contains([]discover.ShardState{discover.ShardAbsent, discover.ShardInvalid, discover.ShardNegative, discover.ShardTooLarge}, discover.ShardState(text)) {
		return discover.ShardValue{State: discover.ShardState(text)}
	}
	return discover.ParseShard([]byte(text))
}
