package scrape

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
)

func newRoom() *room { return &room{kept: new(atomic.Int64)} }

// names answers with as many servers as it is told, of a URL's usual length.
func names(count int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		out := bufio.NewWriterSize(w, 1<<20)
		defer out.Flush()
		for i := range count {
			if _, err := fmt.Fprintf(out, "argocd_app_info{dest_server=\"https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-central-%06d.eks.amazonaws.com\"} 1\n", i); err != nil {
				return
			}
		}
	}
}

// longNames answers with servers as long as a line, up to the largest answer.
func longNames(w http.ResponseWriter, _ *http.Request) {
	long := strings.Repeat("x", longestLine-100)
	for i := range 900 {
		if _, err := io.WriteString(w, fmt.Sprintf("argocd_app_info{dest_server=\"%d%s\"} 1\n", i, long)); err != nil {
			return
		}
	}
}

// Pods that name without end did not answer, those beside them did, and all of them together take what a fleet does.
func TestWhatPodsNameIsBounded(t *testing.T) {
	pods := map[string]struct {
		answer http.HandlerFunc
		count  int
		want   string
	}{
		"20,000":       {names(20_000), 3, ""},
		"a million":    {names(1_000_000), 4, "it names more servers than 8 MiB hold, some 20,000, which no fleet has"},
		"of 64 KiB":    {longNames, 4, ""}, // no cluster has such a URL
		"5,000 beside": {names(5_000), 1, ""},
	}
	var all []observed.Controller
	for name, p := range pods {
		address := serve(t, p.answer)
		for range p.count {
			all = append(all, running(name, address))
		}
	}
	reports := NewScraper(Options{Timeout: time.Minute, Concurrency: len(all)}).Scrape(t.Context(), all, noon)
	var live runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&live)
	if live.HeapAlloc > 48<<20 {
		t.Errorf("%d MiB are held after all have answered, want some tens", live.HeapAlloc>>20)
	}
	for _, r := range reports {
		said := r.Err
		if at := strings.LastIndex(said, ": "); at > 0 {
			said = said[at+2:]
		}
		if diff := cmp.Diff(pods[r.Name].want, said); diff != "" {
			t.Errorf("pod %q (-want +got):\n%s", r.Name, diff)
		}
	}
}

// What all pods name has a bound of its own, that of a refused pod is free again.
func TestAllPodsShareOneBound(t *testing.T) {
	address := serve(t, names(20_000)) // 7.3 MiB each
	var pods []observed.Controller
	for i := range 6 {
		pods = append(pods, running(fmt.Sprint(i), address))
	}
	var answered, refused int
	for _, r := range NewScraper(Options{Timeout: time.Minute, Concurrency: 1}).Scrape(t.Context(), pods, noon) {
		switch {
		case r.Answered() && len(r.Servers) == 20_000:
			answered++
		case strings.HasSuffix(r.Err, errPodsFull.Error()) && r.Servers == nil:
			refused++
		default:
			t.Errorf("pod %q names %d servers, error %q", r.Name, len(r.Servers), r.Err)
		}
	}
	if answered != 5 || refused != 1 {
		t.Errorf("%d pods answered and %d were refused, want 5 and 1", answered, refused)
	}
}
