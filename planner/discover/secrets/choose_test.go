package secrets

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// made is a cluster Secret of that many minutes after the first one, as a cache keeps it.
func made(t testing.TB, name string, minute int, change ...func(*corev1.Secret)) corev1.Secret {
	t.Helper()
	s := clusterSecret(name)
	s.CreationTimestamp = metav1.NewTime(time.Date(2026, 8, 1, 12, minute, 0, 0, time.UTC))
	for _, c := range change {
		c(s)
	}
	kept, err := transformed(s)
	if err != nil {
		t.Fatal(err)
	}
	return *kept.(*corev1.Secret)
}

// TestOfTooManySecretsTheNewestAreLeftOut, and of those that are planned none that was known for an hour, whatever others make.
func TestOfTooManySecretsTheNewestAreLeftOut(t *testing.T) {
	with := func(key, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	type chosen struct {
		Names            []string
		LeftOut          int
		Beside, Namesake []string
	}
	lately := map[string]time.Time{"was": {}}
	for name, test := range map[string]struct {
		known   discover.Known
		secrets []corev1.Secret
		want    chosen
	}{
		"as many as are planned":        {discover.Known{}, []corev1.Secret{made(t, "c", 0), made(t, "b", 0), made(t, "a", 3)}, chosen{Names: []string{"a", "b", "c"}}},
		"the oldest of one more":        {discover.Known{}, []corev1.Secret{made(t, "d", 0), made(t, "c", 0), made(t, "b", 0), made(t, "a", 3)}, chosen{Names: []string{"b", "c", "d"}, LeftOut: 1}},
		"by name at one second":         {discover.Known{}, []corev1.Secret{made(t, "d", 0), made(t, "c", 0), made(t, "b", 0), made(t, "a", 0)}, chosen{Names: []string{"a", "b", "c"}, LeftOut: 1}},
		"known ones that are made anew": {discover.Known{Clusters: []string{"y", "z"}}, []corev1.Secret{made(t, "a", 0), made(t, "b", 1), made(t, "y", 9), made(t, "z", 9)}, chosen{Names: []string{"a", "y", "z"}, LeftOut: 1}},
		"then those that were until lately": {discover.Known{Clusters: []string{"z"}, Lost: lately}, []corev1.Secret{made(t, "a", 0), made(t, "b", 1), made(t, "was", 9), made(t, "z", 9)},
			chosen{Names: []string{"a", "was", "z"}, LeftOut: 1}},
		"too many known ones":  {discover.Known{Clusters: []string{"a", "b", "c", "d"}}, []corev1.Secret{made(t, "a", 4), made(t, "b", 1), made(t, "c", 2), made(t, "d", 3)}, chosen{Names: []string{"b", "c", "d"}, LeftOut: 1}},
		"a twin is left out":   {discover.Known{}, []corev1.Secret{made(t, "a", 0), made(t, "b", 0), made(t, "c", 0), made(t, "d", 1, with("server", "https://b/"))}, chosen{Names: []string{"a", "b", "c"}, LeftOut: 1, Beside: []string{"b"}}},
		"a namesake":           {discover.Known{}, []corev1.Secret{made(t, "a", 0), made(t, "b", 0), made(t, "c", 0), made(t, "d", 1, with("name", "c"))}, chosen{Names: []string{"a", "b", "c"}, LeftOut: 1, Namesake: []string{"c"}}},
		"one without anything": {discover.Known{}, []corev1.Secret{made(t, "a", 0, with("server", ""), with("name", "")), made(t, "b", 0), made(t, "c", 0), made(t, "d", 1, with("server", ""), with("name", ""))}, chosen{Names: []string{"a", "b", "c"}, LeftOut: 1}},
		"a twin whose name is too long": {discover.Known{}, []corev1.Secret{made(t, "a", 0), made(t, "b", 0, with("server", "https://a"), with("name", strings.Repeat("n", discover.LongestCluster+1)))},
			chosen{Names: []string{"a", "b"}, Beside: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got chosen
			secrets, left := choose(test.known, test.secrets, 3)
			got.LeftOut = left
			for _, s := range secrets {
				got.Names = append(got.Names, s.Name)
				if s.Beside {
					got.Beside = append(got.Beside, s.Name)
				}
				if s.Namesake {
					got.Namesake = append(got.Namesake, s.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSlashesBehindAServerHideNoTwin: Argo CD reads a server without the slashes behind it, however many.
func TestSlashesBehindAServerHideNoTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		server := "https://" + rapid.StringMatching(`[a-z/.:]{0,500}[a-z]`).Draw(rt, "server")
		slashes := strings.Repeat("/", rapid.SampledFrom([]int{0, 1, 2, 3, 505, 600, 700_000}).Draw(rt, "slashes"))
		s := FromSecret(&corev1.Secret{Data: map[string][]byte{"server": []byte(server + slashes)}})
		if got := plan.NormalizeServer(s.Server); got != server || s.TooLong || len(s.Server) > discover.LongestServer {
			rt.Fatalf("%q with %d slashes is %q, too long: %t", server, len(slashes), s.Server, s.TooLong)
		}
	})
}

// TestNobodysSecretsPushOutAKnownOne, however many there are and in whatever order they come.
func TestNobodysSecretsPushOutAKnownOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []corev1.Secret
		var known discover.Known
		for i := range rapid.IntRange(1, 10).Draw(rt, "known") {
			known.Clusters = append(known.Clusters, fmt.Sprintf("k%02d", i))
			all = append(all, made(t, known.Clusters[i], rapid.IntRange(0, 9).Draw(rt, "made")))
		}
		for i := range rapid.IntRange(0, 30).Draw(rt, "others") {
			all = append(all, made(t, fmt.Sprintf("a%02d", i), rapid.IntRange(0, 9).Draw(rt, "made")))
		}
		want, left := choose(known, all, 12)
		if len(want)+left != len(all) || len(want) > 12 {
			rt.Fatalf("%d and %d of %d", len(want), left, len(all))
		}
		for _, name := range known.Clusters {
			if !slices.ContainsFunc(want, func(s discover.Secret) bool { return s.Name == name }) {
				rt.Fatalf("%q is left out", name)
			}
		}
		if got, _ := choose(known, rapid.Permutation(all).Draw(rt, "order"), 12); !cmp.Equal(want, got) {
			rt.Fatalf("in another order (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

// TestTheMarkOfAPackedSecretIsNobodys: the API server takes no finalizer of that name.
func TestTheMarkOfAPackedSecretIsNobodys(t *testing.T) {
	if len(validation.IsQualifiedName(packedMark)) == 0 {
		t.Errorf("%q is a name", packedMark)
	}
}

// TestACacheTakesLittleOfManySecrets of whatever size their makers choose: who creates them by the hundred thousand fills it otherwise.
func TestACacheTakesLittleOfManySecrets(t *testing.T) {
	const n = 20_000
	pin := map[string]string{plan.AnnotationPin: "3", plan.AnnotationUnmanaged: "true", discover.AnnotationSkipReconcile: "true"}
	for name, test := range map[string]struct {
		letters, most int // of name and URL, and bytes a Secret
	}{
		"an EKS cluster":        {90, 750},
		"as long as is planned": {512, 1600},
		"longer":                {2048, 600},
		"short":                 {10, 550},
	} {
		t.Run(name, func(t *testing.T) {
			transform, kept := Transform(labels.SelectorFromSet(labels.Set{plan.SecretTypeLabel: plan.SecretTypeCluster})), make([]any, 0, n)
			before := heap()
			for i := range n {
				id := fmt.Sprintf("c%05d", i)
				text := strings.Repeat("x", test.letters-len(id)) + id
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: "argocd", UID: types.UID(id + "-9e2c-4d2b-8a51-2f1c0de9b0aa"), ResourceVersion: id,
					Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster, id: id}, Annotations: pin},
					Data: map[string][]byte{"name": []byte(text), "server": []byte(text), "shard": []byte("3"), "config": []byte("{")}}
				one, err := transform(s)
				if err != nil {
					t.Fatal(err)
				}
				kept = append(kept, one)
			}
			if each := (heap() - before) / n; each > test.most {
				t.Errorf("each takes %d bytes, want %d at most", each, test.most)
			} else {
				t.Logf("each takes %d bytes", each)
			}
			runtime.KeepAlive(kept)
		})
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
