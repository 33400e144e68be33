package nudge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watching is an Argo CD with that setting, one Application of eu in its own namespace, and a planner that may list those of some.
type watching struct {
	setting string
	may     []string
}

func (w *watching) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.(*corev1.ConfigMap).Data = map[string]string{keyNamespaces: w.setting}
	return nil
}

func (w *watching) List(_ context.Context, list client.ObjectList, how ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(how)
	switch {
	case !slices.Contains(w.may, o.Namespace):
		return apierrors.NewForbidden(schema.GroupResource{Group: applicationKind.Group, Resource: "applications"}, "", nil)
	case o.Namespace == "argocd", o.Namespace == "":
		return json.Unmarshal([]byte(`{"items":[{"metadata":{"namespace":"argocd","name":"a"},"spec":{"destination":{"server":"`+eu+`"}}}]}`), list)
	}
	return nil
}

// TestWhatMayNotBeListedMayHaveAnybodysApplications: a cluster that shows none elsewhere is no cluster without Applications.
func TestWhatMayNotBeListedMayHaveAnybodysApplications(t *testing.T) {
	settings, many := map[string]bool{}, make([]string, maxNames+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%04d", i)
	}
	for name, test := range map[string]struct {
		setting string
		may     []string
		us      int
		told    int
	}{
		"its own namespace alone":                      {"", []string{"argocd"}, 0, 0},
		"a namespace by its name, which may be listed": {"team", []string{"argocd", "team"}, 0, 0},
		"a namespace by its name, which may not":       {"team", []string{"argocd"}, Unknown, 1},
		"one that may be listed and one that may not":  {"team,other", []string{"argocd", "team"}, Unknown, 1},
		"a pattern, and all may be listed":             {"team-*", []string{"argocd", ""}, 0, 0},
		"a pattern, and its own may be listed":         {"team-*", []string{"argocd"}, Unknown, 1},
		"a pattern and a name, which may be listed":    {"team,team-*", []string{"argocd", "team"}, Unknown, 1},
		"300 names, which may be listed one by one":    {strings.Join(many[:300], ","), append([]string{"argocd"}, many...), 0, 0},
		"more names than are listed one by one":        {strings.Join(many, ","), append([]string{"argocd"}, many...), Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := New(Options{Reader: &watching{test.setting, test.may}, Clock: clocktesting.NewFakePassiveClock(start)})
			got, _, err := n.Count(t.Context(), "argocd", []Destination{{Server: eu}, {Server: us}}, time.Minute)
			if diff := cmp.Diff(map[string]int{eu: 1, us: test.us}, got); diff != "" || err != nil {
				t.Errorf("%v, counted (-want +got):\n%s", err, diff)
			}
			setting, problems := n.Listed()
			if settings[setting] = true; len(problems) != test.told {
				t.Errorf("%v is told, want %d problems", problems, test.told)
			}
			forbidden := slices.ContainsFunc(problems, func(p ListingProblem) bool {
				return p.Reason == NamespaceForbidden && strings.Contains(p.Message, "nudge-any-namespace")
			})
			if want := test.told > 0; forbidden != want {
				t.Errorf("the mend is named: %t, want %t", forbidden, want)
			}
		})
	}
	if len(settings) != 7 || settings[""] {
		t.Errorf("the digests of seven settings are %v", settings)
	}
}
