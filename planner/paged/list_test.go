package paged

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var kind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}

type named struct {
	Name string `json:"name"`
}

type item struct {
	Metadata named `json:"metadata"`
}

func TestAPageKeepsWhereTheNextBegins(t *testing.T) {
	const text = `{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationList","metadata":{"continue":"more","resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`
	p := NewList[item](kind)
	if err := p.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	type read struct {
		Continue, ResourceVersion, Kind string
		Kept                            []item
		Bytes                           int
	}
	want := read{"more", "7", "argoproj.io/v1alpha1, Kind=ApplicationList", []item{{Metadata: named{"a"}}}, len(text)}
	for name, q := range map[string]*List[item]{"itself": p, "a copy": p.DeepCopyObject().(*List[item])} {
		if diff := cmp.Diff(want, read{q.GetContinue(), q.GetResourceVersion(), q.GroupVersionKind().String(), q.Kept, q.Bytes}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
