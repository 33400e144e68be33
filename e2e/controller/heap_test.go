package controller_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/paged"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/rewatch"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// The credentials that a heap may hold. Nothing of ours keeps one, but those of the last few answers stand in the read
// buffers of the connection to the API server (crypto/tls 32 KiB, HTTP/2 16 KiB and the chunks of its pipes, the watch's
// decoder 20 KiB) until other answers take their place.
const (
	heldAtOnce = 10
	heldLater  = 2
)

// heapNamespace tells a process of this test binary to be a planner in that namespace, and nothing else: what the test
// itself sends and reads must not be in the heap that is looked at.
const heapNamespace = "BALLAST_HEAP_NAMESPACE"

func TestMain(m *testing.M) {
	if namespace := os.Getenv(heapNamespace); namespace != "" {
		if err := planAndDump(namespace, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := anyServer.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// TestTheHeapHoldsNoSecretThatWasPlannedWith runs a loop until it has written every Secret twice, and looks for their
// credentials in dumps of its heap. Their number does not grow with the Secrets'.
func TestTheHeapHoldsNoSecretThatWasPlannedWith(t *testing.T) {
	server := anyServer.Start(t)
	for _, secrets := range []int{100, 400} {
		t.Run(fmt.Sprintf("%d Secrets", secrets), func(t *testing.T) {
			b := newBed(t, server, plan.Enforce)
			b.client = b.api
			mark := b.plantTokens(secrets)
			dump := b.planElsewhere(server)
			b.waitForShards(secrets)
			for name := range b.shards() {
				b.stamp(name, "9", "somebody")
			}
			b.waitForShards(secrets)
			check := func(when string, most int) {
				held := tokensIn(t, dump(when), mark)
				t.Logf("%s, the heap holds %d of %d tokens", when, len(held), secrets)
				if len(held) > most {
					t.Errorf("%s, the heap holds %d of %d tokens, want %d at most: of the Secrets %v", when, len(held), secrets, most, held)
				}
			}
			check("at once", heldAtOnce)
			b.plant(secrets, strings.Repeat("y", 64<<10)) // no token is in it
			b.waitForShards(secrets + 1)
			check("after another answer", heldLater)
		})
	}
}

// tokenRest makes it a credential of 3 KiB, as a token and its certificates are.
func tokenRest() string { return strings.Repeat("x", 3000) }

// plantTokens makes cluster Secrets as kubectl apply leaves them, with the token in the annotation too; some have it where
// people paste it by mistake. Each token begins with the mark and the Secret's number.
func (b *bed) plantTokens(n int) (mark string) {
	b.Helper()
	mark = "token" + rand.Text()[:19] // 24 letters, which base64 makes 32 of wherever it goes on
	for i := range n {
		b.plant(i, fmt.Sprintf("%s%03d%s", mark, i, tokenRest()))
	}
	return mark
}

func (b *bed) plant(i int, token string) {
	b.Helper()
	name := heapCluster(i)
	secret := &corev1.Secret{Data: map[string][]byte{"name": []byte(name), "server": []byte(server(name)), "config": []byte(token)}}
	secret.Namespace, secret.Name = b.namespace, name
	secret.Labels = map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: token}
	if i%10 == 1 {
		secret.Data[plan.ShardKey], secret.Annotations[plan.AnnotationPin] = []byte(token), token
	}
	b.must(b.client.Create(b.ctx, secret))
}

func heapCluster(i int) string { return fmt.Sprintf("c%03d", i) }

// waitForShards waits until that many Secrets have a shard that can be theirs. A look takes megabytes, so it is taken rarely.
func (b *bed) waitForShards(n int) {
	b.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(500*time.Millisecond)
	defer tick.Stop()
	for {
		count := map[string]int{}
		for _, shard := range b.shards() {
			count[shard[:min(len(shard), 1)]]++
		}
		if count["0"]+count["1"]+count["2"] == n {
			return
		}
		select {
		case <-deadline:
			b.Fatalf("waited in vain for %d Secrets with a shard of 0 to 2, there are %v", n, count)
		case <-tick.C:
		}
	}
}

// planElsewhere runs planAndDump in a process of its own until the test ends; what it returns gives a dump of its heap.
func (b *bed) planElsewhere(server *rest.Config) (dump func(when string) []byte) {
	b.Helper()
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	b.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"it": {Server: server.Host, CertificateAuthorityData: server.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"it": {ClientCertificateData: server.CertData, ClientKeyData: server.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		CurrentContext: "it",
	}, kubeconfig))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), heapNamespace+"="+b.namespace, "KUBECONFIG="+kubeconfig)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	b.must(err)
	stdout, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	b.Cleanup(func() {
		stdin.Close()
		b.must(cmd.Wait())
	})
	answers := bufio.NewReader(stdout)
	return func(when string) []byte {
		file := filepath.Join(dir, when)
		fmt.Fprintln(stdin, file)
		if said, err := answers.ReadString('\n'); err != nil || said != file+"\n" {
			b.Fatalf("no heap was dumped: %q, %v", said, err)
		}
		heap, err := os.ReadFile(file)
		b.must(err)
		return heap
	}
}

// tokensIn are the Secrets whose whole tokens a heap holds, plain or in base64; what is left of one in memory that was given
// to something shorter is none.
func tokensIn(t *testing.T, heap []byte, mark string) []string {
	t.Helper()
	held := map[string]bool{}
	for _, m := range regexp.MustCompile(mark+`(\d{3})`+tokenRest()).FindAllSubmatch(heap, -1) {
		held[string(m[1])] = true
	}
	encode := base64.StdEncoding.EncodeToString
	for _, m := range regexp.MustCompile(encode([]byte(mark))+`([A-Za-z0-9+/]{4})`+encode([]byte(tokenRest()))).FindAllSubmatch(heap, -1) {
		number, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		held[string(number)] = true
	}
	return slices.Sorted(maps.Keys(held))
}

// planAndDump runs a loop as `ballast planner` wires it, Secrets from a cache that strips them and writes after a live
// read. Into each file that it is told of it dumps what two garbage collections leave of its heap.
func planAndDump(namespace string, in io.Reader, out io.Writer) error {
	ctrllog.SetLogger(logr.Discard())
	kept, l, err := wire(namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { err = kept.Start(ctx) })
	running.Go(func() { _ = l.Run(ctx) }) // it has no error but the context's
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := dumpHeap(lines.Text()); err != nil {
			return err
		}
		fmt.Fprintln(out, lines.Text())
	}
	cancel()
	running.Wait()
	return err
}

func dumpHeap(name string) error {
	runtime.GC()
	runtime.GC()
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	debug.WriteHeapDump(file.Fd())
	return nil
}

// wire makes a loop and the cache that it runs on.
func wire(namespace string) (cache.Cache, *controller.Loop, error) {
	api, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, nil, err
	}
	api.QPS, api.Burst = 200, 400
	api = paged.Bounded(api)
	h, err := rest.HTTPClientFor(api)
	if err != nil {
		return nil, nil, err
	}
	c := sim.Config()
	c.Mode, c.Target.Namespace = plan.Enforce, namespace
	selector, err := discover.Selector(c.Discover.Selector)
	if err != nil {
		return nil, nil, err
	}
	kept, err := cache.New(api, cache.Options{HTTPClient: h, NewInformer: rewatch.NewInformer, DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: selector, Transform: secrets.Transform(selector)}}})
	if err != nil {
		return nil, nil, err
	}
	cached, err := client.New(api, client.Options{HTTPClient: h, Cache: &client.CacheOptions{Reader: kept, DisableFor: []client.Object{&corev1.ConfigMap{}}}})
	if err != nil {
		return nil, nil, err
	}
	live, err := client.New(api, client.Options{HTTPClient: h})
	if err != nil {
		return nil, nil, err
	}
	l := heapLoop(c, cached, live)
	informer, err := kept.GetInformer(context.Background(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { l.Changed() }, UpdateFunc: func(any, any) { l.Changed() }, DeleteFunc: func(any) { l.Changed() },
	})
	return kept, l, err
}

func heapLoop(c config.PlannerConfig, cached, live client.Client) *controller.Loop {
	fake := &prometheusFake{loads: map[string]float64{}}
	for i := range 401 {
		fake.set(server(heapCluster(i)), float64(1+i%7))
	}
	return controller.NewLoop(wiring.Options{
		Config:      func() config.PlannerConfig { return c },
		Reader:      cached,
		Store:       store.New(store.Options{Client: cached, Reader: live, Namespace: c.Target.Namespace, Plan: c.Plan.ConfigMap, History: c.Plan.History, Key: store.KeyName(c.Plan.ConfigMap)}),
		Applier:     apply.New(apply.Options{Client: cached, Reader: live}),
		NewFetcher:  func(config.PlannerConfig, plan.Target) (poll.Fetcher, error) { return fake, nil },
		Emit:        func(discover.Workload, ...telemetry.Event) {},
		Metrics:     telemetry.NewMetrics(prometheus.NewRegistry()),
		Log:         logr.Discard(),
		Clock:       clock.RealClock{},
		Identity:    "planner-0",
		PlannerUser: "system:serviceaccount:argocd:ballast-planner",
	})
}
