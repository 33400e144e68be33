package nudge

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// An Application may be 100 KB long, a hostile one 1.5 MB, and 500 of them, as maps, half a gigabyte: the planner's limit. So a
// page is decoded into what is kept of it only, and is as long as the bytes of the last one allow. Where it is longer than that,
// because others come than came, it is asked for anew with fewer.
const (
	firstPage = 100
	longest   = 500
	pageBytes = 8 << 20
)

// nextLimit is how many Applications the next page may have, after one of so many and so many bytes.
func nextLimit(applications, bytes int) int {
	if applications <= 0 || bytes <= 0 {
		return firstPage
	}
	return max(1, min(longest, pageBytes*applications/bytes))
}

// page is a page of a listing: to the client, a list of objects without a Go type, like the one that it embeds.
type page struct {
	unstructured.UnstructuredList
	applications []Application
	bytes        int
}

var _ runtime.Unstructured = &page{}

func newPage() *page {
	p := &page{}
	p.SetGroupVersionKind(applicationKind.GroupVersion().WithKind(applicationKind.Kind + "List"))
	return p
}

// UnmarshalJSON reads a page as the API server answers it.
func (p *page) UnmarshalJSON(data []byte) error {
	var list struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Continue        string `json:"continue"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []document `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	p.Object, p.Items, p.bytes = map[string]any{}, nil, len(data)
	p.SetAPIVersion(list.APIVersion)
	p.SetKind(list.Kind)
	p.SetContinue(list.Metadata.Continue)
	p.SetResourceVersion(list.Metadata.ResourceVersion)
	p.applications = make([]Application, 0, len(list.Items))
	for _, d := range list.Items {
		p.applications = append(p.applications, d.application())
	}
	return nil
}

// DeepCopyObject is its own, since the embedded one would answer with the embedded list.
func (p *page) DeepCopyObject() runtime.Object {
	return &page{UnstructuredList: *p.DeepCopy(), applications: slices.Clone(p.applications), bytes: p.bytes}
}
