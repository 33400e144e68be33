package meter_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"ballast/certs/privatekey"
	"ballast/planner/poll/meter"
	"ballast/webhook/fixture"
)

// TestAClientCertificateIsRotated: its files are read anew for the next connection, with a CA of the configuration and without.
func TestAClientCertificateIsRotated(t *testing.T) {
	authority := fixture.NewAuthority(t)
	dir := t.TempDir()
	files := config.TLSConfig{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), InsecureSkipVerify: true}
	rotate := func(name string) {
		t.Helper()
		cert, key := authority.LeafOf(t, name, time.Now().UnixNano(), time.Now().Add(time.Hour))
		for file, text := range map[string][]byte{files.CertFile: cert, files.KeyFile: key} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	who := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}
	server := demanding(t, who)
	tokens := demanding(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"`+r.TLS.PeerCertificates[0].Subject.CommonName+`","token_type":"bearer","expires_in":1}`)
	})
	withCA := func(of *httptest.Server) config.TLSConfig {
		c := files
		c.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate().Raw}))
		return c
	}
	settings := func(of config.TLSConfig) config.HTTPClientConfig {
		c := config.DefaultHTTPClientConfig
		c.TLSConfig = of
		return c
	}
	by := func(of config.TLSConfig) config.HTTPClientConfig {
		c := config.DefaultHTTPClientConfig
		c.OAuth2 = &config.OAuth2{ClientID: "ballast", ClientSecret: "s", TokenURL: tokens.URL, TLSConfig: of}
		return c
	}
	for name, test := range map[string]struct {
		client config.HTTPClientConfig
		at     string
		says   string
	}{
		"without a CA":                   {settings(files), server.URL, ""},
		"with a CA":                      {settings(withCA(server)), server.URL, ""},
		"to a token endpoint, without":   {by(files), echo(t), "Bearer "},
		"to a token endpoint, with a CA": {by(withCA(tokens)), echo(t), "Bearer "},
	} {
		t.Run(name, func(t *testing.T) {
			rotate("one.example")
			made := clientOf(t, test.client)
			for _, to := range []string{"one.example", "two.example", "two.example", "three.example"} {
				rotate(to)
				made.CloseIdleConnections()
				if got := ask(t, made, test.at); got != test.says+to {
					t.Errorf("as %s it is answered %q", to, got)
				}
			}
		})
	}
}

// TestNoClientsKeyIsComputedWithUnjudged: such a key takes many minutes, for which a cycle would hang.
func TestNoClientsKeyIsComputedWithUnjudged(t *testing.T) {
	cert, _ := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "tls.key")
	if err := os.WriteFile(file, fixture.VastKey(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]config.TLSConfig{
		"inline": {Cert: string(cert), Key: config.Secret(fixture.VastKey(t))}, "in a file": {Cert: string(cert), KeyFile: file},
	} {
		prometheus, tokens := config.DefaultHTTPClientConfig, config.DefaultHTTPClientConfig
		prometheus.TLSConfig, tokens.OAuth2 = of, &config.OAuth2{ClientID: "b", ClientSecret: "s", TokenURL: "https://t", TLSConfig: of}
		for _, c := range []config.HTTPClientConfig{prometheus, tokens} {
			fixture.AtOnce(t, "making a client", func() {
				if _, err := meter.NewHTTPClient(c); !errors.Is(err, privatekey.ErrNumbers) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
}

// TestAnotherKeyIsAskedForWhereItHelps: a rotation that is seen halfway is a key of another certificate.
func TestAnotherKeyIsAskedForWhereItHelps(t *testing.T) {
	authority := fixture.NewAuthority(t)
	cert, _ := authority.Leaf(t, 1, time.Now().Add(time.Hour))
	_, next := authority.Leaf(t, 2, time.Now().Add(time.Hour))
	const of = "unable to use the client cert (inline) and key (inline) of tls_config: "
	for name, test := range map[string]struct {
		key  []byte
		want string
	}{
		"the next certificate's": {next, of + `"tls: private key does not match public key"`},
		"a vast one":             {fixture.VastKey(t), of + privatekey.ErrNumbers.Error() + ": give it another key"},
		"none":                   {[]byte("junk"), of + privatekey.ErrNone.Error() + ": give it another key"},
	} {
		c := config.DefaultHTTPClientConfig
		c.TLSConfig = config.TLSConfig{Cert: string(cert), Key: config.Secret(test.key)}
		if _, err := meter.NewHTTPClient(c); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, not %s", name, err, test.want)
		}
	}
}

// demanding is a server that asks for a certificate, whoever signed it.
func demanding(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(answer)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestNoTokenIsSignedWithAVastKey: the request ends with the error that names it.
func TestNoTokenIsSignedWithAVastKey(t *testing.T) {
	c := config.DefaultHTTPClientConfig
	c.OAuth2 = &config.OAuth2{ClientID: "b", GrantType: "urn:ietf:params:oauth:grant-type:jwt-bearer",
		ClientCertificateKey: config.Secret(fixture.VastKey(t)), TokenURL: "https://t.invalid"}
	fixture.AtOnce(t, "asking for a token", func() {
		_, err := clientOf(t, c).Get("https://p.invalid")
		if !errors.Is(err, privatekey.ErrNumbers) {
			t.Error(err)
		}
	})
}
