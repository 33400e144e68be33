package poll

import (
	"fmt"
	"io"
	"net/http"
)

// maxBody bounds an answer, in bytes: a fleet of 100,000 clusters takes some 20 MB.
const maxBody = 64 << 20

// boundedBody ends an answer that is larger than maxBody with an error.
type boundedBody struct{ next http.RoundTripper }

func (b boundedBody) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &limitedBody{ReadCloser: response.Body, left: maxBody}
	return response, nil
}

// CloseIdleConnections lets the HTTP client close what it keeps open.
func (b boundedBody) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
