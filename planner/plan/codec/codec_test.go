package codec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
	"ballast/planner/plan/fixture"
)

func TestEncodeWritesOneRowALine(t *testing.T) {
	got, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: ballast.argoproj.io/v1alpha1
kind: Plan
revision: 17
mode: Enforce
target: {kind: StatefulSet, namespace: argocd, name: argocd-application-controller, container: application-controller}
plannerUser: system:serviceaccount:argocd:ballast-planner
replicas: 4
controllerReplicas: 16
maxReplicas: 16
resources: {requests: {cpu: "1", memory: "2Gi"}, limits: {memory: "4Gi"}}
references: {apps: "5120"}
clusters:
  "0x1f": {replica: 3}
  "1e5": {replica: 2}
  a.b-c: {replica: 0}
  "null": {replica: 1}
  prod-eu: {replica: 3, load: "1.82", srv: ` + plan.ServerHash("https://eu") + `, pinned: true}
  prod-us: {replica: 0, load: "0.41"}
rollout:
  mode: default
  stage: Assigning
  since: "2026-11-20T10:00:00.000000005Z"
  from: {replicas: 4, controllerReplicas: 16}
  replicas: 5
  controllerReplicas: 16
  wave: 1
  waves: 3
  moves: {prod-us: 4}
  was: {prod-us: 0}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Encode (-want +got):\n%s", diff)
	}
}

func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	want := fixture.Example()
	text, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, decode := range map[string]func(string) (plan.Plan, error){"lenient": Decode, "strict": DecodeStrict} {
		got, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// drawPlan draws a plan that Validate accepts.
func drawPlan(t *rapid.T) plan.Plan {
	name := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?`)
	p := plan.Plan{
		Revision:    rapid.Int64Range(1, 1<<40).Draw(t, "revision"),
		Mode:        rapid.SampledFrom([]plan.Mode{plan.Observe, plan.Hold, plan.Enforce}).Draw(t, "mode"),
		Target:      plan.Target{Kind: plan.StatefulSet, Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name"), Container: name.Draw(t, "container")},
		PlannerUser: rapid.String().Draw(t, "user"), Selector: rapid.String().Draw(t, "selector"),
		Replicas: rapid.IntRange(0, 64).Draw(t, "replicas"), ControllerReplicas: rapid.IntRange(0, 64).Draw(t, "env"),
		MaxReplicas: rapid.IntRange(1, 64).Draw(t, "max"), FreeReplicas: rapid.Bool().Draw(t, "free"), Unmanaged: rapid.Bool().Draw(t, "unmanaged"),
		Clusters: map[string]plan.Row{},
	}
	p.Sizes = drawSizes(t, p.MaxReplicas)
	p.Cordoned = rapid.SliceOfN(rapid.IntRange(0, 63), 0, 4).Draw(t, "cordoned")
	p.MaxClusters, p.Full = rapid.IntRange(0, plan.ClusterLimit).Draw(t, "most clusters"), rapid.SliceOfN(rapid.IntRange(0, 63), 0, 4).Draw(t, "full")
	for _, n := range rapid.SliceOfN(name, 0, 4).Draw(t, "groups") {
		g := plan.ClusterGroup{At: rapid.SliceOfN(rapid.IntRange(0, 63), 0, 4).Draw(t, "on")}
		selector := rapid.StringN(1, 40, 200).Draw(t, "of the group")
		if g.Apart = selector; rapid.Bool().Draw(t, "together") {
			g.Apart, g.Together = "", selector
		}
		if p.Groups == nil {
			p.Groups = map[string]plan.ClusterGroup{}
		}
		p.Groups[n] = g
	}
	for _, n := range rapid.SliceOfN(name, 0, 30).Draw(t, "clusters") {
		load := plan.Load(rapid.Int64Range(0, int64(plan.LoadUnit)*1000).Draw(t, "load"))
		p.Clusters[n] = plan.Row{Replica: rapid.IntRange(0, 63).Draw(t, "replica"), Load: load.Display(), Server: plan.ServerHash("https://" + n), Pinned: rapid.Bool().Draw(t, "pinned")}
	}
	return p
}

func TestEveryValidPlanSurvivesTheCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPlan(t)
		text, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeStrict(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if !want.SameEnforced(got) || !want.SameEnforced(want.Clone()) {
			t.Fatal("a plan that was read, or cloned, enforces something else")
		}
	})
}

// What a plan without cordons and groups is written as stays the same, to the letter: old webhooks and new ones read it alike.
func TestCordonsAndGroupsAreWrittenALineEach(t *testing.T) {
	without, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	p := fixture.Example()
	p.Cordoned = []int{1, 3}
	p.Groups = map[string]plan.ClusterGroup{"hubs": {Apart: "tier in (core,hub)", At: []int{0, 2}}, "payments": {Together: "team=payments"}}
	got, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(without, "clusters:\n", `cordoned: [1, 3]
groups:
  hubs: {apart: "tier in (core,hub)", at: [0, 2]}
  payments: {together: "team=payments"}
clusters:
`, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := DecodeStrict(got)
	if diff := cmp.Diff(p, back); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, change := range map[string]func(*plan.Plan){
		"another cordon":     func(p *plan.Plan) { p.Cordoned[1] = 2 },
		"no cordon":          func(p *plan.Plan) { p.Cordoned = nil },
		"another selector":   func(p *plan.Plan) { p.Groups["hubs"] = plan.ClusterGroup{Apart: "tier", At: []int{0, 2}} },
		"another replica":    func(p *plan.Plan) { p.Groups["hubs"].At[0] = 1 },
		"together for apart": func(p *plan.Plan) { p.Groups["payments"] = plan.ClusterGroup{Apart: "team=payments"} },
		"a group less":       func(p *plan.Plan) { delete(p.Groups, "hubs") },
	} {
		other := p.Clone()
		if change(&other); p.SameEnforced(other) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// An old plan is written as before, to the letter, and a webhook that does not know the two fields enforces all the others.
func TestWhoIsFullIsWrittenALineEach(t *testing.T) {
	without, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	p := fixture.Example()
	p.MaxClusters, p.Full = 50, []int{0, 2}
	got, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(without, "clusters:\n", "maxClusters: 50\nfull: [0, 2]\nclusters:\n", 1), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	old, err := Decode(without)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Encode(old); err != nil || plan.Digest(again) != plan.Digest(without) {
		t.Errorf("a plan of before has another digest once it was read: %v\n%s", err, again)
	}
	for name, change := range map[string]func(*plan.Plan){
		"another number":  func(p *plan.Plan) { p.MaxClusters = 51 },
		"any number":      func(p *plan.Plan) { p.MaxClusters = 0 },
		"another replica": func(p *plan.Plan) { p.Full[1] = 1 },
		"none is full":    func(p *plan.Plan) { p.Full = nil },
	} {
		other := p.Clone()
		if change(&other); p.SameEnforced(other) {
			t.Errorf("%s makes no difference", name)
		}
	}
	p.MaxClusters, p.Full = -1, []int{plan.ReplicaLimit}
	want := "maxClusters: -1 is not between 0 and 1000000\nfull: 1000000 is not between 0 and 999999"
	if got := fmt.Sprint(p.Validate()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p.MaxClusters, p.Full = plan.ClusterLimit+1, make([]int, 1001)
	want = "maxClusters: 1000001 is not between 0 and 1000000\nfull: it has 1001 replicas, and at most 1000 are read"
	if got := fmt.Sprint(p.Validate()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEncodeSaysHowManyClustersFit(t *testing.T) {
	p := fixture.Example()
	p.Clusters = map[string]plan.Row{}
	for i := range 8000 {
		name := fmt.Sprintf("%083d", i)
		p.Clusters["c"+name[1:]] = plan.Row{Replica: 12, Load: "0.000213", Server: plan.ServerHash(name)}
	}
	_, err := Encode(p)
	if err == nil || !strings.Contains(err.Error(), "about 6") {
		t.Fatalf("8,000 clusters with 83-character names: %v, want a refusal that says how many fit", err)
	}
	for i := range 1300 {
		name := fmt.Sprintf("%083d", i)
		delete(p.Clusters, "c"+name[1:])
	}
	if _, err := Encode(p); err != nil {
		t.Errorf("6,700 clusters: %v, want them to fit", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"another kind":         {strings.Replace(good, "kind: Plan", "kind: Plane", 1), `kind "Plane"`},
		"no revision":          {strings.Replace(good, "revision: 17\n", "", 1), "revision: 0 is below 1"},
		"a revision beyond":    {strings.Replace(good, "revision: 17\n", "revision: 4503599627370497\n", 1), "revision: 4503599627370497 is above 4503599627370496"},
		"a forged revision":    {strings.Replace(good, "revision: 17\n", "revision: 9223372036854775807\n", 1), "revision: 9223372036854775807 is above 4503599627370496"},
		"a negative replica":   {strings.Replace(good, "prod-us: {replica: 0", "prod-us: {replica: -1", 1), "clusters[prod-us].replica: -1"},
		"a rollout's replicas": {good + "rollout:\n  mode: x0y\n  replicas: 2000000000\n", "rollout.replicas: 2000000000 is not between 0 and"},
		"fewer than none":      {good + "rollout:\n  mode: x0y\n  replicas: -5\n", "rollout.replicas: -5 is not between 0 and"},
		"a move to none":       {good + "rollout:\n  mode: live\n  moves: {zzz: -1}\n", "rollout.moves[zzz]: -1 is not between 0 and"},
		"replicas of before":   {good + "rollout:\n  mode: x0y\n  from: {replicas: -1, controllerReplicas: 2000000000}\n", "rollout.from.controllerReplicas: 2000000000 is not between 0 and"},
		"a move beyond":        {good + "rollout:\n  mode: live\n  moves: {zzz: 2000000000}\n", "rollout.moves[zzz]: 2000000000 is not between 0 and"},
		"a replica of before":  {good + "rollout:\n  mode: live\n  was: {zzz: -2}\n", "rollout.was[zzz]: -2 is not between 0 and"},
		"no target":            {strings.Replace(good, "name: argocd-application-controller", `name: ""`, 1), "target: namespace and name"},
		"text that is no YAML": {"{", "decoding the plan"},
		"a huge text":          {strings.Repeat("#", MaxBytes+1), "bytes are more than"},
		"an alias":             {good + "z: &z a\ny: [*z]\n", "has an anchor, an alias"},
		"the alias bomb":       {bomb, "has an anchor, an alias"},
		"a huge odd part":      {good + "y: [" + strings.Repeat("a,", maxOddBytes/2) + "]\n", "KiB of it are not in ballast's own form"},
		"many directives":      {fixture.ManyDirectives() + "---\n" + good, "it has many directives"},
		"an alias in moves":    {good + "rollout:\n  mode: live\n  moves: {a: &a 1, b: *a}\n", "has an anchor, an alias"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOnlyStrictDecodingRefusesUnknownFields(t *testing.T) {
	good, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	newer := good + "warmed: [3]\n"
	if _, err := Decode(newer); err != nil {
		t.Errorf("Decode of a newer version's plan: %v", err)
	}
	if _, err := DecodeStrict(newer); err == nil {
		t.Error("DecodeStrict took an unknown field")
	}
}

// bomb is what made 600 MiB of 52 KiB.
var bomb = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nz: &z \"" + strings.Repeat("a", 32<<10) + "\"\ny: [" + strings.Repeat("*z,", 6<<10) + "]\n"

// What ballast writes has neither of the characters, whatever people name things.
func TestNothingThatIsEncodedLooksLikeAnAlias(t *testing.T) {
	p := fixture.Example()
	p.PlannerUser, p.References = "a&b*c", map[string]string{"*x": "&1"}
	p.Clusters["*&"] = plan.Row{Replica: 1}
	p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Moves: map[string]int{"*a": 1}, Was: map[string]int{"&a": 1}}
	text, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text, "&*") {
		t.Errorf("it has one:\n%s", text)
	}
	back, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if !back.SameEnforced(p) {
		t.Errorf("read back: %+v", back)
	}
}

// The whole fleet may move at once, and a plan of any size that may be written can be read again.
func TestAPlanWhoseWholeFleetMovesIsReadByLines(t *testing.T) {
	p := fixture.Example()
	p.Rollout = &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Moves: map[string]int{}, Was: map[string]int{}}
	p.Clusters = map[string]plan.Row{}
	for i := range 5000 {
		name := fmt.Sprintf("cluster-%06d", i)
		p.Clusters[name], p.Rollout.Moves[name], p.Rollout.Was[name] = plan.Row{Replica: i % 8}, i%7, i%8
	}
	text, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if !back.SameEnforced(p) {
		t.Error("what was read back is another plan")
	}
}

// What the reader of lines takes of a rollout's moves must be what a reader of the whole document takes.
func checkFlows(t interface{ Fatalf(string, ...any) }, text string) {
	rest, f := cutFlows(text)
	if f.moves == nil && f.was == nil {
		return
	}
	var whole, head plan.Wire
	if yaml.UnmarshalStrict([]byte(text), &whole) != nil || yaml.UnmarshalStrict([]byte(rest), &head) != nil {
		return
	}
	f.into(head.Rollout)
	if diff := cmp.Diff(whole, head); diff != "" {
		t.Fatalf("moves (-YAML +lines):\n%s\n%s", diff, text)
	}
}

// What the reader of lines takes must be what a reader of the whole document takes.
func checkRows(t interface{ Fatalf(string, ...any) }, text string) {
	rest, rows, ok := cutRows(text)
	if !ok {
		return
	}
	var whole, head plan.Wire
	if err := yaml.UnmarshalStrict([]byte(text), &whole); err != nil {
		if yaml.UnmarshalStrict([]byte(rest), &head) == nil {
			t.Fatalf("only the reader of lines takes this: %v\n%s", err, text)
		}
		return
	}
	if diff := cmp.Diff(whole.Clusters, rows); diff != "" {
		t.Fatalf("rows (-YAML +lines):\n%s\n%s", diff, text)
	}
	if err := yaml.UnmarshalStrict([]byte(rest), &head); err != nil {
		t.Fatalf("the rest is not read: %v\n%s", err, rest)
	}
	whole.Clusters, head.Clusters = nil, nil
	if diff := cmp.Diff(whole, head); diff != "" {
		t.Fatalf("rest (-YAML +lines):\n%s", diff)
	}
}

func TestLinesAreReadAsYAMLReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		text, err := Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := cutRows(text); ok != (len(p.Clusters) > 0) {
			t.Fatalf("the reader of lines gave up on\n%s", text)
		}
		checkRows(t, text)
		checkFlows(t, text)
	})
}

func TestEditedRowsAreLeftToYAML(t *testing.T) {
	good, err := Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"a comment":           {`prod-us: {replica: 0, load: "0.41"}`, `prod-us: {replica: 0, load: "0.41"} # why`},
		"another order":       {`{replica: 0, load: "0.41"}`, `{load: "0.41", replica: 0}`},
		"a name twice":        {"  prod-us:", "  prod-eu: {replica: 1}\n  prod-us:"},
		"a block":             {`prod-us: {replica: 0, load: "0.41"}`, "prod-us:\n    replica: 0"},
		"a number in octal":   {"prod-us: {replica: 0", "prod-us: {replica: 00"},
		"a name YAML renames": {"  prod-us:", "  yes:"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(good, edit[0], edit[1], 1)
			if edited == good {
				t.Fatal("the edit changed nothing")
			}
			if _, rows, ok := cutRows(edited); ok {
				t.Errorf("the reader of lines took it: %v", rows)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{100, 7500} {
		p := fixture.Example()
		p.Clusters = map[string]plan.Row{}
		for i := range n {
			name := fmt.Sprintf("cluster-%06d", i)
			p.Clusters[name] = plan.Row{Replica: i % 8, Load: "0.000213", Server: plan.ServerHash(name)}
		}
		text, err := Encode(p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(fixture.Example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("clusters: {a: {replica: 1e9}}")
	f.Add(strings.Replace(good, "resources: ", "sizes:\n  default: {limits: {cpu: \"1e99\"}}\n  \"3\": ", 1))
	f.Add(strings.Replace(good, "resources: ", "sizes: {\"03\": {}}\nresources: ", 1))
	f.Add(strings.Replace(good, "resources: ", "maxClusters: 50\nfull: [0, 2]\nresources: ", 1))
	f.Add("a: &a [*a]")
	f.Add(good + "rollout:\n  mode: live\n  moves: {a: 1, b: 2}\n  was: {a: 0, b: 1}\n")
	f.Add("Rollout:\n  #0000000\nrollout:\n  was: {A: 0}\n") // which a reader of lines once took apart
	f.Add(good + "rollout:\n  mode: live\nother:\n  moves: {a: 1, b: 2}\n")
	f.Add(strings.Replace(good, "replica: 3", "replica: +3", 1))
	f.Fuzz(func(t *testing.T, text string) {
		checkRows(t, text)
		checkFlows(t, text)
		p, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Encode(p)
		if err != nil {
			return // a mode or a number that only a newer version writes
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("what Encode wrote is not read: %v\n%s", err, again)
		}
		if !p.SameEnforced(back) {
			t.Fatalf("enforced fields changed:\n%+v\n%+v", p, back)
		}
	})
}
