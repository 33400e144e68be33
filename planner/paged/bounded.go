// Package paged reads lists of what others may make, as large and as many as they like, without holding more of them at
// once than the planner has room for.
package paged

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostBytes is what one answer of the API server may have: more than any one object can be. Who may
// create objects makes each of them as large as etcd takes it, 1.5 MiB, and the planner would hold a page of them
// twice. An object that etcd keeps as protobuf, as a Node, has six bytes in an answer for each "<" (\u003c).
const mostBytes = 10 << 20

var errTooLarge = errors.New("the answer is too large to be read at once")

// Bounded is a client's configuration by which no answer is read beyond that, but for a watch's, which never ends: of
// it client-go decodes an object at a time, each within a bound of its own.
func Bounded(config *rest.Config) *rest.Config {
	bounded := rest.CopyConfig(config)
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next} })
	return bounded
}

type boundedTransport struct{ http.RoundTripper }

// RoundTrip bounds the answer's body, as it is when it is unpacked.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "true" {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: mostBytes}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read fails at the first byte beyond the bound.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if len(into) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// First is how many objects the first page has, and Many where most are as small as a Secret that Argo CD makes: as
// client-go's own pages, so that 5,000 are ten calls.
const (
	First = 100
	Many  = 500
)

// Fewer is how many objects to ask for after a page of so many was too large to be read; ok is false for any other
// error.
func Fewer(err error, limit int) (fewer int, ok bool) {
	if !errors.Is(err, errTooLarge) || limit <= 1 {
		return limit, false
	}
	return max(1, limit/10), true
}

// inARow is how many pages in a row are read before the next one may be twice as large again.
const inARow = 3

// Each lists page by page and calls visit after each, which has to take from the list what it keeps.
func Each(ctx context.Context, r client.Reader, list client.ObjectList, visit func(), opts ...client.ListOption) error {
	return Pages(First, func(limit int64, next string) (string, error) {
		if err := r.List(ctx, list, append(opts[:len(opts):len(opts)], client.Limit(limit), client.Continue(next))...); err != nil {
			return "", err
		}
		visit()
		return list.GetContinue(), nil
	})
}

// Pages calls read for each page with how many objects it may have and where it begins; read says where the next one
// does. Pages grow again by and by: some objects as large as can be must not have thousands of small ones read one by
// one.
func Pages(first int, read func(limit int64, next string) (string, error)) error {
	limit, next, done := first, "", 0
	for {
		after, err := read(int64(limit), next)
		if fewer, ok := Fewer(err, limit); ok {
			limit, done = fewer, 0
			continue
		}
		if err != nil {
			return err
		}
		if next = after; next == "" {
			return nil
		}
		if done++; done%inARow == 0 {
			limit = min(first, 2*limit)
		}
	}
}
