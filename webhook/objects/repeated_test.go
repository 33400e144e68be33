package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/webhook/rawjson"
)

// decoders reads an object as each of the webhooks does.
func decoders() map[string]func(rawjson.Node) (any, error) {
	return map[string]func(rawjson.Node) (any, error){
		"secret":   func(n rawjson.Node) (any, error) { return DecodeSecret(n) },
		"workload": func(n rawjson.Node) (any, error) { return DecodeWorkload(n) },
		"plan":     func(n rawjson.Node) (any, error) { return DecodePlan(n, 1<<20) },
		"scale":    func(n rawjson.Node) (any, error) { return DecodeScale(n) },
		"pod":      func(n rawjson.Node) (any, error) { return DecodePod(n) },
	}
}

// repeats are objects in which one key fills a body of 243 KB.
func repeats() map[string]string {
	fill := func(head, entry, last, tail string) string {
		return head + strings.Repeat(entry+",", manyNotes/(len(entry)+1)) + last + tail
	}
	const pin = `"annotations":{"ballast.argoproj.io/pin":"1"}`
	container := func(entry string) string {
		return fill(`{"metadata":{},"spec":{"template":{"spec":{"containers":[{`, entry, entry, `}]}}}}`)
	}
	return map[string]string{
		"metadata":           fill(`{`, `"metadata":{"name":"a",`+pin+`}`, `"spec":{}`, `}`),
		"annotations":        fill(`{"spec":{},"metadata":{`, pin, pin, `}}`),
		"names":              fill(`{"spec":{},"metadata":{`, `"name":"a"`, `"name":"b"`, `}}`),
		"data":               fill(`{"metadata":{},`, `"data":{"server":"YQ==","plan":"a"}`, `"data":{}`, `}`),
		"data.server":        fill(`{"metadata":{},"data":{`, `"server":"YQ=="`, `"server":"Yg=="`, `}}`),
		"data.shard":         fill(`{"metadata":{},"data":{`, `"shard":"MQ=="`, `"shard":"Mg=="`, `}}`),
		"data.plan":          fill(`{"metadata":{},"data":{`, `"plan":"a\n","pins":"b\n"`, `"plan":"c"`, `}}`),
		"pods' containers":   fill(`{"metadata":{},"spec":{`, `"containers":[{"name":"a"}],"initContainers":[]`, `"containers":[]`, `}}`),
		"owners":             fill(`{"spec":{},"metadata":{`, `"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","controller":true}]`, `"labels":{}`, `}}`),
		"many owners":        fill(`{"spec":{},"metadata":{"ownerReferences":[`, `{"apiVersion":"apps/v1","kind":"StatefulSet"}`, `{"controller":true}`, `]}}`),
		"spec":               fill(`{"metadata":{},`, `"spec":{"replicas":3}`, `"spec":{"replicas":4}`, `}`),
		"templates":          fill(`{"metadata":{},"spec":{`, `"template":{"spec":{"containers":[{"name":"a"}]}}`, `"replicas":4`, `}}`),
		"container names":    container(`"name":"a"`),
		"commands":           container(`"command":["a"]`),
		"resources":          container(`"resources":{"limits":{"cpu":"1"}}`),
		"limits":             container(`"resources":{` + strings.Repeat(`"limits":{"cpu":"1"},`, 5_000) + `"requests":{}}`),
		"one quantity":       container(`"resources":{"limits":{` + strings.Repeat(`"cpu":"1",`, 10_000) + `"cpu":"2"}}`),
		"keys with escapes":  fill(`{"spec":{},"metadata":{`, `"\u0061nnotation":{}`, pin, `}}`),
		"keys with no hex":   fill(`{"spec":{},"metadata":{`, `"\u00zz":1`, pin, `}}`),
		"escaped data":       fill(`{"metadata":{},"data":{`, `"s\u0065rver":"YQ=="`, `"server":"Yg=="`, `}}`),
		"escaped surrogates": fill(`{"spec":{},"metadata":{`, `"\ud83d\ude00":1`, pin, `}}`),
	}
}

// TestARepeatedKeyIsReadOnce: whoever reaches the port may repeat a key ten thousand times; the last one's value is made,
// and nothing of the others.
func TestARepeatedKeyIsReadOnce(t *testing.T) {
	const limit = maxQuantities + 32 // two copies for one quantity that is read, and the rest of an object
	for name, object := range repeats() {
		for kind, decode := range decoders() {
			if n := testing.AllocsPerRun(2, func() { _, _ = decode(rawjson.Node(object)) }); n > 2*limit {
				t.Errorf("%s as %s: %d bytes are read with %.0f allocations, want at most %d", name, kind, len(object), n, 2*limit)
			}
		}
	}
}

// TestTheLastOfARepeatedKeyCounts, as for encoding/json.
func TestTheLastOfARepeatedKeyCounts(t *testing.T) {
	note := map[string]string{"ballast.argoproj.io/pin": "2"}
	const template = `{"spec":{"containers":[{"name":"a","name":"b","command":["c"],"command":["d"]}]}}`
	for name, tc := range map[string]struct {
		kind, object string
		want         any
	}{
		"a Secret": {"secret", `{"data":{"server":"YQ==","server":"Yg==","shard":"MQ==","shard":"Mg=="},"metadata":{"name":"x"},
			"metadata":{"name":"a","name":"b","annotations":{"ballast.argoproj.io/pin":"1"},"annotations":{"ballast.argoproj.io/pin":"2"}}}`,
			Secret{Name: "b", Notes: note, Pinned: true, Pin: "2", HasData: true, HasShard: true, Shard: "2", Server: "b"}},
		"a Secret's data": {"secret", `{"data":{"shard":"MQ=="},"data":{"server":"Yg=="}}`, Secret{HasData: true, Server: "b"}},
		"escaped":         {"secret", `{"d\u0061ta":{"sh\u0061rd":"MQ=="}}`, Secret{HasData: true, HasShard: true, Shard: "1"}},
		"a plan": {"plan", `{"metadata":{"annotations":{"x":"y"},"annotations":{"ballast.argoproj.io/pin":"2"}},"data":{"plan":"a","plan":"b","pins":"c","pins":"d"}}`,
			Plan{HasData: true, HasPlan: true, Plan: "b", HasPins: true, Pins: "d", HasAnnotations: true, Annotations: note}},
		"a workload": {"workload", `{"metadata":{"annotations":{"x":"y"},"annotations":{"ballast.argoproj.io/pin":"2"}},"spec":{"replicas":1},
			"spec":{"replicas":2,"replicas":3,"template":{"spec":{}},"template":` + template + `}}`,
			Workload{Notes: note, HasReplicas: true, Replicas: 3, Containers: []Container{{Name: "b", Command: []string{"d"}}}, template: rawjson.Node(template)}},
		"a scale": {"scale", `{"spec":{"replicas":1},"spec":{"replicas":2}}`, Scale{HasSpec: true, HasReplicas: true, Replicas: 2}},
	} {
		got, err := decoders()[tc.kind](rawjson.Node(tc.object))
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Workload{})); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
	}
}
