// Package httpclient is how the client of a Prometheus is configured: prometheus/common's
// own settings, with nothing secret in print, and no file of the planner's own identity.
package httpclient

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	promconfig "github.com/prometheus/common/config"
	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"ballast/planner/config/strict"
)

// Config is prometheus/common's HTTP client configuration under its own field names (basic_auth, tls_config, ...).
// Whatever prints it, prints its secrets masked.
type Config struct {
	promconfig.HTTPClientConfig
}

// mask is what prometheus/common prints for a secret.
const mask = "<secret>"

// MarshalJSON writes the configuration with its secrets masked. It goes through the YAML tags, because one field of
// prometheus/common (oauth2.tls_config) has no other.
func (h Config) MarshalJSON() ([]byte, error) {
	c := h.HTTPClientConfig
	if c.OAuth2 != nil && len(c.OAuth2.EndpointParams) > 0 {
		o := *c.OAuth2
		o.EndpointParams = maps.Clone(o.EndpointParams) // may carry client assertions and passwords
		for k := range o.EndpointParams {
			o.EndpointParams[k] = mask
		}
		c.OAuth2 = &o
	}
	text, err := yamlnode.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the HTTP client: %w", err)
	}
	return yaml.YAMLToJSON(text)
}

// UnmarshalJSON is as strict as the file.
func (h *Config) UnmarshalJSON(data []byte) error {
	var doc yamlnode.Node
	if err := yamlnode.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return fmt.Errorf("decoding the HTTP client: it is not JSON")
	}
	h.HTTPClientConfig = promconfig.DefaultHTTPClientConfig
	d := strict.NewDecoder()
	d.Decode(doc.Content[0], h)
	return d.Errors().ToAggregate()
}

// String keeps %v from printing secrets.
func (h Config) String() string {
	text, err := json.Marshal(h)
	if err != nil {
		return mask
	}
	return string(text)
}

// GoString keeps %#v from printing secrets.
func (h Config) GoString() string { return h.String() }

// Equal compares the configuration, secrets too, without what clients cache in it.
func (h Config) Equal(o Config) bool {
	return reflect.DeepEqual(h.settings(), o.settings())
}

func (h Config) settings() promconfig.HTTPClientConfig {
	c := h.HTTPClientConfig
	c.ProxyConfig = withoutCache(c.ProxyConfig)
	if c.OAuth2 != nil {
		o := *c.OAuth2
		o.ProxyConfig = withoutCache(o.ProxyConfig)
		c.OAuth2 = &o
	}
	return c
}

func withoutCache(p promconfig.ProxyConfig) promconfig.ProxyConfig {
	return promconfig.ProxyConfig{
		ProxyURL: p.ProxyURL, NoProxy: p.NoProxy, ProxyFromEnvironment: p.ProxyFromEnvironment,
		ProxyConnectHeader: p.ProxyConnectHeader,
	}
}
