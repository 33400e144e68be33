package placement

import (
	"cmp"
	"iter"

	"ballast/planner/plan"
)

// Servers knows which clusters stay together: those of one server, by the Secrets that are there. A row's short hash of
// its server is no proof of it, since anybody can find a URL with the hash of another.
type Servers struct {
	of     map[string]string // a Secret's server; empty: it stays together with none
	hashed map[string]string // by hash; made when a row without a Secret asks
	bound  map[string]string // the server that another stays together with, which leads; nil: none does
}

// NewServers has room for so many Secrets.
func NewServers(n int) *Servers { return &Servers{of: make(map[string]string, n)} }

// Add tells of a Secret that is there. One without a server stays together with none.
func (s *Servers) Add(name, server string) { s.of[name] = plan.NormalizeServer(server) }

// Bind has a server stay together with another one, which leads all that are bound to it.
func (s *Servers) Bind(server, leads string) {
	if s.bound == nil {
		s.bound = map[string]string{}
	}
	s.bound[plan.NormalizeServer(server)] = plan.NormalizeServer(leads)
}

// Of is what a cluster has in common with those that it stays together with; empty: it has none. A row whose Secret is
// gone is known by its hash alone: it keeps to the Secrets that have it.
func (s *Servers) Of(name, hash string) string {
	server := s.server(name, hash)
	return cmp.Or(s.bound[server], server)
}

// server is a cluster's own.
func (s *Servers) server(name, hash string) string {
	if server, here := s.of[name]; here || hash == "" {
		return server
	}
	if s.hashed == nil {
		s.hashed = make(map[string]string, len(s.of))
		for _, server := range s.of {
			if h := plan.ServerHash(server); server != "" && (s.hashed[h] == "" || server < s.hashed[h]) {
				s.hashed[h] = server
			}
		}
	}
	return cmp.Or(s.hashed[hash], "hash "+hash)
}

// Count is how many servers those clusters have: Argo CD reconciles each once, whatever number of Secrets it has, and
// whatever it is bound to. Hash is that of a cluster's row.
func (s *Servers) Count(names iter.Seq[string], hash func(name string) string) (n int) {
	counted := map[string]bool{}
	for name := range names {
		server := s.server(name, hash(name))
		if server == "" || !counted[server] {
			n++
		}
		counted[server] = true
	}
	return n
}
