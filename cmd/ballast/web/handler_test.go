package web

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/page"
	"ballast/planner/page/sample"
)

func fleet(context.Context) (page.Fleet, error) { return sample.Fleet(6), nil }

func ask(h http.Handler, method, target, host string, header ...string) *http.Response {
	r := httptest.NewRequest(method, "http://"+host+target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestThePageIsOnlyForItsOwnNames: a name that anybody can point at this address reads nothing.
func TestThePageIsOnlyForItsOwnNames(t *testing.T) {
	loopback := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Loopback: true})
	outside := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Hosts: []string{"ballast.internal"}})
	const yes, no = http.StatusOK, http.StatusMisdirectedRequest
	for host, want := range map[string][2]int{
		"localhost:8082":        {yes, yes},
		"LOCALHOST":             {yes, yes},
		"localhost.:8082":       {yes, yes},
		"127.0.0.1:8082":        {yes, yes},
		"127.9.9.9":             {yes, yes},
		"[::1]:8082":            {yes, yes},
		"10.0.0.7:8082":         {no, yes},
		"[fd00::7]:8082":        {no, yes},
		"ballast.internal:8082": {no, yes},
		"evil.example:8082":     {no, no},
		"localhost.evil.com":    {no, no},
		"127.0.0.1.nip.io":      {no, no},
		"notlocalhost":          {no, no},
	} {
		if got := [2]int{ask(loopback, "GET", "/", host).StatusCode, ask(outside, "GET", "/", host).StatusCode}; got != want {
			t.Errorf("Host %q: on the loopback and outside %v, want %v", host, got, want)
		}
	}
	planners := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Hosts: []string{"ballast.internal"}, HostFlag: "--page-host"})
	for want, h := range map[string]http.Handler{
		"This page is asked for as localhost or 127.0.0.1.\n":                                                loopback,
		"This page is asked for as localhost or by an IP address.\n":                                         outside,
		"This page is asked for as localhost or by an IP address, or by a name that --page-host gives it.\n": planners,
	} {
		if got, _ := io.ReadAll(ask(h, "GET", "/", "evil.example").Body); string(got) != want {
			t.Errorf("who asks by another name reads %q, want %q", got, want)
		}
	}
	if got := ask(loopback, "GET", "/page.js", "evil.example").StatusCode; got != no {
		t.Errorf("its script: %d", got)
	}
}

func TestThePageIsOnlyRead(t *testing.T) {
	h := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Loopback: true})
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		if r := ask(h, method, "/", "localhost"); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, allowed is %q", method, r.StatusCode, r.Header.Get("Allow"))
		}
	}
	head, get := ask(h, "HEAD", "/", "localhost"), ask(h, "GET", "/", "localhost")
	empty, _ := io.ReadAll(head.Body)
	body, _ := io.ReadAll(get.Body)
	if len(empty) > 0 || head.ContentLength != int64(len(body)) {
		t.Errorf("HEAD has %d bytes and says %d, GET has %d", len(empty), head.ContentLength, len(body))
	}
	if got := ask(h, "GET", "/metrics", "localhost").StatusCode; got != http.StatusNotFound {
		t.Errorf("another path: %d", got)
	}
}

// TestEveryAnswerIsGuarded: also those of what the page loads, and refusals.
func TestEveryAnswerIsGuarded(t *testing.T) {
	h := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Loopback: true})
	for name, r := range map[string]*http.Response{
		"page": ask(h, "GET", "/", "localhost"), "script": ask(h, "GET", "/page.js", "localhost"), "none": ask(h, "GET", "/x", "localhost"),
		"refused": ask(h, "GET", "/", "evil.example"), "written": ask(h, "POST", "/", "localhost"),
	} {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
	for path, want := range map[string]string{"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8",
		"/page.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml"} {
		if got := ask(h, "GET", path, "localhost").Header.Get("Content-Type"); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestThePagePacked(t *testing.T) {
	h := Handler(Options{Look: fleet, Clock: clocktesting.NewFakePassiveClock(sample.Now), Loopback: true})
	plain, _ := io.ReadAll(ask(h, "GET", "/", "localhost").Body)
	r := ask(h, "GET", "/", "localhost", "Accept-Encoding", "gzip, br")
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(unpacked)
	if diff := cmp.Diff(string(plain), string(text)); diff != "" || r.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("encoded as %q (-plain +packed):\n%s", r.Header.Get("Content-Encoding"), diff)
	}
}

// TestManyReadersCostOneLook in the time for which a page is kept, and a failure is kept as long.
func TestManyReadersCostOneLook(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(sample.Now)
	var mutex sync.Mutex
	looks := 0
	h := Handler(Options{Clock: clock, Keep: 2 * time.Second, Loopback: true, Look: func(ctx context.Context) (page.Fleet, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if looks++; looks > 1 {
			return page.Fleet{}, errors.New("reading\x1b the plan: https://u:secret@host refused")
		}
		return fleet(ctx)
	}})
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() { ask(h, "GET", "/", "localhost") })
	}
	readers.Wait()
	if looks != 1 {
		t.Errorf("20 readers cost %d looks", looks)
	}
	clock.SetTime(sample.Now.Add(2 * time.Second))
	for range 3 {
		r := ask(h, "GET", "/", "localhost")
		body, _ := io.ReadAll(r.Body)
		if want := "The page cannot be made: reading\\u001b the plan: https://***@host refused\n"; r.StatusCode != http.StatusServiceUnavailable || string(body) != want {
			t.Errorf("%d: %q, want %q", r.StatusCode, body, want)
		}
		if got := r.Header.Get("Refresh"); got != "15" { // the page comes back by itself
			t.Errorf("it is asked for again after %q seconds", got)
		}
	}
	if looks != 2 {
		t.Errorf("there were %d looks", looks)
	}
}

// TestNoOtherPageHasThePlannerWork: a browser says whose page asks, and who writes an address in it is nobody's.
func TestNoOtherPageHasThePlannerWork(t *testing.T) {
	looks := 0
	h := Handler(Options{Clock: clocktesting.NewFakePassiveClock(sample.Now), Loopback: true, Look: func(ctx context.Context) (page.Fleet, error) {
		looks++
		return fleet(ctx)
	}})
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range []string{"/", "/page.js"} {
			r := ask(h, "GET", path, "localhost", "Sec-Fetch-Site", site)
			body, _ := io.ReadAll(r.Body)
			if want := "Another page asked for this one: enter its address in the browser.\n"; r.StatusCode != http.StatusForbidden || string(body) != want {
				t.Errorf("%s for %s: %d, %q", path, site, r.StatusCode, body)
			}
		}
	}
	if looks != 0 {
		t.Errorf("other pages cost %d looks", looks)
	}
	for _, site := range []string{"none", "same-origin", ""} {
		if got := ask(h, "GET", "/", "localhost", "Sec-Fetch-Site", site).StatusCode; got != http.StatusOK {
			t.Errorf("%q: %d", site, got)
		}
	}
}

// TestAPanicIsAnAnswer, and not the end of the process, which plans.
func TestAPanicIsAnAnswer(t *testing.T) {
	var log strings.Builder
	klog.SetLogger(funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	defer klog.ClearLogger()
	clock, looks := clocktesting.NewFakePassiveClock(sample.Now), 0
	h := Handler(Options{Clock: clock, Keep: 2 * time.Second, Loopback: true, Look: func(ctx context.Context) (page.Fleet, error) {
		if looks++; looks == 1 {
			panic("index\x1b out of range")
		}
		return fleet(ctx)
	}})
	r := ask(h, "GET", "/", "localhost")
	body, _ := io.ReadAll(r.Body)
	if want := "The page cannot be made: drawing it failed, and the log says where\n"; r.StatusCode != http.StatusServiceUnavailable || string(body) != want {
		t.Errorf("%d: %q, want %q", r.StatusCode, body, want)
	}
	for _, want := range []string{`"error"="panic: index\\u001b out of range"`, "TestAPanicIsAnAnswer"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, log.String())
		}
	}
	clock.SetTime(sample.Now.Add(2 * time.Second))
	if r := ask(h, "GET", "/", "localhost"); r.StatusCode != http.StatusOK || looks != 2 {
		t.Errorf("the next look: %d, the %dth", r.StatusCode, looks)
	}
}

// TestAReaderThatGoesAwayEndsNoLook: the others wait for the same one.
func TestAReaderThatGoesAwayEndsNoLook(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := Handler(Options{Clock: clocktesting.NewFakePassiveClock(sample.Now), Keep: time.Hour, Loopback: true,
		Look: func(ctx context.Context) (page.Fleet, error) {
			close(begun)
			<-goOn
			if ctx.Err() != nil {
				return page.Fleet{}, ctx.Err()
			}
			return fleet(ctx)
		}})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil).WithContext(ctx))
		left <- w.Code
	}()
	<-begun
	leave()
	if got := <-left; got != http.StatusServiceUnavailable {
		t.Errorf("who went away was answered %d", got)
	}
	close(goOn)
	if r := ask(h, "GET", "/", "localhost"); r.StatusCode != http.StatusOK {
		t.Errorf("the next one was answered %d", r.StatusCode)
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1":       "the address of the page: address 127.0.0.1: missing port in address",
		"127.0.0.1:x":     `the address of the page, "127.0.0.1:x": its port is no number up to 65535`,
		"127.0.0.1:65536": `the address of the page, "127.0.0.1:65536": its port is no number up to 65535`,
	} {
		if _, _, err := Listen(address); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	for address, want := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false} {
		l, loopback, err := Listen(address)
		if err != nil || loopback != want {
			t.Errorf("%q: the loopback's is %t, %v", address, loopback, err)
			continue
		}
		if !strings.Contains(l.Addr().String(), ":") {
			t.Errorf("%q listens at %s", address, l.Addr())
		}
		_ = l.Close()
	}
}
