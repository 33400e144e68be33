package intake

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestTheLargestReviewIsRead: an object as large as the API server reads beside one as large as etcd stores, of the
// characters that JSON makes most of.
func TestTheLargestReviewIsRead(t *testing.T) {
	for name, filler := range map[string]string{"HTML": "<", "a control character": "\x01", "no UTF-8": "\xff", "a line separator": "\u2028"} {
		t.Run(name, func(t *testing.T) {
			notes := func(bytes int) map[string]string {
				return map[string]string{"notes": strings.Repeat(filler, bytes/len(filler))}
			}
			body, err := json.Marshal(map[string]any{"request": map[string]any{"object": notes(RequestLimit), "oldObject": notes(StoredLimit)}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := NewBodies().Read(nil, &http.Request{ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))})
			if err != nil || len(got.Bytes) != len(body) {
				t.Fatalf("%d of %d bytes: %v", len(got.Bytes), len(body), err)
			}
			got.Release()
		})
	}
}

func TestABufferIsWipedWhenItsRequestIsOver(t *testing.T) {
	for name, size := range map[string]int{"a head": 100, "as large as a head is": headBody, "small": headBody + 1, "as large as a small one is": pooledBody, "wide": pooledBody + 1, "as large as a wide one is": smallBody, "of its own": smallBody + 1} {
		t.Run(name, func(t *testing.T) {
			sent := bytes.Repeat([]byte("x"), size)
			got, err := NewBodies().Read(nil, &http.Request{ContentLength: int64(size), Body: io.NopCloser(bytes.NewReader(sent))})
			if err != nil {
				t.Fatal(err)
			}
			kept, head := got.Bytes[:cap(got.Bytes)], got.reading
			if !bytes.Equal(got.Bytes, sent) {
				t.Fatal("another body was read than sent")
			}
			if got.Release(); !bytes.Equal(kept, make([]byte, len(kept))) {
				t.Error("the buffer still holds the body")
			}
			if head.head != [headBody]byte{} {
				t.Error("the head still holds the body's beginning")
			}
		})
	}
}
