package nudge

import (
	"errors"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// mostBytes is what one answer of the API server may have: several pages' bytes, and more than any one Application can be.
// Who may create Applications makes each of them as large as etcd takes it, and the planner would hold a page of them twice.
const mostBytes = 16 << 20

var errTooLarge = errors.New("the answer is too large to be read at once")

// Bounded is a client's configuration by which no answer is read beyond that.
func Bounded(config *rest.Config) *rest.Config {
	bounded := rest.CopyConfig(config)
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next} })
	return bounded
}

type boundedTransport struct{ http.RoundTripper }

// RoundTrip bounds the answer's body, as it is when it is unpacked.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
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
