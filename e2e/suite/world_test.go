package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// plan is the plan ConfigMap, which has to be there.
func (w *world) plan(ctx context.Context) site.Plan {
	GinkgoHelper()
	p, err := w.Plan(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(p).NotTo(BeNil(), "the plan ConfigMap")
	return *p
}

// known is the plan once every webhook answers by it.
func (w *world) known(ctx context.Context) (known site.Plan) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		p, err := w.Known(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		known = *p
	}).WithContext(ctx).Should(Succeed())
	return known
}

// planSoon waits until the plan is as a person would look for it.
func (w *world) planSoon(ctx context.Context, what string, is func(site.Plan) bool) site.Plan {
	GinkgoHelper()
	var seen site.Plan
	Eventually(func(g Gomega) {
		p, err := w.Plan(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p).NotTo(BeNil())
		seen = *p
		g.Expect(is(seen)).To(BeTrue(), "%s; the plan is %s", what, seen.Text)
	}).WithContext(ctx).Should(Succeed())
	return seen
}

// state is everything that the plan holds and that somebody else may write.
type state struct {
	Shards   map[string]string
	Replicas int
	Env      string
}

func (w *world) state(ctx context.Context) state {
	GinkgoHelper()
	shards, err := w.Shards(ctx)
	Expect(err).NotTo(HaveOccurred())
	sts, err := w.StatefulSet(ctx)
	Expect(err).NotTo(HaveOccurred())
	return state{shards, int(*sts.Spec.Replicas), site.EnvReplicas(sts)}
}

// planned is what has to stand under a plan. Rows outlive their Secrets; only what is there counts.
func (w *world) planned(ctx context.Context, p site.Plan) state {
	GinkgoHelper()
	s := state{map[string]string{}, p.Replicas, strconv.Itoa(p.ControllerReplicas)}
	shards, err := w.Shards(ctx)
	Expect(err).NotTo(HaveOccurred())
	for name, row := range p.Clusters {
		if _, there := shards[name]; there {
			s.Shards[name] = strconv.Itoa(row.Replica)
		}
	}
	return s
}

// versions are the resourceVersions of all that ballast may write besides its own ConfigMaps.
func (w *world) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	secrets, err := w.Secrets(ctx)
	Expect(err).NotTo(HaveOccurred())
	versions := map[string]string{}
	for name, s := range secrets {
		versions[name] = s.ResourceVersion
	}
	sts, err := w.StatefulSet(ctx)
	Expect(err).NotTo(HaveOccurred())
	versions[fleet.Workload] = sts.ResourceVersion
	return versions
}

// owned is who has to reconcile what under a plan, as the replicas see it: each cluster by its one replica.
func (w *world) owned(ctx context.Context, p site.Plan) map[string][]string {
	GinkgoHelper()
	owners := map[string][]string{"in-cluster": {fleet.Workload + "-0"}}
	for name, replica := range w.planned(ctx, p).Shards {
		owners[name] = []string{fleet.Workload + "-" + replica}
	}
	return owners
}

// kubectl runs a command as alice in Argo CD's namespace and gives its warnings.
func (w *world) kubectl(ctx context.Context, args ...string) []string {
	GinkgoHelper()
	warnings, err := w.try(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return warnings
}

// apply runs a kubectl command that reads the object from its input.
func (w *world) apply(ctx context.Context, object runtime.Object, args ...string) []string {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	warnings, err := w.try(ctx, string(text), append(args, "-f", "-")...)
	Expect(err).NotTo(HaveOccurred())
	return warnings
}

func (w *world) try(ctx context.Context, stdin string, args ...string) (warnings []string, err error) {
	_, stderr, err := w.Plane.KubectlStdin(ctx, strings.NewReader(stdin), w.alice, append([]string{"-n", w.Fleet.Namespace}, args...)...)
	return warningsOf(stderr), err
}

// edit runs kubectl edit as alice, with a sed script for an editor.
func (w *world) edit(ctx context.Context, script string, args ...string) (warnings []string, err error) {
	GinkgoHelper()
	editor := filepath.Join(GinkgoT().TempDir(), "editor")
	Expect(os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i '"+script+"' \"$1\"\n"), 0o755)).To(Succeed())
	cmd := exec.CommandContext(ctx, w.binaries.Path("kubectl"), append([]string{"-n", w.Fleet.Namespace, "edit"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.alice, "KUBE_EDITOR="+editor)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	return warningsOf(stderr.String()), err
}

func warningsOf(stderr string) (warnings []string) {
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// setShard writes a shard by hand.
func (w *world) setShard(ctx context.Context, secret string, shard any) []string {
	GinkgoHelper()
	return w.kubectl(ctx, "patch", "secret", secret, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"shard":"%v"}}`, shard))
}

// setPins replaces data.pins.
func (w *world) setPins(ctx context.Context, pins string) ([]string, error) {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"pins": pins}})
	Expect(err).NotTo(HaveOccurred())
	return w.try(ctx, "", "patch", "configmap", site.PlanConfigMap, "--type=merge", "-p", string(patch))
}

// record is what the audit log says of a write beside its time.
type record struct {
	Verb, Object, Reason, Requested, Enforced string
	Revision                                  int
}

// lastRecord is alice's last write that a webhook saw.
func (w *world) lastRecord() record {
	GinkgoHelper()
	e := w.lastEvent()
	return record{e.Verb, e.Resource + " " + e.Name, e.Reason, e.Requested, e.Enforced, e.Revision}
}

// lastEvent is what the audit log says of alice's last write that a webhook saw, or should have seen.
func (w *world) lastEvent() site.AuditEvent {
	GinkgoHelper()
	events, err := w.Audit()
	Expect(err).NotTo(HaveOccurred())
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.User == "alice" && e.Ours() {
			return e
		}
	}
	Fail("alice has written nothing")
	return site.AuditEvent{}
}
