package meter

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/prometheus/common/config"

	"ballast/certs/privatekey"
)

// rotating has each handshake read the files of a client certificate anew where no CA is configured: prometheus/common
// refuses every request once such a file changes, for it looks for a CA then. It answers the options that take its
// place.
func rotating(c *config.HTTPClientConfig) []config.HTTPClientOption {
	given := c.TLSConfig
	if !hasCA(given) {
		c.TLSConfig = config.TLSConfig{}
	}
	return []config.HTTPClientOption{config.WithNewTLSConfigFunc(
		func(ctx context.Context, _ *config.TLSConfig, _ ...config.TLSConfigOption) (*tls.Config, error) {
			return newTLSConfig(ctx, given)
		})}
}

func hasCA(c config.TLSConfig) bool { return c.CA != "" || c.CAFile != "" || c.CARef != "" }

// secretOf reads a secret where it is. prometheus/common's references need a manager of secrets, which ballast has not.
func secretOf(text config.Secret, file, ref string) (config.SecretReader, error) {
	switch {
	case text != "":
		return config.NewInlineSecret(string(text)), nil
	case file != "":
		return config.NewFileSecret(file), nil
	case ref != "":
		return nil, errors.New("cannot use secret ref without manager")
	}
	return nil, nil
}

// newTLSConfig is prometheus/common's, with the client's key judged before anything computes with it, in each handshake
// too: a key that somebody made up takes days.
func newTLSConfig(ctx context.Context, c config.TLSConfig) (*tls.Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cert, certErr := secretOf(config.Secret(c.Cert), c.CertFile, c.CertRef)
	key, keyErr := secretOf(c.Key, c.KeyFile, c.KeyRef)
	if certErr != nil || keyErr != nil || cert == nil || key == nil {
		return config.NewTLSConfigWithContext(ctx, &c)
	}
	c.Cert, c.CertFile, c.Key, c.KeyFile = "", "", "", ""
	made, err := config.NewTLSConfigWithContext(ctx, &c)
	if err != nil {
		return nil, err
	}
	pair := func(ctx context.Context) (*tls.Certificate, error) {
		certText, err := cert.Fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("unable to read client cert: %w", err)
		}
		keyText, err := key.Fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("unable to read client key: %w", err)
		}
		pair, err := privatekey.Pair([]byte(certText), []byte(keyText))
		if err != nil {
			return nil, fmt.Errorf("unable to use the client cert (%s) and key (%s) of tls_config: %w%s",
				cert.Description(),
				key.Description(), err, mend(err))
		}
		return &pair, nil
	}
	if _, err := pair(ctx); err != nil {
		return nil, err
	}
	made.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair(r.Context()) }
	return made, nil
}

// mend is what next, where another key helps. A rotation that is seen halfway, as a key of another certificate, mends
// itself.
func mend(err error) string {
	if privatekey.Refuses(err) {
		return ": give it another key"
	}
	return ""
}

// judgeSigning judges the key that signs for a token, which may be in PEM or not, and whatever its block is called.
func judgeSigning(text string) error {
	der := []byte(text)
	if block, _ := pem.Decode(der); block != nil {
		der = block.Bytes
	}
	if err := privatekey.Judge(der); err != nil {
		return fmt.Errorf("reading oauth2.client_certificate_key: %w: give it another key", err)
	}
	return nil
}
