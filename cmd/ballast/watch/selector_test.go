package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/plan"
)

// chosen has two cluster Secrets of Argo CD's label, of which one is team a's, and one of another label alone.
func chosen() *fixture.World {
	w := fixture.QuietWorld()
	w.Plan.Clusters = nil
	for name, has := range map[string]map[string]string{
		"ours": {plan.SecretTypeLabel: plan.SecretTypeCluster, "team": "a"}, "theirs": {plan.SecretTypeLabel: plan.SecretTypeCluster}, "odd": {"kind": "odd"},
	} {
		w.Objects = append(w.Objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: has},
			Data: map[string][]byte{"name": []byte(name), "server": []byte("https://" + name)}})
	}
	return w
}

// Cluster Secrets are those that the planner takes for such, where that can be known, and what a person says in any case.
func TestWatchTakesTheSecretsThatThePlannerTakes(t *testing.T) {
	const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	const odd = head + "discover: {selector: {matchLabels: {kind: odd}}}\n"
	both := []string{"ours", "theirs"}
	for name, test := range map[string]struct {
		config    string
		forbidden []string
		o         options
		want      []string
		doubt     string
	}{
		"nothing is installed":   {"", nil, options{installed: "ballast-config"}, both, ""},
		"as shipped":             {head, nil, options{installed: "ballast-config"}, both, ""},
		"another selector":       {odd, nil, options{installed: "ballast-config"}, []string{"odd"}, ""},
		"none is asked for":      {odd, nil, options{}, both, ""},
		"another ConfigMap":      {odd, nil, options{installed: "other"}, both, ""},
		"a person's":             {odd, nil, options{installed: "ballast-config", selector: "team=a," + plan.SecretTypeLabel + "=cluster"}, []string{"ours"}, ""},
		"of several values":      {head, nil, options{installed: "ballast-config", selector: "kind in (odd,even)"}, []string{"odd"}, ""},
		"it may not be read":     {odd, []string{"ballast-config"}, options{installed: "ballast-config"}, both, `which Secrets the planner takes for clusters (ConfigMap "ballast-config"): those of the default selector are watched`},
		"a mistake":              {head + "mode: hold\n", nil, options{installed: "ballast-config"}, both, `the configuration of ConfigMap "ballast-config" is refused`},
		"one that is everything": {head + "discover: {selector: {}}\n", nil, options{installed: "ballast-config"}, both, `the configuration of ConfigMap "ballast-config" is refused`},
	} {
		t.Run(name, func(t *testing.T) {
			w := chosen()
			w.Config, w.Forbidden = test.config, test.forbidden
			asked, err := test.o.asked()
			fixture.MustDo(t, err)
			watching := &watcher{clusters: w.Client(t), reader: w.Client(t), namespace: "argocd", selects: selects{asked: asked, installed: test.o.installed}}
			in, doubt, err := watching.secrets(t.Context(), fixture.Noon)
			fixture.MustDo(t, err)
			var got []string
			for _, s := range in.Secrets {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if !strings.Contains(doubt, test.doubt) || (test.doubt == "") != (doubt == "") {
				t.Errorf("doubt is %q, want %q", doubt, test.doubt)
			}
		})
	}
}

// What was read stands for a while, and a configuration that changes is followed then.
func TestAnotherSelectorIsFollowedSoon(t *testing.T) {
	w := chosen()
	w.Config = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	c := w.Client(t)
	watching := &watcher{clusters: c, reader: c, namespace: "argocd", selects: selects{installed: "ballast-config"}}
	count := func(after time.Duration) int {
		t.Helper()
		in, _, err := watching.secrets(t.Context(), fixture.Noon.Add(after))
		fixture.MustDo(t, err)
		return len(in.Secrets)
	}
	first := count(0)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-config"},
		Data: map[string]string{"config.yaml": w.Config + "discover: {selector: {matchLabels: {kind: odd}}}\n"}}
	fixture.MustDo(t, c.Update(t.Context(), cm))
	if got := []int{first, count(selectedFor - time.Second), count(selectedFor)}; !cmp.Equal(got, []int{2, 2, 1}) {
		t.Errorf("clusters are %v, want 2, 2 and then 1", got)
	}
}

// Nobody watches every Secret by mistake.
func TestASelectorOfEverySecretIsRefused(t *testing.T) {
	for _, text := range []string{"!team", "team!=a", "=", "a in (", "team notin (a)"} {
		o := options{selector: text}
		if _, err := o.asked(); err == nil || !strings.HasPrefix(err.Error(), "--selector: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		o := options{selector: rapid.OneOf(rapid.String(), rapid.StringMatching(`!?[a-c](=|!=| in | notin )?\(?[a-c]?,?[a-c]?\)?`)).Draw(t, "selector")}
		s, err := o.asked()
		if err == nil && s != nil && (s.Empty() || s.Matches(labels.Set{})) {
			t.Errorf("%q selects a Secret without labels", o.selector)
		}
		if (s == nil) != (err != nil || o.selector == "") {
			t.Errorf("%q is neither a selector nor a mistake", o.selector)
		}
	})
}

// FuzzSelector reads whatever a person types: a selector that is not everything, or a mistake.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"a=b", "a in (b,c),!d", "=", "(", ",", "a=b,a!=b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := options{selector: text}
		if s, err := o.asked(); err == nil && s != nil && s.Matches(labels.Set{}) {
			t.Errorf("%q selects a Secret without labels", text)
		}
	})
}
