package secrets

import (
	"testing"

	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestOnlyTheLabelsThatGroupsAskForAreKept(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		"argocd.argoproj.io/secret-type": "cluster", "team": "payments", "tier": "", "token": "s3cr3t"}}}
	selector := labels.SelectorFromSet(labels.Set{"argocd.argoproj.io/secret-type": "cluster"})
	kept, err := Transform(selector, "team", "tier", "zone")(secret.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	cached := *kept.(*corev1.Secret)
	want := map[string]labeltext.Labels{"packed": "team=payments,tier=", "packed, asked for less": "tier=", "live": "team=payments,tier=", "nothing asked": ""}
	got := map[string]labeltext.Labels{}
	for name, of := range map[string]struct {
		secret corev1.Secret
		keys   []string
	}{"packed": {cached, []string{"team", "tier", "zone"}}, "packed, asked for less": {cached, []string{"tier"}}, "live": {*secret, []string{"team", "tier"}}, "nothing asked": {cached, nil}} {
		chosen, _ := choose(discover.Known{}, []corev1.Secret{of.secret}, 10, of.keys...)
		got[name] = chosen[0].Labels
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"argocd.argoproj.io/secret-type": "cluster"}, cached.Labels); diff != "" {
		t.Errorf("the cache's own labels (-want +got):\n%s", diff)
	}
}

func TestANewLabelRunsACycle(t *testing.T) {
	of := func(team string) any {
		out, err := Transform(labels.Everything(), "team")(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": team, "other": team}}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if SecretsDiffer(of("a"), of("a")) || !SecretsDiffer(of("a"), of("b")) {
		t.Error("a label that a group asks for runs a cycle when it changes, and only then")
	}
}

// Whatever a Secret's labels are: what is kept reads as what was asked for, and nothing else.
