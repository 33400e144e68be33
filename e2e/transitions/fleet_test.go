package transitions

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"ballast/e2e/gaps"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// pod is an application-controller's: an ordinal of the StatefulSet, and the process that runs in it.
type pod struct {
	env, generation int // of its template
	runs            bool
	ran             bool // a process ran here before
	ready           bool
	wait            int // acts until it is ready
	restarts        int
	restartedAt     time.Time
	killed          bool
	memory          int64          // of 100
	deaf            bool           // its watch hangs
	sees            map[string]int // how many of a Secret's versions its process knows
	forgot          map[string]lapse
}

// lapse is what a process has of a server of which it saw one of several Secrets go: nothing, and once it hears of another one that
// changed no shard, that one's at the next change of any.
type lapse int

const (
	forgotten lapse = iota + 1
	halfway
)

// version is what a cluster Secret was at a time. owner is the replica that it names: in the fleet as found, the one that
// Argo CD's algorithm gave it, nobody for none.
type version struct {
	gone   bool
	secret gaps.ViewSecret
	owner  int
}

const nobody = -1

// secret is a cluster Secret: what ballast sees of it, and all that it ever was, the last of which stands.
type secret struct {
	stamp    observed.Secret
	versions []version
}

func (s *secret) stands() version { return s.versions[len(s.versions)-1] }

// trouble keeps pods from coming up.
type trouble string

const (
	calm      trouble = ""
	unready   trouble = "they start and never become ready"
	unstarted trouble = "their process never starts"
)

// fleet is a StatefulSet of application-controllers, the cluster Secrets, and what each pod knows of them.
type fleet struct {
	*rapid.T
	views     *views
	figures   *figures
	algorithm string
	inCluster bool // Argo CD manages the cluster it runs in, with a Secret or without

	replicas, env, generation, observed int
	pods                                []*pod
	secrets                             map[string]*secret
	trouble                             trouble
	slow                                int  // acts that a process takes to become ready
	leaving                             bool // the workload loses pods because a rollout emptied them
	apps                                apps
	owners                              map[string][]int // by server, as Argo CD's package answered last
	began                               map[string]int   // how many versions of each Secret there were when the rollout began
}

// names are the Secrets' that stand.
func (f *fleet) names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
		if !f.secrets[name].stands().gone {
			names = append(names, name)
		}
	}
	return names
}

// write makes a new version of a Secret. Nobody has seen it yet.
func (f *fleet) write(name string, shard int) {
	s := f.secrets[name]
	next := s.stands().secret
	text := strconv.Itoa(shard)
	next.Shard = &text
	if was := s.stands(); was.owner != shard {
		f.figures.moves++
		f.apps.moved(name)
	}
	s.versions = append(s.versions, version{secret: next, owner: shard})
	s.stamp.Shard, s.stamp.Valid, s.stamp.Absent = shard, true, false
}

func (f *fleet) create(name, server string, shard int) {
	text := strconv.Itoa(shard)
	uid := fmt.Sprintf("%08x-0000-4000-a000-%012d", rapid.Uint32().Draw(f.T, "uid"), len(f.secrets))
	v := version{secret: gaps.ViewSecret{UID: uid, Name: name, Server: server, Shard: &text}, owner: shard}
	f.apps.moved(name)
	f.secrets[name] = &secret{stamp: observed.Secret{Name: name, Cluster: name, Server: server, Shard: shard, Valid: true}, versions: []version{v}}
}

func (f *fleet) remove(name string) {
	s := f.secrets[name]
	s.versions = append(s.versions, version{gone: true, owner: nobody})
}

// patch is a write of the workload. What changes the pods' template makes them be replaced.
func (f *fleet) patch(s diff.PatchWorkload) {
	if s.Replicas != nil {
		f.replicas = *s.Replicas
	}
	if s.ControllerReplicas != nil {
		f.env = *s.ControllerReplicas
		f.generation++
	}
	if s.RestartedAt != "" {
		f.Fatalf("mode live restarts the pods at %s", s.RestartedAt)
	}
}

// act is one act of the StatefulSet's controller or of a kubelet. An unready pod stops the controller.
func (f *fleet) act() {
	f.apps.pass()
	if f.observed != f.generation {
		f.observed = f.generation
		return
	}
	for i, p := range f.pods {
		if !p.runs && f.trouble != unstarted {
			f.startProcess(i)
			return
		}
	}
	for _, p := range f.pods[:min(len(f.pods), f.replicas)] {
		if !p.ready {
			p.wait--
			p.ready = p.runs && f.trouble == calm && p.wait < 0
			return
		}
	}
	switch {
	case len(f.pods) < f.replicas:
		f.pods = append(f.pods, &pod{env: f.env, generation: f.generation})
	case len(f.pods) > f.replicas:
		f.loseLast()
	default:
		for i := len(f.pods) - 1; i >= 0; i-- {
			if p := f.pods[i]; p.generation != f.generation {
				f.stopProcess(i)
				p.env, p.generation = f.env, f.generation
				f.figures.replaced++
				return
			}
		}
	}
}

// startProcess lets a pod's process read its environment and list the Secrets.
func (f *fleet) startProcess(i int) {
	p := f.pods[i]
	p.sees, p.wait, p.deaf, p.forgot = map[string]int{}, f.slow, false, map[string]lapse{}
	var listed []gaps.ViewSecret
	for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
		s := f.secrets[name]
		oldest, newest := f.oldest(name), len(s.versions)
		if p.sees[name] = newest; oldest < newest {
			p.sees[name] = rapid.IntRange(oldest, newest).Draw(f.T, "listed")
		}
		if n := p.sees[name]; n > 0 && !s.versions[n-1].gone {
			listed = append(listed, s.versions[n-1].secret)
		}
	}
	p.runs, p.ran = true, true
	f.figures.starts++
	f.ask(fmt.Sprintf("pod %d starts with %q", i, p.envText()), gaps.Step{Do: gaps.DoStart, Pod: strconv.Itoa(i), Start: &gaps.ViewStart{
		Replicas: p.envText(), Shard: strconv.Itoa(i), Algorithm: f.algorithm, InCluster: f.inCluster, Secrets: listed,
	}})
}

// envText is ARGOCD_CONTROLLER_REPLICAS; a pod without one is told so by an empty text.
func (p *pod) envText() string {
	if p.env == 0 {
		return ""
	}
	return strconv.Itoa(p.env)
}

// oldest is the oldest version of a Secret that any running pod believes; where none runs, the newest.
func (f *fleet) oldest(name string) int {
	n := len(f.secrets[name].versions)
	for _, p := range f.pods {
		if p.runs {
			n = min(n, p.sees[name])
		}
	}
	return n
}

func (f *fleet) stopProcess(i int) {
	p := f.pods[i]
	if p.ready = false; p.runs {
		p.runs = false
		f.apps.lose(i)
		f.ask(fmt.Sprintf("pod %d stops", i), gaps.Step{Do: gaps.DoStop, Pod: strconv.Itoa(i)})
	}
}

// loseLast ends the last pod for good. A rollout that shrinks has emptied it; on the way back of one that grows, the metrics
// may be away, and then a pod may still have to see that it lost its clusters.
func (f *fleet) loseLast() {
	last := len(f.pods) - 1
	f.answers()
	for _, server := range f.servers() {
		if f.leaving && slices.Contains(f.owners[server.url], last) && !f.apps.idle[server.url] && !f.flickers(server, last) {
			f.Fatalf("pod %d goes for good and owns %q still; %s", last, server.url, f)
		}
	}
	p := f.pods[last]
	f.pods = f.pods[:last]
	if p.runs {
		f.ask(fmt.Sprintf("pod %d goes for good", last), gaps.Step{Do: gaps.DoStop, Pod: strconv.Itoa(last)})
	}
}

// flickers: somebody took one of the server's Secrets from the pod in this rollout, and it was given back before it left. The
// pod lost it, said so, and believes by now that it is back; nobody can see that coming, and what it believes last is that it
// left.
func (f *fleet) flickers(s server, pod int) bool {
	for _, secret := range s.secrets {
		believed := f.pods[pod].sees[secret.stamp.Name]
		for i := max(f.began[secret.stamp.Name], 1); i < believed; i++ {
			if secret.versions[i-1].owner != pod && believed < len(secret.versions) {
				return true
			}
		}
	}
	return false
}

// crash ends a process; the kubelet starts it again.
func (f *fleet) crash(i int, at time.Time, killed bool) {
	p := f.pods[i]
	p.restartedAt, p.killed = at, killed
	p.restarts++
	f.figures.crashes++
	f.stopProcess(i)
}

// news is a change of a Secret that a pod has not seen.
type news struct {
	pod  int
	name string
}

func (f *fleet) pending() []news {
	var pending []news
	names := slices.Sorted(maps.Keys(f.secrets))
	for i, p := range f.pods {
		for _, name := range names {
			if p.runs && !p.deaf && p.sees[name] < len(f.secrets[name].versions) {
				pending = append(pending, news{i, name})
			}
		}
	}
	return pending
}

// deliver lets a pod see the next version of a Secret, or the last one of several.
func (f *fleet) deliver(n news) {
	p, versions := f.pods[n.pod], f.secrets[n.name].versions
	from, to := p.sees[n.name], p.sees[n.name]+1
	if to < len(versions) && rapid.IntRange(0, 3).Draw(f.T, "misses") == 0 {
		to = len(versions)
	}
	step := gaps.Step{Pod: strconv.Itoa(n.pod)}
	if from > 0 && !versions[from-1].gone {
		step.Do, step.Old = gaps.DoDelete, &versions[from-1].secret
	}
	if !versions[to-1].gone {
		step.New = &versions[to-1].secret
		if step.Do = gaps.DoAdd; step.Old != nil {
			step.Do = gaps.DoUpdate
		}
	}
	if p.sees[n.name] = to; step.Do != "" {
		f.figures.deliveries++
		f.lapse(n, step)
		f.ask(fmt.Sprintf("pod %d sees version %d of %q", n.pod, to, n.name), step)
	}
}

// lapse notes what a change has a process forget, or know again, of the server of the Secret that changed.
func (f *fleet) lapse(n news, step gaps.Step) {
	p, url := f.pods[n.pod], f.secrets[n.name].stamp.Server
	if p.forgot == nil { // it was found
		p.forgot = map[string]lapse{}
	}
	another := func(name string) bool {
		at := p.sees[name]
		return name != n.name && f.secrets[name].stamp.Server == url && at > 0 && !f.secrets[name].versions[at-1].gone
	}
	switch {
	case step.Do == gaps.DoDelete && slices.ContainsFunc(slices.Collect(maps.Keys(f.secrets)), another):
		p.forgot[url] = forgotten
		f.figures.lapses++
	case step.Do == gaps.DoDelete:
		delete(p.forgot, url)
	case p.forgot[url] == forgotten && step.Do == gaps.DoAdd, step.Old != nil && !sameShard(step.Old.Shard, step.New.Shard):
		delete(p.forgot, url)
	case p.forgot[url] == forgotten:
		p.forgot[url] = halfway
	}
}

func sameShard(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func (f *fleet) String() string {
	text := fmt.Sprintf("%d replicas, env %d, algorithm %q, pods", f.replicas, f.env, f.algorithm)
	for i, p := range f.pods {
		text += fmt.Sprintf(" %d(env %d, runs %t, ready %t)", i, p.env, p.runs, p.ready)
	}
	for _, name := range f.names() {
		v := f.secrets[name].stands()
		text += fmt.Sprintf("; %s on %d by %v", name, v.owner, f.owners[v.secret.Server])
	}
	return text
}

// target is the workload's.
func target() plan.Target {
	return plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"}
}
