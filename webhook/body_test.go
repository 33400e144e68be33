package webhook

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

func TestABufferIsWipedWhenItsRequestIsOver(t *testing.T) {
	for name, size := range map[string]int{"a head": 100, "as large as a head is": headBody, "small": headBody + 1, "as large as a small one is": pooledBody, "wide": pooledBody + 1, "as large as a wide one is": smallBody, "of its own": smallBody + 1} {
		t.Run(name, func(t *testing.T) {
			sent := bytes.Repeat([]byte("x"), size)
			got, err := newBodies().read(nil, &http.Request{ContentLength: int64(size), Body: io.NopCloser(bytes.NewReader(sent))})
			if err != nil {
				t.Fatal(err)
			}
			kept, head := got.bytes[:cap(got.bytes)], got.reading
			if !bytes.Equal(got.bytes, sent) {
				t.Fatal("another body was read than sent")
			}
			if got.release(); !bytes.Equal(kept, make([]byte, len(kept))) {
				t.Error("the buffer still holds the body")
			}
			if head.head != [headBody]byte{} {
				t.Error("the head still holds the body's beginning")
			}
		})
	}
}
