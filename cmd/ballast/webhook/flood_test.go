package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/site"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/sim"
)

const (
	shippedLimit = 256 << 10       // KiB: the Deployment's memory limit
	answerBar    = 2 * time.Second // the API server's timeout
	// idleConnections is a slice of the 20,000 that make soak asks for. Of those that the webhook has long closed this process
	// holds the newest.
	idleConnections = 5_000
	idleHeld        = 4_000
	// webhookDescriptors is what the webhook has open at most: 1,024 connections, and what any process has.
	webhookDescriptors = 1_100
)

// TestNoFloodEndsTheWebhookOrKeepsAnHonestWriteWaiting runs the built command with the largest plan, and with none, and
// floods it as whoever can reach its port may. Its memory stays below the shipped limit, so that it is never restarted,
// and an honest write, on a connection that stands and on a new one, is answered before the API server gives it up.
func TestNoFloodEndsTheWebhookOrKeepsAnHonestWriteWaiting(t *testing.T) {
	for _, under := range []struct {
		name        string
		plans       []corev1.ConfigMap
		secret, pin honestWrite
		floods      []flood
	}{
		{"the largest plan", []corev1.ConfigMap{*largePlan(t, 1)}, honestSecret(t), honestPin(t, largePlan(t, 1)), floods()},
		{"no plan", nil, honestSecret(t).answered(plan.NoPlan), honestPin(t, noPlan()), floodsOfPlans()},
	} {
		t.Run("under "+under.name, func(t *testing.T) {
			target := flooded(t, under.plans)
			target.bystander = unflooded(t, under.secret.answer)
			for _, f := range under.floods {
				t.Run(f.name, func(t *testing.T) { target.withstands(t, f.send, under.secret, under.pin) })
			}
		})
	}
}

// flood is what whoever can reach the port may send.
type flood struct {
	name string
	send func(*testing.T, *floodTarget)
}

// floodsOfPlans are those that cost what is decoded of a review of the plan.
func floodsOfPlans() []flood {
	return []flood{
		{"8 plan reviews of 900 KiB at once", planReviews(8, 900<<10, "c%06d: 1\n")},
		{"8 plan reviews of the costliest YAML at once", planReviews(8, 900<<10, "a,")},
		{"40 plan reviews of the costliest YAML that is still read", planReviews(40, people.MaxPinsBytes-1<<10, "a,")},
		{"40 plan reviews of the most pins that are still read", planReviews(40, people.MaxPinsBytes-1<<10, "c%06d: 1\n")},
		{"40 reviews of the costliest stored plan", storedPlans(40, 255<<10)},
		{"40 reviews of the costliest stored plan that is as light as pins", storedPlans(40, 68<<10)},
		{"40 reviews whose answer would be six times as long", rawNotes(40)},
	}
}

func floods() []flood {
	return append(floodsOfPlans(),
		flood{"a review as large as JSON makes the largest object", worstEscaping},
		flood{"the alias bomb", aliasBomb},
		flood{"millions of containers, words and entries", endless},
		flood{"pins as large as a request", largestPins},
		flood{"64 bodies that stall after their head", stalledBodies(28<<20, 5<<10)},
		flood{"64 small bodies that stall", stalledBodies(256<<10, 0)},
		flood{"idle connections", idleFlood},
		flood{"64 heads of 1 MiB on each plain port", endlessHeads},
		flood{"values of 27 MiB in fields of a few characters", longestValues},
		flood{"1,000 connections with heads of many entries", fatHeads})
}

// withstands sends a flood until no honest write waited too long meanwhile, and weighs the webhook.
func (f *floodTarget) withstands(t *testing.T, send func(*testing.T, *floodTarget), secret, pin honestWrite) {
	late := f.floodedBy(t, send, secret, pin)
	for try := 1; late != "" && try < floodTries; try++ {
		t.Logf("try %d: %s", try, late)
		late = f.floodedBy(t, send, secret, pin)
	}
	if late != "" {
		t.Errorf("in each of %d tries an honest write waited, at last: %s", floodTries, late)
	}
	most := memoryOf(t, f.pid, "VmHWM")
	t.Logf("resident %.1f MiB, at most %.1f MiB", float64(memoryOf(t, f.pid, "VmRSS"))/1024, float64(most)/1024)
	if most >= shippedLimit {
		t.Errorf("%d KiB were resident, want less than %d throughout", most, shippedLimit)
	}
}

// floodTries is how often a flood is sent until no honest write waits too long: the bar is the API server's timeout, and
// the machine runs other tests meanwhile.
const floodTries = 3

// floodedBy sends a flood beside honest writes, and gives the one that waited too long; empty for none. What a bystander of
// this process waits for meanwhile, the writes may wait longer: that is the machine's, which runs other tests, and the flood's
// sender's, which is no attacker's to take from the webhook.
func (f *floodTarget) floodedBy(t *testing.T, send func(*testing.T, *floodTarget), secret, pin honestWrite) string {
	honest, end := context.WithCancel(t.Context())
	var waited [4]wait
	var wg sync.WaitGroup
	wg.Go(func() { waited[0] = f.writeHonestly(honest, t, "a Secret on a connection that stands", true, secret) })
	wg.Go(func() { waited[1] = f.writeHonestly(honest, t, "a Secret on a new connection", false, secret) })
	wg.Go(func() { waited[2] = f.writeHonestly(honest, t, "a pin", true, pin) })
	wg.Go(func() { waited[3] = f.bystander.writeHonestly(honest, t, "a bystander", false, secret) })
	send(t, f)
	end()
	wg.Wait()
	bar := answerBar + waited[3].longest
	var late []string
	for _, w := range waited[:3] {
		if w.longest > bar || w.err != nil {
			late = append(late, fmt.Sprintf("%s was answered after %s, the bar is %s: %v", w.what, w.longest, bar, w.err))
		}
	}
	return strings.Join(late, "; ")
}

// floodTarget is a webhook's process, and a server of this one that nobody floods.
type floodTarget struct {
	webhookProcess
	address   string
	roots     *x509.CertPool
	bystander *floodTarget
}

// unflooded is a server that answers a write as it should be, and does nothing else.
func unflooded(t *testing.T, answer string) *floodTarget {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &floodTarget{address: server.Listener.Addr().String(), roots: roots}
}

// wait is the longest that one of some writes waited for its answer, and the error of one that had none.
type wait struct {
	what    string
	longest time.Duration
	err     error
}

// flooded runs the built command against a server that knows these plans, and nothing else.
func flooded(t *testing.T, plans []corev1.ConfigMap) *floodTarget {
	t.Helper()
	api := httptest.NewServer(planServer(t, plans))
	t.Cleanup(api.Close)
	kubeconfig := kubeconfigOf(t, api.URL)
	port, err := strconv.Atoi(fixture.FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	serving := &envtest.WebhookInstallOptions{LocalServingHost: fixture.ApiServer, LocalServingPort: port, LocalServingCertDir: t.TempDir()}
	target := &floodTarget{address: net.JoinHostPort(fixture.ApiServer, strconv.Itoa(port)), roots: selfSigned(t, serving.LocalServingCertDir)}
	target.webhookProcess = runWebhook(t, builtAsShipped(t), kubeconfig, serving)
	return target
}

// kubeconfigOf is a file that names that API server, and nobody.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
		clusters: [{name: a, cluster: {server: %q}}], users: [{name: a, user: {}}]}`, url)
	if err := os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(text, "\t", " ")), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// planServer is an API server to whom asks for the plan: its list, and a watch in which nothing happens.
func planServer(t *testing.T, plans []corev1.ConfigMap) http.Handler {
	t.Helper()
	for i := range plans {
		plans[i].ResourceVersion = "7"
	}
	list, err := json.Marshal(corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: plans})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write(list)
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
}

// selfSigned puts a serving certificate for loopback into a folder.
func selfSigned(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(fixture.ApiServer)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// from is a client that calls from an address of loopback.
func (f *floodTarget) from(address string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: f.roots}}}
}

// reviewOf is an AdmissionReview as the API server writes it.
func reviewOf(t *testing.T, resource, name string, object, old any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "u1", "resource": map[string]string{"version": "v1", "resource": resource}, "name": name, "namespace": "argocd",
		"operation": "UPDATE", "userInfo": map[string]string{"username": "ada"}, "object": object, "oldObject": old}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// honestWrite is what an API server asks, and what is in the answer.
type honestWrite struct {
	path, answer string
	body         []byte
}

// answered is the write where it is answered with another reason.
func (w honestWrite) answered(why plan.Reason) honestWrite {
	w.answer = fmt.Sprintf(`"reason":%q`, why)
	return w
}

// honestSecret is a cluster Secret with a wrong shard.
func honestSecret(t *testing.T) honestWrite {
	t.Helper()
	name := memoryCluster(0)
	object := map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		"data": map[string][]byte{"config": bytes.Repeat([]byte("x"), 2<<10), "shard": []byte("15")}}
	return honestWrite{"/clusters", `"reason":"Restored"`, reviewOf(t, "secrets", name, object, nil)}
}

// noPlan is a plan ConfigMap that its planner has not written yet.
func noPlan() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: site.PlanConfigMap}, Data: map[string]string{}}
}

// honestPin is the plan ConfigMap with a pin more.
func honestPin(t *testing.T, old *corev1.ConfigMap) honestWrite {
	t.Helper()
	object := old.DeepCopy()
	object.Data[plan.KeyPins] = memoryCluster(0) + ": 3\n"
	return honestWrite{"/plan", `"enforced":"pins.` + memoryCluster(0) + `=3"`, reviewOf(t, "configmaps", site.PlanConfigMap, object, old)}
}

// writeHonestly makes the same write, one after the other, until the context ends or one is turned away: each is answered as it
// should be.
func (f *floodTarget) writeHonestly(ctx context.Context, t *testing.T, what string, keep bool, write honestWrite) wait {
	client := f.from(fixture.ApiServer)
	client.Transport.(*http.Transport).DisableKeepAlives = !keep
	w, writes := wait{what: what}, 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		start := time.Now()
		answer, err := post(client, f.address, write.path, write.body)
		w.longest, writes = max(w.longest, time.Since(start)), writes+1
		if err != nil {
			w.err = err
			return w
		}
		if !strings.Contains(string(answer), write.answer) {
			t.Errorf("%s was answered %.300s", what, answer)
			return w
		}
	}
	t.Logf("%s: %d writes were answered within %s", what, writes, w.longest.Round(time.Millisecond))
	return w
}

func post(client *http.Client, address, path string, body []byte) ([]byte, error) {
	response, err := client.Post("https://"+address+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return answer, err
}

// postAgain is post up to an answer, four times at most: who writes too slowly is cut, and a busy machine is slow.
func postAgain(client *http.Client, address, path string, body []byte) ([]byte, error) {
	answer, err := post(client, address, path, body)
	for again := 0; err != nil && again < 3; again++ {
		answer, err = post(client, address, path, body)
	}
	return answer, err
}

// planReviews sends so many reviews at once, of pins of that size that are made of one line again and again, old ones and new
// ones.
func planReviews(callers, size int, line string) func(*testing.T, *floodTarget) {
	return func(t *testing.T, f *floodTarget) {
		pins := func(first string) map[string]any {
			var b strings.Builder
			b.WriteString(first)
			for i := 0; b.Len() < size-len(line); i++ {
				if strings.Contains(line, "%") {
					fmt.Fprintf(&b, line, i)
				} else {
					b.WriteString(line)
				}
			}
			if !strings.Contains(line, "%") {
				b.WriteString("]")
			}
			return map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}, "data": map[string]string{plan.KeyPins: b.String()}}
		}
		open := map[bool]string{false: "x: [a,", true: "x: 1\n"}[strings.Contains(line, "%")]
		f.asked(t, callers, reviewOf(t, "configmaps", site.PlanConfigMap, pins(open), pins("#\n"+open)))
	}
}

// storedPlans sends so many reviews at once of a write to a plan of that size that has a digest that fits, and the
// costliest YAML in one of its lines.
func storedPlans(callers, size int) func(*testing.T, *floodTarget) {
	return func(t *testing.T, f *floodTarget) {
		text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nx: [a" + strings.Repeat(",a", size/2-50) + "]\n"
		stored := map[string]any{"metadata": map[string]any{"name": site.PlanConfigMap, "annotations": map[string]string{plan.AnnotationDigest: plan.Digest(text)}},
			"data": map[string]string{plan.KeyPlan: text}}
		f.asked(t, callers, reviewOf(t, "configmaps", site.PlanConfigMap, map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}}, stored))
	}
}

// rawNotes sends so many reviews at once of a write that takes annotations and a plan away, of a character that JSON has in
// escapes alone, and that stands there raw.
func rawNotes(callers int) func(*testing.T, *floodTarget) {
	return func(t *testing.T, f *floodTarget) {
		raw := func(bytes int) string { return strings.Repeat("\x01", bytes) }
		var notes []string
		for _, key := range []string{plan.AnnotationDigest, plan.AnnotationRevision, plan.AnnotationPaused, plan.AnnotationEnforcement} {
			notes = append(notes, fmt.Sprintf(`"%s":"%s"`, key, raw(250<<10)))
		}
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"argocd","operation":"UPDATE",` +
			`"resource":{"resource":"configmaps"},"name":"` + site.PlanConfigMap + `","userInfo":{"username":"mallory"},"object":{"metadata":{},"data":{}},` +
			`"oldObject":{"metadata":{"annotations":{` + strings.Join(notes, ",") + `}},"data":{"plan":"` + raw(3<<19-1) + `"}}}}`
		f.asked(t, callers, []byte(body))
	}
}

// asked sends a review of the plan from so many callers at once, three times. Whether one is answered, turned away or cut off
// while it is still sent is not asked, since nobody honest writes so; but the flood has to arrive.
func (f *floodTarget) asked(t *testing.T, callers int, body []byte) {
	t.Helper()
	var heard atomic.Int32
	var last atomic.Value
	for range 3 {
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if answer, err := post(f.from(fixture.Attacker), f.address, "/plan", body); answer != nil || err == nil {
					heard.Add(1)
				} else {
					last.Store(err.Error())
				}
			})
		}
		wg.Wait()
	}
	if heard.Load() == 0 {
		t.Errorf("none of %d plan reviews had an answer, at last: %v", 3*callers, last.Load())
	}
}

// worstEscaping sends the largest object that the API server reads beside the largest that is stored, of a character
// that JSON makes six of: it is read and answered.
func worstEscaping(t *testing.T, f *floodTarget) {
	object := func(bytes int) map[string]any {
		return map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}, "data": map[string]string{"notes": strings.Repeat("<", bytes)}}
	}
	body := reviewOf(t, "configmaps", site.PlanConfigMap, object(3<<20-1<<10), object(3<<19-1<<10))
	t.Logf("the review has %.1f MiB", float64(len(body))/(1<<20))
	answer, err := postAgain(f.from(fixture.ApiServer), f.address, "/plan", body)
	if err != nil || !bytes.Contains(answer, []byte(`"allowed":true,"auditAnnotations":{"reason":"InPlan"`)) {
		t.Errorf("it was answered %.300s: %v", answer, err)
	}
}

// stalledBodies claims bodies of a size, of which so many bytes come, and holds them until the webhook has closed all.
func stalledBodies(size, comes int) func(*testing.T, *floodTarget) {
	return func(t *testing.T, f *floodTarget) {
		var wg sync.WaitGroup
		for range 64 {
			conn, err := f.dial(fixture.Attacker)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST /plan HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat(" ", comes))
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
				_, _ = io.Copy(io.Discard, conn)
			})
		}
		wg.Wait()
	}
}

func (f *floodTarget) dial(from string) (*tls.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	return tls.DialWithDialer(&d, "tcp", f.address, &tls.Config{RootCAs: f.roots})
}

// idleFlood opens connections, by 32 at a time from four addresses, the API server's own among them: a third says
// nothing, a third sends what is no review, and a third a review. It closes none that the webhook has not closed
// before.
func idleFlood(t *testing.T, f *floodTarget) {
	review := reviewOf(t, "secrets", "a", map[string]any{"metadata": map[string]string{"name": "a"}}, nil)
	says := []string{"", "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
		fmt.Sprintf("POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(review), review)}
	open := make(chan net.Conn, idleHeld) // the newest
	next := make(chan int)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 32 {
		wg.Go(func() {
			for i := range next {
				conn, err := f.dial([]string{fixture.ApiServer, fixture.Attacker, "127.0.0.67", "127.0.0.68"}[i%4])
				if err != nil {
					failed.Add(1) // it lost its place while it shook hands
					continue
				}
				fmt.Fprint(conn, says[i%len(says)])
				hold(open, conn.NetConn()) // without what TLS keeps of it
			}
		})
	}
	most, connections := 0, int64(sim.FromEnv(t, "BALLAST_FLOOD_CONNECTIONS", idleConnections))
	for i := range int(connections) {
		next <- i
		if i%1000 == 0 {
			most = max(most, f.descriptors(t))
		}
	}
	close(next)
	wg.Wait()
	most = max(most, f.descriptors(t))
	t.Logf("%d connections were opened, %d of them not to the end, the newest %d are held; the webhook had at most %d files open",
		connections, failed.Load(), len(open), most)
	if failed.Load() > connections/2 || most > webhookDescriptors {
		t.Errorf("the webhook had %d files open, want at most %d", most, webhookDescriptors)
	}
	for len(open) > 0 {
		(<-open).Close()
	}
}

// hold keeps the newest connections.
func hold(open chan net.Conn, conn net.Conn) {
	for {
		select {
		case open <- conn:
			return
		default:
		}
		select {
		case oldest := <-open:
			oldest.Close()
		default:
		}
	}
}

// descriptors is how many files the webhook has open.
func (f *floodTarget) descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(f.pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// aliasBomb sends plans of 65 KB that aliases would make 340 MB of, as they are and as if they had been stored so.
func aliasBomb(t *testing.T, f *floodTarget) {
	text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nz: &z \"" + strings.Repeat("a", 26_000) + "\"\ny: [" + strings.Repeat("*z,", 13_000) + "]\n"
	object := map[string]any{"metadata": map[string]any{"name": site.PlanConfigMap, "annotations": map[string]string{plan.AnnotationDigest: plan.Digest(text)}},
		"data": map[string]string{plan.KeyPlan: text, plan.KeyPins: "z: &z 1\ny: [" + strings.Repeat("*z,", 13_000) + "]\n"}}
	nothing := map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}}
	for _, old := range []any{nothing, object, nothing} {
		if _, err := postAgain(f.from(fixture.Attacker), f.address, "/plan", reviewOf(t, "configmaps", site.PlanConfigMap, object, old)); err != nil {
			t.Errorf("it was not answered: %v", err)
		}
	}
}

// endless sends workloads that are nothing but one kind of element, as many as a body holds.
func endless(t *testing.T, f *floodTarget) {
	around := map[string][2]string{
		"{}":                                  {`"containers":[`, `]`},
		`{"name":"","resources":{}}`:          {`"containers":[`, `]`},
		`""`:                                  {`"containers":[{"name":"a","args":[`, `]}]`},
		`{"name":"` + plan.EnvReplicas + `"}`: {`"containers":[{"name":"a","env":[`, `]}]`},
	}
	for _, element := range slices.Sorted(maps.Keys(around)) {
		list := strings.Repeat(element+",", (27<<20)/(len(element)+1)) + element
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","resource":{"resource":"statefulsets"},"name":"` + fixture.ControllerName +
			`","namespace":"argocd","operation":"UPDATE","userInfo":{"username":"mallory"},"object":{"metadata":{"name":"` + fixture.ControllerName + `"},"spec":{"template":{"spec":{` +
			around[element][0] + list + around[element][1] + `}}}}}}`
		answer, err := postAgain(f.from(fixture.Attacker), f.address, "/controllers", []byte(body))
		if err != nil || !bytes.Contains(answer, []byte(`the pod template is too large to be read here`)) && !bytes.Contains(answer, []byte(`no container runs`)) {
			t.Errorf("%s without end was answered %.300s: %v", element, answer, err)
		}
	}
}

// largestPins sends pins of the largest request, which the webhook sees before anybody has judged their size.
func largestPins(t *testing.T, f *floodTarget) {
	for _, pins := range []string{"x: [" + strings.Repeat("a,", 3<<19-8) + "]", strings.Repeat("\n", 3<<20-8), strings.Repeat("a: x\n", 600_000)} {
		object := map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}, "data": map[string]string{plan.KeyPins: pins}}
		old := map[string]any{"metadata": map[string]string{"name": site.PlanConfigMap}, "data": map[string]string{plan.KeyPins: pins + "#"}}
		answer, err := postAgain(f.from(fixture.Attacker), f.address, "/plan", reviewOf(t, "configmaps", site.PlanConfigMap, object, old))
		if err != nil || !bytes.Contains(answer, []byte(`"allowed":false,"status":{"code":422`)) || !bytes.Contains(answer, []byte(`KiB, and at most 256 are read`)) {
			t.Errorf("%.20q was answered %.300s: %v", pins, answer, err)
		}
	}
}

// endlessHeads sends heads of one line that goes on and on to the ports of /metrics and the probes, which the kubelet is
// answered on all the while.
func endlessHeads(t *testing.T, f *floodTarget) {
	head := "GET /metrics HTTP/1.1\r\nHost: a\r\nx: " + strings.Repeat(strings.Repeat("y", 1<<16)+"\r\n ", 16)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for _, port := range []string{f.metrics, f.health} {
		for range 64 {
			wg.Go(func() {
				if fixture.SendsHead(t, port, head) {
					refused.Add(1)
				}
			})
		}
	}
	for range 10 {
		awaitReady(t, f.health)
	}
	wg.Wait()
	t.Logf("%d of 128 heads were answered with 431, the others' connections were closed", refused.Load())
	if refused.Load() == 0 {
		t.Error("no head was refused for its size")
	}
}

// longestValues sends values where names are expected, of characters that grow when they are printed.
func longestValues(t *testing.T, f *floodTarget) {
	const size = 27 << 20
	begins := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"argocd","operation":"UPDATE",`
	secret := `"resource":{"resource":"secrets"},"object":{"metadata":{"name":"a","labels":{"argocd.argoproj.io/secret-type":"cluster"}},"data":{"shard":"OTk=","server":"aHR0cHM6Ly9h"}}}}`
	planMap := `"resource":{"resource":"configmaps"},"name":"ballast-plan","object":{"metadata":{"name":"ballast-plan"},"data":{}},"oldObject":{"metadata":{"name":"ballast-plan"`
	for _, review := range []struct{ path, before, value, after string }{
		{"/clusters", strings.TrimSuffix(begins, `u","namespace":"argocd","operation":"UPDATE",`), "<", `","name":"a",` + secret},
		{"/clusters", begins + `"name":"`, "\xff", `",` + secret},
		{"/clusters", begins + `"name":"`, "\x7f", `",` + secret},
		{"/clusters", begins + `"userInfo":{"username":"`, "\xff", `"},"name":"a",` + secret},
		{"/plan", begins + planMap + `},"data":{"plan":"`, "<", `"}}}}`},
		{"/plan", begins + planMap + `,"annotations":{"ballast.argoproj.io/reason":"`, "<", `"}},"data":{}}}}`},
		{"/plan", begins + planMap + `,"annotations":{"ballast.argoproj.io/\u0041`, "\xff", `":"x"}},"data":{}}}}`},
	} {
		body := []byte(review.before + strings.Repeat(review.value, size) + review.after)
		if answer, err := post(f.from(fixture.Attacker), f.address, review.path, body); len(answer) > 8<<10 {
			t.Errorf("%.200q... was answered with %d bytes: %v", review.before, len(answer), err)
		}
	}
}

// fatHeads opens connections, half of which bring a review first, and sends on each a head of as many entries as fit, whose body
// does not come.
func fatHeads(t *testing.T, f *floodTarget) {
	review := reviewOf(t, "secrets", "a", map[string]any{"metadata": map[string]string{"name": "a"}}, nil)
	honest := fmt.Sprintf("POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(review), review)
	var wg sync.WaitGroup
	room := make(chan struct{}, 32) // handshakes at once
	for i := range 1000 {
		head := "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n" + strings.Repeat("ab:\n", []int{980, 4900}[i/2%2])
		room <- struct{}{}
		conn, err := f.dial(fmt.Sprintf("127.0.0.%d", 66+i%4))
		if err != nil {
			<-room
			continue // it lost its place while it shook hands
		}
		if <-room; i%2 == 0 {
			fmt.Fprint(conn, honest)
		}
		wg.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, head+"\r\n")
			_, _ = io.Copy(io.Discard, conn)
		})
	}
	wg.Wait()
}
