package webhook

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	heapCalls = 1000
	// A request's bytes stand in the read buffers of its connection (crypto/tls, net/http) until another request's take
	// their place; nothing of ours keeps them.
	heldAtOnce = 2 // a connection
	heldLater  = 2
)

// heapAddress tells a process of this test binary to be an API server that calls a webhook there, and nothing else: what it
// sends must not be in the heap that is looked at. heapMark is how each of its tokens begins, and heapConnections over how
// many connections it sends them by turns.
const (
	heapAddress     = "BALLAST_HEAP_ADDRESS"
	heapMark        = "BALLAST_HEAP_MARK"
	heapConnections = "BALLAST_HEAP_CONNECTIONS"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(heapAddress); address != "" {
		connections, err := strconv.Atoi(os.Getenv(heapConnections))
		if err == nil {
			err = sendTokens(address, os.Getenv(heapMark), connections, os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTheHeapHoldsNoSecretAfterItsRequest serves a process that sends tokens, and looks for them in dumps of the heap. An
// API server that makes one call after the other makes them on one connection.
func TestTheHeapHoldsNoSecretAfterItsRequest(t *testing.T) {
	for _, connections := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) { holdsNoSecret(t, connections) })
	}
}

func holdsNoSecret(t *testing.T, connections int) {
	t.Helper()
	s := serve(t, NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard()))
	mark := "token" + rand.Text()[:19] // 24 letters, which base64 makes 32 of wherever it goes on
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), heapAddress+"="+s.address, heapMark+"="+mark, heapConnections+"="+strconv.Itoa(connections)), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	said := bufio.NewReader(stdout)
	for _, at := range []struct {
		when string
		most int
	}{{"at once", connections * heldAtOnce}, {"after another request", heldLater}} {
		if _, err := said.ReadString('\n'); err != nil {
			t.Fatalf("the caller ended: %v", err)
		}
		held := tokensInHeap(t, mark)
		t.Logf("%s, the heap holds %d of %d tokens", at.when, held, heapCalls)
		if held > at.most {
			t.Errorf("%s, the heap holds %d of %d tokens, want %d at most", at.when, held, heapCalls, at.most)
		}
		fmt.Fprintln(stdin)
	}
}

// tokenRest makes a token of 3 KiB of a mark and a number.
func tokenRest() string { return strings.Repeat("x", 3000) }

// tokensInHeap counts the whole tokens, plain or in base64, that two garbage collections leave.
func tokensInHeap(t *testing.T, mark string) int {
	t.Helper()
	runtime.GC()
	runtime.GC()
	dump, err := os.Create(filepath.Join(t.TempDir(), "heap"))
	if err != nil {
		t.Fatal(err)
	}
	debug.WriteHeapDump(dump.Fd())
	dump.Close()
	heap, err := os.ReadFile(dump.Name())
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for form, encode := range map[string]func([]byte) string{"...": func(b []byte) string { return string(b) }, "....": base64.StdEncoding.EncodeToString} {
		for _, m := range regexp.MustCompile(encode([]byte(mark))+"("+form+")"+encode([]byte(tokenRest()))).FindAllSubmatch(heap, -1) {
			held[string(m[1])] = true
		}
	}
	return len(held)
}

// sendTokens makes calls with a token each, in the key that Argo CD keeps it in and in the one that we read, by turns on
// several connections and in bodies of every kind of buffer; then, told to, a call on each connection that has none.
func sendTokens(address, mark string, connections int, in io.Reader, out io.Writer) error {
	var clients []*http.Client
	for range connections {
		clients = append(clients, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}})
	}
	for i := range heapCalls {
		token := fmt.Sprintf("%s%03d%s", mark, i, strings.Repeat(tokenRest(), []int{50, 10, 1, 1}[i/connections%4]))
		if err := send(clients[i%connections], address, token); err != nil {
			return err
		}
	}
	told := bufio.NewReader(in)
	for _, next := range []string{strings.Repeat("y", 64<<10), ""} {
		fmt.Fprintln(out, "sent")
		if _, err := told.ReadString('\n'); err != nil {
			return err
		}
		for _, c := range clients {
			if err := send(c, address, next); err != nil {
				return err
			}
		}
	}
	return nil
}

func send(c *http.Client, address, token string) error {
	object := strings.NewReplacer("Y2FuYXJ5LXRva2Vu", base64.StdEncoding.EncodeToString([]byte(token)), "MQ==", base64.StdEncoding.EncodeToString([]byte(token))).Replace(clusterSecret)
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"6d0c","name":"prod-eu","namespace":"argocd","operation":"UPDATE",` +
		`"resource":{"version":"v1","resource":"secrets"},"userInfo":{"username":"ada"},"object":` + object + `,"oldObject":` + object + `}}`
	resp, err := c.Post("https://"+address+"/clusters", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"reason":"Restored"`))) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return err
}
