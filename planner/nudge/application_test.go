package nudge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	const server = "https://eu.example:6443"
	at := func(namespace, name string, change func(*Application)) Application {
		a := Application{Namespace: namespace, Name: name, Server: server}
		if change != nil {
			change(&a)
		}
		return a
	}
	pending := func(a *Application) { a.Refresh = "normal" }
	deleting := func(a *Application) { a.Deleting = true }
	invalid := func(a *Application) { a.Invalid = true }
	cases := map[string]struct {
		all          []Application
		server, name string
		want         []string
	}{
		"by server":                          {all: []Application{at("argocd", "a", nil)}, server: server, want: []string{"argocd/a"}},
		"a Secret's slashes do not count":    {all: []Application{at("argocd", "a", nil)}, server: server + "//", want: []string{"argocd/a"}},
		"an Application's do, to Argo CD":    {all: []Application{at("argocd", "a", func(a *Application) { a.Server += "/" })}, server: server},
		"by name":                            {all: []Application{{Namespace: "argocd", Name: "a", Cluster: "prod-eu"}}, server: server, name: "prod-eu", want: []string{"argocd/a"}},
		"another server, another name":       {all: []Application{{Name: "a", Server: server + "0"}, {Name: "b", Cluster: "prod-us"}}, server: server, name: "prod-eu"},
		"no destination fits an empty name":  {all: []Application{{Name: "a"}, {Name: "b", Server: "/"}}, server: "", name: ""},
		"a name is no server":                {all: []Application{{Name: "a", Cluster: server}, {Name: "b", Server: "prod-eu"}}, server: server, name: "prod-eu"},
		"both at once is none, as Argo CD":   {all: []Application{{Name: "a", Server: server, Cluster: "prod-eu"}}, server: server, name: "prod-eu"},
		"what is passed over wakes nobody":   {all: []Application{at("argocd", "a", func(a *Application) { a.Skipped = true })}, server: server},
		"by namespace, then by name":         {all: []Application{at("b", "a", nil), at("a", "b", nil), at("a", "a", nil), {Namespace: "a", Name: "aa", Cluster: "eu"}}, server: server, name: "eu", want: []string{"a/a", "a/aa", "a/b", "b/a"}},
		"one without fault before all":       {all: []Application{at("a", "deleting", deleting), at("b", "pending", pending), at("c", "well", nil)}, server: server, want: []string{"c/well", "b/pending", "a/deleting"}},
		"a pending one before a deleted one": {all: []Application{at("a", "deleting", deleting), at("b", "pending", pending)}, server: server, want: []string{"b/pending", "a/deleting"}},
		"a refused one last":                 {all: []Application{at("a", "invalid", invalid), at("b", "both", func(a *Application) { a.Deleting, a.Refresh = true, "hard" })}, server: server, want: []string{"b/both", "a/invalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range newIndex(c.all).of(c.server, c.name) {
				got = append(got, a.Namespace+"/"+a.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// applications are many that deploy to few clusters, each with its own namespace and name.
func applications() *rapid.Generator[[]Application] {
	servers := rapid.SampledFrom([]string{"", "https://a", "https://a/", "https://b"})
	names := rapid.SampledFrom([]string{"", "", "a", "b"})
	return rapid.Custom(func(t *rapid.T) []Application {
		var all []Application
		for i := range rapid.IntRange(0, 20).Draw(t, "applications") {
			all = append(all, Application{
				Namespace: rapid.SampledFrom([]string{"argocd", "team"}).Draw(t, "namespace"), Name: fmt.Sprint("app-", i),
				Server: servers.Draw(t, "server"), Cluster: names.Draw(t, "cluster"), Refresh: rapid.SampledFrom([]string{"", "normal", "hard"}).Draw(t, "refresh"),
				Deleting: rapid.Bool().Draw(t, "deleting"), Invalid: rapid.Bool().Draw(t, "invalid"), Skipped: rapid.Bool().Draw(t, "skipped"),
			})
		}
		return all
	})
}

func TestTheChoiceDoesNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := applications().Draw(t, "all")
		shuffled := slices.Clone(all)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(newIndex(all).of("https://a", "a"), newIndex(shuffled).of("https://a", "a")); diff != "" {
			t.Errorf("(-one order +another):\n%s", diff)
		}
	})
}

func TestTheChoicesAreTheClustersAndTheBestIsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := applications().Draw(t, "all")
		got := newIndex(all).of("https://a/", "a")
		var want []Application // by another way: each is asked
		for _, a := range all {
			if a.serves("https://a", "a") {
				want = append(want, a)
			}
		}
		if len(want) != len(got) {
			t.Fatalf("%d Applications, want %d", len(got), len(want))
		}
		for i, a := range got {
			toServer := a.Server == "https://a" && a.Cluster == ""
			toName := a.Server == "" && a.Cluster == "a"
			if a.Skipped || !toServer && !toName {
				t.Errorf("%+v is not the cluster's", a)
			}
			if i > 0 && got[i-1].compare(a) >= 0 {
				t.Errorf("%+v stands before %+v", got[i-1], a)
			}
		}
	})
}

func TestWhatIsReadOfAnApplication(t *testing.T) {
	cases := map[string]struct {
		object string
		want   Application
	}{
		"by server": {
			object: `{"metadata":{"namespace":"argocd","name":"a"},"spec":{"destination":{"server":"https://a","namespace":"x"},"source":{"helm":{}}},"status":{"sync":{"status":"Synced"}}}`,
			want:   Application{Namespace: "argocd", Name: "a", Server: "https://a"},
		},
		"by name, being deleted, with a hard refresh pending": {
			object: `{"metadata":{"namespace":"team","name":"b","deletionTimestamp":"2026-08-01T00:00:00Z","annotations":{"argocd.argoproj.io/refresh":"hard"}},"spec":{"destination":{"name":"prod"}}}`,
			want:   Application{Namespace: "team", Name: "b", Cluster: "prod", Refresh: "hard", Deleting: true},
		},
		"an empty request is a normal one": {
			object: `{"metadata":{"name":"c","annotations":{"argocd.argoproj.io/refresh":""}}}`,
			want:   Application{Name: "c", Refresh: "normal"},
		},
		"passed over": {
			object: `{"metadata":{"name":"d","annotations":{"argocd.argoproj.io/skip-reconcile":"true"}}}`,
			want:   Application{Name: "d", Skipped: true},
		},
		"not passed over by a value that is none": {
			object: `{"metadata":{"name":"e","annotations":{"argocd.argoproj.io/skip-reconcile":"yes"}}}`,
			want:   Application{Name: "e"},
		},
		"refused by its project": {
			object: `{"metadata":{"name":"f"},"status":{"conditions":[{"type":"OrphanedResourceWarning"},{"type":"InvalidSpecError","message":"..."}]}}`,
			want:   Application{Name: "f", Invalid: true},
		},
		"a repository that does not answer keeps nobody from the cluster": {
			object: `{"metadata":{"name":"g"},"status":{"conditions":[{"type":"ComparisonError"}]}}`,
			want:   Application{Name: "g"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var u unstructured.Unstructured
			if err := json.Unmarshal([]byte(c.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			alone, err := fromUnstructured(&u)
			if err != nil {
				t.Fatal(err)
			}
			p := newPage()
			if err := p.UnmarshalJSON([]byte(`{"kind":"ApplicationList","items":[` + c.object + `]}`)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Application{c.want, c.want}, append(applicationsOf(p), alone)); diff != "" {
				t.Errorf("in a list and alone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnApplicationOfAnotherShapeIsAnError(t *testing.T) {
	u := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "argocd"}, "spec": map[string]any{"destination": "https://a"}}}
	if a, err := fromUnstructured(&u); err == nil || !strings.Contains(err.Error(), `reading what Application "a" in "argocd" says`) {
		t.Errorf("%+v, %v", a, err)
	}
}
