package canary

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// token is one that somebody pasted where it does not belong.
const token = fleet.Canary + "pasted"

// writeAll writes wrong shards, and tokens for shards and pins, by all the ways there are.
func (w *world) writeAll(ctx context.Context) {
	GinkgoHelper()
	names := w.Fleet.Names()
	for i, wrong := range []string{"77", token} {
		secret := w.Fleet.Secret(w.Fleet.Clusters[i])
		secret.Data["shard"] = []byte(wrong)
		whole, err := json.Marshal(secret)
		Expect(err).NotTo(HaveOccurred())
		name, encoded := names[10+i], base64.StdEncoding.EncodeToString([]byte(wrong))
		for _, write := range [][]string{
			{string(whole), "apply", "-f", "-"}, // the last-applied annotation holds the token
			{string(whole), "apply", "-f", "-", "--dry-run=server"},
			{string(whole), "apply", "-f", "-", "--server-side", "--force-conflicts"},
			{string(whole), "replace", "-f", "-"},
			{"", "patch", "secret", name, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"shard":%q}}`, wrong)},
			{"", "patch", "secret", name, "--type=strategic", "-p", fmt.Sprintf(`{"data":{"shard":%q}}`, encoded)},
			{"", "patch", "secret", name, "--type=json", "-p", fmt.Sprintf(`[{"op":"add","path":"/data/shard","value":%q}]`, encoded)},
		} {
			stderr, err := w.kubectl(ctx, write[0], write[1:]...)
			Expect(err).NotTo(HaveOccurred())
			Expect(stderr).To(ContainSubstring("Warning: ballast: "), strings.Join(write[1:], " "))
		}
	}
	_, err := w.kubectl(ctx, "", "annotate", "secret", names[20], "ballast.argoproj.io/pin="+token)
	Expect(err).NotTo(HaveOccurred())
	_, err = w.kubectl(ctx, "", "patch", "configmap", site.PlanConfigMap, "--type=merge", "-p", fmt.Sprintf(`{"data":{"pins":"%s: %s\n"}}`, names[21], token))
	Expect(err).To(MatchError(ContainSubstring("ballast: pins line 1")))
	_, err = w.kubectl(ctx, "", "label", "secret", names[22], "team=a")
	Expect(err).NotTo(HaveOccurred())
}

// pasteBehindItsBack breaks the glass, so that the planner meets what the webhook would have kept from it.
func (w *world) pasteBehindItsBack(ctx context.Context) {
	GinkgoHelper()
	before := w.shards(ctx)
	annotate := func(value string) {
		_, err := w.kubectl(ctx, "", "annotate", "configmap", site.PlanConfigMap, "ballast.argoproj.io/enforcement"+value)
		Expect(err).NotTo(HaveOccurred())
	}
	name := w.Fleet.Names()[30]
	annotate("=off")
	Eventually(func(g Gomega) { // a webhook replica learns of it by its watch
		_, err := w.kubectl(ctx, "", "patch", "secret", name, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"shard":%q}}`, token))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.shards(ctx)[name]).To(Equal(token))
	}).WithContext(ctx).Should(Succeed())
	text := w.leaderMetrics(ctx)
	Eventually(func() string { return w.leaderMetrics(ctx) }).WithContext(ctx).ShouldNot(Equal(text), "a cycle over it")
	annotate("-")
	Eventually(func() map[string]string { return w.shards(ctx) }).WithContext(ctx).Should(Equal(before))
}

// leaderMetrics is the line that tells when the leader's last cycle ended.
func (w *world) leaderMetrics(ctx context.Context) string {
	GinkgoHelper()
	pods, err := w.Pods(ctx, "planner")
	Expect(err).NotTo(HaveOccurred())
	var ended string
	for _, pod := range pods {
		text, err := w.Metrics(ctx, pod)
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ballast_planner_last_cycle_timestamp_seconds") {
				ended += line
			}
		}
	}
	return ended
}
