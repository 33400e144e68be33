package meter

import (
	"context"
	"crypto/tls"

	"github.com/prometheus/common/config"
)

// rotating has each handshake read the files of a client certificate anew where no CA is configured: prometheus/common
// refuses every request once such a file changes, for it looks for a CA then. It answers the options that take its place.
func rotating(c *config.HTTPClientConfig) []config.HTTPClientOption {
	given := c.TLSConfig
	if hasCA(given) {
		return nil
	}
	c.TLSConfig = config.TLSConfig{}
	return []config.HTTPClientOption{config.WithNewTLSConfigFunc(
		func(ctx context.Context, _ *config.TLSConfig, options ...config.TLSConfigOption) (*tls.Config, error) {
			return config.NewTLSConfigWithContext(ctx, &given, options...)
		})}
}

func hasCA(c config.TLSConfig) bool { return c.CA != "" || c.CAFile != "" || c.CARef != "" }
