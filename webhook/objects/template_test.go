package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/webhook/rawjson"
)

// workloadOf is a workload with that pod template.
func workloadOf(template string) (Workload, error) {
	doc, err := rawjson.Parse([]byte(`{"spec":{"template":` + template + `}}`))
	if err != nil {
		return Workload{}, err
	}
	return DecodeWorkload(doc)
}

func same(t rapid.TB, a, b string, withoutResources bool) bool {
	t.Helper()
	x, err := workloadOf(a)
	if err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	y, err := workloadOf(b)
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return SameTemplate(x, y, withoutResources)
}

// written is a value as JSON, with its keys in any order and white space anywhere.
func written(t *rapid.T, v any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t", "  "}).Draw(t, "space") }
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "order") {
			parts = append(parts, space()+fmt.Sprintf("%q", k)+space()+":"+space()+written(t, v[k]))
		}
		return "{" + strings.Join(parts, space()+",") + space() + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, space()+written(t, e)+space())
		}
		return "[" + strings.Join(parts, ",") + space() + "]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anyValue is a value of that depth at most.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			return rapid.MapOfN(rapid.StringMatching(`[a-e]{1,2}`), anyValue(depth-1), 0, 3).Draw(t, "object")
		case kind == 1 && depth > 0:
			return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		case kind == 2:
			return rapid.IntRange(-1, 5).Draw(t, "number")
		case kind == 3:
			return rapid.Bool().Draw(t, "bool")
		case kind == 4:
			return nil
		}
		return rapid.StringMatching(`[a-c]{0,3}`).Draw(t, "text")
	})
}

// aTemplate is a pod template with the parts that SameTemplate knows, and any others.
func aTemplate(t *rapid.T) map[string]any {
	var containers []any
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		c := rapid.MapOfN(rapid.StringMatching(`[a-e]{1,2}`), anyValue(2), 0, 3).Draw(t, "container")
		c["name"], c["image"] = fmt.Sprint("c", i), "argocd"
		c["resources"] = map[string]any{"limits": map[string]any{"cpu": fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "cpu"))}}
		env := []any{}
		for e := range rapid.IntRange(0, 3).Draw(t, "env") {
			env = append(env, map[string]any{"name": fmt.Sprint("E", e), "value": rapid.StringMatching(`[a-c]?`).Draw(t, "value")})
		}
		at := rapid.IntRange(0, len(env)).Draw(t, "at")
		if rapid.Bool().Draw(t, "replicas") {
			env = slices.Insert(env, at, any(map[string]any{"name": plan.EnvReplicas, "value": fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "count"))}))
		}
		c["env"] = env
		containers = append(containers, c)
	}
	spec := rapid.MapOfN(rapid.StringMatching(`[a-e]{1,2}`), anyValue(3), 0, 3).Draw(t, "spec")
	spec["containers"] = containers
	return map[string]any{"metadata": anyValue(3).Draw(t, "metadata"), "spec": spec}
}

// TestATemplateIsTheSameHoweverItIsWritten: in any order of its keys and with any white space, and whatever it says of the one env.
func TestATemplateIsTheSameHoweverItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := aTemplate(t)
		once := written(t, template)
		for _, c := range template["spec"].(map[string]any)["containers"].([]any) {
			c := c.(map[string]any)
			others := slices.DeleteFunc(slices.Clone(c["env"].([]any)), func(e any) bool { return e.(map[string]any)["name"] == plan.EnvReplicas })
			switch rapid.IntRange(0, 2).Draw(t, "env becomes") {
			case 0:
				c["env"] = append(others, map[string]any{"name": plan.EnvReplicas, "value": "16"})
			case 1:
				if c["env"] = others; len(others) == 0 {
					delete(c, "env")
				}
			}
		}
		again := written(t, template)
		if !same(t, once, again, false) || !same(t, once, again, true) {
			t.Fatalf("these differ:\n%s\n%s", once, again)
		}
	})
}

// place is somewhere in a document where a value stands.
type place struct {
	path string
	set  func(any)
	drop func()
	is   any
}

// placesOf are all of them, but within what is not compared.
func placesOf(path string, v any, put func(any), leave bool) (all []place) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if leave && k == "resources" || v["name"] == plan.EnvReplicas {
				continue
			}
			set := func(to any) { v[k] = to }
			all = append(all, place{path + "." + k, set, func() { delete(v, k) }, v[k]})
			all = append(all, placesOf(path+"."+k, v[k], set, leave && (k == "spec" || k == "containers"))...)
		}
	case []any:
		for i := range v {
			if e, is := v[i].(map[string]any); is && e["name"] == plan.EnvReplicas {
				continue
			}
			set := func(to any) { v[i] = to }
			all = append(all, place{fmt.Sprintf("%s[%d]", path, i), set, nil, v[i]})
			all = append(all, placesOf(fmt.Sprintf("%s[%d]", path, i), v[i], set, leave)...)
		}
	}
	return all
}

// TestAnyOneFieldMakesATemplateDiffer: another value, a field that goes, one that comes, and another order of a list.
func TestAnyOneFieldMakesATemplateDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template, withoutResources := aTemplate(t), rapid.Bool().Draw(t, "without resources")
		before := written(t, template)
		places := placesOf("template", template, nil, withoutResources)
		at := rapid.SampledFrom(places).Draw(t, "place")
		switch change := rapid.IntRange(0, 3).Draw(t, "change"); {
		case change == 0 && at.drop != nil && !strings.HasSuffix(at.path, ".env"): // an env without others is as none
			at.drop()
		case change == 1:
			if o, is := at.is.(map[string]any); is {
				o["another"] = nil
				break
			}
			at.set("another")
		case change == 2:
			list, is := at.is.([]any)
			if is && len(list) > 1 && !reflect.DeepEqual(list[0], list[len(list)-1]) && !strings.HasSuffix(at.path, ".env") {
				list[0], list[len(list)-1] = list[len(list)-1], list[0]
				break
			}
			at.set("another")
		default:
			at.set(map[string]any{"another": at.is})
		}
		after := written(t, template)
		if _, err := workloadOf(after); err != nil {
			return // no pod template, which the API server takes from nobody
		}
		if same(t, before, after, withoutResources) {
			t.Fatalf("a change of %s does not show:\n%s\n%s", at.path, before, after)
		}
	})
}

// stripped is a decoded template without what is not compared.
func stripped(template any, withoutResources bool) any {
	t, _ := template.(map[string]any)
	spec, _ := t["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		c, is := c.(map[string]any)
		if !is {
			continue
		}
		if withoutResources {
			delete(c, "resources")
		}
		list, is := c["env"].([]any)
		if !is {
			continue
		}
		others := slices.DeleteFunc(list, func(e any) bool {
			entry, _ := e.(map[string]any)
			return entry["name"] == plan.EnvReplicas
		})
		if c["env"] = others; len(others) == 0 {
			delete(c, "env")
		}
	}
	return template
}

// decoded is a document with its numbers as they are written, and how many members its objects have.
func decoded(text string) (v any, members int, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, 0, err
	}
	return v, membersOf(v), nil
}

func membersOf(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += 1 + membersOf(e)
		}
	case []any:
		for _, e := range v {
			n += membersOf(e)
		}
	}
	return n
}

// plainTemplate reports whether a document is one that both readers read alike: each key once, no escapes, not too deep.
func plainTemplate(text string, members int) bool {
	keys, depth, most := 0, 0, 0
	d := json.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			most = max(most, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	doc, err := rawjson.Parse([]byte(text))
	if err != nil {
		return false
	}
	var walk func(n rawjson.Node)
	walk = func(n rawjson.Node) {
		for key, v := range n.Members {
			if key != nil {
				keys++
			}
			walk(v)
		}
	}
	walk(doc)
	return keys == members && most < deepest && !strings.Contains(text, `\`) && utf8.ValidString(text)
}

// FuzzSameTemplate: two templates are the same exactly if encoding/json reads them as the same, without what is not compared.
func FuzzSameTemplate(f *testing.F) {
	const one = `{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"4"}],"resources":{"limits":{"cpu":"1"}}}],"x":[1,{"y":null}]}}`
	for _, other := range []string{one, strings.ReplaceAll(one, `"4"`, `"5"`), strings.ReplaceAll(one, `"1"`, `"2"`), strings.ReplaceAll(one, ",", " ,\n"),
		`{}`, `null`, `{"spec":{"containers":[[]]}}`, `{"spec":{"containers":{"name":"c"}}}`, `{"spec":[],"a":{"b":1,"c":2}}`, `{"a":{"c":2,"b":1},"spec":[]}`} {
		f.Add(one, other, false)
		f.Add(other, one, true)
	}
	f.Fuzz(func(t *testing.T, a, b string, withoutResources bool) {
		x, errX := workloadOf(a)
		y, errY := workloadOf(b)
		if errX != nil || errY != nil {
			return
		}
		got := SameTemplate(x, y, withoutResources)
		if got != SameTemplate(y, x, withoutResources) || !SameTemplate(x, x, withoutResources) {
			t.Fatalf("it depends on which comes first: %q and %q", a, b)
		}
		if SameTemplate(x, y, false) && !SameTemplate(x, y, true) {
			t.Fatalf("without resources more differs: %q and %q", a, b)
		}
		p, membersA, errA := decoded(a)
		q, membersB, errB := decoded(b)
		if errA != nil || errB != nil || !plainTemplate(a, membersA) || !plainTemplate(b, membersB) {
			return
		}
		if want := reflect.DeepEqual(stripped(p, withoutResources), stripped(q, withoutResources)); got != want {
			t.Fatalf("same: %v, want %v: %q and %q", got, want, a, b)
		}
	})
}

// TestWhatIsTooDeepIsComparedByteByByte: no depth makes it fail, and none is taken for another.
func TestWhatIsTooDeepIsComparedByteByByte(t *testing.T) {
	deep := func(inner string) string {
		return `{"spec":` + strings.Repeat(`{"a":[`, 5000) + inner + strings.Repeat(`]}`, 5000) + `}`
	}
	if !same(t, deep("1"), deep("1"), false) || same(t, deep("1"), deep("2"), false) {
		t.Error("a deep template is not itself, or is another")
	}
}

// BenchmarkSameTemplate is of what whoever reaches the port may send at most.
func BenchmarkSameTemplate(b *testing.B) {
	text := `{"spec":{"a":{` + string(bytes.Repeat([]byte(`"":1,`), 27<<20/5)) + `"b":1}}}`
	w, err := workloadOf(text)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !SameTemplate(w, w, false) {
			b.Fatal("it differs from itself")
		}
	}
}
