package meter

import (
	"fmt"
	"net/http"

	"github.com/prometheus/common/config"
)

// maxRedirects is net/http's own bound.
const maxRedirects = 10

// NewHTTPClient makes the client that asks Prometheus. It stays with the host that the configuration names:
// prometheus/common adds the credentials to every request, to those that a redirect sends elsewhere too,
// and what another host answers is no measurement.
func NewHTTPClient(c config.HTTPClientConfig) (*http.Client, error) {
	oauth := c.OAuth2
	c.OAuth2 = nil
	options := rotating(&c)
	client, err := config.NewClientFromConfig(c, "ballast", options...)
	if err != nil {
		return nil, err
	}
	client.Transport = heads{client.Transport, NewSemaphore()}
	if oauth != nil {
		tokens, err := newTokens(*oauth)
		if err != nil {
			return nil, err
		}
		client.Transport = &bearer{next: client.Transport, tokens: tokens}
	}
	if c.FollowRedirects {
		client.CheckRedirect = withinHost
	}
	return client, nil
}

// withinHost follows redirects to the scheme, host and port that were asked first.
func withinHost(next *http.Request, asked []*http.Request) error {
	first := asked[0].URL
	switch {
	case next.URL.Scheme != first.Scheme, next.URL.Host != first.Host:
		return fmt.Errorf("it redirects to another host, %s://%s, which gets neither credentials nor queries: let poll.prometheus.url name the host that answers", next.URL.Scheme, next.URL.Host)
	case len(asked) >= maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}
