package webhook

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"ballast/planner/plan"
	"ballast/webhook/inforce"
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
			regexp.MustCompile(`^/metadata/annotations$`): onlyKeys(inforce.PlannersAnnotations()...),
		}},
	}
}

func onlyKeys(keys ...string) wholeCheck {
	return func(value any) error {
		m, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no mapping", value)
		}
		for _, key := range sortedKeys(m) {
			if !slices.Contains(keys, key) {
				return fmt.Errorf("key %q is not ballast's", key)
			}
		}
		return nil
	}
}

// fits says why an operation of a webhook's patch does more than it may.
func fits(webhook string, op Op) error {
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
		op      Op
		want    bool
	}{
		"the shard":                         {"clusters", Op{"replace", "/data/shard", "Mw=="}, true},
		"another key":                       {"clusters", Op{"replace", "/data/config", "Mw=="}, false},
		"data with the shard":               {"clusters", Op{"add", "/data", map[string]string{"shard": "Mw=="}}, true},
		"data with more":                    {"clusters", Op{"add", "/data", map[string]string{"shard": "Mw==", "config": ""}}, false},
		"the shard's removal":               {"clusters", Op{Op: "remove", Path: "/data/shard"}, false},
		"a workload's replicas":             {"controllers", Op{"replace", "/spec/replicas", 4}, true},
		"a workload's spec":                 {"controllers", Op{"add", "/spec", map[string]int{"replicas": 4}}, false},
		"a pod's size":                      {"pods", Op{"replace", "/spec/containers/1/resources/limits/memory", "4Gi"}, true},
		"an initialising container's":       {"pods", Op{"replace", "/spec/initContainers/1/resources/limits/memory", "4Gi"}, false},
		"a pod's env":                       {"pods", Op{"add", "/spec/containers/1/env/-", map[string]string{"name": plan.EnvReplicas, "value": "4"}}, false},
		"a scale's spec":                    {"scale", Op{"add", "/spec", map[string]int{"replicas": 4}}, true},
		"an entry of ours":                  {"controllers", Op{"add", "/spec/template/spec/containers/1/env/-", map[string]string{"name": plan.EnvReplicas, "value": "4"}}, true},
		"an entry of others":                {"controllers", Op{"add", "/spec/template/spec/containers/1/env/-", map[string]string{"name": "A", "value": "4"}}, false},
		"a whole env":                       {"controllers", Op{"add", "/spec/template/spec/containers/1/env", []map[string]string{{"name": plan.EnvReplicas, "value": "4"}}}, true},
		"a plan in a Secret":                {"clusters", Op{"replace", "/data/plan", ""}, false},
		"annotations with people's":         {kindPlan, Op{"add", "/metadata/annotations", map[string]string{plan.AnnotationPaused: "true"}}, false},
		"annotations of ours":               {kindPlan, Op{"add", "/metadata/annotations", map[string]string{plan.AnnotationDigest: ""}}, true},
		"immutable, which is to be no more": {kindPlan, Op{Op: "remove", Path: "/immutable"}, true},
	} {
		if err := fits(tc.webhook, tc.op); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
