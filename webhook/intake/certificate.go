package intake

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"ballast/certs/privatekey"
)

// certificatePoll is how often the files of the serving certificate are looked at: it is two reads of some 2 KiB, and
// nothing is computed where they have not changed. The kubelet takes up to two minutes to bring a Secret there.
const certificatePoll = time.Second

// maxPEM bounds what is read of each file: Go's TLS clients, as API servers are, take 256 KiB of certificates.
const maxPEM = 256 << 10

// serving is the webhook's certificate as it stands in two files, which whoever renews it replaces. It stands in for
// controller-runtime's certwatcher, which gives a key to crypto/tls unjudged: one that somebody made up is computed
// with for days there, and no certificate is taken up until the process ends.
type serving struct {
	certFile, keyFile string
	taken             func(*tls.Certificate) // is told of each pair that is taken up
	log               logr.Logger

	cert, key []byte // the files as they were last looked at; nil where they could not be read
	refused   error  // why those were not taken; it is logged once
	pair      atomic.Pointer[tls.Certificate]
}

func (s *Server) newServing() *serving {
	return &serving{
		certFile: filepath.Join(s.options.CertDir, "tls.crt"), keyFile: filepath.Join(s.options.CertDir, "tls.key"),
		taken: s.showExpiry, log: s.options.Log,
	}
}

// get is the last good pair, for a handshake.
func (c *serving) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }

// wait returns true as soon as there is a pair, and false where the context ends before.
func (c *serving) wait(ctx context.Context) bool {
	return c.follow(ctx, func() bool { return c.pair.Load() != nil })
}

// keep takes up each new pair until the context ends.
func (c *serving) keep(ctx context.Context) { c.follow(ctx, func() bool { return false }) }

func (c *serving) follow(ctx context.Context, done func() bool) bool {
	ticker := time.NewTicker(certificatePoll)
	defer ticker.Stop()
	for {
		if c.look(); done() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// look takes the pair up as it stands now. The last good one is served on where it cannot be.
func (c *serving) look() {
	before := c.refused
	c.refused = c.read()
	switch {
	case c.refused == nil || before != nil && before.Error() == c.refused.Error():
	case c.pair.Load() == nil: // cert-manager may come last
		c.log.Info("waiting for a serving certificate", "file", c.certFile, "why", c.refused.Error())
	default:
		c.log.Error(c.refused, "the serving certificate cannot be taken up; the last good one is served")
	}
}

func (c *serving) read() error {
	cert, certErr := readPEM(c.certFile)
	key, keyErr := readPEM(c.keyFile)
	if err := cmp.Or(certErr, keyErr); err != nil {
		c.cert, c.key = nil, nil
		return err
	}
	if c.cert != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return c.refused // what became of them
	}
	pair, err := privatekey.Pair(cert, key)
	c.cert, c.key = cert, key
	if err != nil {
		return fmt.Errorf("reading the pair of %q and %q: %w", c.certFile, c.keyFile, err)
	}
	first := c.pair.Swap(&pair) == nil
	if c.taken(&pair); !first {
		c.log.Info("serving certificate taken up", "file", c.certFile)
	}
	return nil
}

func readPEM(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	if len(text) > maxPEM {
		return nil, fmt.Errorf("reading the serving certificate: %q has more than %d KiB, which no TLS client takes",
			file, maxPEM>>10)
	}
	return text, nil
}
