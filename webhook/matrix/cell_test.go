package matrix

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// writer is one user's hand on one resource; dry is set for a server-side dry-run.
type writer struct {
	dynamic.ResourceInterface
	name string
	dry  []string
}

// outcome is what a write left behind: the object's fields of interest, what the writer was told, what was audited.
type outcome struct {
	Fields   map[string]string
	Warnings []string
	Audit    map[string]string // the webhook's annotations: reason, revision, requested, enforced
	Error    string
}

// cell is one write path on one kind.
type cell struct {
	// before is the object as it stands, nil for none; {name} stands for the cell's own object.
	before *unstructured.Unstructured
	// owner applied it; else it was created.
	owner string
	write func(context.Context, writer) (*unstructured.Unstructured, error)
	want  outcome
	// stored are the fields that stand when the write was refused; else they are those of want.
	stored map[string]string
}

// table is a kind's cells and how to look at its objects.
type table struct {
	resource schema.GroupVersionResource
	webhook  string
	fields   func(*unstructured.Unstructured) map[string]string
	reset    func(t *testing.T, name string) // makes room for the object
	settle   func(t *testing.T)              // waits for the webhook to have seen it; nil for no need
	cells    map[string]cell
	names    func(i int) string
	owner    *rest.Config // who makes what stands before; nil: the administrator
}

// run makes each write twice, as a dry-run and in earnest: the dry-run answers the same and stores nothing.
func (s *site) run(t *testing.T, tb table) {
	names := make([]string, 0, len(tb.cells))
	for name := range tb.cells {
		names = append(names, name)
	}
	for i, name := range sorted(names) {
		t.Run(name, func(t *testing.T) {
			c := tb.cells[name]
			object := tb.names(i)
			admin := s.dynamic(t, quiet(s.admin)).Resource(tb.resource).Namespace(namespace)
			tb.reset(t, object)
			before := map[string]string(nil)
			if c.before != nil {
				owner := admin
				if tb.owner != nil {
					owner = s.dynamic(t, quiet(tb.owner)).Resource(tb.resource).Namespace(namespace)
				}
				before = tb.fields(setUp(t, owner, c, object))
				if tb.settle != nil {
					tb.settle(t)
				}
			}
			want := c.want.named(object)
			if diff := cmp.Diff(want, s.observe(t, tb, c, object, []string{metav1.DryRunAll}, nil)); diff != "" {
				t.Errorf("dry-run (-want +got):\n%s", diff)
			}
			if stood := read(t, tb, admin, object); c.before != nil || stood != nil {
				if diff := cmp.Diff(before, stood); diff != "" {
					t.Errorf("the dry-run stored (-before +after):\n%s", diff)
				}
			}
			written := object
			if diff := cmp.Diff(want, s.observe(t, tb, c, object, nil, &written)); diff != "" {
				t.Errorf("write (-want +got):\n%s", diff)
			}
			stored := c.want.Fields
			if c.want.Error != "" {
				stored = c.stored
			}
			if diff := cmp.Diff(stored, read(t, tb, admin, written)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// setUp makes the object that a cell begins with.
func setUp(t *testing.T, admin dynamic.ResourceInterface, c cell, name string) *unstructured.Unstructured {
	t.Helper()
	var stood *unstructured.Unstructured
	var err error
	if c.owner != "" {
		stood, err = admin.Apply(t.Context(), name, named(c.before, name), metav1.ApplyOptions{FieldManager: c.owner})
	} else {
		stood, err = admin.Create(t.Context(), named(c.before, name), metav1.CreateOptions{FieldManager: "setup"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return stood
}

// observe makes one write as ada and collects what came of it.
func (s *site) observe(t *testing.T, tb table, c cell, object string, dry []string, written *string) outcome {
	t.Helper()
	agent := "cell/" + strings.ReplaceAll(t.Name(), " ", "_") + strings.Join(dry, "")
	told := &warnings{}
	config := rest.CopyConfig(s.person)
	config.UserAgent, config.WarningHandler = agent, told
	hand := writer{s.dynamic(t, config).Resource(tb.resource).Namespace(namespace), object, dry}
	got, err := c.write(t.Context(), hand)
	out := outcome{Warnings: told.list(), Audit: s.audited(t, agent, tb.webhook)}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Fields = tb.fields(got)
	if written != nil {
		*written = got.GetName()
	}
	return out
}

func (o outcome) named(name string) outcome {
	out := o
	out.Error = strings.ReplaceAll(o.Error, "{name}", name)
	out.Warnings = nil
	for _, w := range o.Warnings {
		out.Warnings = append(out.Warnings, strings.ReplaceAll(w, "{name}", name))
	}
	return out
}

func read(t *testing.T, tb table, from dynamic.ResourceInterface, name string) map[string]string {
	t.Helper()
	got, err := from.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return tb.fields(got)
}

// named is a copy of an object under another name.
func named(u *unstructured.Unstructured, name string) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetName(name)
	return out
}

// warnings collects what an API server tells a client.
type warnings struct {
	mu   sync.Mutex
	told []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, text)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}

// event is what these tests read of an audit event.
type event struct {
	Stage       string            `json:"stage"`
	UserAgent   string            `json:"userAgent"`
	Annotations map[string]string `json:"annotations"`
	User        struct {
		Username string `json:"username"`
	} `json:"user"`
}

// audited are the annotations that a webhook left in the audit event of the client's last write; nil when it was not
// called.
func (s *site) audited(t *testing.T, agent, webhook string) map[string]string {
	t.Helper()
	var last *event
	eventually(t, "the audit event of "+agent, func() bool {
		last = lastEvent(t, s.audit, agent)
		return last != nil
	})
	var out map[string]string
	for key, value := range last.Annotations {
		if name, ok := strings.CutPrefix(key, webhook+"/"); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}

func lastEvent(t *testing.T, log, agent string) *event {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last *event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), agent) {
			continue
		}
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.UserAgent == agent && e.Stage == "ResponseComplete" {
			last = &e
		}
	}
	return last
}

func audit(reason, revision, requested, enforced string) map[string]string {
	return map[string]string{"reason": reason, "revision": revision, "requested": requested, "enforced": enforced}
}

// The write paths, each given the document it sends.

func put(change func(*unstructured.Unstructured)) func(context.Context, writer) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, w writer) (*unstructured.Unstructured, error) {
		stood, err := w.Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		change(stood)
		return w.Update(ctx, stood, metav1.UpdateOptions{DryRun: w.dry})
	}
}

func create(u *unstructured.Unstructured) func(context.Context, writer) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, w writer) (*unstructured.Unstructured, error) {
		object := u.DeepCopy()
		if object.GetGenerateName() == "" {
			object.SetName(w.name)
		}
		return w.Create(ctx, object, metav1.CreateOptions{DryRun: w.dry})
	}
}

func patch(kind types.PatchType, body string, subresources ...string) func(context.Context, writer) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, w writer) (*unstructured.Unstructured, error) {
		return w.Patch(ctx, w.name, kind, []byte(body), metav1.PatchOptions{DryRun: w.dry}, subresources...)
	}
}

func apply(manager string, force bool, u *unstructured.Unstructured, subresources ...string) func(context.Context, writer) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, w writer) (*unstructured.Unstructured, error) {
		return w.Apply(ctx, w.name, named(u, w.name), metav1.ApplyOptions{FieldManager: manager, Force: force, DryRun: w.dry}, subresources...)
	}
}
