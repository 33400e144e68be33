package watch

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/discover"
	"ballast/planner/nudge"
	"ballast/planner/ownership"
	"ballast/planner/ownership/podlist"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

// shows is a pod's report: of the servers that it reads, and of those that it shows an Application of.
func shows(reads []string, names ...string) scrape.PodReport {
	r := scrape.PodReport{Servers: map[string]scrape.ServerReport{}}
	for _, s := range names {
		r.Servers[s] = scrape.ServerReport{Apps: 1}
	}
	for _, s := range reads {
		r.Servers[s] = scrape.ServerReport{Apps: r.Servers[s].Apps, Cached: true}
	}
	return r
}

func TestWhichServersAreClusters(t *testing.T) {
	by := func(servers ...string) (all []nudge.Destination) {
		for _, s := range servers {
			all = append(all, nudge.Destination{Server: s})
		}
		return all
	}
	pods := func(all ...scrape.PodReport) []scrape.PodReport { return all }
	for name, test := range map[string]struct {
		reports      []scrape.PodReport
		applications []nudge.Destination
		before       []string
		want         []string
		trouble      string
	}{
		"shown by pods":                 {pods(shows([]string{dev}, dev), shows(nil, prod)), nil, nil, []string{dev, prod}, ""},
		"named by Applications":         {nil, by(dev+"/", stage), nil, []string{dev, stage}, ""},
		"two have it, and one reads it": {pods(shows([]string{dev}, dev), shows(nil, dev)), nil, nil, []string{dev}, ""},
		"a new owner has not read it":   {pods(shows(nil, dev), shows([]string{prod})), nil, nil, []string{dev, prod}, ""},
		"all show it, and none reads it": {pods(shows(nil, dev), shows(nil, dev)), by(dev), nil, nil,
			"Argo CD finds no cluster of 1 server"},
		"it was a cluster": {pods(shows(nil, dev), shows(nil, dev)), nil, []string{dev, prod}, []string{prod},
			"none reads it: " + dev},
		"many of them": {pods(shows(nil, "a", "b", "c", "d", "e"), shows(nil, "a", "b", "c", "d", "e")), nil, nil, nil,
			"5 servers that Applications name, so that several pods show them and none reads it: a, b, c, 2 more"},
		"by name alone": {nil, []nudge.Destination{{Name: "eu"}, {Name: "us"}}, nil, nil,
			"Applications name 2 clusters by name alone"},
		"longer than what pods are read by": {nil, by("https://" + strings.Repeat("x", discover.LongestServer)), nil, nil,
			"Applications name 1 server of more than 512 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers{}
			for _, server := range test.before {
				s[server] = named{at: fixture.Noon.Add(-time.Hour), read: fixture.Noon.Add(-time.Hour)}
			}
			trouble := strings.Join(s.take(test.reports, test.applications, fixture.Noon), "\n")
			var got []string
			for server := range s {
				got = append(got, server)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(trouble, test.trouble) || (test.trouble == "") != (trouble == "") {
				t.Errorf("not seen is %q, want %q", trouble, test.trouble)
			}
		})
	}
}

// Whoever may create Applications names any number of servers, of any length: what is remembered stays within its bounds, and what a
// pod reads stays before it.
func TestWhatIsNamedIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := servers{}, fixture.Noon
		read := rapid.IntRange(0, 3000).Draw(t, "read")
		for i := range read {
			s[fmt.Sprint("https://zz-read-", i)] = named{at: now.Add(-time.Minute), read: now.Add(-time.Minute)}
		}
		s["https://old"] = named{at: now.Add(-25 * time.Hour), read: now.Add(-25 * time.Hour)}
		long := strings.Repeat("x", rapid.IntRange(0, 480).Draw(t, "long"))
		amount := rapid.SampledFrom([]int{0, 100, mostServers - 3000, mostServers + 5, 3 * mostServers}).Draw(t, "amount")
		var applications []nudge.Destination
		for i := range amount {
			applications = append(applications, nudge.Destination{Server: fmt.Sprint("https://", long, i)})
		}
		trouble := s.take(nil, applications, now)
		bytes, reads := 0, 0
		for server, n := range s {
			bytes += len(server)
			if !n.read.IsZero() {
				reads++
			}
		}
		if len(s) > mostServers || bytes > mostBytes || reads != read {
			t.Fatalf("%d servers of %d bytes are remembered, %d of %d that pods read", len(s), bytes, reads, read)
		}
		left := read + amount - len(s)
		want := []string(nil)
		if left > 0 {
			want = []string{fmt.Sprintf("more than 20000 servers are named, or more than 4 MiB of their URLs: "+
				"%d of those that no pod reads are not watched", left)}
		}
		if diff := cmp.Diff(want, trouble); diff != "" {
			t.Fatalf("not seen (-want +got):\n%s", diff)
		}
	})
}

// A watch that remembers as much as it may, of clusters that all have lost their owners, takes an eighth of its 256 MiB.
func TestAFullWatchTakesLittle(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, s, l := heap(), servers{}, &look{}
	pod := shows(nil)
	pod.Ready, pod.Running = true, true
	for _, after := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		now := fixture.Noon.Add(after)
		var applications []nudge.Destination
		count := ownership.Applications{}
		for i := range mostServers {
			server := fmt.Sprintf("https://%0180d", i)
			applications, count[server] = append(applications, nudge.Destination{Server: server}), 1
		}
		pod.SampledAt = now
		reports := []scrape.PodReport{pod}
		last := l.memory
		l = &look{At: now, Trouble: s.take(reports, applications, now)}
		l.judge(last, podlist.Controllers{}, reports, ownership.Join(reports, s.fleet(), count), discover.Workload{}, now)
	}
	lines := l.lines()
	took := int64(heap()) - int64(before)
	if len(l.Orphans) != mostServers || len(lines) != mostServers || took > 32<<20 {
		t.Errorf("%d clusters without an owner in %d lines take %.1f MiB", len(l.Orphans), len(lines), float64(took)/(1<<20))
	}
	t.Logf("%d servers take %.1f MiB", len(s), float64(took)/(1<<20))
	runtime.KeepAlive(lines)
	runtime.KeepAlive(l)
	runtime.KeepAlive(s)
}

// A fleet that stops is told in a bounded number of lines, what somebody had before what is only named.
func TestManyFaultsAreToldInABoundedNumberOfLines(t *testing.T) {
	l := &look{At: fixture.Noon}
	for i := range mostServers {
		l.Orphans = append(l.Orphans, ownership.Orphan{Cluster: fmt.Sprintf("https://%05d", i), Since: fixture.Noon,
			Intended: plan.NoReplica, Last: plan.NoReplica})
	}
	l.Orphans[mostServers-1].Last = 2
	var out bytes.Buffer
	l.tell(&out, nil, false)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:] // without the table's head
	if len(lines) != mostNews+1 || !strings.Contains(lines[0], `"https://19999"`) || lines[mostNews] != "12:00:00  and 19000 more faults" {
		t.Errorf("there are %d lines, the first %q, the last %q", len(lines), lines[0], lines[len(lines)-1])
	}
	out.Reset()
	(&look{At: fixture.Noon, Orphans: l.Orphans[:1]}).tell(&out, l, false)
	got := strings.Count(out.String(), "over: ")
	if got != mostNews+1 || !strings.HasSuffix(out.String(), "and 18999 more faults that are over\n") {
		t.Errorf("%d are told to be over; the end is %q", got, out.String()[max(0, out.Len()-60):])
	}
}
