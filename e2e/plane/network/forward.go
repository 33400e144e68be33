package network

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Forward is the pods' way to each other: an HTTP proxy that the processes find by HTTP_PROXY. To a pod's address it
// goes by the Proxy, whose failures it therefore shares. Go's clients leave loopback addresses alone, and TLS has no
// business here.
type Forward struct {
	server *http.Server
	URL    string
}

// StartForward listens on a free port of the host.
func StartForward(p *Proxy, host string) (*Forward, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening for the pods' connections to each other: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return p.dial(ctx, host, port)
	}
	handler := &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // a request to a proxy names its destination whole
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // who asked is told, by a 502
	}
	f := &Forward{server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		URL: (&url.URL{Scheme: "http", Host: l.Addr().String()}).String()}
	go func() { _ = f.server.Serve(l) }()
	return f, nil
}

// Close ends it, and the connections that go through it.
func (f *Forward) Close() error { return f.server.Close() }
