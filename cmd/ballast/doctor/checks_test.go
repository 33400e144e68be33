package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/gitops"
	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
	"ballast/planner/status"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// healthy is a fleet of three clusters with which nothing is wrong, and an installed ballast.
func healthy(t *testing.T) *look.Seen {
	t.Helper()
	s := &look.Seen{Now: noon, Namespace: "argocd", Kubernetes: "v1.36.1", Image: "quay.io/argoproj/argocd:v3.2.11", Certs: true,
		NotSeen: map[string]error{},
		Writers: map[string][]string{"argocd-server": {"dev", "prod"}},
		Scrapes: []poll.Sample{{Key: "pod-0", Value: 30}, {Key: "pod-1", Value: 60}}}
	s.Resizes, s.Pods = ptr.To(true), look.TemplateOf(corev1.PodSpec{Containers: []corev1.Container{{Name: "beside"}, {Name: "application-controller",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}}}}, "application-controller")
	s.In = input.Inputs{Now: noon, Config: config.Default(), PlannerUser: "system:serviceaccount:argocd:ballast-planner"}
	s.In.Workload = discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller",
		Container: "application-controller", Replicas: 2, ReadyReplicas: 2, EnvReplicas: ptr.To("2")}
	shard := func(n int) discover.ShardValue { return discover.ShardValue{State: discover.ShardValid, N: n} }
	s.In.Discovered = discover.Input{Namespace: "argocd", InClusterEnabled: true, Secrets: []discover.Secret{
		{UID: "1", Name: "dev", Cluster: "dev", Server: "https://dev", Shard: shard(0), HasData: true},
		{UID: "2", Name: "in-cluster", Cluster: "in-cluster", Server: plan.InClusterServer, Shard: shard(0), HasData: true},
		{UID: "3", Name: "prod", Cluster: "prod", Server: "https://prod", Shard: shard(1), HasData: true}}}
	for _, m := range loads.MetricsOf(s.In.Config) {
		f := poll.Fetched{Metric: m.ID}
		for i, server := range []string{"https://dev", plan.InClusterServer, "https://prod"} {
			f.Samples = append(f.Samples, poll.Sample{Key: server, Value: float64(10 * (i + 1))})
		}
		s.In.Fetched = append(s.In.Fetched, f)
	}
	s.Webhook = &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "ballast.argocd"},
		Webhooks: []admissionv1.MutatingWebhook{{Name: "clusters.ballast.argoproj.io",
			ClientConfig: admissionv1.WebhookClientConfig{CABundle: bundle(t, noon.Add(time.Hour))}}}}
	s.Said = &status.Status{Leader: "ballast-planner-a", LookedAt: noon.Add(-30 * time.Second), Conditions: []status.Condition{
		{Type: status.Planning, Status: status.True, Reason: status.Measured},
		{Type: status.Enforced, Status: status.True, Reason: status.Held},
		{Type: status.Degraded, Status: status.False, Reason: status.AsPlanned}}}
	return s
}

// bundle is a self-signed authority that is valid until then.
func bundle(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fixture.MustDo(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: until.Add(-24 * time.Hour),
		NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	fixture.MustDo(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func examined(s *look.Seen) []finding.Finding {
	if s.NoFleet == nil && s.NoConfig == nil {
		s.Out = cycle.Run(s.In)
	}
	return examine(s)
}

// silent takes a server's samples away.
func silent(s *look.Seen, server string) {
	for i := range s.In.Fetched {
		s.In.Fetched[i].Samples = slices.DeleteFunc(s.In.Fetched[i].Samples, func(sample poll.Sample) bool { return sample.Key == server })
	}
}

// wrong are the lines that are not OK, without their mends: "Fault workload: message".
func wrong(all []finding.Finding) (lines []string) {
	for _, f := range all {
		if f.Result != finding.OK {
			lines = append(lines, string(f.Result)+" "+f.Check+": "+f.Message)
		}
	}
	return lines
}

func TestAHealthyFleetHasALineForEveryCheck(t *testing.T) {
	all := examined(healthy(t))
	if diff := cmp.Diff([]string(nil), wrong(all)); diff != "" {
		t.Errorf("what is wrong with a healthy fleet (-want +got):\n%s", diff)
	}
	said := map[string]bool{}
	for _, f := range all {
		said[f.Check] = true
	}
	for _, c := range checks() {
		if !said[c.name] {
			t.Errorf("nothing is said of %q", c.name)
		}
	}
	table, text := fixture.Printed(t, report{Findings: all})
	fixture.Golden(t, "healthy", table+"--- json\n"+text)
}

// Each fault alone, by what is said of it.
func TestWhatIsWrongIsSaid(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	for name, test := range map[string]struct {
		change func(*look.Seen)
		want   []string
	}{
		"an old Kubernetes": {func(s *look.Seen) { s.Kubernetes = "v1.29.4" },
			[]string{"Fault Kubernetes: the API server is Kubernetes 1.29"}},
		"a version that is none": {func(s *look.Seen) { s.Kubernetes = "main" },
			[]string{"Unknown Kubernetes: reading the API server's version \"main\""}},
		"a configuration that cannot be read": {func(s *look.Seen) { s.NoConfig = errors.New("line 3: x") }, []string{"Fault configuration: line 3: x"}},
		"no workload": {func(s *look.Seen) { s.NoFleet = errors.New("no StatefulSet was found") },
			[]string{"Fault workload: no StatefulSet was found"}},
		"pods that are numbered from 2": {func(s *look.Seen) { s.In.Workload.FirstOrdinal = 2 },
			[]string{`Fault workload: spec.ordinals.start of StatefulSet "argocd-application-controller" is 2`}},
		"pods that are all replica 0": {func(s *look.Seen) { s.In.Workload.FixedShard = "0" },
			[]string{`Fault workload: the pod template of StatefulSet "argocd-application-controller" has the env ARGOCD_CONTROLLER_SHARD "0"`}},
		"a pod that is replica 0, and the only one": {func(s *look.Seen) {
			s.In.Workload.FixedShard, s.In.Workload.Replicas, s.In.Workload.ReadyReplicas, s.In.Workload.EnvReplicas = "0", 1, 1, ptr.To("1")
		},
			[]string{`Warning workload: the pod template of StatefulSet "argocd-application-controller" has the env ARGOCD_CONTROLLER_SHARD "0", ` +
				"which is right for one replica",
				"Warning shards: 1 Secret with a data.shard at or above the 1 replica that Argo CD counts"}},
		"one replica of a plan for two, scaled by somebody": {func(s *look.Seen) {
			s.In.Workload.FixedShard, s.In.Workload.Replicas, s.In.InForce = "0", 1, &plan.Plan{Replicas: 2}
		},
			[]string{`Fault workload: the pod template of StatefulSet "argocd-application-controller" has the env ARGOCD_CONTROLLER_SHARD "0"`,
				`Warning planning: Orphaned: no replica reconciles "prod"`}},
		"pods whose number a Secret may give": {func(s *look.Seen) { s.In.Workload.ShardUnknown = true },
			[]string{`Warning workload: the pod template of StatefulSet "argocd-application-controller" may have the env ARGOCD_CONTROLLER_SHARD`}},
		"an unmanaged workload": {func(s *look.Seen) { s.In.Workload.Unmanaged = true },
			[]string{"Warning workload: StatefulSet argocd-application-controller is annotated as unmanaged"}},
		"an image without a version": {func(s *look.Seen) { s.Image = "argocd@sha256:ab" },
			[]string{`Unknown Argo CD: the image "argocd@sha256:ab" does not name its version`}},
		"Argo CD 2.10": {func(s *look.Seen) { s.Image = "argocd:v2.10.9" },
			[]string{"Fault Argo CD: 2.10.9 takes data.shard over in other ways"}},
		"Argo CD 3.0.5": {func(s *look.Seen) { s.Image = "argocd:v3.0.5" },
			[]string{"Warning Argo CD: 3.0.5 shows Applications that name their cluster without a dest_server"}},
		"a Deployment of 2.14": {func(s *look.Seen) {
			s.Image, s.In.Workload.Kind, s.In.Workload.DynamicDistribution = "argocd:v2.14.2", plan.Deployment, true
		},
			[]string{"Fault Argo CD: 2.14.2 as a Deployment"}},
		"an env that is another number": {func(s *look.Seen) { s.In.Workload.EnvReplicas = ptr.To("3") },
			[]string{"Warning sharding: ARGOCD_CONTROLLER_REPLICAS is 3 and 2 replicas run"}},
		"an env of two values": {func(s *look.Seen) { s.In.Workload.EnvMixed = true },
			[]string{"Fault sharding: ARGOCD_CONTROLLER_REPLICAS stands several times, and not with one value"}},
		"an env that nobody can read": {func(s *look.Seen) { s.In.Workload.EnvReplicas, s.In.Workload.EnvUnknown = nil, true },
			[]string{"Warning sharding: ARGOCD_CONTROLLER_REPLICAS comes from a reference that ballast cannot read"}},
		"a shard that is no number": {func(s *look.Seen) {
			s.In.Discovered.Secrets[0].Shard = discover.ShardValue{State: discover.ShardInvalid}
		},
			[]string{"Warning Secrets: InvalidShard: "}},
		"a shard below 0": {func(s *look.Seen) {
			s.In.Discovered.Secrets[0].Shard = discover.ShardValue{State: discover.ShardNegative}
		},
			[]string{"Warning Secrets: NegativeShard: ", `Warning planning: Orphaned: no replica reconciles "dev"`}},
		"a shard that no replica has": {func(s *look.Seen) { s.In.Discovered.Secrets[0].Shard.N = 7 },
			[]string{"Warning shards: 1 Secret with a data.shard at or above the 2 replicas that Argo CD counts"}},
		"a Secret that is no cluster": {func(s *look.Seen) { s.In.Discovered.Secrets[0].Server = ""; silent(s, "https://dev") },
			[]string{"Fault Secrets: MissingServer: "}},
		"an immutable one": {func(s *look.Seen) { s.In.Discovered.Secrets[0].Immutable = true },
			[]string{"Warning shards: 1 Secret immutable"}},
		"one that is left alone": {func(s *look.Seen) { s.In.Discovered.Secrets[0].Unmanaged = true },
			[]string{"Warning shards: 1 Secret annotated as unmanaged"}},
		"two of a server": {func(s *look.Seen) {
			s.In.Discovered.Secrets[2].Server, s.In.Discovered.Secrets[2].Shard.N = "https://dev/", 0
			silent(s, "https://prod")
		},
			[]string{"Warning shards: 2 Secrets with a server that another Secret has, too"}},
		"no Secret for the in-cluster": {func(s *look.Seen) { s.In.Discovered.Secrets[1].Server = "https://other" },
			[]string{"Warning in-cluster: the cluster that Argo CD runs in has no Secret"}},
		"a metric that is not there": {func(s *look.Seen) { s.In.Fetched[0].Samples = nil },
			[]string{"Warning metrics: objects: no series says anything of any cluster (3 NoData)"}},
		"a Prometheus that is away": {func(s *look.Seen) {
			s.In.Fetched[0] = poll.Fetched{Metric: s.In.Fetched[0].Metric, Err: "connection refused"}
		}, []string{"Fault metrics: QueryFailed: "}},
		"scrapes that are too rare": {func(s *look.Seen) { s.Scrapes[0].Value = 151 },
			[]string{"Fault scrapes: a pod is scraped every 151 s, and the shortest window of a query is 600 s"}},
		"no series of the process": {func(s *look.Seen) { s.Scrapes = nil }, []string{"Unknown scrapes: no series process_resident_memory_bytes"}},
		"nodes that size rules read and nobody may list": {func(s *look.Seen) {
			s.In.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
				{List: config.Requests, Resource: "cpu", Slope: "10m", Input: config.InputCores}}}}}
			s.In.Surroundings.Nodes = &inputs.Nodes{Why: "ballast may not list nodes: install component size-nodes"}
		}, []string{"Warning size inputs: SizeInputMissing: size rules read cores, of which nothing is known: ballast may not list nodes: install"}},
		"an autoscaler": {func(s *look.Seen) {
			s.Conflicts = []conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "hpa", Message: "HPA hpa scales it"}}
		}, []string{"Warning autoscalers: Autoscaled: HPA hpa scales it"}},
		"a VPA that evicts": {func(s *look.Seen) {
			s.Conflicts = []conflicts.Finding{{Kind: conflicts.Resized, Subject: "VPA argocd/vpa", Message: "VPA argocd/vpa evicts or resizes pods"}}
		}, []string{"Warning autoscalers: Resized: VPA argocd/vpa evicts or resizes pods"}},
		"a budget that lets no pod go": {func(s *look.Seen) {
			s.Conflicts = []conflicts.Finding{{Kind: conflicts.PDBBlocks, Subject: "pdb", Message: "PodDisruptionBudget pdb lets no pod go"}}
		}, []string{"Warning autoscalers: PDBBlocks: PodDisruptionBudget pdb lets no pod go"}},
		"External Secrets": {func(s *look.Seen) { s.Writers["external-secrets"] = []string{"dev"} },
			[]string{`Warning GitOps: "external-secrets" writes the data of 1 cluster Secret`}},
		"Argo CD by itself": {func(s *look.Seen) { s.Template.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "x"} },
			[]string{"Warning GitOps: the workload is written by an Argo CD Application"}},
		"the operator": {func(s *look.Seen) {
			s.Template.OwnerReferences = []metav1.OwnerReference{{Kind: "ArgoCD",
				Name: "argocd"}}
		}, []string{"Warning GitOps: the workload belongs to ArgoCD argocd"}},
		"no cert-manager, nothing installed": {func(s *look.Seen) { s.Certs, s.Webhook, s.Said = false, nil, nil },
			[]string{"Warning cert-manager: not installed"}},
		"a webhook that was changed": {func(s *look.Seen) {
			s.Installed.Findings = []installation.Finding{{Kind: installation.Changed, Message: "webhook scale is missing"}}
		}, []string{"Fault webhook: webhook scale is missing"}},
		"a webhook that does not hold the plan": {func(s *look.Seen) {
			s.Said.Conditions[1] = status.Condition{Type: status.Enforced, Status: status.False, Reason: status.NotHeld,
				Message: "scale: the write passed", LastTransitionTime: noon}
		}, []string{"Fault webhook: the leader's probe finds since 2026-11-26T12:00:00Z that it does not hold the plan: scale: the write passed"}},
		"a broken glass": {func(s *look.Seen) {
			s.Said.Conditions[1] = status.Condition{Type: status.Enforced, Status: status.False, Reason: status.BreakGlass,
				Message: "a person switched it off"}
		}, []string{"Warning webhook: a person switched it off: writes pass"}},
		"no authority": {func(s *look.Seen) { s.Webhook.Webhooks[0].ClientConfig.CABundle = nil },
			[]string{"Fault webhook: clusters.ballast.argoproj.io: it has no caBundle"}},
		"an authority of last year": {func(s *look.Seen) { s.Webhook.Webhooks[0].ClientConfig.CABundle = bundle(t, noon.Add(-time.Minute)) },
			[]string{"Fault webhook: clusters.ballast.argoproj.io: the caBundle expired at 2026-11-26T11:59:00Z"}},
		"an authority that is none": {func(s *look.Seen) { s.Webhook.Webhooks[0].ClientConfig.CABundle = []byte("x") },
			[]string{"Fault webhook: clusters.ballast.argoproj.io: the caBundle cannot be read"}},
		"rights that are gone": {func(s *look.Seen) {
			s.Denied = []rbacv1.PolicyRule{{Verbs: []string{"patch"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
		}, []string{"Fault rights: the planner lacks 1 right"}},
		"rights that may not be asked for": {func(s *look.Seen) { s.RightsErr = forbidden },
			[]string{"Unknown rights: whether the planner has its rights may not be asked"}},
		"a series of no cluster": {func(s *look.Seen) {
			s.In.Fetched[0].Samples = append(s.In.Fetched[0].Samples, poll.Sample{Key: "https://nobody", Value: 1})
		}, []string{"Warning metrics: Unmatched: "}},
		"few clusters with a value": {func(s *look.Seen) {
			s.In.Memory = cycle.Run(s.In).Memory // all had one
			s.In.Fetched[0].Samples = s.In.Fetched[0].Samples[:1]
		},
			[]string{"Fault metrics: LowCoverage: "}},
		"no leader": {func(s *look.Seen) { s.Said = nil }, []string{"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; " +
			"whether it holds the plan is not probed: no leader", "Fault leader: no leader has said yet how things are"}},
		"a leader that may not be heard": {func(s *look.Seen) { s.Said, s.SaidErr = nil, forbidden }, []string{
			"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; whether it holds the plan is not known: " +
				"what the leader says may not be read",
			"Unknown leader: what the leader says cannot be read"}},
		"a leader whose words are broken": {func(s *look.Seen) { s.Said, s.SaidErr = nil, errors.New("no status: {") }, []string{
			"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; whether it holds the plan is not known: " +
				"what the leader says cannot be read: no status: {",
			"Unknown leader: what the leader says cannot be read"}},
		"a leader that says nothing of a probe": {func(s *look.Seen) { s.Said.Conditions = s.Said.Conditions[:1] }, []string{
			"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; whether it holds the plan is not told: " +
				"the leader says nothing of its probe"}},
		"a leader that is silent": {func(s *look.Seen) { s.Said.LookedAt = noon.Add(-time.Hour) },
			[]string{"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; whether it holds the plan is not known any more: " +
				"the leader looked last 1h ago", "Fault leader: the leader looked last 1h ago"}},
		"a leader whose clock is ahead": {func(s *look.Seen) { s.Said.LookedAt = noon.Add(time.Hour) },
			[]string{"Unknown webhook: ballast.argocd is as shipped, and its authority is valid; whether it holds the plan is not known: " +
				"the leader's clock is 1h ahead of this machine's", "Fault leader: the leader's clock is 1h ahead of this machine's"}},
		"a leader whose clock is ahead after a probe that failed": {func(s *look.Seen) {
			s.Said.LookedAt = noon.Add(time.Hour)
			s.Said.Conditions[1] = status.Condition{Type: status.Enforced, Status: status.False, Reason: status.NotHeld,
				Message: "scale: the write passed", LastTransitionTime: noon}
		}, []string{"Warning webhook: the leader, whose clock is 1h ahead of this machine's, found that it does not hold the plan: scale: the write passed",
			"Fault leader: the leader's clock is 1h ahead of this machine's"}},
		"a leader that is silent after a probe that failed": {func(s *look.Seen) {
			s.Said.LookedAt = noon.Add(-time.Hour)
			s.Said.Conditions[1] = status.Condition{Type: status.Enforced, Status: status.False, Reason: status.NotHeld,
				Message: "scale: the write passed", LastTransitionTime: noon}
		}, []string{"Warning webhook: the leader, which looked last 1h ago, found that it does not hold the plan: scale: the write passed",
			"Fault leader: the leader looked last 1h ago"}},
		"a leader that is stopped": {func(s *look.Seen) {
			s.Said.Conditions[0] = status.Condition{Type: status.Planning, Status: status.False, Reason: status.Paused, Message: "alice",
				LastTransitionTime: noon}
		},
			[]string{"Warning leader: Planning is False since 2026-11-26T12:00:00Z: Paused: alice"}},
		"what may not be read": {func(s *look.Seen) { s.NotSeen["pods"] = forbidden }, []string{"Unknown looking: pods may not be read"}},
		"what did not answer":  {func(s *look.Seen) { s.NotSeen["pods"] = errors.New("timeout") }, []string{"Unknown looking: pods: timeout"}},
		"pins that are none":   {func(s *look.Seen) { s.In.Pins = plan.Pins{"nobody": 1} }, []string{"Warning planning: PinUnknown: "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			test.change(s)
			all := examined(s)
			got := wrong(all)
			for _, f := range all {
				if f.Result != finding.OK && f.Mend == "" && !saysItself(f.Check) {
					t.Errorf("%s: %q has no mend", f.Check, f.Message)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("said is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("said is %q, want %q...", got[i], want)
				}
			}
		})
	}
}

// saysItself is true of the checks that tell what others found, each in a sentence with its mend.
func saysItself(check string) bool {
	return slices.Contains([]string{"size inputs", "leader", "planning"}, check)
}

// The mends are commands with the object's own name, where it is one.
func TestMendsAreCommands(t *testing.T) {
	s := healthy(t)
	for i := range s.In.Discovered.Secrets {
		s.In.Discovered.Secrets[i].Immutable, s.In.Discovered.Secrets[i].Unmanaged = i == 0, i == 2
	}
	s.In.Discovered.Secrets[1].Server = "https://other"
	s.Scrapes[0].Value = 151
	s.Said.Conditions[1] = status.Condition{Type: status.Enforced, Status: status.False, Reason: status.BreakGlass}
	got := map[string]bool{}
	for _, f := range examined(s) {
		got[f.Mend] = true
	}
	for _, want := range []string{
		"make it again, for which Argo CD loses the cluster for a moment: kubectl -n argocd get secret dev -o json | " +
			"jq 'del(.immutable, .metadata.uid, .metadata.resourceVersion)' | kubectl replace --force -f -",
		"where that is not meant: kubectl -n argocd annotate secret prod ballast.argoproj.io/unmanaged-",
		"if it is to be placed, too: kubectl -n argocd create secret generic in-cluster --from-literal=name=in-cluster " +
			"--from-literal=server=https://kubernetes.default.svc --from-literal=config='{\"tlsClientConfig\":{\"insecure\":false}}' && " +
			"kubectl -n argocd label secret in-cluster argocd.argoproj.io/secret-type=cluster",
		"scrape every 150 s or more often: interval: 150s in the ServiceMonitor or PodMonitor of its pods " +
			"(Helm: controller.metrics.serviceMonitor.interval)",
		"kubectl -n argocd annotate configmap ballast-plan ballast.argoproj.io/enforcement-",
	} {
		if !got[want] {
			t.Errorf("no mend is %s; there are\n%q", want, slices.Sorted(maps.Keys(got)))
		}
	}
}

// What could not be looked at is mended where it fails: nobody is sent to an API server that answers.
func TestWhatCannotBeReadIsMendedWhereItFails(t *testing.T) {
	const api = "see that the API server answers, then run ballast doctor again: kubectl get --raw '/readyz?verbose'"
	broken, hangs, timeout := errors.New("yaml: line 3"), &url.Error{Op: "Get", URL: "https://api", Err: context.DeadlineExceeded}, apierrors.NewTimeoutError("slow", 1)
	for _, test := range []struct {
		what string
		err  error
		want string
	}{
		{look.OfWriters, broken, "mend discover.selector in the configuration: ballast config check FILE"},
		{look.OfWriters, fmt.Errorf("listing: %w", timeout), api},
		{look.OfShipped, broken, "this ballast's own manifests cannot be read: get its binary again, and report it (SECURITY.md says where)"},
		{look.OfLeader, broken, "see who wrote it (ballast audit), and take it away, and the leader writes it anew: kubectl -n argocd delete configmap ballast-plan-status"},
		{look.OfLeader, fmt.Errorf("reading: %w", hangs), api},
		{look.OfLeader, context.DeadlineExceeded, api},
		{"API groups", broken, api},
		{look.OfLeader, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil), "let somebody run ballast doctor who may get and list it; what you may: kubectl auth can-i --list"},
	} {
		s := healthy(t)
		s.NotSeen[test.what] = test.err
		for _, f := range examined(s) {
			if f.Check == "looking" && f.Mend != test.want {
				t.Errorf("%s, %v is mended by %q, expected %q", test.what, test.err, f.Mend, test.want)
			}
		}
	}
}

// Each problem of Secrets has its own command, for the one that has it by its name; no command prints a Secret's data.
func TestEachProblemOfSecretsHasItsCommand(t *testing.T) {
	s, told := healthy(t), map[string]discover.ProblemKind{}
	for _, kind := range []discover.ProblemKind{discover.MissingData, discover.MissingServer, discover.MissingName, discover.TooLong,
		discover.TooMany, discover.InvalidShard, discover.InvalidPin, discover.BeingDeleted, discover.ConfigUnread, discover.InClusterDisabled} {
		s.Out.Fleet.Problems = []discover.SecretProblem{{Secret: "dev", Kind: kind, Message: "wrong"}}
		got := checkSecrets(s)
		if len(got) != 1 || !strings.Contains(got[0].Mend, "kubectl -n argocd ") || strings.Contains(got[0].Mend, "NAME ") {
			t.Errorf("%s: %+v", kind, got)
			continue
		}
		if other, there := told[got[0].Mend]; there {
			t.Errorf("%s has the command of %s", kind, other)
		}
		told[got[0].Mend] = kind
		if strings.Contains(got[0].Mend, "-o yaml") || strings.Contains(got[0].Mend, "-o json ") {
			t.Errorf("%s prints the Secret: %s", kind, got[0].Mend)
		}
	}
	const kind = discover.MissingServer
	s.Out.Fleet.Problems = []discover.SecretProblem{{Secret: "dev", Kind: kind}, {Secret: "prod", Kind: kind}}
	want := []finding.Finding{{Result: finding.Fault, Message: "MissingServer: , and 1 more", Subjects: []string{"dev", "prod"},
		Mend: `kubectl -n argocd patch secret NAME --type=merge -p '{"stringData":{"server":"https://HOST:PORT"}}'`}}
	if diff := cmp.Diff(want, checkSecrets(s)); diff != "" {
		t.Errorf("two of one kind (-want +got):\n%s", diff)
	}
}

// A plan that is nearly full is told before it is.
func TestAPlanThatIsNearlyFullIsTold(t *testing.T) {
	s := healthy(t)
	s.Out.Next = plan.Plan{Clusters: map[string]plan.Row{}}
	for i := range 7000 {
		s.Out.Next.Clusters[fmt.Sprintf("cluster-%075d", i)] = plan.Row{Replica: 1, Load: "0.13", Server: "0123456789"}
	}
	got := checkSize(s)
	if len(got) != 1 || got[0].Result != finding.Warning || !strings.HasPrefix(got[0].Message, "the plan of 7000 clusters leaves") || got[0].Mend == "" {
		t.Errorf("said is %+v", got)
	}
}

// Whatever somebody wrote, it is text of its own line.
func TestWhateverDoctorPrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{"doctor": func() say.Result { return &report{all: true} }})
}

// A GitOps tool is known by its mark, else by the managed fields, of the workload as of the Secrets; each has the YAML that it needs.
func TestWhichToolWritesTheSameObjects(t *testing.T) {
	fields := func(manager, set string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(set)}}
	}
	const pointers = "jsonPointers: [/spec/replicas], jqPathExpressions: " +
		`['.spec.template.spec.containers[].env[]? | select(.name == "ARGOCD_CONTROLLER_REPLICAS")']}], syncPolicy: `
	for name, test := range map[string]struct {
		change        func(*look.Seen)
		message, mend string
	}{
		"an Application's annotation": {func(s *look.Seen) {
			s.Template.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "argo:apps/StatefulSet:argocd/x"}
		}, "the workload is written by an Argo CD Application argo", pointers},
		"an Application's label": {func(s *look.Seen) { s.Template.Labels = map[string]string{"argocd.argoproj.io/instance": "argo"} },
			"the workload is written by an Argo CD Application argo", pointers},
		"the shared label": {func(s *look.Seen) { s.Template.Labels = map[string]string{"app.kubernetes.io/instance": "argo"} },
			"the workload is written by an Argo CD Application or a Helm release, argo", pointers},
		"Flux": {func(s *look.Seen) { s.Template.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "cd"} },
			"the workload is written by a Flux Kustomization cd", "no spec.replicas"},
		"managed fields alone": {func(s *look.Seen) { s.Template.ManagedFields = fields("Terraform", `{"f:spec":{"f:replicas":{}}}`) },
			`"Terraform" writes the spec of the workload`, "ignore_changes = [spec[0].replicas, spec[0].template[0].spec[0].container[0].env]"},
		"the fields of a tool whose mark is there": {func(s *look.Seen) {
			s.Template.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "cd"}
			s.Template.ManagedFields = fields("helm-controller", `{"f:spec":{}}`)
		}, "the workload is written by a Flux HelmRelease cd", "no spec.replicas"},
		"status alone, and a person": {func(s *look.Seen) {
			s.Template.ManagedFields = append(fields("kube-controller-manager", `{"f:status":{}}`), fields("kubectl-edit", `{"f:spec":{}}`)...)
		}, "no tool but Argo CD and people writes the workload or the cluster Secrets", ""},
		"a Helm release that is called argocd": {func(s *look.Seen) {
			s.Template.Annotations = map[string]string{"meta.helm.sh/release-name": "argocd"}
		}, "the workload is written by a Helm release argocd", "nothing: replicas and env stay the plan's"},
		"Flux's Helm release argo-cd": {func(s *look.Seen) { s.Template.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "argo-cd"} },
			"the workload is written by a Flux HelmRelease argo-cd", "no spec.replicas"},
		"Flux's Kustomization argocd": {func(s *look.Seen) {
			s.Template.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "argocd"}
		},
			"the workload is written by a Flux Kustomization argocd", "no spec.replicas"},
		"an Application that is called flux-terraform": {func(s *look.Seen) {
			s.Template.Labels = map[string]string{"argocd.argoproj.io/instance": "flux-terraform"}
		}, "the workload is written by an Argo CD Application flux-terraform", pointers},
		"the shared label argocd": {func(s *look.Seen) { s.Template.Labels = map[string]string{"app.kubernetes.io/instance": "argocd"} },
			"the workload is written by an Argo CD Application or a Helm release, argocd", "for an Application: spec: {ignoreDifferences"},
		"managed by Helm": {func(s *look.Seen) { s.Template.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"} },
			"the workload is written by Helm", "nothing: replicas and env stay the plan's"},
		"the operator": {func(s *look.Seen) {
			s.Template.OwnerReferences = []metav1.OwnerReference{{Kind: "ArgoCD", Name: "argocd"}}
		},
			"the workload belongs to ArgoCD argocd, which writes it, too", "nothing: replicas and env stay the plan's"},
		"an owner that nobody knows": {func(s *look.Seen) {
			s.Template.OwnerReferences = []metav1.OwnerReference{{Kind: "App", Name: "argocd"}}
		},
			"the workload belongs to App argocd, which writes it, too", "docs/gitops.md has what to set for it"},
		"an Application's Deployment, which has no such env": {func(s *look.Seen) {
			s.In.Workload.Kind = plan.Deployment
			s.Template.Labels = map[string]string{"argocd.argoproj.io/instance": "argo"}
		}, "the workload is written by an Argo CD Application argo", "kind: Deployment, jsonPointers: [/spec/replicas]}], syncPolicy: "},
		"Secrets of a Helm release argocd": {func(s *look.Seen) {
			s.Trackers = map[gitops.Tracker][]string{{Said: "a Helm release argocd", Tool: gitops.Helm}: {"dev"}}
		},
			"1 cluster Secret written by a Helm release argocd", "nothing: data.shard stays the plan's"},
		"Secrets by helm-controller": {func(s *look.Seen) { s.Writers["helm-controller"] = []string{"dev"} },
			`"helm-controller" writes the data of 1 cluster Secret`, "no data.shard"},
		"Secrets of an Application": {func(s *look.Seen) {
			s.Trackers = map[gitops.Tracker][]string{{Said: "an Argo CD Application clusters", Tool: gitops.ArgoCD}: {"dev", "prod"}}
			s.Writers["argocd-controller"] = []string{"dev", "prod"}
		}, "2 cluster Secrets written by an Argo CD Application clusters", "jsonPointers: [/data/shard]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			test.change(s)
			got := checkOwners(s)
			if len(got) != 1 || got[0].Message != test.message || !strings.Contains(got[0].Mend, test.mend) {
				t.Errorf("said is %+v, want %q, %q", got, test.message, test.mend)
			}
		})
	}
}

// What anybody may have written is read without a crash.
func TestWhateverStandsThereIsRead(t *testing.T) {
	s := healthy(t)
	rapid.Check(t, func(r *rapid.T) {
		s.Image, s.Kubernetes = fixture.Hostile(r), fixture.Hostile(r)
		checkArgoCD(s)
		checkKubernetes(s)
	})
}
