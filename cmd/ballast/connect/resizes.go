package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Resizes asks whether the API server has pods/resize.
func Resizes(ctx context.Context, cfg *rest.Config, by *http.Client) (bool, error) {
	c, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, by)
	if err != nil {
		return false, err
	}
	text, err := c.RESTClient().Get().AbsPath("/api/v1").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("asking what the API server has: %w", err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil {
		return false, fmt.Errorf("reading what the API server has: %w", err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}

// Resizes asks the same of the API server that the flags name.
func (o *Options) Resizes(ctx context.Context) (bool, error) {
	cfg, err := o.REST()
	if err != nil {
		return false, err
	}
	by, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return false, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	return Resizes(ctx, cfg, by)
}
