package paged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// TestAnAnswerIsReadAsFarAsItMayBe: to its last byte, and not to one more.
func TestAnAnswerIsReadAsFarAsItMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int
		want  error
	}{
		"none": {0, nil}, "as many as may be": {mostBytes, nil}, "one more": {mostBytes + 1, errTooLarge}, "many more": {mostBytes + 1<<20, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := boundedTransport{answers(strings.Repeat("a", test.bytes))}.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/nodes?limit=100", nil))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			if !errors.Is(err, test.want) || len(got) > mostBytes || err == nil && len(got) != test.bytes {
				t.Errorf("%d of %d bytes and %v, want %v", len(got), test.bytes, err, test.want)
			}
		})
	}
}

// TestAWatchGoesOn: its answer is all that happens, for as long as it is open.
func TestAWatchGoesOn(t *testing.T) {
	const bytes = 3 * mostBytes
	watch := httptest.NewRequest(http.MethodGet, "/api/v1/secrets?sendInitialEvents=true&watch=true", nil)
	answer, err := boundedTransport{answers(strings.Repeat("a", bytes))}.RoundTrip(watch)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != bytes {
		t.Errorf("%d of %d bytes are read: %v", n, bytes, err)
	}
}

// TestTheLargestObjectIsRead: etcd keeps 1.5 MiB of a Node as protobuf, and JSON has six bytes for each "<" of it.
func TestTheLargestObjectIsRead(t *testing.T) {
	const stored = 3 << 19
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{strings.Repeat("<", stored-80)}}}}}
	if kept := node.Size(); kept > stored || kept < stored-80 {
		t.Fatalf("etcd keeps %d bytes, want up to %d", kept, stored)
	}
	list, err := json.Marshal(corev1.NodeList{Items: []corev1.Node{*node}})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 6*(stored-80) {
		t.Fatalf("the answer has %d bytes", len(list))
	}
	answer, err := boundedTransport{answers(list)}.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/nodes?limit=100", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(answer.Body); err != nil || len(got) != len(list) {
		t.Errorf("%d of %d bytes are read: %v", len(got), len(list), err)
	}
}

// lists is an API server with so many objects, of which an answer holds so many.
type lists struct {
	client.Reader
	objects, holds int
	asked          []string
}

func (l *lists) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	l.asked = append(l.asked, fmt.Sprintf("%s:%d", o.Continue, o.Limit))
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	n := min(int(o.Limit), l.objects-from)
	switch {
	case l.holds == 0:
		return errors.New("the API server is away")
	case n > l.holds:
		return fmt.Errorf("unexpected error when reading response body: %w", errTooLarge)
	}
	pods := into.(*corev1.PodList)
	pods.Items = make([]corev1.Pod, n)
	if pods.Continue = ""; from+n < l.objects {
		pods.Continue = fmt.Sprint(from + n)
	}
	return nil
}

// TestEachPageIsReadOnce: one that is too large is asked for anew with fewer, and every object comes once.
func TestEachPageIsReadOnce(t *testing.T) {
	for name, test := range map[string]struct {
		objects, holds int
		want           []string
		err            bool
	}{
		"none":                  {0, 500, []string{":100"}, false},
		"few":                   {7, 500, []string{":100"}, false},
		"several pages":         {250, 500, []string{":100", "100:100", "200:100"}, false},
		"large ones":            {25, 12, []string{":100", ":10", "10:10", "20:10"}, false},
		"the largest there are": {3, 1, []string{":100", ":10", ":1", "1:1", "2:1"}, false},
		"one that never fits":   {3, 0, []string{":100"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, seen := &lists{objects: test.objects, holds: test.holds}, 0
			var pods corev1.PodList
			err := Each(t.Context(), l, &pods, func() { seen += len(pods.Items) })
			if diff := cmp.Diff(test.want, l.asked); diff != "" || (err != nil) != test.err || err == nil && seen != test.objects {
				t.Errorf("%d of %d objects, %v (-want +got):\n%s", seen, test.objects, err, diff)
			}
		})
	}
}

// mixed is an API server with some objects as large as can be before all others: a page with two of them is too large.
type mixed struct {
	client.Reader
	large, objects, calls int
}

func (m *mixed) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	m.calls++
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	n := min(int(o.Limit), m.objects-from)
	if min(from+n, m.large)-from > 1 {
		return errTooLarge
	}
	pods := into.(*corev1.PodList)
	pods.Items = make([]corev1.Pod, n)
	if pods.Continue = ""; from+n < m.objects {
		pods.Continue = fmt.Sprint(from + n)
	}
	return nil
}

// TestSomeLargeObjectsHaveNoOthersReadOneByOne: who makes ten of them before all others makes a list no hundred times as long.
func TestSomeLargeObjectsHaveNoOthersReadOneByOne(t *testing.T) {
	m, seen := &mixed{large: 10, objects: 50_000}, 0
	var pods corev1.PodList
	if err := Each(t.Context(), m, &pods, func() { seen += len(pods.Items) }); err != nil || seen != m.objects {
		t.Fatalf("%d of %d objects, %v", seen, m.objects, err)
	}
	if m.calls > 600 {
		t.Errorf("%d calls for 50,000 objects, want some 500", m.calls)
	}
}
