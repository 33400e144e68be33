package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"ballast/planner/plan"
	"ballast/webhook/decision"
)

// family is the paths that the patches of one webhook may touch, and what may stand there: of a parent that is made because
// it was absent, nothing but our fields.
type family struct {
	leaves  *regexp.Regexp                // fields of ours, whatever is done to them
	parents map[*regexp.Regexp]wholeCheck // absent parents of them, by what may be added there
}

// wholeCheck says why a value is more than ballast's.
type wholeCheck func(value any) error

// families are the path families of the four webhooks.
func families() map[string]family {
	const container = `^/spec/template/spec/containers/\d+`
	entry := func(value any) error {
		m, ok := value.(map[string]any)
		if !ok || m["name"] != plan.EnvReplicas {
			return fmt.Errorf("%v is no entry of %s", value, plan.EnvReplicas)
		}
		return onlyKeys("name", "value")(value)
	}
	return map[string]family{
		"clusters": {regexp.MustCompile(`^/data/shard$`), map[*regexp.Regexp]wholeCheck{regexp.MustCompile(`^/data$`): onlyKeys("shard")}},
		"controllers": {regexp.MustCompile(`^/spec/replicas$|` + container + `/(env/\d+/value|resources/(limits|requests)/[a-z~01.-]+)$`), map[*regexp.Regexp]wholeCheck{
			regexp.MustCompile(container + `/env$`): func(value any) error {
				list, ok := value.([]any)
				if !ok || len(list) != 1 {
					return fmt.Errorf("%v is no list of one entry", value)
				}
				return entry(list[0])
			},
			regexp.MustCompile(container + `/env/(-|\d+)$`):                 entry,
			regexp.MustCompile(container + `/resources$`):                   onlyKeys("limits", "requests"),
			regexp.MustCompile(container + `/resources/(limits|requests)$`): onlyKeys("cpu", "memory", "example.com/gpu"),
		}},
		"pods": {regexp.MustCompile(`^/spec/containers/\d+/resources/(limits|requests)/(cpu|memory)$`), map[*regexp.Regexp]wholeCheck{
			regexp.MustCompile(`^/spec/containers/\d+/resources$`):                   onlyKeys("limits", "requests"),
			regexp.MustCompile(`^/spec/containers/\d+/resources/(limits|requests)$`): onlyKeys("cpu", "memory"),
		}},
		"scale": {regexp.MustCompile(`^/spec/replicas$`), map[*regexp.Regexp]wholeCheck{regexp.MustCompile(`^/spec$`): onlyKeys("replicas")}},
		kindPlan: {regexp.MustCompile(`^/data/(plan|pins)$|^/immutable$|^/metadata/annotations/ballast\.argoproj\.io~1(revision|decided-at|decided-by|reason|stage|digest)$`), map[*regexp.Regexp]wholeCheck{
			regexp.MustCompile(`^/data$`):                 onlyKeys(plan.KeyPlan, plan.KeyPins),
			regexp.MustCompile(`^/metadata/annotations$`): onlyKeys(plan.PlannersAnnotations()...),
		}},
	}
}

func onlyKeys(keys ...string) wholeCheck {
	return func(value any) error {
		m, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no mapping", value)
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !slices.Contains(keys, key) {
				return fmt.Errorf("key %q is not ballast's", key)
			}
		}
		return nil
	}
}

// fits says why an operation of a webhook's patch does more than it may.
func fits(webhook string, op decision.Op) error {
	if op.Op != "add" && op.Op != "replace" && (op.Op != "remove" || webhook != kindPlan) {
		return fmt.Errorf("a patch of %s does %q at %s", webhook, op.Op, op.Path)
	}
	f := families()[webhook]
	if f.leaves.MatchString(op.Path) {
		return nil
	}
	for path, check := range f.parents {
		if !path.MatchString(op.Path) {
			continue
		}
		encoded, err := json.Marshal(op.Value)
		if err != nil {
			return err
		}
		var value any
		if err := json.Unmarshal(encoded, &value); err != nil {
			return err
		}
		if err := check(value); err != nil {
			return fmt.Errorf("a patch of %s makes %s: %w", webhook, op.Path, err)
		}
		return nil
	}
	return fmt.Errorf("a patch of %s touches %s", webhook, op.Path)
}

func TestAFamilyHoldsItsOwnFieldsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		webhook string
		op      decision.Op
		want    bool
	}{
		"the shard":                         {"clusters", decision.Op{Op: "replace", Path: "/data/shard", Value: "Mw=="}, true},
		"another key":                       {"clusters", decision.Op{Op: "replace", Path: "/data/config", Value: "Mw=="}, false},
		"data with the shard":               {"clusters", decision.Op{Op: "add", Path: "/data", Value: map[string]string{"shard": "Mw=="}}, true},
		"data with more":                    {"clusters", decision.Op{Op: "add", Path: "/data", Value: map[string]string{"shard": "Mw==", "config": ""}}, false},
		"the shard's removal":               {"clusters", decision.Op{Op: "remove", Path: "/data/shard"}, false},
		"a workload's replicas":             {"controllers", decision.Op{Op: "replace", Path: "/spec/replicas", Value: 4}, true},
		"a workload's spec":                 {"controllers", decision.Op{Op: "add", Path: "/spec", Value: map[string]int{"replicas": 4}}, false},
		"a pod's size":                      {"pods", decision.Op{Op: "replace", Path: "/spec/containers/1/resources/limits/memory", Value: "4Gi"}, true},
		"an initialising container's":       {"pods", decision.Op{Op: "replace", Path: "/spec/initContainers/1/resources/limits/memory", Value: "4Gi"}, false},
		"a pod's env":                       {"pods", decision.Op{Op: "add", Path: "/spec/containers/1/env/-", Value: map[string]string{"name": plan.EnvReplicas, "value": "4"}}, false},
		"a scale's spec":                    {"scale", decision.Op{Op: "add", Path: "/spec", Value: map[string]int{"replicas": 4}}, true},
		"an entry of ours":                  {"controllers", decision.Op{Op: "add", Path: "/spec/template/spec/containers/1/env/-", Value: map[string]string{"name": plan.EnvReplicas, "value": "4"}}, true},
		"an entry of others":                {"controllers", decision.Op{Op: "add", Path: "/spec/template/spec/containers/1/env/-", Value: map[string]string{"name": "A", "value": "4"}}, false},
		"a whole env":                       {"controllers", decision.Op{Op: "add", Path: "/spec/template/spec/containers/1/env", Value: []map[string]string{{"name": plan.EnvReplicas, "value": "4"}}}, true},
		"a plan in a Secret":                {"clusters", decision.Op{Op: "replace", Path: "/data/plan", Value: ""}, false},
		"annotations with people's":         {kindPlan, decision.Op{Op: "add", Path: "/metadata/annotations", Value: map[string]string{plan.AnnotationPaused: "true"}}, false},
		"annotations of ours":               {kindPlan, decision.Op{Op: "add", Path: "/metadata/annotations", Value: map[string]string{plan.AnnotationDigest: ""}}, true},
		"immutable, which is to be no more": {kindPlan, decision.Op{Op: "remove", Path: "/immutable"}, true},
	} {
		if err := fits(tc.webhook, tc.op); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
