// Package intake serves HTTPS to API servers and to whoever else reaches the port: it holds so many connections and
// bytes and no more, shares them by address, and knows nothing of what a review says.
package intake

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"ballast/planner/printable"
)

// The deadlines of a connection. The API server's own timeout is 2 s; it keeps an idle connection for 90 s, and we keep
// it longer, so that no call meets a connection that we are just closing. That is for one that has brought a review: a
// handshake has readDeadline to end, the first request as long again to come, and one that is no review is the last.
const (
	readDeadline  = 5 * time.Second
	writeDeadline = 10 * time.Second
	idleDeadline  = 2 * time.Minute
	// drainDeadline ends what still runs after the lame duck: a call takes at most readDeadline to come.
	drainDeadline = 10 * time.Second
)

// ServerOptions say how the webhook is served.
type ServerOptions struct {
	Handler      http.Handler
	Listen       func() (net.Listener, error) // called once there is a certificate: until then a call is refused at once
	CertDir      string                       // holds tls.crt and tls.key; a new pair is taken up while serving
	ClientCAFile string                       // when set, the API server must show a certificate of this CA
	ClientNames  []string                     // the common names that certificate may have; none: any
	// LameDuck is how long calls are still answered after the stop began, each on a connection that is then closed: the
	// API server keeps using pooled connections long after the endpoint is gone.
	LameDuck time.Duration
	Expiry   func(time.Time) // is told when the certificate that is shown ends; may be nil
	Log      logr.Logger
}

// Server serves the webhook over TLS 1.3 and HTTP/1.1, and stops without losing a call.
type Server struct {
	options  ServerOptions
	serving  atomic.Bool
	stopping atomic.Bool
	clients  *clientCA // nil where no certificate is demanded; set before it serves
}

// NewServer makes a server; Serve starts it.
func NewServer(o ServerOptions) *Server { return &Server{options: o} }

// Ready says why no call should come: there is no certificate yet, or the stop began.
func (s *Server) Ready() error {
	switch {
	case s.stopping.Load():
		return errors.New("stopping")
	case !s.serving.Load():
		return errors.New("no serving certificate yet")
	}
	return nil
}

// Serve answers calls until the context ends and the lame duck is over. It waits for a certificate that is not there
// yet: cert-manager may come last.
func (s *Server) Serve(ctx context.Context) error {
	certificate := s.newServing()
	if !certificate.wait(ctx) {
		return nil // stopped before there was one
	}
	config, err := s.tlsConfig(certificate)
	if err != nil {
		return err
	}
	open, err := s.options.Listen()
	if err != nil {
		return fmt.Errorf("listening for the API server: %w", err)
	}
	listener := limitConnections(open, maxFresh, maxKnown)
	// The certificate is watched until the last call, not until the stop.
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	go certificate.keep(watching)

	server := s.httpServer(config)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	s.serving.Store(true)
	s.options.Log.Info("serving", "address", listener.Addr().String())
	select {
	case <-ctx.Done():
		return s.stop(server)
	case err := <-served:
		return fmt.Errorf("serving the webhook: %w", err)
	}
}

// stop is the lame duck: not ready at once, calls answered on connections that close, then an orderly end.
func (s *Server) stop(server *http.Server) error {
	s.stopping.Store(true)
	s.options.Log.Info("stopping", "lameDuck", s.options.LameDuck.String())
	<-time.After(s.options.LameDuck)
	ctx, cancel := context.WithTimeout(context.Background(), drainDeadline)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("ending the last calls: %w", err)
	}
	return nil
}

func (s *Server) httpServer(config *tls.Config) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         config,
		Protocols:         protocols,
		ReadHeaderTimeout: readDeadline,
		ReadTimeout:       readDeadline,
		WriteTimeout:      writeDeadline,
		IdleTimeout:       idleDeadline,
		MaxHeaderBytes:    maxHead,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return withConnection(noteDial(ctx), c) },
		ConnState:         noteCall,
		ErrorLog:          log.New(errorLog{s.options.Log}, "", 0),
	}
}

// The API server's head has some 400 bytes and 8 entries. An entry costs 200 bytes as long as its call lasts, however
// short it is. net/http adds 4 KiB to what it is told.
const (
	maxHead    = 1
	maxEntries = 32
	// maxLoggedLine is the longest of net/http's messages in our log.
	maxLoggedLine = 1 << 10
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if len(r.Header) > maxEntries {
		w.Header().Set("Connection", "close")
		http.Error(w, http.StatusText(http.StatusRequestHeaderFieldsTooLarge), http.StatusRequestHeaderFieldsTooLarge)
		return
	}
	if s.clients != nil && !s.clients.holds(r.TLS) {
		w.Header().Set("Connection", "close")
		http.Error(w, "the client certificate's CA was withdrawn", http.StatusForbidden)
		return
	}
	if s.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	s.options.Handler.ServeHTTP(w, r)
}

func (s *Server) showExpiry(c *tls.Certificate) {
	leaf := c.Leaf
	if leaf == nil && len(c.Certificate) > 0 {
		leaf, _ = x509.ParseCertificate(c.Certificate[0]) // tls.X509KeyPair has parsed it before
	}
	if leaf != nil && s.options.Expiry != nil {
		s.options.Expiry(leaf.NotAfter)
	}
}

func (s *Server) tlsConfig(certificate *serving) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		GetCertificate: certificate.get}
	if s.options.ClientCAFile == "" {
		return config, nil
	}
	clients := &clientCA{file: s.options.ClientCAFile, log: s.options.Log}
	if err := clients.load(); err != nil {
		return nil, err
	}
	s.clients = clients
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.VerifyConnection = namedOneOf(s.options.ClientNames)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := config.Clone()
		now.ClientCAs = clients.now()
		return now, nil
	}
	return config, nil
}

// errorLog puts net/http's own messages (failed handshakes, mostly) into our log at detail: the API server closes
// pooled connections, and port scanners knock. They name addresses, never content.
type errorLog struct{ log logr.Logger }

func (e errorLog) Write(line []byte) (int, error) {
	e.log.V(1).Info("connection failed", "message", printable.Text(strings.TrimSpace(string(line)), maxLoggedLine))
	return len(line), nil
}
