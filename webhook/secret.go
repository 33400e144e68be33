package webhook

import (
	"encoding/base64"
	"strconv"

	"ballast/planner/plan"
)

// Secret is what a decision needs of a cluster Secret; its other keys are never decoded.
type Secret struct {
	Name      string
	Cluster   bool              // it carries Argo CD's label for cluster Secrets
	Notes     map[string]string // the annotations of ballast's group
	Unmanaged bool
	Pinned    bool
	Pin       string // the pin annotation as it stands
	Immutable bool
	HasData   bool
	HasShard  bool
	Shard     string // data.shard, or "invalid" for what cannot be a shard
	Server    string // data.server
}

// maxShardBase64 is the length of a shard of at most 7 characters (-999999) in base64.
const maxShardBase64 = 12

// maxServerBase64 bounds the server URL that is read; a longer one is no URL, and assigns nothing.
const maxServerBase64 = 4096

// decodeSecret reads a Secret of an admission request; an absent object is the zero Secret.
func decodeSecret(object node) (Secret, error) {
	var s Secret
	err := object.object("object")
	if err != nil {
		return s, err
	}
	for key, value := range object.members {
		switch {
		case key.is("metadata"):
			err = s.readMetadata(value)
		case key.is("immutable"):
			s.Immutable = value.isTrue()
		case key.is("data"):
			err = s.readData(value)
		}
		if err != nil {
			return Secret{}, err
		}
	}
	return s, nil
}

func (s *Secret) readMetadata(metadata node) error {
	err := metadata.object("metadata")
	if err != nil {
		return err
	}
	for key, value := range metadata.members {
		switch {
		case key.is("name"):
			s.Name = value.text(maxName)
		case key.is("labels"):
			s.Cluster = value.field(plan.SecretTypeLabel).is(plan.SecretTypeCluster)
		case key.is("annotations"):
			s.Notes = readNotes(value)
			s.Unmanaged = s.Notes[plan.AnnotationUnmanaged] == "true"
			s.Pin, s.Pinned = s.Notes[plan.AnnotationPin]
		}
	}
	return nil
}

func (s *Secret) readData(data node) error {
	err := data.object("data")
	if err != nil {
		return err
	}
	s.HasData = !data.absent()
	for key, value := range data.members {
		switch {
		case key.is(plan.ShardKey) && !value.absent():
			s.HasShard, s.Shard = true, invalid
			if len(value) <= maxShardBase64+2 {
				s.Shard = printableCount(decodeBase64(value))
			}
		case key.is("server") && len(value) <= maxServerBase64:
			s.Server = decodeBase64(value)
		}
	}
	return nil
}

// decodeBase64 is a value of a Secret's data; empty when it is none.
func decodeBase64(value node) string {
	if value.kind() != '"' || len(value) < 2 {
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

// shard is data.shard as Argo CD reads it; -1 where it reads none.
func (s *Secret) shard() int {
	n, err := strconv.Atoi(s.Shard)
	if !s.HasShard || err != nil || n < 0 {
		return -1
	}
	return n
}

// requested is the shard for the audit annotation.
func (s *Secret) requested() []Field { return []Field{{plan.ShardKey, s.Shard}} }
