package pods

import (
	"cmp"
	"crypto/sha256"
	"math"
	"slices"
	"time"

	"ballast/planner/ownership/scrape"
)

const (
	// apart is how far from each other the looks at a pod are that are kept: a cycle may follow the last by a second.
	apart = 45 * time.Second
	// mostKept bounds the samples of one counter: those of ten minutes, and of a look before and behind them.
	mostKept = int(rateOver/apart) + 3
	// mostSeries bounds the pairs of process and server. Where every pod has every cluster, as with
	// ARGOCD_CONTROLLER_REPLICAS=1, 16 pods have 80,000 of 5,000 clusters, and twice as many while they restart: 60
	// MiB. Beyond it no pair is added.
	mostSeries = 160_000
	// mostServers bounds those that are kept, twice the largest fleet; each takes 0.9 KiB.
	mostServers = 40_000
)

// Window is what the pods showed of a fleet in the last hours. The zero Window has seen nothing.
type Window struct {
	processes map[string]*process // by the pod's name and address, as Prometheus has series
	servers   map[string]*server  // by URL
	fleet     []string            // the servers of the fleet, sorted
	strangers []string            // servers that only the newest scrape named, sorted
	saved     map[digest]*server  // what another leader left, by the digest of a URL that the fleet has not had since
	restored  int64               // the newest look of that leader
	closed    int64               // the step whose rates were made last
	newest    int64               // look, in Unix milliseconds
	began     int64               // the first look of this window
	series    int
	silence   string   // why the pods said nothing, where none did
	passed    []string // what of events was passed over in the newest scrape
}

// process is what the pod of one address showed.
type process struct {
	first  uint32 // number of the oldest look
	looks  []look
	counts map[string][]kept // by server
}

// server is what is known of one cluster's URL.
type server struct {
	rates [2][steps]slot // events, reconciles
	most  [2][slots]slot // objects, apps
	seen  [metrics]int64 // when a pod showed it last, in Unix milliseconds
}

// digest is what a server is saved by, in place of a URL of any length.
type digest [6]byte

func digestOf(url string) digest {
	sum := sha256.Sum256([]byte(url))
	return digest(sum[:6])
}

// slot is a value of one step of five minutes; the zero slot has none.
type slot struct {
	at    uint32
	value float32
}

func (s slot) within(low, high int64) bool {
	return s.at != 0 && int64(s.at) > low && int64(s.at) <= high
}

func put(ring []slot, at int64, value float64) {
	ring[at%int64(len(ring))] = slot{uint32(at), float32(min(value, math.MaxFloat32))}
}

// raise puts the larger of two values of one slot.
func raise(ring []slot, at int64, value float64) {
	old := ring[at%int64(len(ring))]
	if int64(old.at) != at || float64(old.value) < value {
		put(ring, at, value)
	}
}

// Take adds a scrape of the pods of a fleet that has these server URLs. What it says of other servers is named and not
// kept. A clock that went back, or was ahead where the last leader ran, forgets what is after it, and the counters
// before it.
func (w *Window) Take(reports []scrape.PodReport, fleet []string, now time.Time) {
	w.know(fleet)
	at := now.UnixMilli()
	if max(w.newest, w.restored) > at || w.closed > stepOf(at) {
		w.goBack(at)
	}
	w.strangers, w.passed, w.silence = nil, nil, "the application-controller has no pods"
	answered := false
	for _, r := range reports {
		switch {
		case r.Answered():
			answered = true
			w.passOver(r)
			w.look(r, min(r.SampledAt.UnixMilli(), at))
		case !answered:
			w.silence = r.Err
		}
	}
	if answered {
		w.silence = ""
	}
	slices.Sort(w.strangers)
	w.strangers = slices.Compact(w.strangers)
	w.strangers = slices.Clip(w.strangers[:min(len(w.strangers), mostStrangers)])
	w.close(stepOf(at))
	w.forget(at)
}

// mostStrangers is how many servers of no cluster are named.
const mostStrangers = 100

// mostPassed is how many pods are named whose events are passed over.
const mostPassed = 3

// passOver notes what of a pod's events was passed over.
func (w *Window) passOver(r scrape.PodReport) {
	if passed := r.Passed(); passed != "" && len(w.passed) < mostPassed {
		w.passed = append(w.passed, passed)
	}
}

// know takes over the servers of the fleet. What others did stays for a while: Secrets that are gone by mistake come
// back.
func (w *Window) know(fleet []string) {
	w.fleet = slices.Compact(slices.Sorted(slices.Values(fleet)))
	if w.servers == nil {
		w.servers, w.processes = map[string]*server{}, map[string]*process{}
	}
	for url := range w.servers {
		if _, known := slices.BinarySearch(w.fleet, url); !known && len(w.servers) > mostServers {
			delete(w.servers, url)
		}
	}
	for _, url := range w.fleet {
		if w.servers[url] != nil {
			continue
		}
		if w.servers[url] = w.saved[digestOf(url)]; w.servers[url] == nil {
			w.servers[url] = &server{}
		}
		delete(w.saved, digestOf(url))
	}
}

// goBack is for a clock that was ahead.
func (w *Window) goBack(at int64) {
	clear(w.processes)
	w.series = 0
	w.newest, w.began, w.closed, w.restored = at, min(w.began, at), min(w.closed, stepOf(at)), min(w.restored, at)
	for _, s := range w.servers {
		s.goBack(at)
	}
	for _, s := range w.saved {
		s.goBack(at)
	}
}

func (s *server) goBack(at int64) {
	for i := range s.seen {
		s.seen[i] = min(s.seen[i], at)
	}
	for _, ring := range s.rings() {
		for i := range ring {
			if int64(ring[i].at) > slotOf(at) {
				ring[i] = slot{}
			}
		}
	}
}

func (s *server) rings() [4][]slot {
	return [4][]slot{s.rates[0][:], s.rates[1][:], s.most[0][:], s.most[1][:]}
}

// look adds what one pod showed.
func (w *Window) look(r scrape.PodReport, at int64) {
	key := r.Name + "|" + r.Address
	p := w.processes[key]
	if p == nil {
		p = &process{counts: map[string][]kept{}}
		w.processes[key] = p
	}
	if n := len(p.looks); n > 0 && at-p.looks[n-1].at < apart.Milliseconds() {
		return
	}
	number := p.first + uint32(len(p.looks))
	p.looks = append(p.looks, look{at, r.Started.UnixMilli()})
	w.newest = max(w.newest, at)
	w.began = cmp.Or(w.began, at)
	for url, shown := range r.Servers {
		s := w.servers[url]
		if s == nil {
			if shown.Apps > 0 {
				w.strangers = append(w.strangers, url)
			}
			continue
		}
		s.show(shown, at)
		w.count(p, url, shown, number)
	}
}

// show takes what is no counter.
func (s *server) show(shown scrape.ServerReport, at int64) {
	if shown.Shows(scrape.ShowsObjects) {
		raise(s.most[0][:], slotOf(at), shown.Objects)
		s.seen[objects] = max(s.seen[objects], at)
	}
	if shown.Apps > 0 {
		raise(s.most[1][:], slotOf(at), float64(shown.Apps))
		s.seen[apps] = max(s.seen[apps], at)
	}
	if shown.Shows(scrape.ShowsEvents) {
		s.seen[events] = max(s.seen[events], at)
	}
	if shown.Shows(scrape.ShowsReconciles) {
		s.seen[reconciles] = max(s.seen[reconciles], at)
	}
}

// count takes a process' counters of a server.
func (w *Window) count(p *process, url string, shown scrape.ServerReport, number uint32) {
	k := kept{look: number, counts: [2]float64{math.NaN(), math.NaN()}}
	if shown.Shows(scrape.ShowsEvents) {
		k.counts[0] = shown.Events
	}
	if shown.Shows(scrape.ShowsReconciles) {
		k.counts[1] = shown.Reconciles
	}
	if math.IsNaN(k.counts[0]) && math.IsNaN(k.counts[1]) {
		return
	}
	samples, known := p.counts[url]
	if !known {
		if w.series >= mostSeries {
			return
		}
		w.series++
		samples = make([]kept, 0, mostKept)
	}
	p.counts[url] = append(samples, k)
}

// close makes the rates of each full five minutes up to a step. Those of more than three hours ago would count for
// nothing.
func (w *Window) close(last int64) {
	if w.closed == 0 {
		w.closed = last - 1
	}
	for s := max(w.closed+1, last-steps+1); s <= last; s++ {
		w.closeOne(s)
	}
	w.closed = max(w.closed, last)
}

// closeOne sums the rates of all processes, in one order: sums of floats differ by it.
func (w *Window) closeOne(s int64) {
	names := make([]string, 0, len(w.processes))
	for name := range w.processes {
		names = append(names, name)
	}
	slices.Sort(names)
	until := s * step.Milliseconds()
	for url, of := range w.servers {
		for counter := range of.rates {
			sum, any := 0.0, false
			for _, name := range names {
				p := w.processes[name]
				rate, ok := rateAt(p.counts[url], p.looks, p.first, counter, until)
				sum, any = sum+rate, any || ok
			}
			if any {
				put(of.rates[counter][:], s, sum)
			}
		}
	}
}

// forget drops the samples that no rate to come looks back at.
func (w *Window) forget(now int64) {
	oldest := (w.closed+1)*step.Milliseconds() - rateOver.Milliseconds()
	for name, p := range w.processes {
		gone := 0
		for gone < len(p.looks) && p.looks[gone].at <= oldest {
			gone++
		}
		if gone == 0 {
			continue
		}
		p.looks = append(p.looks[:0], p.looks[gone:]...)
		p.first += uint32(gone)
		for url, samples := range p.counts {
			old := 0
			for old < len(samples) && samples[old].look < p.first {
				old++
			}
			if old == len(samples) {
				delete(p.counts, url)
				w.series--
				continue
			}
			p.counts[url] = append(samples[:0], samples[old:]...)
		}
		if len(p.looks) == 0 {
			delete(w.processes, name)
		}
	}
	for url, s := range w.servers {
		if _, known := slices.BinarySearch(w.fleet, url); !known && now-slices.Max(s.seen[:]) > rateWindow.Milliseconds() {
			delete(w.servers, url)
		}
	}
	if now-w.restored > rateWindow.Milliseconds() {
		w.saved = nil
	}
}
