// Package memo is for tests whose every write goes through them: it answers a read from the last one's answer while
// nobody has written since, as the API server would. A planner reads far more often than it writes, and each read costs
// an API server more than all that the planner makes of it.
package memo

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Memo is what was read of the objects that some clients, and nobody else, write.
type Memo struct {
	mu      sync.Mutex
	writing int                      // writes that are under way: until they end, nobody knows what a read would show
	version int                      // counts the writes that ended
	objects map[string]client.Object // by kind, key and Go type
	lists   map[string]client.ObjectList
}

// New knows nothing yet.
func New() *Memo {
	return &Memo{objects: map[string]client.Object{}, lists: map[string]client.ObjectList{}}
}

// Over is a client whose reads and writes the memo sees. Watches go past it.
func (m *Memo) Over(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get:  m.get,
		List: m.list,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			defer m.write(o)()
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer m.write(o)()
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer m.write(o)()
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer m.write(o)()
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, of string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer m.write(o)()
			return c.SubResource(of).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, of string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			defer m.write(o)()
			return c.SubResource(of).Patch(ctx, o, p, opts...)
		},
	})
}

// write begins one, and answers what ends it: then nothing is known any more of that object, nor of lists of its kind.
func (m *Memo) write(o client.Object) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.writing, m.version = m.writing-1, m.version+1
		forget(m.objects, fmt.Sprintf("%s %s ", kindOf(o), client.ObjectKeyFromObject(o)))
		forget(m.lists, kindOf(o)+"List ")
	}
}

func forget[T any](of map[string]T, prefix string) {
	maps.DeleteFunc(of, func(name string, _ T) bool { return strings.HasPrefix(name, prefix) })
}

// kindOf is what an object, or a list, is of: whoever writes metadata alone writes the same object.
func kindOf(o runtime.Object) string {
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return o.GetObjectKind().GroupVersionKind().Kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

func (m *Memo) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	name := fmt.Sprintf("%s %s %T", kindOf(o), key, o)
	known, put := recall(m, m.objects, name)
	if known != nil {
		show(o, known.DeepCopyObject())
		return nil
	}
	err := c.Get(ctx, key, o, opts...)
	if err == nil {
		put(o.DeepCopyObject().(client.Object))
	}
	return err
}

func (m *Memo) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.Continue != "" || o.Limit != 0 {
		return c.List(ctx, list, opts...)
	}
	name := fmt.Sprintf("%s %T %s %v %v", kindOf(list), list, o.Namespace, o.LabelSelector, o.FieldSelector)
	known, put := recall(m, m.lists, name)
	if known != nil {
		show(list, known.DeepCopyObject())
		return nil
	}
	err := c.List(ctx, list, opts...)
	if err == nil {
		put(list.DeepCopyObject().(client.ObjectList))
	}
	return err
}

// recall answers what is known under a name; where nothing is, put takes what was read, unless something was written
// meanwhile.
func recall[T any](m *Memo, of map[string]T, name string) (known T, put func(T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	busy, version := m.writing > 0, m.version
	if !busy {
		known = of[name]
	}
	return known, func(read T) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !busy && m.writing == 0 && m.version == version {
			of[name] = read
		}
	}
}

// show makes an object, or a list, another one's copy.
func show(o, known any) { reflect.ValueOf(o).Elem().Set(reflect.ValueOf(known).Elem()) }
