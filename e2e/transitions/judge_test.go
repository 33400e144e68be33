package transitions

import (
	"fmt"
	"maps"
	"slices"

	"ballast/e2e/gaps"
	"ballast/planner/plan"
)

const inCluster = plan.InClusterServer

// server is a cluster as Argo CD knows it: by its URL, whatever number of Secrets it has.
type server struct {
	url     string
	secrets []*secret
	gone    []*secret // that somebody may go by still
}

// servers lists those that a Secret stands for, and the cluster that Argo CD runs in if it needs none.
func (f *fleet) servers() []server {
	byURL := map[string][]*secret{}
	for _, name := range f.names() {
		s := f.secrets[name]
		byURL[s.stamp.Server] = append(byURL[s.stamp.Server], s)
	}
	if _, explicit := byURL[inCluster]; f.inCluster && !explicit {
		byURL[inCluster] = nil
	}
	gone := map[string][]*secret{}
	for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
		if s := f.secrets[name]; s.stands().gone {
			gone[s.stamp.Server] = append(gone[s.stamp.Server], s)
		}
	}
	var servers []server
	for _, url := range slices.Sorted(maps.Keys(byURL)) {
		servers = append(servers, server{url, byURL[url], gone[url]})
	}
	return servers
}

// called are the names of the cluster's Secrets.
func (s server) called() (names []string) {
	for _, secret := range s.secrets {
		names = append(names, secret.stamp.Name)
	}
	return names
}

// names are the replicas that the cluster's Secrets name, ascending: one but while the Secrets of one server are written.
func (s server) names() []int {
	at := map[int]bool{}
	for _, secret := range s.secrets {
		at[secret.stands().owner] = true
	}
	if len(s.secrets) == 0 {
		at[0] = true // the cluster that Argo CD runs in
	}
	return slices.Sorted(maps.Keys(at))
}

// believes are the replicas that have a cluster by the Secrets as the pod saw them last. One it never heard of is shard 0's,
// which the pod cannot make anything of, and so is one of which it saw a Secret go.
func (p *pod) believes(s server) []int {
	at := map[int]bool{}
	if p.forgot[s.url] > 0 {
		at[0] = true
	}
	for _, secret := range slices.Concat(s.secrets, s.gone) {
		if p.forgot[s.url] == forgotten {
			break
		}
		if n := p.sees[secret.stamp.Name]; n > 0 && !secret.versions[n-1].gone {
			at[secret.versions[n-1].owner] = true
		}
	}
	if len(at) == 0 {
		at[0] = true
	}
	return slices.Sorted(maps.Keys(at))
}

// claim is what the package's doc says of one cluster's owners at one moment.
type claim struct {
	believes map[int][]int // by running pod: the replicas that have the cluster, as far as that pod was told
	settled  bool          // every pod was told the same, and it stands so
	want     []int         // then these own it: the replica that its Secret names, nobody while that pod's process is down
}

// claims are those of this moment. A Secret that names a pod that is not there is wrong whatever Argo CD makes of it.
func (f *fleet) claims(what string, servers []server) []claim {
	f.Helper()
	claims := make([]claim, len(servers))
	for i, s := range servers {
		c := claim{believes: map[int][]int{}, settled: true}
		for ordinal, p := range f.pods {
			if p.runs {
				c.believes[ordinal] = p.believes(s)
				c.settled = c.settled && p.forgot[s.url] == 0
			}
		}
		at := s.names()
		for _, secret := range slices.Concat(s.secrets, s.gone) {
			c.settled = c.settled && f.oldest(secret.stamp.Name) == len(secret.versions)
		}
		c.settled = c.settled && len(at) == 1
		for _, replica := range at {
			switch {
			case replica == nobody: // as found, the algorithm gave it to a pod that is not there
			case replica >= len(f.pods) || !f.pods[replica].ran:
				f.Fatalf("after %s: %q is to be on pod %d, which is not there; %s", what, s.url, replica, f)
			case f.pods[replica].runs:
				c.want = append(c.want, replica)
			}
		}
		claims[i] = c
	}
	return claims
}

// judge says what is wrong with a cluster's owners, "" for nothing.
func (c claim) judge(owners []int) string {
	for _, pod := range slices.Sorted(maps.Keys(c.believes)) {
		told := c.believes[pod]
		switch owns := slices.Contains(owners, pod); {
		case owns && !slices.Contains(told, pod):
			return fmt.Sprintf("pod %d owns it, and was told that %v does", pod, told)
		case !owns && slices.Equal(told, []int{pod}):
			return fmt.Sprintf("pod %d does not own it, and was told that it does", pod)
		}
	}
	for _, pod := range owners {
		if _, runs := c.believes[pod]; !runs {
			return fmt.Sprintf("pod %d owns it and does not run", pod)
		}
	}
	if c.settled && !slices.Equal(c.want, owners) {
		return fmt.Sprintf("every pod was told the same, and %v own it instead of %v", owners, c.want)
	}
	return ""
}

// ask lets Argo CD's package take a step and say whose each cluster is then; the answer is judged when it is read.
func (f *fleet) ask(what string, steps ...gaps.Step) {
	f.Helper()
	servers := f.servers()
	q := question{what: what, claims: f.claims(what, servers)}
	for _, s := range servers {
		q.urls = append(q.urls, s.url)
	}
	if len(f.views.asked) >= mostAsked {
		f.answer()
	}
	if err := f.views.ask(q, steps); err != nil {
		f.Fatal(err)
	}
	f.figures.steps++
}

// answers reads all answers that are open and judges them.
func (f *fleet) answers() {
	f.Helper()
	for len(f.views.asked) > 0 {
		f.answer()
	}
}

func (f *fleet) answer() {
	f.Helper()
	q, owners, err := f.views.answer()
	if err != nil {
		f.Fatal(err)
	}
	f.owners = owners
	for i, url := range q.urls {
		c := q.claims[i]
		if wrong := c.judge(owners[url]); wrong != "" {
			f.Fatalf("after %s: owners of %q: %s; pods were told %v; by now %s", q.what, url, wrong, c.believes, f)
		}
		f.figures.count(c, owners[url])
	}
}
