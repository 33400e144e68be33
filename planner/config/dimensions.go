package config

import (
	"fmt"
	"regexp"
	"strconv"

	"ballast/planner/plan"
)

// Dimensions are the loads of a cluster, by name: Work is the one that is levelled, which is there named or not, and
// Memory bounds it.
type Dimensions struct {
	Work   *Work   `json:"work,omitempty"`
	Memory *Memory `json:"memory,omitempty"`
}

// Work is the load that Index makes of the metrics. It has no setting of its own: pNorm says what it is made of,
// partition.capacity what a replica may carry.
type Work struct{}

// Mend says where a setting of work stands.
func (*Work) Mend(field string) string {
	switch field {
	case "capacity":
		return "is not a field: the capacity of work is partition.capacity: set that"
	case "weights", "p":
		return "is not a field: the weights and the norm of work are index.pNorm's: set them there"
	}
	return "is not a field: work has no setting: index.pNorm says what it is made of, and partition.capacity what a replica may carry; write work: {}"
}

// Memory bounds what the clusters of a replica take of its memory together. A cluster takes the sum of its metrics,
// each times its weight. Nil Weights are learned of what the pods have in use, Base with them. A nil Capacity is
// LimitShare of the pods' memory limit. Base is what a replica takes without any cluster.
type Memory struct {
	Weights    map[string]Bytes `json:"weights" null:"default"`
	Base       Bytes            `json:"base"`
	Capacity   *Bytes           `json:"capacity" null:"default"`
	LimitShare Decimal          `json:"limitShare"`
}

// SetDefaults sets no base, and four fifths of the limit.
func (m *Memory) SetDefaults() { m.Base, m.LimitShare = "0", "0.8" }

// Bytes is a number of bytes as it was written, with a fraction or a unit of Kubernetes' memory or without.
type Bytes string

// sizePattern bounds the digits so that each fits a plan.Bytes.
const sizePattern = `^(0|[1-9][0-9]{0,11})(\.[0-9]{1,9})?(|Ki|Mi|Gi|Ti)$`

// Float is the number of bytes; 0 for the empty Bytes.
func (s Bytes) Float() float64 {
	parts := regexp.MustCompile(sizePattern).FindStringSubmatch(string(s))
	if parts == nil {
		return 0
	}
	f, err := strconv.ParseFloat(parts[1]+parts[2], 64)
	if err != nil {
		return 0
	}
	unit := map[string]float64{"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}[parts[3]]
	return f * unit
}

// Bytes is that as whole bytes; beyond what there can be it is 0, which validation refuses.
func (s Bytes) Bytes() plan.Bytes {
	b, err := plan.NewBytes(s.Float())
	if err != nil {
		return 0
	}
	return b
}

// UnmarshalText reads a number of bytes.
func (s *Bytes) UnmarshalText(text []byte) error {
	if !regexp.MustCompile(sizePattern).Match(text) {
		return fmt.Errorf(`is not a number of bytes: write it like 4Gi, 512Mi, 1.5Ki or "300", with at most 12 digits before the point and 9 behind`)
	}
	*s = Bytes(text)
	return nil
}
