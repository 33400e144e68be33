// Package objects reads of the objects that are written what a decision needs of them, and nothing of what a Secret
// holds beside.
package objects

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/rawjson"
)

// Secret is what a decision needs of a cluster Secret; its other keys are never decoded.
type Secret struct {
	Name      string
	LeftOut   bool              // the planner's selector does not select it
	Cluster   bool              // it carries Argo CD's label for cluster Secrets
	Notes     map[string]string // the annotations of ballast's group
	Unmanaged bool
	Pinned    bool
	Pin       string // the pin annotation as it stands
	Immutable bool
	HasData   bool
	HasShard  bool
	Shard     string   // data.shard, or "invalid" for what cannot be a shard
	Server    string   // data.server
	Groups    []string // those of the plan's that its labels put it in
}

// MaxName is the length of the longest name of an object.
const MaxName = 253

// maxShardBase64 is the length of a shard of at most 7 characters (-999999) in base64.
const maxShardBase64 = 12

// maxServerBase64 bounds the server URL that is read; a longer one is no URL, and assigns nothing.
const maxServerBase64 = 4096

// DecodeSecret reads a Secret of an admission request; an absent object is the zero Secret.
func DecodeSecret(object rawjson.Node) (Secret, error) {
	var s Secret
	err := object.ObjectOrAbsent("object")
	if err != nil {
		return s, err
	}
	var metadata, data rawjson.Node
	for key, value := range object.Members {
		switch {
		case key.Is("metadata"):
			metadata = value
		case key.Is("immutable"):
			s.Immutable = value.True()
		case key.Is("data"):
			data = value
		}
	}
	if err := cmp.Or(s.readMetadata(metadata), s.readData(data)); err != nil {
		return Secret{}, err
	}
	return s, nil
}

func (s *Secret) readMetadata(metadata rawjson.Node) error {
	err := metadata.ObjectOrAbsent("metadata")
	if err != nil {
		return err
	}
	var name, labels, annotations rawjson.Node
	for key, value := range metadata.Members {
		switch {
		case key.Is("name"):
			name = value
		case key.Is("labels"):
			labels = value
		case key.Is("annotations"):
			annotations = value
		}
	}
	s.Name = name.Text(MaxName)
	s.Cluster = labels.Field(plan.SecretTypeLabel).Is(plan.SecretTypeCluster)
	s.Notes = Notes(annotations)
	s.Unmanaged = s.Notes[plan.AnnotationUnmanaged] == "true"
	s.Pin, s.Pinned = s.Notes[plan.AnnotationPin]
	return nil
}

func (s *Secret) readData(data rawjson.Node) error {
	err := data.ObjectOrAbsent("data")
	if err != nil {
		return err
	}
	s.HasData = !data.Absent()
	var shard, server rawjson.Node
	for key, value := range data.Members {
		switch {
		case key.Is(plan.ShardKey):
			shard = value
		case key.Is("server"):
			server = value
		}
	}
	if !shard.Absent() {
		s.HasShard, s.Shard = true, printable.Invalid
		if len(shard) <= maxShardBase64+2 {
			s.Shard = printable.Count(decodeBase64(shard))
		}
	}
	if server = withoutSlashes(server); len(server) <= maxServerBase64 {
		s.Server = decodeBase64(server)
	}
	return nil
}

// withoutSlashes is a server that is too long to be read without the slashes behind it, but for two: Argo CD leaves
// them out, so that it may be another's. In base64 three slashes are Ly8v; two are Ly8= at the end, and one is Lw==.
func withoutSlashes(server rawjson.Node) rawjson.Node {
	text := string(server)
	if len(text) <= maxServerBase64 || !strings.HasSuffix(text, `"`) {
		return server
	}
	text = strings.TrimSuffix(text, `"`)
	for _, last := range []string{"Ly8=", "Lw=="} {
		text = strings.TrimSuffix(text, last)
	}
	for strings.HasSuffix(text, "Ly8v") {
		text = text[:len(text)-len("Ly8v")]
	}
	return rawjson.Node(text + `"`)
}

// decodeBase64 is a value of a Secret's data; empty when it is none.
func decodeBase64(value rawjson.Node) string {
	if value.Kind() != '"' || len(value) < 2 {
		return ""
	}
	encoded := value[1 : len(value)-1]
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	n, err := base64.StdEncoding.Decode(decoded, encoded)
	if err != nil {
		return ""
	}
	return string(decoded[:n])
}

// Replica is data.shard as Argo CD reads it; -1 where it reads none.
func (s *Secret) Replica() int {
	n, err := strconv.Atoi(s.Shard)
	if !s.HasShard || err != nil || n < 0 {
		return -1
	}
	return n
}

// Told are the annotations that a webhook was asked about: none while the Secret was no cluster's.
func (s *Secret) Told() map[string]string {
	if !s.Cluster {
		return nil
	}
	return s.Notes
}
