package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logText is of a real application-controller, shortened.
const logText = `{"built":"1970-01-01T00:00:00Z","level":"info","msg":"ArgoCD Application Controller is starting","namespace":"argocd","time":"2026-11-20T14:24:48.732016052Z","version":"v3.2.11+unknown"}
{"level":"info","msg":"Configmap/secret informer synced","time":"2026-11-20T14:24:48.834570817Z"}
{"level":"warning","msg":"The cluster https://127.64.254.4:6443 has no assigned shard.","time":"2026-11-20T14:24:48.839231092Z"}
{"level":"info","msg":"Cluster https://127.64.254.4:6443 has been assigned to shard 1","time":"2026-11-20T14:24:48.847655079Z"}
{"level":"info","msg":"Ignoring cluster https://kubernetes.default.svc","time":"2026-11-20T14:24:48.948815833Z"}
{"app-namespace":"argocd","application":"dev-ap-2","level":"info","msg":"Refreshing app status (spec.source differs), level (3)","project":"default","time":"2026-11-20T14:24:48.949912277Z"}
{"level":"info","msg":"Start syncing cluster","server":"https://127.64.254.4:6443","time":"2026-11-20T14:24:48.95Z"}
panic: not JSON
{"level":"info","msg":"Cluster successfully synced","server":"https://127.64.254.4:6443","time":"2026-11-20T14:24:49Z"}
{"error":"no","level":"error","msg":"Failed to sync cluster","server":"https://127.64.254.5:6443","time":"2026-11-20T14:24:49Z"}
{"level":"info","msg":"Cluster https://127.64.254.4:6443 has changed shard from 1 to 0","time":"2026-11-20T14:24:50Z"}
{"level":"info","msg":"Invalidated cluster","server":"https://127.64.254.4:6443","time":"2026-11-20T14:24:50.5Z"}
{"app-namespace":"argocd","application":"dev-ap-2","level":"info","msg":"Refreshing app status (normal refresh requested), level (3)","project":"default","time":"2026-11-20T14:24:51Z"}
{"level":"info","msg":"Start syncing cluster","time":"2026-11-20T14:24:52Z"}
{"level":"info","msg":"got signal terminated, attempting graceful shutdown","time":"2026-11-20T14:24:53Z"}
{"level":"info","msg":"clean shutdown","time":"2026-11-20T14:24:53.1Z"}
`

func TestReadEvents(t *testing.T) {
	const server = "https://127.64.254.4:6443"
	at := func(s string) time.Time {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 20, 14, 24, 0, 0, time.UTC).Add(d)
	}
	want := []Event{
		{At: at("48.732016052s"), Kind: Began},
		{At: at("48.847655079s"), Kind: Assigned, Server: server, Shard: 1},
		{At: at("48.95s"), Kind: Syncing, Server: server},
		{At: at("49s"), Kind: Synced, Server: server},
		{At: at("49s"), Kind: Failed, Server: "https://127.64.254.5:6443"},
		{At: at("50s"), Kind: Changed, Server: server},
		{At: at("50.5s"), Kind: Invalidated, Server: server},
		{At: at("51s"), Kind: Refreshed, Application: "dev-ap-2"},
		{At: at("53.1s"), Kind: Ended},
	}
	for i := range want {
		want[i].Pod = "argocd-application-controller-0"
	}
	var got []Event
	n, err := ReadEvents("argocd-application-controller-0", strings.NewReader(logText+`{"level":"in`), func(e Event) { got = append(got, e) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n != int64(len(logText)) {
		t.Errorf("bytes of whole lines: got %d, want %d", n, len(logText))
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add(logText)
	f.Add("{}\n")
	f.Add(`{"msg":"Start syncing cluster","server":"https://x"}` + "\n")
	f.Add(`{"time":"2026-11-20T14:24:53Z","msg":"Cluster has changed shard from 1 to 0"}` + "\n")
	f.Add(`{"time":"2026-11-20T14:24:53Z","msg":"Cluster x has been assigned to shard 1x"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		events := 0
		n, err := ReadEvents("pod", strings.NewReader(text), func(e Event) {
			events++
			if e.At.IsZero() || e.Kind == "" || e.Pod != "pod" {
				t.Errorf("an event without its time, kind or pod: %+v", e)
			}
			if owns := e.Kind == Syncing || e.Kind == Invalidated; owns && e.Server == "" {
				t.Errorf("an event of no cluster: %+v", e)
			}
		})
		if whole := text[:strings.LastIndex(text, "\n")+1]; err != nil || n != int64(len(whole)) || events > strings.Count(whole, "\n") {
			t.Errorf("got %d bytes, %d events, %v of %d whole bytes", n, events, err, len(whole))
		}
	})
}

// script is a timeline in a few words: "0.0 a syncing x" is pod a taking cluster x at second 0.
func script(t *testing.T, from, to float64, lines ...string) Timeline {
	t.Helper()
	at := func(s float64) time.Time {
		return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
	}
	tl := Timeline{From: at(from), To: at(to), Clusters: []Cluster{{"x", "https://x"}, {"y", "https://y"}}}
	for _, line := range lines {
		var s float64
		var pod, kind, cluster string
		if n, err := fmt.Sscan(line, &s, &pod, &kind, &cluster); n < 3 {
			t.Fatalf("reading %q: %v", line, err)
		}
		e := Event{At: at(s), Pod: "c-" + pod, Kind: Kind(kind)}
		if cluster != "" {
			e.Server = "https://" + cluster
		}
		tl.Events = append(tl.Events, e)
	}
	return tl
}
