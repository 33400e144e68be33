package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/plan"
)

// Dimensions are the loads of a cluster, by name: Work is the one that is levelled, which is there named or not, and Memory bounds it.
type Dimensions struct {
	Work   *Work   `json:"work,omitempty"`
	Memory *Memory `json:"memory,omitempty"`
}

// Work is the load that Index makes of the metrics. It has no setting of its own: pNorm says what it is made of, partition.capacity
// what a replica may carry.
type Work struct{}

func (*Work) mend(field string) string {
	switch field {
	case "capacity":
		return "is not a field: the capacity of work is partition.capacity: set that"
	case "weights", "p":
		return "is not a field: the weights and the norm of work are index.pNorm's: set them there"
	}
	return "is not a field: work has no setting: index.pNorm says what it is made of, and partition.capacity what a replica may carry; write work: {}"
}

// Memory bounds what the clusters of a replica take of its memory together. A cluster takes the sum of its metrics, each times its
// weight. Nil Weights are learned of what the pods have in use, Base with them. A nil Capacity is LimitShare of the pods' memory
// limit. Base is what a replica takes without any cluster.
type Memory struct {
	Weights    map[string]Bytes `json:"weights" null:"default"`
	Base       Bytes            `json:"base"`
	Capacity   *Bytes           `json:"capacity" null:"default"`
	LimitShare Decimal          `json:"limitShare"`
}

func (m *Memory) setDefaults() { m.Base, m.LimitShare = "0", "0.8" }

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

func (s *Bytes) fromNode(n *yamlnode.Node) error { return s.UnmarshalText([]byte(n.Value)) }

// mostMemory is more than any node has.
const mostMemory = plan.Bytes(1) << 50

func (c PlannerConfig) validateDimensions(p *field.Path) field.ErrorList {
	d := c.Index.Dimensions
	if d == nil {
		return nil
	}
	if d.Memory == nil && d.Work != nil {
		return nil // as without any
	}
	if d.Memory == nil {
		return field.ErrorList{field.Required(p, "name memory, which is the one dimension that there is beside work, or leave dimensions out")}
	}
	at := p.Child("memory")
	errs := d.Memory.validate(at)
	if c.Partition.LPT != nil {
		errs = append(errs, field.Invalid(at, field.OmitValueType{},
			"is not kept to by lpt, which goes by one load: set partition.sticky, or leave the memory out"))
	}
	return append(errs, c.validateMemoryWeights(at.Child("weights"))...)
}

func (m Memory) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Weights == nil && m.Base.Float() != 0 {
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base), "is learned where the weights are: leave it out, or write weights, too, like {objects: 2Ki}"))
	}
	sum := 0.0
	for _, id := range slices.Sorted(maps.Keys(m.Weights)) {
		w := m.Weights[id]
		if w.Float() > float64(mostMemory) {
			errs = append(errs, field.Invalid(p.Child("weights").Key(id), string(w), "is more than 1024Ti"))
		}
		sum += w.Float()
	}
	if m.Weights != nil && sum == 0 {
		errs = append(errs, field.Invalid(p.Child("weights"), field.OmitValueType{}, "are all 0, so that no cluster takes any memory: give one metric a weight above 0"))
	}
	if share := m.LimitShare.Float(); share < 0.01 || share > 1 {
		errs = append(errs, field.Invalid(p.Child("limitShare"), string(m.LimitShare), "is not a share of the pods' memory limit, 0.01 to 1"))
	}
	if m.Base.Bytes() > mostMemory {
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base), "is more than 1024Ti"))
	}
	if m.Capacity == nil {
		return errs
	}
	switch capacity := m.Capacity.Bytes(); {
	case capacity < 1 || capacity > mostMemory:
		errs = append(errs, field.Invalid(p.Child("capacity"), string(*m.Capacity), "is not between 1 and 1024Ti: null takes limitShare of the pods' memory limit"))
	case capacity <= m.Base.Bytes():
		errs = append(errs, field.Invalid(p.Child("base"), string(m.Base), fmt.Sprintf("leaves clusters nothing of the capacity of %s", *m.Capacity)))
	}
	return errs
}

// validateMemoryWeights wants metrics' ids, where those are known here; of the default set the poll phase knows them.
func (c PlannerConfig) validateMemoryWeights(p *field.Path) field.ErrorList {
	if c.Poll.Prometheus == nil || c.Poll.Prometheus.OfClusters() == nil {
		return nil
	}
	var ids []string
	for _, m := range c.Poll.Prometheus.OfClusters() {
		ids = append(ids, m.ID)
	}
	return UnknownMetrics(c.Index.Dimensions.Memory.Weights, ids, p)
}

// UnknownMetrics refuses weights of what is no metric.
func UnknownMetrics(weights map[string]Bytes, ids []string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if !slices.Contains(ids, id) {
			errs = append(errs, field.Invalid(p.Key(id), field.OmitValueType{}, "is no metric's id: "+hint(id, slices.Sorted(slices.Values(ids)))))
		}
	}
	return errs
}
