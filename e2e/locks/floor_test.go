package locks

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/plane/network"
)

// The plan's head as rollout live has it, and what a Secret without a valid shard is told.
const (
	livePlan = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nrevision: 1\nmode: Enforce\nreplicas: 4\ncontrollerReplicas: 999\nmaxReplicas: 999\nclusters: {}\n"
	told     = "data.shard has to be a number below "
)

func floor(w *world) {
	Describe("judged by itself, in a namespace without a webhook", func() { floorAlone(w) })

	It("refuses a cluster Secret without a shard while the webhook is away", func(ctx SpecContext) {
		w.install(ctx, selfSignedInstallation("floor"))
		w.enforces(ctx)
		w.Plane.Proxy().Refuse(network.AllPods)
		DeferCleanup(func() { w.Plane.Proxy().Allow(network.AllPods) })
		Eventually(func() error { _, err := w.tryShard(ctx, wrong, metav1.DryRunAll); return err }).Should(HaveOccurred()) // it is in force
		newcomer := w.Fleet.Secret(w.Fleet.Another("newcomer"))
		Expect(w.Apply(ctx, "", newcomer)).To(MatchError(ContainSubstring(told + "3, or no replica owns this cluster")))
		_, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Get(ctx, newcomer.Name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "got %v", err)
		_, err = w.tryShard(ctx, wrong)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got %v", err)
		w.expectBystandersPass(ctx)
	}, SpecTimeout(patience))

	It("accepts it when the webhook adds the shard", func(ctx SpecContext) {
		newcomer := w.Fleet.Secret(w.Fleet.Another("newcomer"))
		Expect(w.Apply(ctx, "", newcomer)).To(Succeed())
		Expect(string(w.secret(ctx, newcomer.Name).Data["shard"])).To(MatchRegexp("^[0-2]$"))
		w.expectEnforced(ctx)
	}, SpecTimeout(patience))

	It("refuses nothing under break-glass", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "configmap", "ballast-plan", "ballast.argoproj.io/enforcement=off")
		DeferCleanup(func(ctx SpecContext) {
			w.kubectl(ctx, "annotate", "configmap", "ballast-plan", "ballast.argoproj.io/enforcement-")
		})
		Eventually(func() (string, error) { return w.tryShard(ctx, "-1", metav1.DryRunAll) }).Should(Equal("-1"))
	}, SpecTimeout(patience))
}

func floorAlone(w *world) {
	BeforeAll(func(ctx SpecContext) {
		var docs []string
		for _, doc := range w.documents(selfSignedInstallation("floor")) {
			if strings.HasPrefix(kindOf(doc), "ValidatingAdmissionPolicy") && strings.Contains(doc, "name: ballast-floor."+w.Fleet.Namespace+"\n") {
				docs = append(docs, strings.ReplaceAll(doc, "- "+w.Fleet.Namespace+"\n", "- "+elsewhere+"\n"))
			}
		}
		Expect(docs).To(HaveLen(2))
		w.applyText(ctx, docs...)
		w.setPlan(ctx, livePlan, nil)
		Eventually(func() error { return w.create(ctx, nil) }).Should(MatchError(ContainSubstring(told + "999")))
		policy, err := w.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, "ballast-floor."+w.Fleet.Namespace, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(policy.Status.TypeChecking).To(Or(BeNil(), HaveField("ExpressionWarnings", BeEmpty())))
	}, NodeTimeout(patience))

	It("knows every number from every other text", func(ctx SpecContext) {
		accepted := map[string]bool{}
		texts := []string{"", " ", "1 ", " 1", "-1", "+1", "1.0", "0x1", "1e1", "x", "12x", "1\n", "0001", "1000", "999999", "1234567", "¹", "٣", "MA==", "12\x00", "9\xff"}
		for n := range 1000 {
			texts = append(texts, strconv.Itoa(n))
			accepted[strconv.Itoa(n)] = n < 999
		}
		for _, leading := range []string{"00", "01", "007", "098"} {
			texts = append(texts, leading)
			accepted[leading] = true
		}
		Expect(w.wrongly(ctx, texts, accepted)).To(BeEmpty())
	}, SpecTimeout(patience))

	DescribeTable("is not armed", func(ctx SpecContext, change func(cm *corev1.ConfigMap)) {
		w.setPlan(ctx, livePlan, change)
		Eventually(func() error { return w.create(ctx, nil) }).Should(Succeed())
		w.setPlan(ctx, livePlan, nil)
		Eventually(func() error { return w.create(ctx, nil) }).Should(HaveOccurred())
	},
		Entry("while the plan observes", SpecTimeout(patience), replaced("mode: Enforce", "mode: Observe")),
		Entry("while the env is not constant", SpecTimeout(patience), replaced("controllerReplicas: 999", "controllerReplicas: 99")),
		Entry("under break-glass", SpecTimeout(patience), func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{"ballast.argoproj.io/enforcement": "off"}
		}),
		Entry("by a plan that is none", SpecTimeout(patience), func(cm *corev1.ConfigMap) { cm.Data["plan"] = "{" }),
		Entry("by an empty ConfigMap", SpecTimeout(patience), func(cm *corev1.ConfigMap) { cm.Data = nil }),
	)

	It("is armed by Hold, and by a plan of the largest size", func(ctx SpecContext) {
		w.setPlan(ctx, strings.Replace(livePlan, "Enforce", "Hold", 1)+strings.Repeat("# filler\n", 90_000), nil)
		Consistently(func() error { return w.create(ctx, nil) }, "500ms").Should(MatchError(ContainSubstring(told)))
		w.setPlan(ctx, livePlan, nil)
	}, SpecTimeout(patience))

	It("leaves alone what ballast leaves alone", func(ctx SpecContext) {
		Expect(w.create(ctx, func(s *corev1.Secret) { s.Annotations = map[string]string{"ballast.argoproj.io/unmanaged": "true"} })).To(Succeed())
		Expect(w.create(ctx, func(s *corev1.Secret) { s.Annotations = map[string]string{"ballast.argoproj.io/unmanaged": "false"} })).NotTo(Succeed())
		Expect(w.create(ctx, func(s *corev1.Secret) { s.Labels = nil })).To(Succeed())
		Expect(w.create(ctx, func(s *corev1.Secret) { s.Data = nil })).NotTo(Succeed())
	}, SpecTimeout(patience))

	It("lets what came before go, and an immutable one be written", func(ctx SpecContext) {
		secrets := w.Client.CoreV1().Secrets(elsewhere)
		old := w.newcomer(func(s *corev1.Secret) {
			s.Name, s.Immutable, s.Finalizers = "before", new(bool), []string{"locks/before"}
			*s.Immutable = true
			s.Annotations = map[string]string{"ballast.argoproj.io/unmanaged": "true"}
		})
		_, err := secrets.Create(ctx, old, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		patch := func(text string) error {
			_, err := secrets.Patch(ctx, old.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
			return err
		}
		Expect(patch(`{"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":null}}}`)).To(Succeed())
		Expect(patch(`{"metadata":{"annotations":{"note":"x"}}}`)).To(Succeed())
		Expect(secrets.Delete(ctx, old.Name, metav1.DeleteOptions{})).To(Succeed())
		Expect(patch(`{"metadata":{"finalizers":null}}`)).To(Succeed())
		// The bystander of this namespace has no shard: it was here before the floor. It can lose its label.
		_, err = secrets.Patch(ctx, bystander, types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"x"}}}`), metav1.PatchOptions{})
		Expect(err).To(MatchError(ContainSubstring(told)))
		_, err = secrets.Patch(ctx, bystander, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(patience))
}

func replaced(before, after string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Data["plan"] = strings.Replace(cm.Data["plan"], before, after, 1) }
}

// setPlan writes a plan into the namespace that no ballast looks at.
func (w *world) setPlan(ctx context.Context, text string, change func(*corev1.ConfigMap)) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ballast-plan"}, Data: map[string]string{"plan": text}}
	if change != nil {
		change(cm)
	}
	configMaps := w.Client.CoreV1().ConfigMaps(elsewhere)
	_, err := configMaps.Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, cm, metav1.CreateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
}

func (w *world) newcomer(change func(*corev1.Secret)) *corev1.Secret {
	s := w.Fleet.Secret(w.Fleet.Another("newcomer"))
	s.Namespace = elsewhere
	if change != nil {
		change(s)
	}
	return s
}

// create tries to create a cluster Secret, by a dry-run.
func (w *world) create(ctx context.Context, change func(*corev1.Secret)) error {
	_, err := w.Client.CoreV1().Secrets(elsewhere).Create(ctx, w.newcomer(change), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// wrongly lists the shards that are accepted and should not be, or the other way round.
func (w *world) wrongly(ctx context.Context, shards []string, accepted map[string]bool) (wrongly []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	queue := make(chan string)
	for range 8 {
		wg.Go(func() {
			for shard := range queue {
				err := w.create(ctx, func(s *corev1.Secret) { s.Data["shard"] = []byte(shard) })
				refused := err != nil && strings.Contains(err.Error(), told)
				if (err == nil) != accepted[shard] || err != nil && !refused {
					mu.Lock()
					wrongly = append(wrongly, fmt.Sprintf("%q: %v", shard, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, shard := range shards {
		queue <- shard
	}
	close(queue)
	wg.Wait()
	return wrongly
}
