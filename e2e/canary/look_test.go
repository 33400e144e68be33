package canary

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
)

// marks are the tokens' beginning as it may show: plain, and in base64 wherever in a text it begins. A hex dump, as
// client-go logs bodies, breaks it up: there it is the first half of a line's letters.
func marks() []string {
	marks := []string{fleet.Canary, "canary-b", fmt.Sprintf("%x", fleet.Canary)}
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + fleet.Canary))
		marks = append(marks, text[4:len(text)-4]) // without what the neighbours have a part in
	}
	return marks
}

func (w *world) expectClean(what, text string) {
	GinkgoHelper()
	for _, mark := range marks() {
		if at := strings.Index(text, mark); at >= 0 {
			Fail(fmt.Sprintf("%s shows a token as %q: ...%.300s", what, mark, text[max(at-150, 0):]))
		}
	}
}

// expectNoToken looks through all that ballast writes and tells.
func (w *world) expectNoToken(ctx context.Context) {
	GinkgoHelper()
	w.expectClean("kubectl's user", strings.Join(w.told, "\n"))
	w.expectCleanLogs()
	for _, component := range []string{"planner", "webhook"} {
		pods, err := w.Pods(ctx, component)
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(2))
		for _, pod := range pods {
			Expect(pod.Spec.Containers[0].Args).To(ContainElement(fmt.Sprintf("--verbosity=%d", verbosity)))
			text, err := w.Metrics(ctx, pod)
			Expect(err).NotTo(HaveOccurred())
			Expect(text).To(ContainSubstring("ballast_" + component))
			w.expectClean("/metrics of "+pod.Name, text)
		}
	}
	w.expectCleanObjects(ctx)
	leaks, err := w.Leaks()
	Expect(err).NotTo(HaveOccurred())
	Expect(leaks).To(BeEmpty(), "logs that show a token, the audit log among them")
}

func (w *world) expectCleanLogs() {
	GinkgoHelper()
	logs, err := filepath.Glob(filepath.Join(w.Plane.Dir(), "pods", "*.log"))
	Expect(err).NotTo(HaveOccurred())
	detail, size := 0, 0
	for _, log := range logs {
		text, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		w.expectClean(filepath.Base(log), string(text))
		detail += bytes.Count(text, []byte(`"level":"Level(-`)) + bytes.Count(text, []byte(`"level":"debug"`))
		size += len(text)
	}
	Expect(detail).To(BeNumerically(">", 0), "the logs have no detail: the verbosity did not arrive")
	AddReportEntry("logs", fmt.Sprintf("%d files, %d KiB, %d lines of detail", len(logs), size>>10, detail), ReportEntryVisibilityAlways)
}

// expectCleanObjects looks through events, Leases, and ConfigMaps, with what is zipped in them.
func (w *world) expectCleanObjects(ctx context.Context) {
	GinkgoHelper()
	events, err := w.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	leases, err := w.Client.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	maps, err := w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for what, list := range map[string]any{"an event": events, "a Lease": leases, "a ConfigMap": maps} {
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		w.expectClean(what, string(text))
	}
	Expect(eventsOf(events.Items)).To(ContainElement("PlanWritten"))
	unzipped := map[string]int{}
	for _, cm := range maps.Items {
		for key, data := range cm.BinaryData {
			text := unzip(data)
			w.expectClean(cm.Name+"/"+key, text)
			unzipped[cm.Name] += len(text)
		}
	}
	Expect(unzipped).To(HaveKeyWithValue("ballast-history", BeNumerically(">", 0)))
}

func eventsOf(events []corev1.Event) (reasons []string) {
	for _, e := range events {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// unzip reads a part of the history; the MACs of the others are not packed.
func unzip(data []byte) string {
	GinkgoHelper()
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return string(data)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(r)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// expectSmall measures the processes at the end of it all. A process gives no heap dump without a port for debuggers,
// which it does not have: what its heap keeps is the webhook's own test.
func (w *world) expectSmall(ctx context.Context) {
	GinkgoHelper()
	for _, component := range []string{"webhook", "planner"} {
		pods, err := w.Pods(ctx, component)
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods {
			resident := w.resident(pod.Name)
			AddReportEntry("resident", fmt.Sprintf("%s: %.1f MiB", pod.Name, float64(resident)/1024), ReportEntryVisibilityAlways)
			if component == "webhook" {
				Expect(resident).To(BeNumerically("<", webhookLimit), pod.Name)
			}
		}
	}
}

// resident is the memory of a pod's process, in KiB.
func (w *world) resident(pod string) int {
	GinkgoHelper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(w.Plane.PodPID(w.Fleet.Namespace, pod)), "status"))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			Expect(err).NotTo(HaveOccurred())
			return n
		}
	}
	Fail("the process has no VmRSS")
	return 0
}
