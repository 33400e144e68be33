package paged

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// List is a page of objects of which only the fields of T are read: as maps a megabyte that somebody filled takes
// twenty. To the client it is a list of objects without a Go type, like the one that it embeds.
type List[T any] struct {
	unstructured.UnstructuredList
	Kept  []T
	Bytes int // of the page
}

// NewList is an empty one of that kind of objects.
func NewList[T any](kind schema.GroupVersionKind) *List[T] {
	l := &List[T]{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return l
}

// UnmarshalJSON reads a page as the API server answers it.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	var list struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Continue        string `json:"continue"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []T `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	l.Object, l.Items, l.Bytes = map[string]any{}, nil, len(data)
	l.SetAPIVersion(list.APIVersion)
	l.SetKind(list.Kind)
	l.SetContinue(list.Metadata.Continue)
	l.SetResourceVersion(list.Metadata.ResourceVersion)
	l.Kept = list.Items
	return nil
}

// DeepCopyObject is its own, since the embedded one would answer with the embedded list.
func (l *List[T]) DeepCopyObject() runtime.Object {
	return &List[T]{UnstructuredList: *l.DeepCopy(), Kept: slices.Clone(l.Kept), Bytes: l.Bytes}
}
