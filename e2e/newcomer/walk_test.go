package newcomer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/gaps"
	"ballast/e2e/site"
	"ballast/manifests/folder"
)

// walk is a newcomer on the way, with one installation of Argo CD.
type walk struct {
	*site.Site
	way         way
	ballast     string // the command's file
	argocd      assets.ArgoCD
	alice, bob  string // kubeconfigs: she works in Argo CD's namespace, he may only read there
	inputs      string // the cycle that was saved before anything was installed
	moved       string // the cluster that is pinned
	commands    []string
	beforeLevel site.Plan // in mode Hold: the fleet as it was found
}

// way is how the newcomer installs.
type way struct {
	certManager bool
	install     func(ctx context.Context, w *walk) error
	mode        func(ctx context.Context, w *walk, mode string) error
	forget      func(ctx context.Context, w *walk) error // after ballast uninstall
}

func kustomize() way {
	return way{
		certManager: true,
		install: func(ctx context.Context, w *walk) error {
			if err := w.watch(ctx, "apply"); err != nil {
				return err
			}
			return w.Configure(ctx, w.config("Observe"))
		},
		mode:   func(ctx context.Context, w *walk, mode string) error { return w.Configure(ctx, w.config(mode)) },
		forget: func(ctx context.Context, w *walk) error { return w.watch(ctx, "delete") },
	}
}

// watch applies or deletes manifests/watch.
func (w *walk) watch(ctx context.Context, verb string) error {
	dir, err := filepath.Abs("../../manifests/watch")
	if err != nil {
		return err
	}
	_, _, err = w.Plane.Kubectl(ctx, "", verb, "-k", dir)
	return err
}

// helm has a release of another name than ballast, and certificates that ballast makes.
func helm(command string) way {
	h := site.Helm{Command: command, Release: "keel"}
	return way{
		install: func(ctx context.Context, w *walk) error {
			values := map[string]any{"certificates": "self-signed", "watch": map[string]any{"enabled": true}}
			return h.Install(ctx, w.Site, values, w.config("Observe"))
		},
		mode: func(ctx context.Context, w *walk, mode string) error {
			return h.Upgrade(ctx, w.Site, "config.mode="+mode)
		},
		forget: func(ctx context.Context, w *walk) error { return h.Uninstall(ctx, w.Site) },
	}
}

// config says what a replica may carry, so that the fleet is spread over four.
func (w *walk) config(mode string) map[string]any {
	c := w.Config(mode)
	c["partition"] = map[string]any{"lpt": map[string]any{}, "capacity": "0.3"}
	return c
}

// pageAddress has each planner serve its page at its own address: the pods of a plane have one loopback together.
func pageAddress() types.Patch {
	return types.Patch{
		Patch:  `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--page-address=$(POD_IP):8082"}]`,
		Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "Deployment"}, Name: site.Planner}},
	}
}

func start(t *testing.T, by way) *walk {
	t.Helper()
	ctx := t.Context()
	for _, applied := range []string{"chart", "watch"} { // by Helm and kubectl: go test's cache follows what the test itself reads
		_, err := folder.Read("../../manifests/" + applied)
		must(t, err)
	}
	w := &walk{way: by, ballast: built(t), inputs: filepath.Join(t.TempDir(), "inputs.json"), moved: "stage-us-1"}
	binaries, err := assets.Build(ctx, os.Stderr)
	must(t, err)
	w.argocd, err = assets.BuildArgoCD(ctx, os.Stderr)
	must(t, err)
	w.Site, err = site.Start(context.WithoutCancel(ctx), site.Options{Binaries: binaries, Ballast: w.ballast, Fleet: fleet.Options{Seed: 1}, Log: io.Discard})
	must(t, err)
	t.Cleanup(func() { w.stop(t) })
	w.Patches = []types.Patch{pageAddress()}
	if by.certManager {
		must(t, w.Plane.StartCertManager(ctx))
	}
	must(t, w.InstallArgoCD(ctx, nil))
	must(t, w.Monitor(ctx))
	w.alice, err = w.Person(ctx, "alice")
	must(t, err)
	w.bob, err = w.Reader(ctx, "bob")
	must(t, err)
	return w
}

// stop ends every process, and looks through what they wrote.
func (w *walk) stop(t *testing.T) {
	if t.Failed() {
		t.Log(w.LastWords(context.Background(), 20))
	}
	leaks, err := w.Leaks()
	w.Stop()
	must(t, err)
	if len(leaks) > 0 {
		t.Errorf("a cluster's credential shows in %q", leaks)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command of ballast's as somebody, and wants each pattern in what it prints.
func (w *walk) run(t *testing.T, as, command string, args []string, want ...string) string {
	t.Helper()
	stdout, stderr, err := w.RunBallast(t.Context(), as, append(strings.Fields(command), args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	w.printed(t, command, args, stdout, stderr, want)
	return stdout
}

// plans runs ballast plan, which ends with exit code 2 as something would change.
func (w *walk) plans(t *testing.T, as string, args []string, want ...string) string {
	t.Helper()
	stdout, stderr, changes, err := w.Plans(t.Context(), as, args...)
	if err != nil || !changes || strings.Contains(stderr, "ballast: ") {
		t.Fatalf("something would change: %t, %v\n%s%s", changes, err, stderr, stdout)
	}
	w.printed(t, "plan", args, stdout, stderr, want)
	return stdout
}

// printed notes a command that ran, and wants each pattern in what it printed.
func (w *walk) printed(t *testing.T, command string, args []string, stdout, stderr string, want []string) {
	t.Helper()
	w.commands = append(w.commands, command)
	for _, pattern := range want {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(stdout + stderr) {
			t.Errorf("ballast %s %q printed, without %s:\n%s%s", command, args, pattern, stdout, stderr)
		}
	}
}

// soon waits for what has to become so.
func (w *walk) soon(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := site.Poll(t.Context(), check); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// planSoon waits for a plan, and gives it.
func (w *walk) planSoon(t *testing.T, what string, is func(p site.Plan) bool) site.Plan {
	t.Helper()
	var seen site.Plan
	w.soon(t, what, func(ctx context.Context) error {
		p, err := w.Plan(ctx)
		if err != nil {
			return err
		}
		if p == nil {
			return errors.New("there is no plan")
		}
		if seen = *p; !is(seen) {
			return fmt.Errorf("the plan is %s", seen.Text)
		}
		return nil
	})
	return seen
}

// shardsAre is nil where each Secret has the shard that the plan gives it.
func (w *walk) shardsAre(want map[string]int) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		shards, err := w.Shards(ctx)
		if err != nil {
			return err
		}
		text := map[string]string{}
		for name, replica := range want {
			text[name] = strconv.Itoa(replica)
		}
		if diff := cmp.Diff(text, shards); diff != "" {
			return fmt.Errorf("shards (-plan +stand):\n%s", diff)
		}
		return nil
	}
}

// versions are the resourceVersions of all that ballast may write besides its own.
func (w *walk) versions(t *testing.T) map[string]string {
	t.Helper()
	secrets, err := w.Secrets(t.Context())
	must(t, err)
	versions := map[string]string{}
	for name, s := range secrets {
		versions[name] = s.ResourceVersion
	}
	sts, err := w.StatefulSet(t.Context())
	must(t, err)
	versions[fleet.Workload] = sts.ResourceVersion
	return versions
}

// owners is who has each cluster, by Argo CD's own sharding code over what stands on the API server: one replica each.
func (w *walk) owners(t *testing.T) map[string]int {
	t.Helper()
	owners, err := w.view(t.Context())
	must(t, err)
	return owners
}

func (w *walk) view(ctx context.Context) (map[string]int, error) {
	sts, err := w.StatefulSet(ctx)
	if err != nil {
		return nil, err
	}
	secrets, err := w.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	var seen []gaps.ViewSecret
	var names, servers []string
	for name, s := range secrets {
		seen = append(seen, viewed(s))
		names, servers = append(names, name), append(servers, strings.TrimRight(string(s.Data["server"]), "/"))
	}
	steps := []gaps.Step{{Do: gaps.DoReset}}
	for i := range int(*sts.Spec.Replicas) {
		steps = append(steps, gaps.Step{Do: gaps.DoStart, Pod: strconv.Itoa(i), Start: &gaps.ViewStart{
			Replicas: site.EnvReplicas(sts), Shard: strconv.Itoa(i), Algorithm: "legacy", InCluster: true, Secrets: seen}})
	}
	views, err := gaps.StartViews(ctx, w.argocd)
	if err != nil {
		return nil, err
	}
	pods, err := views.Ask(steps, servers...)
	if err := errors.Join(err, views.Close()); err != nil {
		return nil, err
	}
	owners := map[string]int{}
	for i, of := range pods {
		if len(of) != 1 {
			return nil, fmt.Errorf("by Argo CD's own code %q has the owners %q, want one", names[i], of)
		}
		if owners[names[i]], err = strconv.Atoi(of[0]); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

func viewed(s corev1.Secret) gaps.ViewSecret {
	v := gaps.ViewSecret{UID: string(s.UID), Name: string(s.Data["name"]), Server: string(s.Data["server"])}
	if shard, has := s.Data["shard"]; has {
		text := string(shard)
		v.Shard = &text
	}
	return v
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// get is a page, by HTTP.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}

// reads is nil for a page that shows the plan's clusters, and no credential.
func reads(text string, p site.Plan) error {
	for name := range p.Clusters {
		if !strings.Contains(text, name) {
			return fmt.Errorf("the page does not show %s", name)
		}
	}
	if want := fmt.Sprintf("evision %d", p.Revision); !strings.Contains(text, want) {
		return fmt.Errorf("the page does not show r%s", want)
	}
	if strings.Contains(text, fleet.Canary) {
		return errors.New("the page shows a cluster's credential")
	}
	return nil
}

// served runs ballast status --web, reads the page, and interrupts the command as a person does.
func (w *walk) served(t *testing.T) string {
	t.Helper()
	w.commands = append(w.commands, "status")
	cmd := exec.CommandContext(t.Context(), w.ballast, "status", "--web")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.bob)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said)
	text, err := get(t.Context(), url)
	must(t, errors.Join(err, cmd.Process.Signal(syscall.SIGINT), cmd.Wait()))
	return text
}

// podsPage is the page that a planner's pod serves.
func (w *walk) podsPage(ctx context.Context, pod corev1.Pod) (string, error) {
	address, err := w.Plane.PodAddress(pod.Status.PodIP)
	if err != nil {
		return "", err
	}
	return get(ctx, "http://"+net.JoinHostPort(address, "8082"))
}

// alone are the names without repetition, sorted.
func alone(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
