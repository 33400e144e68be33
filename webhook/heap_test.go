package webhook

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
)

// mark is a token's beginning that stands nowhere else; it is made anew each time, so that the test's own copy is gone
// when the heap is looked at. 24 bytes are 32 letters of base64, wherever the token goes on.
func mark(seed []byte) string {
	sum := sha256.Sum256(seed)
	return string(sum[:24])
}

func TestTheHeapHoldsNoSecretAfterItsRequest(t *testing.T) {
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		t.Fatal(err)
	}
	h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	// The requests are made by a goroutine of their own, whose stack is gone with what it held.
	done := make(chan struct{})
	go func() {
		defer close(done)
		sendTokens(t, h, seed[:])
	}()
	<-done
	runtime.GC()
	runtime.GC()
	dump, err := os.Create(filepath.Join(t.TempDir(), "heap"))
	if err != nil {
		t.Fatal(err)
	}
	debug.WriteHeapDump(dump.Fd())
	dump.Close()
	heap, err := os.ReadFile(dump.Name())
	if err != nil {
		t.Fatal(err)
	}
	for form, letters := range map[string]string{"plain": mark(seed[:]), "base64": base64.StdEncoding.EncodeToString([]byte(mark(seed[:])))} {
		if n := bytes.Count(heap, []byte(letters)); n > 2 {
			t.Errorf("the heap of %d KiB holds %d tokens of 1000 in %s", len(heap)>>10, n, form)
		}
	}
}

// sendTokens makes 1000 requests with a token each, in the key that Argo CD keeps it in and in the one that we read.
func sendTokens(t *testing.T, h http.Handler, seed []byte) {
	for size, requests := range map[int]int{100: 450, 40_000: 450, 200_000: 100} { // a small buffer, a wide one, and one of its own
		for i := range requests {
			token := base64.StdEncoding.EncodeToString([]byte(mark(seed) + strconv.Itoa(i) + strings.Repeat("x", size)))
			body := admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
				r.Object.Raw = []byte(strings.NewReplacer("Y2FuYXJ5LXRva2Vu", token, "MQ==", token).Replace(clusterSecret))
			})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/clusters", bytes.NewReader(body)))
			if w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		}
	}
}
