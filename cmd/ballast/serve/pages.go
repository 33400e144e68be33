package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

const (
	pageKeep = time.Second     // far below any scrape interval: a page is answered for so long
	pageWait = 8 * time.Second // for a page that is being made; below plainDeadline, so that the answer still arrives
)

// pages answers /metrics. Who asks while a page is made waits for that page, and for a second it is everybody's: any
// number of readers costs one gathering a second, and they are written the same bytes. Whoever floods the port thus
// turns no scrape away. Slow readers hold old pages, of which plainDeadline bounds the number: one a second.
type pages struct {
	from   prometheus.Gatherer
	clock  clock.PassiveClock
	flight singleflight.Group
	kept   atomic.Pointer[page]
}

// page is an answer to all who ask until then. It has two forms and no more, whatever a request's head asks for: the
// text format, which every Prometheus reads, and the same compressed.
type page struct {
	text   []byte
	packed func() []byte // made for the first reader that takes gzip
	err    error         // instead of both; it is kept as long
	until  time.Time
}

// ServeHTTP implements http.Handler.
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageWait)
	defer cancel()
	now := p.take(ctx)
	if now.err != nil {
		http.Error(w, now.err.Error(), http.StatusInternalServerError)
		return
	}
	body, header := now.text, w.Header()
	if takesGzip(r.Header) {
		body = now.packed()
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a reader that went away has no use for an error
}

// take is the page that is kept, or else the next one.
func (p *pages) take(ctx context.Context) *page {
	if now := p.fresh(); now != nil {
		return now
	}
	next := p.flight.DoChan("", func() (any, error) {
		if now := p.fresh(); now != nil {
			return now, nil // of a flight that has just ended
		}
		return p.make(), nil
	})
	select {
	case result := <-next:
		return result.Val.(*page)
	case <-ctx.Done():
		return &page{err: fmt.Errorf("waiting for the metrics: %w", ctx.Err())}
	}
}

// fresh is the page that is kept; nil for none, and for one that is too old.
func (p *pages) fresh() *page {
	if now := p.kept.Load(); now != nil && p.clock.Now().Before(now.until) {
		return now
	}
	return nil
}

// make gathers, and keeps what came of it.
func (p *pages) make() *page {
	next := &page{}
	next.text, next.err = p.gather()
	next.packed = sync.OnceValue(func() []byte { return compressed(next.text) })
	next.until = p.clock.Now().Add(pageKeep)
	p.kept.Store(next)
	return next
}

func (p *pages) gather() ([]byte, error) {
	families, err := p.from.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the metrics: %w", err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("encoding metric %q: %w", family.GetName(), err)
		}
	}
	return text.Bytes(), nil
}

func compressed(text []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// takesGzip reports whether a reader takes gzip.
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, parameters, err := mime.ParseMediaType(coding)
		if err != nil || name != "gzip" {
			continue
		}
		weight, stated := parameters["q"]
		return !stated || strings.Trim(weight, "0.") != "" // q=0, q=0.000: not at all
	}
	return false
}
