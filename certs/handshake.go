package certs

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"ballast/certs/privatekey"
)

// judgeHandshake calls a server that has the pair, as an API server does, by that name and at that time: what verifies
// may yet be nothing that a TLS client takes.
func judgeHandshake(leafPEM, keyPEM []byte, bundle []*x509.Certificate, name string, now time.Time) []Flaw {
	pair, err := privatekey.Pair(leafPEM, keyPEM)
	if err != nil {
		return nil // KeyMismatch
	}
	roots := x509.NewCertPool()
	for _, ca := range bundle {
		roots.AddCert(ca)
	}
	clock := func() time.Time { return now }
	cheap := []tls.CurveID{tls.X25519} // how keys are exchanged is not what is judged
	err = handshake(
		&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
			CurvePreferences: cheap, Time: clock}, // the version is the webhook's
		&tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS13, CurvePreferences: cheap,
			Time: clock},
	)
	if err != nil {
		return []Flaw{{HandshakeFails, fmt.Sprintf("no API server takes it: %.200q", err.Error()), mendRenew}}
	}
	return nil
}

// handshake lets a client call a server in memory. Both have ended when it returns.
func handshake(server, client *tls.Config) error {
	there, back := make(chan []byte, maxWrites), make(chan []byte, maxWrites)
	ended := make(chan error, 1)
	go func() {
		defer close(back)
		ended <- tls.Server(&end{in: there, out: back}, server).Handshake()
	}()
	err := tls.Client(&end{in: back, out: there}, client).Handshake()
	close(there)
	if serverErr := <-ended; err == nil {
		err = serverErr
	}
	return err
}

// maxWrites is more than either end writes in a handshake: a Secret's mebibyte, in records of 16 KiB.
const maxWrites = 128

// end is one end of a connection. Unlike net.Pipe's its writes never wait, so that a client which gives up in the
// middle of the server's flight can tell it so at once.
type end struct {
	net.Conn // nil: a handshake asks it for nothing else
	in       <-chan []byte
	out      chan<- []byte
	unread   []byte
}

func (e *end) Read(p []byte) (int, error) {
	if len(e.unread) == 0 {
		var open bool
		if e.unread, open = <-e.in; !open {
			return 0, io.EOF
		}
	}
	n := copy(p, e.unread)
	e.unread = e.unread[n:]
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	select {
	case e.out <- slices.Clone(p):
		return len(p), nil
	default:
		return 0, io.ErrShortWrite
	}
}

// vastKey says that nothing is to be signed with the certificate's key: no client takes it, and of tens of thousands of
// bits one signature takes minutes.
func vastKey(c *x509.Certificate) bool {
	key, ok := c.PublicKey.(*rsa.PublicKey)
	return ok && key.N.BitLen() > privatekey.MaxBits
}
