// Package codec writes and reads data.plan: the same bytes for the same plan, a row a line.
package codec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
)

// MaxBytes bounds data.plan. An object may have 1 MiB in etcd's eyes by default (1.5 MiB requests); the rest is left to
// people's pins, annotations and managedFields.
const MaxBytes = 900 << 10

// Encode writes data.plan: rows sorted by name, one a line, the same bytes for the same plan. A plan that would not fit
// is refused with the number of clusters that do.
func Encode(p plan.Plan) (string, error) {
	if err := p.Validate(); err != nil {
		return "", fmt.Errorf("encoding plan revision %d: %w", p.Revision, err)
	}
	text, rows := written(p)
	if len(text) > MaxBytes {
		fit := len(p.Clusters) * max(MaxBytes-(len(text)-rows), 0) / max(rows, 1)
		return "", fmt.Errorf("encoding plan revision %d: %w: %d clusters take %d KiB, above the %d KiB a plan may have: about %d clusters with names as long as these fit",
			p.Revision, ErrTooLarge, len(p.Clusters), len(text)>>10, MaxBytes>>10, fit)
	}
	return text, nil
}

// ErrTooLarge says that a plan does not fit into its ConfigMap.
var ErrTooLarge = errors.New("it is too large")

// written is data.plan, and how many of its bytes are rows.
func written(p plan.Plan) (text string, rows int) {
	var b strings.Builder
	b.Grow(256 + 96*len(p.Clusters))
	writeHead(&b, p)
	head := b.Len()
	writeRows(&b, p.Clusters)
	rows = b.Len() - head
	writeRollout(&b, p.Rollout)
	return b.String(), rows
}

// The most bytes of a row, of one without its load, which goes where there is no room, and of a name, of which
// Kubernetes's have 253 characters.
const (
	rowBytes  = 96
	bareRow   = 64
	nameBytes = 253
)

// Room is how many bytes a plan leaves of what it may have, and RowBytes what a row takes. A small plan is not written
// for it.
func Room(p plan.Plan) int {
	names := len(p.Clusters)
	if p.Sizes != nil {
		names += 1 + len(p.Sizes.Replicas) // a size takes less than a row's bound
	}
	if r := p.Rollout; r != nil {
		names += len(r.Moves) + len(r.Was)
	}
	if most := (names + 64) * (nameBytes + rowBytes); most < MaxBytes && len(p.Groups) == 0 {
		return MaxBytes - most
	}
	text, _ := written(p)
	return MaxBytes - len(text)
}

// RowBytes is what a cluster's row takes at most without its load.
func RowBytes(name string) int { return len(name) + bareRow }

func writeHead(b *strings.Builder, p plan.Plan) {
	fmt.Fprintf(b, "apiVersion: %s\nkind: %s\nrevision: %d\nmode: %s\n", plan.APIVersion, plan.Kind, p.Revision,
		Scalar(string(p.Mode)))
	fmt.Fprintf(b, "target: {kind: %s, namespace: %s, name: %s, container: %s}\n", Scalar(p.Target.Kind),
		Scalar(p.Target.Namespace), Scalar(p.Target.Name), Scalar(p.Target.Container))
	fmt.Fprintf(b, "plannerUser: %s\nreplicas: %d\ncontrollerReplicas: %d\nmaxReplicas: %d\n", Scalar(p.PlannerUser),
		p.Replicas, p.ControllerReplicas, p.MaxReplicas)
	if p.NextControllerReplicas > 0 {
		fmt.Fprintf(b, "nextControllerReplicas: %d\n", p.NextControllerReplicas)
	}
	if p.Selector != "" {
		fmt.Fprintf(b, "selector: %s\n", Scalar(p.Selector))
	}
	if p.FreeReplicas {
		b.WriteString("freeReplicas: true\n")
	}
	if p.Unmanaged {
		b.WriteString("unmanaged: true\n")
	}
	if p.Resources != nil {
		fmt.Fprintf(b, "resources: %s\n", sizeFlow(*p.Resources))
	}
	if len(p.References) > 0 {
		fmt.Fprintf(b, "references: %s\n", flow(p.References, scalarValue))
	}
	if len(p.Cordoned) > 0 {
		fmt.Fprintf(b, "cordoned: %s\n", numbers(p.Cordoned))
	}
	if p.MaxClusters > 0 {
		fmt.Fprintf(b, "maxClusters: %d\n", p.MaxClusters)
	}
	if len(p.Full) > 0 {
		fmt.Fprintf(b, "full: %s\n", numbers(p.Full))
	}
	writeSizes(b, p.Sizes)
	writeGroups(b, p.Groups)
}

// writeSizes writes a size a line, the default first.
func writeSizes(b *strings.Builder, s *plan.Sizes) {
	if s == nil {
		return
	}
	b.WriteString("sizes:\n")
	if !s.Default.Empty() {
		fmt.Fprintf(b, "  %s: %s\n", plan.DefaultSize, sizeFlow(s.Default))
	}
	for _, ordinal := range slices.Sorted(maps.Keys(s.Replicas)) {
		fmt.Fprintf(b, "  %q: %s\n", strconv.Itoa(ordinal), sizeFlow(s.Replicas[ordinal]))
	}
}

func sizeFlow(r plan.Resources) string {
	return "{requests: " + flow(r.Requests, scalarValue) + ", limits: " + flow(r.Limits, scalarValue) + "}"
}

// writeGroups writes a group a line.
func writeGroups(b *strings.Builder, groups map[string]plan.ClusterGroup) {
	if len(groups) == 0 {
		return
	}
	b.WriteString("groups:\n")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		kind := "together"
		if g.Apart != "" {
			kind = "apart"
		}
		fmt.Fprintf(b, "  %s: {%s: %s", Scalar(name), kind, quote(g.Selector()))
		if len(g.At) > 0 {
			fmt.Fprintf(b, ", at: %s", numbers(g.At))
		}
		b.WriteString("}\n")
	}
}

func numbers(list []int) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = strconv.Itoa(n)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func writeRows(b *strings.Builder, rows map[string]plan.Row) {
	if len(rows) == 0 {
		b.WriteString("clusters: {}\n")
		return
	}
	b.WriteString("clusters:\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		b.WriteString("  ")
		b.WriteString(Scalar(name))
		b.WriteString(": {replica: ")
		b.WriteString(strconv.Itoa(row.Replica))
		if row.Load != "" {
			b.WriteString(", load: ")
			b.WriteString(strconv.Quote(row.Load))
		}
		if row.Server != "" {
			b.WriteString(", srv: ")
			b.WriteString(Scalar(row.Server))
		}
		if row.Pinned {
			b.WriteString(", pinned: true")
		}
		b.WriteString("}\n")
	}
}

func writeRollout(b *strings.Builder, r *plan.Rollout) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "rollout:\n  mode: %s\n  stage: %s\n  since: %q\n", Scalar(r.Mode), Scalar(string(r.Stage)),
		r.Since.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(b, "  from: {replicas: %d, controllerReplicas: %d}\n  replicas: %d\n  controllerReplicas: %d\n",
		r.From.Replicas, r.From.ControllerReplicas, r.Replicas, r.ControllerReplicas)
	if r.Wave > 0 {
		fmt.Fprintf(b, "  wave: %d\n", r.Wave)
	}
	if r.Waves > 0 {
		fmt.Fprintf(b, "  waves: %d\n", r.Waves)
	}
	if len(r.Moves) > 0 {
		fmt.Fprintf(b, "  moves: %s\n", flow(r.Moves, strconv.Itoa))
	}
	if len(r.Was) > 0 {
		fmt.Fprintf(b, "  was: %s\n", flow(r.Was, strconv.Itoa))
	}
}

func flow[V any](m map[string]V, value func(V) string) string {
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, Scalar(k)+": "+value(m[k]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func scalarValue(v string) string { return quote(v) }

// Decode reads data.plan. Fields it does not know are passed over, so that a webhook of the previous version enforces
// the next version's plan while an upgrade is under way; the digest, not strictness, guards against edits.
func Decode(text string) (plan.Plan, error) { return decode(text, yaml.Unmarshal, plan.Plan.Validate) }

// DecodeStrict reads data.plan as a person edited it: an unknown or duplicate field is an error. The replicas of the
// rows may be any number: they are meant as pins, and it is as pins that they are judged.
func DecodeStrict(text string) (plan.Plan, error) {
	return decode(text, yaml.UnmarshalStrict, func(p plan.Plan) error {
		p.Clusters = nil
		return p.Validate()
	})
}

// maxOddBytes bounds what the YAML library is given: it takes some 80 bytes for each of the text's. What Encode writes
// leaves a few hundred once its rows and moves are read by lines; a plan that a person edited may have rows in another
// form.
const maxOddBytes = 256 << 10

// errAlias says that a document has what makes a short text long. The two characters stand nowhere in what Encode
// writes.
var errAlias = errors.New("it has an anchor, an alias or one of their characters, & and *: write values out")

func decode(text string, unmarshal func([]byte, any, ...yaml.JSONOpt) error, validate func(plan.Plan) error) (plan.Plan, error) {
	if len(text) > MaxBytes {
		return plan.Plan{}, fmt.Errorf("decoding the plan: %d bytes are more than the %d a plan may have", len(text),
			MaxBytes)
	}
	rest, rows, cut := cutRows(text)
	if !cut {
		rest = text
	}
	rest, flows := cutFlows(rest)
	switch {
	case len(rest) > maxOddBytes:
		return plan.Plan{}, fmt.Errorf("decoding the plan: %d KiB of it are not in ballast's own form, and at most %d are read", len(rest)>>10, maxOddBytes>>10)
	case strings.ContainsAny(rest, "&*"):
		return plan.Plan{}, fmt.Errorf("decoding the plan: %w", errAlias)
	case ManyDirectives(rest):
		return plan.Plan{}, errors.New("decoding the plan: it has many directives (lines that begin with %)")
	}
	var w plan.Wire
	if err := unmarshal([]byte(rest), &w); err != nil {
		return plan.Plan{}, fmt.Errorf("decoding the plan: %w", err)
	}
	if cut {
		w.Clusters = rows
	}
	flows.into(w.Rollout)
	if w.APIVersion != plan.APIVersion || w.Kind != plan.Kind {
		return plan.Plan{}, fmt.Errorf("decoding the plan: apiVersion %q, kind %q is not %s, %s", w.APIVersion, w.Kind,
			plan.APIVersion, plan.Kind)
	}
	p, err := w.Plan()
	if err == nil {
		err = validate(p)
	}
	if err != nil {
		return plan.Plan{}, fmt.Errorf("decoding the plan: %w", err)
	}
	return p, nil
}
