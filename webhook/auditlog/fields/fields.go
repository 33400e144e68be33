// Package fields reads what a webhook writes into an audit event of the values that were asked for and enforced.
package fields

import (
	"slices"
	"strconv"
	"strings"

	"ballast/planner/plan"
	"ballast/planner/printable"
)

// Most and maxCordons bound what is printed. A webhook lists at most 20 pins, 20 cordons and a workload's handful of
// fields.
const (
	Most       = 64
	maxCordons = 20
)

// Absent is printed for no value.
const Absent = "-"

// Invalid stands for whatever is not of the grammar of its place.
const Invalid = printable.Invalid

// Print returns an annotation of field=value pairs with everything in it that is not of their grammar replaced.
func Print(text string) string {
	if text == "" || text == Absent {
		return Absent
	}
	pairs := strings.SplitN(text, " ", Most+1)
	if len(pairs) > Most {
		pairs[Most] = Invalid
	}
	for i, pair := range pairs {
		pairs[i] = printField(pair)
	}
	return strings.Join(pairs, " ")
}

func printField(pair string) string {
	name, value, _ := strings.Cut(pair, "=")
	family, member, _ := strings.Cut(name, ".")
	var good bool
	switch {
	case name == plan.ShardKey, name == "replicas", name == plan.EnvReplicas:
		good = isCount(value) || value == "reference" && name == plan.EnvReplicas
	case name == plan.KeyPlan:
		good = isShortDigest(value)
	case name == "immutable":
		good = value == "true"
	case isSteering(name):
		good = isSteeringValue(name, value)
	case (family == "pins" || family == "clusters") && isName(member):
		good = isCount(value)
	case (family == "requests" || family == "limits") && isResource(member):
		good = isQuantity(value)
	default:
		return Invalid
	}
	if good || value == Absent {
		return pair
	}
	return name + "=" + Invalid
}

// isSteering reports whether a field is a powerful act: an annotation by which people steer, pins that are too many to
// list, or the label without which a Secret is no cluster's.
func isSteering(name string) bool {
	switch name {
	case "accept-discovery", "cordon", "enforcement", "paused", "rebase", "rollback-to", "selected", "tripped", "pin", "pins", "secret-type", "unmanaged":
		return true
	}
	return false
}

func isSteeringValue(name, value string) bool {
	if value == Invalid {
		return true
	}
	switch name {
	case "accept-discovery", "pin", "pins", "rollback-to":
		return isDigits(strings.TrimPrefix(value, "-"), 10)
	case "cordon":
		return isCordon(value)
	case "enforcement":
		return value == "off" || value == "on"
	case "paused", "unmanaged":
		return value == "true" || value == "false"
	case "rebase":
		return value == "true" || value == "false" || value == "undo"
	case "selected":
		return value == "true"
	case "tripped":
		return value == "set"
	case "secret-type":
		return value == plan.SecretTypeCluster
	}
	return false
}

// isCordon accepts replicas, and how many more there are: 1,3,+17.
func isCordon(s string) bool {
	replicas := strings.Split(s, ",")
	last := len(replicas) - 1
	if more, cut := strings.CutPrefix(replicas[last], "+"); cut && last > 0 {
		replicas[last] = more
	}
	return len(replicas) <= maxCordons+1 && !slices.ContainsFunc(replicas, func(r string) bool { return !isDigits(r, 6) })
}

func isDigits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// Steer reports whether what was enforced is, or has in it, a powerful act.
func Steer(enforced string) bool {
	for pair := range strings.SplitSeq(enforced, " ") {
		name, _, _ := strings.Cut(pair, "=")
		if isSteering(name) || strings.HasPrefix(name, "pins.") {
			return true
		}
	}
	return false
}

// isCount accepts what fits an int32, which spec.replicas is.
func isCount(s string) bool {
	if s == Invalid {
		return true
	}
	_, err := strconv.ParseInt(s, 10, 32)
	return err == nil && !strings.HasPrefix(s, "+")
}

// isShortDigest accepts the first digits of a data.plan's digest.
func isShortDigest(s string) bool {
	return len(s) == 12 && strings.Trim(s, "0123456789abcdef") == ""
}

// isName accepts what names an object: a DNS subdomain's letters.
func isName(s string) bool {
	return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

// isResource accepts the name of a compute resource, extended ones included: nvidia.com/gpu.
func isResource(s string) bool { return len(s) <= 63 && isName(strings.Replace(s, "/", ".", 1)) }

func isQuantity(s string) bool {
	if len(s) > 24 {
		return false
	}
	_, err := plan.ReadQuantity(s)
	return err == nil
}

// Differ reports whether a field was enforced that was asked for otherwise.
func Differ(requested, enforced string) bool {
	asked := map[string]string{}
	for pair := range strings.SplitSeq(requested, " ") {
		name, value, _ := strings.Cut(pair, "=")
		asked[name] = value
	}
	for pair := range strings.SplitSeq(enforced, " ") {
		name, value, found := strings.Cut(pair, "=")
		if found && !same(asked[name], value) {
			return true
		}
	}
	return false
}

// same compares values as the webhook does: 1000m CPU is 1 CPU.
func same(a, b string) bool {
	if a == b {
		return true
	}
	p, err := plan.ReadQuantity(a)
	if err != nil {
		return false
	}
	q, err := plan.ReadQuantity(b)
	return err == nil && p.Cmp(q) == 0
}
