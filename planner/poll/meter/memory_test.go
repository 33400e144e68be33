package meter_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/poll"
	"ballast/planner/poll/meter"
)

// The planner's limit, and the bounds that cmd/ballast sets on its collector.
const (
	shippedLimit = 512 << 10 // KiB
	memoryLimit  = 420 << 20
	gcPercent    = 40
	// resident is less than the shipped limit by what the rest of a planner takes at most: its cache of 20,000 Secrets.
	resident = 400 << 10 // KiB
)

const askOf = "BALLAST_TEST_ASK_OF"

// TestMain runs the package's tests or, where it is told of a Prometheus, is a process that asks it and says what it took.
func TestMain(m *testing.M) {
	address := os.Getenv(askOf)
	if address == "" {
		code := m.Run()
		_ = os.RemoveAll(built) // of an empty name nothing is removed
		os.Exit(code)
	}
	if err := json.NewEncoder(os.Stdout).Encode(askAll(address)); err != nil {
		panic(err)
	}
}

// asked is what a process found when it asked for a planner's metrics with 64 queries at once, and what it took at
// most.
type asked struct {
	Samples map[string]int
	Errs    []string
	Peak    int // KiB that were resident
}

// owned is as large as a planner's query for the owners.
var owned = poll.Metric{ID: "owner", Query: "owner", Match: poll.Match{Label: "owner"}}

func askAll(address string) asked {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	p, err := poll.New(poll.Config{URL: address, Timeout: time.Minute, Concurrency: 64})
	if err != nil {
		panic(err)
	}
	a := asked{Samples: map[string]int{}}
	for _, f := range p.Fetch(context.Background(), append(poll.DefaultMetrics(), owned), discover.Fleet{}, time.Unix(1_785_585_600, 0)) {
		a.Samples[f.Metric] = len(f.Samples)
		if problems := append(f.Warnings, f.Err); strings.Join(problems, "") != "" {
			a.Errs = append(a.Errs, strings.Join(problems, " "))
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			_, _ = fmt.Sscan(rest, &a.Peak)
		}
	}
	return a
}

// built is the folder of withoutRace, once it was asked for.
var built string

// withoutRace is this package's test binary, built without the race detector, which takes several times the memory.
var withoutRace = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "ballast-meter"); err != nil {
		return "", err
	}
	binary := filepath.Join(built, "meter.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the asking process: %w: %s", err, out)
	}
	return binary, nil
})

// process asks a server in a process of its own.
func process(t *testing.T, answer http.HandlerFunc) (a asked) {
	t.Helper()
	binary, err := withoutRace()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(answer)
	defer server.Close()
	c := exec.CommandContext(t.Context(), binary)
	c.Env, c.Stderr = append(os.Environ(), askOf+"="+server.URL), os.Stderr
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v samples, resident at most %d MiB", a.Samples, a.Peak>>10)
	return a
}

// labelled is an answer of one sample with that label.
func labelled(name, value string) string {
	return answerHead + `{"metric":{"` + name + `":"` + value + `"},"value":[1,"7"]}` + answerTail
}

const (
	answerHead = `{"status":"success","data":{"resultType":"vector","result":[`
	answerTail = `]}}`
)

// samplesOf writes an answer of as many samples, the number of each where the format has %d.
func samplesOf(w io.Writer, format string, count int) {
	out := bufio.NewWriterSize(w, 1<<20)
	defer out.Flush()
	before, after, numbered := strings.Cut(format, "%d")
	_, _ = out.WriteString(answerHead)
	if !numbered { // by the thousand, for there are millions
		const block = 1000
		thousand := strings.Repeat(format+",", block)
		for range (count - 1) / block {
			_, _ = out.WriteString(thousand)
		}
		_, _ = out.WriteString(thousand[:((count-1)%block+1)*(len(format)+1)-1] + answerTail)
		return
	}
	for i := range count {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.WriteString(before)
		_, _ = out.WriteString(strconv.Itoa(i))
		_, _ = out.WriteString(after)
	}
	_, _ = out.WriteString(answerTail)
}

// most is how many samples of a format an answer may have.
func most(format string) int {
	return int((meter.MaxAnswer - meter.Weight([]byte(answerHead+answerTail))) / meter.Weight([]byte(strings.ReplaceAll(format, "%d", "100000")+",")))
}

// fatHead writes a head of some 8 MiB in lines as short as they can be.
func fatHead(t *testing.T, w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer connection.Close()
	out := bufio.NewWriterSize(connection, 1<<20)
	defer out.Flush()
	_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
	for i := range 8 << 20 / 7 {
		_, _ = out.WriteString(strconv.Itoa(1_00_000+i) + ":\n")
	}
	_, _ = out.WriteString("\r\n{}")
}

const (
	eksServer   = `https://0123456789ABCDEF0123456789ABCDEF.gr%d.eu-central-1.eks.amazonaws.com`
	eksSample   = `{"metric":{"server":"` + eksServer + `","dest_server":"x"},"value":[1767225600.123,"12345.678901234567"]}`
	ownerSample = `{"metric":{"pod":"argocd-application-controller-12","owner":"argocd-application-controller-12|` + eksServer + `","dest_server":"x"},"value":[1767225600.123,"1"]}`
)

// Whatever a Prometheus answers, the process that asks stays within its limit: by all queries at once, each answered
// with as much as is let in, or with more.
func TestNoAnswerTakesThePlannersMemory(t *testing.T) {
	lean := `{"metric":{"server":"%d","dest_server":"","owner":"1"},"value":[1,"1"]}`
	long := `{"metric":{"server":"%d` + strings.Repeat("<", meter.MaxString-10) + `"},"value":[1,"1"]}`
	for name, answer := range map[string]http.HandlerFunc{
		"nulls":                  func(w http.ResponseWriter, _ *http.Request) { samplesOf(w, "null", most("null")) },
		"empty samples, endless": func(w http.ResponseWriter, _ *http.Request) { samplesOf(w, "{}", 20<<20) },
		"lean samples":           func(w http.ResponseWriter, _ *http.Request) { samplesOf(w, lean, most(lean)) },
		"long labels":            func(w http.ResponseWriter, _ *http.Request) { samplesOf(w, long, most(long)) },
		"one label of no UTF-8": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, labelled(strings.Repeat("\xff", 14<<20), "a"))
		},
		"one label, unprintable": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, labelled("a", strings.Repeat("\x7f", 14<<20)))
		},
		"heads, and nulls": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.FormValue("query"), "timestamp") {
				fatHead(t, w)
				return
			}
			samplesOf(w, "null", most("null"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if a := process(t, answer); a.Peak >= resident {
				t.Errorf("%d MiB were resident, want less than %d", a.Peak>>10, resident>>10)
			}
		})
	}
}

// Four times the fleet that ballast is made for is measured by the default metrics, and its owners are known.
func TestTwentyThousandClustersAreMeasured(t *testing.T) {
	const clusters = 20_000
	var weights sync.Map
	got := process(t, func(w http.ResponseWriter, r *http.Request) {
		format := eksSample
		if query := r.FormValue("query"); query == owned.Query {
			format = ownerSample
		} else if strings.Contains(query, "dest_server") {
			format = strings.NewReplacer(`"server"`, `"dest_server"`, `"dest_server"`, `"x"`).Replace(eksSample)
		}
		var text bytes.Buffer
		samplesOf(&text, format, clusters)
		weights.Store(meter.Weight(text.Bytes())>>20, true)
		_, _ = w.Write(text.Bytes())
	})
	weights.Range(func(k, _ any) bool { t.Log("an answer of", k, "MiB"); return true })
	want := asked{Samples: map[string]int{"objects": clusters, "events": clusters, "reconciles": clusters, "apps": clusters, "owner": clusters}, Peak: got.Peak}
	if diff := cmp.Diff(want, got); diff != "" || got.Peak >= resident {
		t.Errorf("%d MiB were resident; (-want +got):\n%s", got.Peak>>10, diff)
	}
}
