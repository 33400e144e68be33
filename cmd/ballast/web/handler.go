// Package web serves the page of a fleet: on the planner's loopback, and for `ballast status --web`. It answers GET and
// HEAD, only to who asks by a name that no DNS can point elsewhere, and nothing that it answers may be kept or framed.
package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"ballast/planner/page"
	"ballast/planner/page/view"
	"ballast/planner/printable"
)

const (
	lookWait = 8 * time.Second // for a page that is being made; below the server's own deadline, so that the answer arrives
	maxError = 600             // characters
	again    = "15"            // seconds until a browser asks anew for a page that could not be made: longer than lookWait
	html     = "text/html; charset=utf-8"
)

// Options say what is served, and to whom.
type Options struct {
	Look     func(context.Context) (page.Fleet, error)
	Clock    clock.PassiveClock
	Keep     time.Duration // how long a page is everybody's: any number of readers costs one look in that time
	Loopback bool          // it listens on the loopback: only that one's names and addresses are ours
	Hosts    []string      // other names by which it may be asked
	HostFlag string        // that gives it such names; empty: no flag does
}

// handler answers with the page and with what it loads.
type handler struct {
	Options
	assets map[string]view.Asset
	flight singleflight.Group
	kept   atomic.Pointer[answer] // nil: none was made yet
}

// answer is a page as it is kept: packed, since a large one is ten times that.
type answer struct {
	packed []byte
	size   int // of the page
	err    error
	until  time.Time
}

// Handler serves the page at /, and what it loads beside it.
func Handler(o Options) http.Handler {
	h := &handler{Options: o, assets: map[string]view.Asset{}}
	for _, a := range view.Assets() {
		h.assets[a.Path] = a
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	asset, isAsset := h.assets[r.URL.Path]
	switch {
	case !h.ours(r.Host):
		http.Error(w, h.askedAs(), http.StatusMisdirectedRequest)
	case crossSite(r.Header.Get("Sec-Fetch-Site")):
		http.Error(w, "Another page asked for this one: enter its address in the browser.", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "This page is only read.", http.StatusMethodNotAllowed)
	case isAsset:
		send(w, r, asset.Type, asset.Content)
	case r.URL.Path == "/":
		h.page(w, r)
	default:
		http.NotFound(w, r)
	}
}

// askedAs tells whoever asked by another name how to ask.
func (h *handler) askedAs() string {
	text := "This page is asked for as localhost or 127.0.0.1"
	if !h.Loopback {
		text = "This page is asked for as localhost or by an IP address"
	}
	if h.HostFlag != "" {
		text += ", or by a name that " + h.HostFlag + " gives it"
	}
	return text + "."
}

// setSecurityHeaders sets what a browser is to keep to, whatever is answered.
func setSecurityHeaders(header http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      view.Policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		header.Set(name, value)
	}
}

// ours reports whether a Host is one of those that this page has. A name that somebody has in DNS can be made to point
// here, and a page under that name would read this one.
func (h *handler) ours(host string) bool {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.IsLoopback() || !h.Loopback
	}
	return host == "localhost" || slices.Contains(h.Hosts, host)
}

// crossSite reports whether a browser says that another site's page asks: that one may neither read this page nor have
// it made.
func crossSite(site string) bool { return site == "cross-site" || site == "same-site" }

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), lookWait)
	defer cancel()
	now := h.take(ctx)
	if now.err != nil {
		w.Header().Set("Refresh", again) // the script that loads it again is the page's, and is not here
		http.Error(w, "The page cannot be made: "+printable.Text(now.err.Error(), maxError),
			http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		send(w, r, html, now.packed)
		return
	}
	header.Set("Content-Type", html)
	header.Set("Content-Length", strconv.Itoa(now.size))
	if r.Method == http.MethodGet {
		unpack(w, now.packed)
	}
}

func send(w http.ResponseWriter, r *http.Request, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a reader that went away has no use for an error
	}
}

// take is the page that is kept, or else the next one.
func (h *handler) take(ctx context.Context) *answer {
	if now := h.fresh(); now != nil {
		return now
	}
	// Who asks first may go away, and the others wait for the same look.
	next := h.flight.DoChan("", func() (any, error) {
		if now := h.fresh(); now != nil {
			return now, nil // of a flight that has just ended
		}
		return h.make(context.WithoutCancel(ctx)), nil
	})
	select {
	case result := <-next:
		return result.Val.(*answer)
	case <-ctx.Done():
		return &answer{err: ctx.Err()}
	}
}

func (h *handler) fresh() *answer {
	if now := h.kept.Load(); now != nil && h.Clock.Now().Before(now.until) {
		return now
	}
	return nil
}

// make looks, draws, and keeps what came of it.
func (h *handler) make(ctx context.Context) *answer {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	plain, err := h.draw(ctx)
	next := &answer{packed: packed(plain), size: len(plain), err: err, until: h.Clock.Now().Add(h.Keep)}
	h.kept.Store(next)
	return next
}

// draw looks and draws. A panic of it is this page's alone: it would end the process, which plans.
func (h *handler) draw(ctx context.Context) (plain []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			plain, err = nil, errors.New("drawing it failed, and the log says where")
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %s", printable.Text(fmt.Sprint(r), maxError)),
				"making the page", "stack", string(debug.Stack()))
		}
	}()
	fleet, err := h.Look(ctx)
	if err != nil {
		return nil, err
	}
	content := page.Of(fleet)
	content.Live = true
	return view.HTML(content)
}

// unpack writes a page that was packed here; a reader that went away has no use for an error.
func unpack(w io.Writer, packed []byte) {
	if text, err := gzip.NewReader(bytes.NewReader(packed)); err == nil {
		_, _ = io.Copy(w, text)
	}
}

func packed(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is one of the package's own
	_, _ = w.Write(text)                            // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
