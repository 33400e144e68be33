package intake

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// clientCA is the CA of the API server's client certificate as it stands in its file, which whoever renews the CA
// replaces. A handshake reads some 2 KiB for it, and costs much more than that; so does each call, for the API server
// keeps its connections.
type clientCA struct {
	file string
	log  logr.Logger

	mu      sync.Mutex
	text    []byte // the file as it was last looked at; nil for not at all
	refused error  // why that was not taken; it is logged once
	pool    *x509.CertPool
	roots   map[string]bool // the pool's certificates, in DER
}

// now is the pool of the file as it stands; the last good one where no certificate can be read from it.
func (c *clientCA) now() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.refused
	c.refused = c.read()
	if c.refused != nil && (before == nil || before.Error() != c.refused.Error()) {
		c.log.Error(c.refused, "the client CA cannot be taken up; the last good one holds")
	}
	return c.pool
}

// holds reports whether a connection that was let in before is one still: its certificate's CA may have been withdrawn
// since.
func (c *clientCA) holds(state *tls.ConnectionState) bool {
	pool := c.now()
	if state == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	c.mu.Lock()
	same := c.known(state.VerifiedChains)
	c.mu.Unlock()
	if same { // the common case: it costs no signature
		return true
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// known reports whether the CA by which a certificate was verified is in the file.
func (c *clientCA) known(chains [][]*x509.Certificate) bool {
	return slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool {
		return len(chain) > 0 && c.roots[string(chain[len(chain)-1].Raw)]
	})
}

// load reads the file for the first time.
func (c *clientCA) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *clientCA) read() error {
	text, err := os.ReadFile(c.file)
	if err != nil {
		c.text = nil
		return fmt.Errorf("reading the client CA: %w", err)
	}
	if c.text != nil && bytes.Equal(text, c.text) {
		return c.refused // what became of it
	}
	c.text = text
	pool, roots := x509.NewCertPool(), map[string]bool{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			pool.AddCert(cert)
			roots[string(cert.Raw)] = true
		}
	}
	if len(roots) == 0 {
		return fmt.Errorf("reading the client CA %q: no certificate in it", c.file)
	}
	first := c.pool == nil
	if c.pool, c.roots = pool, roots; !first {
		c.log.Info("client CA taken up", "file", c.file)
	}
	return nil
}

// errClientName names no name: whoever shows a certificate chose what is in it.
var errClientName = errors.New("the client certificate is for another name")

// namedOneOf holds a client certificate that was verified to a list of common names; an empty one allows any. It is
// asked for a resumed session, too.
func namedOneOf(names []string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(names) == 0 {
			return nil
		}
		if shown := state.PeerCertificates; len(shown) > 0 && slices.Contains(names, shown[0].Subject.CommonName) {
			return nil
		}
		return errClientName
	}
}

// Verified reports whether the caller has shown a client certificate that the server demands.
func Verified(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }
