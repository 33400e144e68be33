package objects

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/rawjson"
)

func TestDecodeSecretReadsOnlyWhatADecisionNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   Secret
	}{
		"a cluster Secret": {`{"kind":"Secret","metadata":{"name":"prod-eu","labels":{"argocd.argoproj.io/secret-type":"cluster"},"annotations":{"a":"b"}},
			"data":{"config":"c2VjcmV0","name":"cHJvZA==","server":"aHR0cHM6Ly9ldQ==","shard":"Mw=="},"type":"Opaque"}`,
			Secret{Name: "prod-eu", Cluster: true, HasData: true, HasShard: true, Shard: "3", Server: "https://eu"}},
		"no data":                     {`{"metadata":{"name":"a"}}`, Secret{Name: "a"}},
		"null data":                   {`{"metadata":{"name":"a"},"data":null}`, Secret{Name: "a"}},
		"empty data":                  {`{"metadata":{},"data":{}}`, Secret{HasData: true}},
		"keys differ by case":         {`{"data":{"Shard":"Mw==","SERVER":"aHR0cHM6Ly9ldQ=="}}`, Secret{HasData: true}},
		"a token pasted as the shard": {`{"data":{"shard":"ZXlKaGJHY2lPaUpJVXpJMU5pSjk="}}`, Secret{HasData: true, HasShard: true, Shard: printable.Invalid}},
		"a short word as the shard":   {`{"data":{"shard":"YXV0bw=="}}`, Secret{HasData: true, HasShard: true, Shard: printable.Invalid}},
		"an empty shard":              {`{"data":{"shard":""}}`, Secret{HasData: true, HasShard: true, Shard: printable.Invalid}},
		"a shard that is no base64":   {`{"data":{"shard":"3"}}`, Secret{HasData: true, HasShard: true, Shard: printable.Invalid}},
		"a negative shard":            {`{"data":{"shard":"LTE="}}`, Secret{HasData: true, HasShard: true, Shard: "-1"}},
		"opted out, pinned and immutable": {`{"immutable":true,"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":"true","ballast.argoproj.io/pin":"3"}}}`,
			Secret{Notes: map[string]string{plan.AnnotationUnmanaged: "true", plan.AnnotationPin: "3"}, Unmanaged: true, Pinned: true, Pin: "3", Immutable: true}},
		"an annotation that is not literally": {`{"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":"yes"}}}`, Secret{Notes: map[string]string{plan.AnnotationUnmanaged: "yes"}}},
		"a key of the group in escapes":       {`{"metadata":{"annotations":{"ballast\u002eargoproj.io\/pin":"3"}}}`, Secret{Notes: map[string]string{plan.AnnotationPin: "3"}, Pinned: true, Pin: "3"}},
		"unknown keys do not hide a known one": {`{"metadata":{"annotations":{` + unknownNotes(50) + `"ballast.argoproj.io/unmanaged":"true"}}}`,
			Secret{Notes: map[string]string{"ballast.argoproj.io/a0": "1", "ballast.argoproj.io/a1": "1", "ballast.argoproj.io/a2": "1", "ballast.argoproj.io/a3": "1", "ballast.argoproj.io/a4": "1",
				plan.AnnotationUnmanaged: "true"}, Unmanaged: true}},
		"a key in escapes": {`{"data":{"\u0073hard":"Mw=="}}`, Secret{HasData: true, HasShard: true, Shard: "3"}},
		"an absent object": {`null`, Secret{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeSecret(mustParse(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("secret (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSlashesBehindAServerHideNoTwin: Argo CD reads a server without the slashes behind it, however many.
func TestSlashesBehindAServerHideNoTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		server := "https://" + rapid.StringMatching(`[a-z/.:]{0,500}[a-z]`).Draw(rt, "server")
		slashes := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 2500, 2600, 2601, 2602, 700_000}).Draw(rt, "slashes")
		encoded := base64.StdEncoding.EncodeToString([]byte(server + strings.Repeat("/", slashes)))
		got, err := DecodeSecret(mustParse(t, fmt.Sprintf(`{"data":{"server":%q}}`, encoded)))
		if err != nil || plan.NormalizeServer(got.Server) != server {
			rt.Fatalf("%q with %d slashes is %q, %v", server, slashes, got.Server, err)
		}
	})
	for name, encoded := range map[string]string{
		"long, and no server":        base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("v"), 4000)),
		"nothing but slashes":        "Ly8v",
		"slashes and what is cut":    strings.Repeat("Ly8v", 2000) + "Ly8",
		"what is no base64, as long": strings.Repeat("?", 5000),
	} {
		got, err := DecodeSecret(mustParse(t, fmt.Sprintf(`{"data":{"server":%q}}`, encoded)))
		if err != nil || plan.NormalizeServer(got.Server) != "" {
			t.Errorf("%s: %q, %v", name, got.Server, err)
		}
	}
}

// unknownNotes are that many annotations that stand before those that ballast reads.
func unknownNotes(n int) string {
	text := ""
	for i := range n {
		text += fmt.Sprintf(`"ballast.argoproj.io/a%d":"1",`, i)
	}
	return text
}

func TestDecodeSecretRefusesWhatNoPatchWouldFit(t *testing.T) {
	for _, object := range []string{`[]`, `"x"`, `{"data":[]}`, `{"data":"x"}`, `{"metadata":3}`} {
		if _, err := DecodeSecret(mustParse(t, object)); !errors.Is(err, rawjson.ErrMalformed) {
			t.Errorf("%s: error %v, want %v", object, err, rawjson.ErrMalformed)
		}
	}
}

func mustParse(t testing.TB, doc string) rawjson.Node {
	t.Helper()
	n, err := rawjson.Parse([]byte(doc))
	if err != nil {
		t.Fatalf("parsing %s: %v", doc, err)
	}
	return n
}
