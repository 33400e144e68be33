package matrix

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/log"

	installation "ballast/e2e/site"
	"ballast/planner/plan"
)

const (
	// everywhereReplicas is one more than ship.
	everywhereReplicas = 3
	everywherePlans    = 50
	// everywhereAsk lies between two questions to a replica, and is what the figures are exact to.
	everywhereAsk = 2 * time.Millisecond
)

// process runs the built command as the webhook's ServiceAccount until the test ends, and gives the address it serves at.
func (s *site) process(t testing.TB, binary string) (address string) {
	t.Helper()
	account := s.account(t, "ballast-webhook")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"it": {Server: account.Host, CertificateAuthorityData: account.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"it": {Token: account.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		CurrentContext: "it",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "webhook", "--namespace="+namespace, "--bind-address=127.0.0.1", "--port=0", "--metrics-port=0", "--health-port=0", "--cert-dir="+s.certs, "--lame-duck=0s")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, log) // until it has ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the webhook ended with %v", err)
		}
	})
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return line.Address
		}
	}
	t.Fatal("the webhook ended before it served")
	return ""
}

// asker asks one replica what it would answer to a write.
type asker struct {
	client *http.Client
	url    string
	review []byte
}

// newAsker speaks to a replica as the API server does: AdmissionReviews over TLS, on a connection that stays.
func newAsker(t testing.TB, address string) *asker {
	t.Helper()
	object, err := json.Marshal(named(secret("15"), "c-00"))
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	request := &admissionv1.AdmissionRequest{UID: "asked", Name: "c-00", Namespace: namespace, Operation: admissionv1.Update, DryRun: &yes}
	request.Resource.Version, request.Resource.Resource, request.UserInfo.Username = "v1", "secrets", "ada"
	request.Object.Raw, request.OldObject.Raw = object, object
	review, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the address is none of the certificate's
	t.Cleanup(transport.CloseIdleConnections)
	return &asker{&http.Client{Transport: transport, Timeout: time.Minute}, "https://" + address + "/clusters", review}
}

func (a *asker) ask() (map[string]string, error) {
	resp, err := a.client.Post(a.url, "application/json", bytes.NewReader(a.review))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&review); err != nil {
		return nil, err
	}
	return review.Response.AuditAnnotations, nil
}

// until asks again and again until the answer is by a revision, and checks that it enforces a shard.
func (a *asker) until(revision int64, shard string) error {
	tick := time.NewTicker(everywhereAsk)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		got, err := a.ask()
		if err != nil {
			return fmt.Errorf("asking %s: %w", a.url, err)
		}
		if got["revision"] != strconv.FormatInt(revision, 10) {
			continue
		}
		if got["enforced"] != "shard="+shard {
			return fmt.Errorf("asking %s: revision %d enforces %q, want shard %s", a.url, revision, got["enforced"], shard)
		}
		return nil
	}
	return fmt.Errorf("asking %s: revision %d was never in force", a.url, revision)
}

// spread is how long a plan took, in ms from when its write began: until the API server had answered, and until the last
// replica answered by it.
type spread struct{ written, everywhere []float64 }

// everywhere writes plans of n clusters as the planner does, and asks every replica, each a process with a watch of its
// own, until it answers by them.
func (s *site) everywhere(t testing.TB, binary string, n, plans int) spread {
	t.Helper()
	s.decide(t, fleetOf(n, 1), "")
	askers := make([]*asker, everywhereReplicas)
	for i := range askers {
		address := s.process(t, binary)
		askers[i] = newAsker(t, address)
		s.endpoints.set(address) // the API server shows the plan to the last one
	}
	s.endpoints.cut()
	defer s.endpoints.cut()
	defer s.endpoints.set(s.replica.address)
	planner, err := kubernetes.NewForConfig(s.planner)
	if err != nil {
		t.Fatal(err)
	}
	var took spread
	for i := range plans {
		p := fleetOf(n, int64(i+2))
		p.Clusters["c-00"] = plan.Row{Replica: i % 4}
		object, err := json.Marshal(document(t, p, ""))
		if err != nil {
			t.Fatal(err)
		}
		write := planner.CoreV1().RESTClient().Put().Namespace(namespace).Resource("configmaps").Name(planName).Body(object)
		var group errgroup.Group
		start := time.Now()
		for _, a := range askers {
			group.Go(func() error { return a.until(p.Revision, strconv.Itoa(i%4)) })
		}
		if _, err := write.DoRaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		took.written = append(took.written, ms(time.Since(start)))
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		took.everywhere = append(took.everywhere, ms(time.Since(start)))
	}
	return took
}

// after is the time from the API server's answer to the last replica's, which may come first.
func (s spread) after() []float64 {
	out := make([]float64, len(s.written))
	for i := range out {
		out[i] = s.everywhere[i] - s.written[i]
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// buildBallast builds the command as it is shipped.
func buildBallast(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "ballast")
	if err := installation.BuildBallast(t.Context(), binary, false); err != nil {
		t.Fatal(err)
	}
	return binary
}

// planEverywhere: a plan is in force on every replica within a second of its write, which is what people are promised of
// a pin, and the soak proves. The largest plan is 0.8 MB for the API server and each replica: on two cores that others keep busy, one of its
// writes may take longer than most.
func (s *site) planEverywhere(t *testing.T) {
	binary := buildBallast(t)
	for n, tc := range map[int]struct {
		plans       int
		most, slack time.Duration // for half of the writes, and for all
	}{
		100:  {everywherePlans, time.Second, time.Second},
		7500: {everywherePlans / 2, time.Second, 5 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d clusters", n), func(t *testing.T) {
			took := s.everywhere(t, binary, n, tc.plans)
			after := took.after()
			half, worst := quantile(after, 0.5), quantile(after, 1)
			t.Logf("%d replicas have a plan %.1f ms after its write, %.1f ms at worst; the write takes %.1f ms", everywhereReplicas, half, worst, quantile(took.written, 0.5))
			if most, slack := bar(t, tc.most), bar(t, tc.slack); half > ms(most) || worst > ms(slack) {
				t.Errorf("half of the plans were in force everywhere after %.0f ms, all after %.0f ms, want %s and %s", half, worst, most, slack)
			}
		})
	}
}

// BenchmarkPlanToEveryReplica measures the same; an operation is a lot of 50 writes.
func BenchmarkPlanToEveryReplica(b *testing.B) {
	log.SetLogger(logr.Discard())
	s := startSite(b)
	binary := buildBallast(b)
	for _, n := range []int{100, 7500} {
		b.Run(fmt.Sprintf("clusters=%d/replicas=%d", n, everywhereReplicas), func(b *testing.B) {
			var took spread
			for range b.N {
				lot := s.everywhere(b, binary, n, everywherePlans)
				took.written, took.everywhere = append(took.written, lot.written...), append(took.everywhere, lot.everywhere...)
			}
			for name, values := range map[string][]float64{"written": took.written, "after": took.after(), "everywhere": took.everywhere} {
				b.ReportMetric(quantile(values, 0.5), name+"-p50-ms")
				b.ReportMetric(quantile(values, 0.99), name+"-p99-ms")
			}
		})
	}
}
