// Package scrape asks the application-controller's pods, or Prometheus for them, which clusters each of them shows.
package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ballast/planner/observed"
)

// Options bound what asking the pods may cost. Zero values are the defaults.
type Options struct {
	Client      *http.Client  // default NewClient; redirects are never followed
	Timeout     time.Duration // of one pod, from dialling to the last byte; default 5 s
	Total       time.Duration // of all pods: those that are not asked by then are not; default 12 times that of one
	Concurrency int           // pods asked at once; default 8
	MaxBody     int64         // bytes of one answer's lines that are read, of which little is kept; default 64 MiB: 5,000 Applications take some 10 MB
}

// Scraper asks pods for their metrics.
type Scraper struct{ o Options }

// NewScraper makes a scraper; nothing is asked yet.
func NewScraper(o Options) *Scraper {
	o.Timeout = cmp.Or(max(o.Timeout, 0), 5*time.Second)
	o.Total = cmp.Or(max(o.Total, 0), 12*o.Timeout)
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), 8)
	o.MaxBody = cmp.Or(max(o.MaxBody, 0), 64<<20)
	c := NewClient()
	if o.Client != nil {
		*c = *o.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = c
	return &Scraper{o}
}

// NewClient is an HTTP client for pods. It uses the proxy that HTTP_PROXY names, as any Go program; where one is set,
// NO_PROXY must name the pods' network. It asks for no compression, since the pods' CPU is what ballast is there to
// spare.
func NewClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

// Scrape asks every pod that may own clusters, those that are being deleted too. It never fails as a whole: what went
// wrong stands in the reports, which are in the order of the pods. clock says when an answer was complete.
func (s *Scraper) Scrape(ctx context.Context, pods []observed.Controller, clock func() time.Time) []PodReport {
	reports := make([]PodReport, len(pods))
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Total, fmt.Errorf("asking all pods took more than %s", s.o.Total))
	defer cancel()
	var kept atomic.Int64 // bytes that the reports take
	var group errgroup.Group
	group.SetLimit(s.o.Concurrency)
	for i, pod := range pods {
		group.Go(func() error {
			reports[i] = s.ask(ctx, pod, clock, &room{kept: &kept})
			return nil
		})
	}
	_ = group.Wait() // the errors stand in the reports
	return reports
}

func (s *Scraper) ask(ctx context.Context, pod observed.Controller, clock func() time.Time,
	room *room) (report PodReport) {
	report.Controller = pod
	err := errors.New("its container does not run")
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case pod.Running && pod.Address == "":
		err = errors.New("it has no address yet")
	case pod.Running:
		err = s.read(ctx, pod.Address, &report, room)
	}
	if err == nil {
		err = room.keep()
	}
	if err != nil {
		return PodReport{Controller: pod, Err: fmt.Sprintf("asking pod %q for its metrics: %v", pod.Name, err)}
	}
	report.SampledAt = clock().UTC()
	return report
}

// read reads a pod's answer. Whatever it has in it is that pod's own fault.
func (s *Scraper) read(ctx context.Context, address string, into *PodReport, room *room) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the answer ended in a panic of type %T", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "ballast")
	response, err := s.o.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %d instead of 200", response.StatusCode)
	}
	return readMetrics(response.Body, s.o.MaxBody, into, room)
}
