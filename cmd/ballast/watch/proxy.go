package watch

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"

	"ballast/planner/observed"
)

// proxy asks pods through the API server: a person's machine reaches none of their addresses.
type proxy struct {
	namespace string
	base      *url.URL
	transport http.RoundTripper
	mu        sync.Mutex
	pods      map[string]string // names by address
}

func newProxy(cfg *rest.Config, namespace string) (*proxy, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return unheard{next} })
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the address of API server %q: %w", cfg.Host, err)
	}
	base.Path = cmp.Or(base.Path, "/") // else what is joined to it begins without one, which HTTP/1.1 does not have
	return &proxy{namespace: namespace, base: base, transport: transport, pods: map[string]string{}}, nil
}

// knows takes in which pod has which address.
func (p *proxy) knows(pods []observed.Controller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.pods)
	for _, pod := range pods {
		p.pods[pod.Address] = pod.Name
	}
}

// RoundTrip asks the API server for what was asked of an address.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	name, known := p.pods[r.URL.Host]
	p.mu.Unlock()
	_, port, err := net.SplitHostPort(r.URL.Host)
	if err != nil || !known {
		return nil, fmt.Errorf("no pod is known to have the address %q", r.URL.Host)
	}
	asked := r.Clone(r.Context())
	asked.URL = p.base.JoinPath("api", "v1", "namespaces", p.namespace, "pods", name+":"+port, "proxy", r.URL.Path)
	asked.Host = ""
	return p.transport.RoundTrip(asked)
}

// unheard makes an error of an answer 401, before what holds the person's credentials hears of it: a pod may answer so,
// and each time a credential plugin would be run anew. Credentials that have ended are renewed by the request for the
// pods, which comes first.
type unheard struct{ next http.RoundTripper }

func (u unheard) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := u.next.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	_ = answer.Body.Close() // nothing of it is read
	return nil, errors.New("the answer is 401 Unauthorized")
}
