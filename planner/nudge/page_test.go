package nudge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ballast/planner/paged"
)

func TestNextLimit(t *testing.T) {
	cases := map[string]struct{ applications, bytes, want int }{
		"small ones, as many as are ever asked for":       {applications: 100, bytes: 100 * 2 << 10, want: 500},
		"of 100 KB, as many as are 4 MiB":                 {applications: 100, bytes: 100 * 100_000, want: 41},
		"of a megabyte":                                   {applications: 8, bytes: 8 << 20, want: 4},
		"one that is more than a page":                    {applications: 1, bytes: 20 << 20, want: 1},
		"an empty page says nothing of the next":          {applications: 0, bytes: 90, want: 100},
		"a client that does not decode says nothing more": {applications: 10, bytes: 0, want: 100},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nextLimit(c.applications, c.bytes); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestHowLongAListingServes(t *testing.T) {
	cases := map[string]struct {
		listing *listing
		after   time.Duration
		want    bool
	}{
		"none serves nobody":            {after: 0},
		"of this moment":                {listing: &listing{namespace: "argocd"}, want: true},
		"of that age":                   {listing: &listing{namespace: "argocd"}, after: fresh, want: true},
		"older":                         {listing: &listing{namespace: "argocd"}, after: fresh + 1},
		"another Argo CD's":             {listing: &listing{namespace: "gitops"}},
		"of a later clock":              {listing: &listing{namespace: "argocd"}, after: -1},
		"as old as it took, and waited": {listing: &listing{namespace: "argocd", took: 17 * time.Second}, after: 18 * time.Second, want: true},
		"five times as old as it took":  {listing: &listing{namespace: "argocd", took: 17 * time.Second}, after: 86 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.listing != nil {
				c.listing.at = start
			}
			if got := c.listing.serves("argocd", start.Add(c.after), fresh); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{`{}`, `{"items":[{}]}`, `{"items":[{"spec":{"destination":{"server":"https://a"}}}],"metadata":{"continue":"x"}}`, `{"items":{}}`, `[`, `{"items":[{"metadata":{"annotations":null}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newPage()
		if err := p.UnmarshalJSON(data); err != nil {
			return
		}
		for _, a := range applicationsOf(p) {
			if d, found := a.destination(); found && (d.server != "") == (d.name != "") {
				t.Errorf("%+v deploys to %+v", a, d)
			}
		}
	})
}

// BenchmarkPage decodes a page of 80 Applications of 100 KB, the largest that the brief of scale knows; 20,000 are 250.
func BenchmarkPage(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationList","metadata":{"continue":"more"},"items":[`)
	for i := range 80 {
		if i > 0 {
			body.WriteByte(',')
		}
		var resources []map[string]string
		for r := range 700 {
			resources = append(resources, map[string]string{"kind": "ConfigMap", "version": "v1", "namespace": "default", "name": fmt.Sprint("settings-of-a-service-", r), "status": "Synced", "note": strings.Repeat("x", 40)})
		}
		text, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"namespace": "argocd", "name": fmt.Sprint("app-", i)},
			"spec":     map[string]any{"destination": map[string]any{"server": fmt.Sprint("https://", i)}},
			"status":   map[string]any{"resources": resources},
		})
		if err != nil {
			b.Fatal(err)
		}
		body.Write(text)
	}
	body.WriteString(`]}`)
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := newPage().UnmarshalJSON(body.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func applicationsOf(p *paged.List[document]) []Application {
	all := make([]Application, 0, len(p.Kept))
	for _, d := range p.Kept {
		all = append(all, d.application())
	}
	return all
}
