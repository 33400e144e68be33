package history

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/gz"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
)

var at = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func newPlan(clusters ...string) plan.Plan {
	p := plan.Plan{
		Revision: 1, Mode: plan.Enforce, Replicas: 2, ControllerReplicas: 2, MaxReplicas: 16, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"},
		Clusters: map[string]plan.Row{},
	}
	for i, name := range clusters {
		p.Clusters[name] = plan.Row{Replica: i % 2, Load: "0.5"}
	}
	return p
}

func record(t testing.TB, revision int64, clusters ...string) Record {
	t.Helper()
	p := newPlan(clusters...)
	p.Revision = revision
	text, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return Record{Revision: revision, Text: text, Meta: configmap.Meta{DecidedAt: at, DecidedBy: "planner-0", Reason: "moves 1 of 2 clusters"}}
}

func encoded(t testing.TB, h Content) (map[string][]byte, Dropped) {
	t.Helper()
	data, dropped, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data, dropped
}

func TestAHistoryComesBackAsItWasWrittenInTheSameBytes(t *testing.T) {
	h := Content{Plans: []Record{record(t, 12, "a", "b"), record(t, 9, "a")}, Parts: map[string][]byte{"votes": {1, 2, 3}, "next-version.gz": []byte("kept")}}
	data, dropped := encoded(t, h)
	again, _ := encoded(t, h)
	got, problems := Decode(data)
	h.floor = 12
	if diff := cmp.Diff(data, again) + cmp.Diff(Dropped{}, dropped) + cmp.Diff([]string(nil), problems) + cmp.Diff(h, got, cmp.AllowUnexported(Content{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsBrokenTakesNothingElseWithIt(t *testing.T) {
	data, _ := encoded(t, Content{Plans: []Record{record(t, 4, "a"), record(t, 3, "a"), record(t, 2, "a"), record(t, 1, "a")}, Parts: map[string][]byte{"votes": {1}}})
	bomb, err := gz.Pack(bytes.Repeat([]byte(" "), maxRecord+1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := gz.Pack([]byte(`{"revision":9}`))
	if err != nil {
		t.Fatal(err)
	}
	data[planKey(4)], data[planKey(3)], data[planKey(2)] = []byte("this was never compressed"), bomb, other
	data["plan.007.json.gz"] = []byte("a key that no plan has is a part's")
	got, problems := Decode(data)
	want := Content{Plans: []Record{record(t, 1, "a")}, Parts: map[string][]byte{"votes": {1}, "plan.007.json.gz": []byte("a key that no plan has is a part's")}, floor: 4}
	wantProblems := []string{
		"plan revision 4: unpacking: gzip: invalid header", "plan revision 3: unpacking: it is larger than 2 MiB", "plan revision 2: it is another revision's",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Content{})) + cmp.Diff(wantProblems, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if floor := got.Floor(); floor != 4 {
		t.Errorf("the floor is %d: a revision whose plan is broken was used all the same", floor)
	}
}

func TestAFewBytesDoNotBecomeManyInMemory(t *testing.T) {
	bomb, err := gz.Pack(make([]byte, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, problems := Decode(map[string][]byte{planKey(1): bomb})
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 24<<20 {
		t.Errorf("%d bytes took %d MiB to be refused", len(bomb), allocated>>20)
	}
	if diff := cmp.Diff([]string{"plan revision 1: unpacking: it is larger than 2 MiB"}, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPartMayNotPassForAPlan(t *testing.T) {
	for _, name := range []string{planKey(3), "", "a/b"} {
		if _, _, err := (Content{Parts: map[string][]byte{name: {1}}}).Encode(); err == nil {
			t.Errorf("part %q was taken", name)
		}
	}
}

// noise does not compress, so that its size is what is stored.
func noise(n int) []byte {
	r, b := rand.New(rand.NewPCG(1, 2)), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestWhatDoesNotFitGoesOldestFirst(t *testing.T) {
	var plans []Record
	for revision := int64(10); revision >= 1; revision-- {
		r := record(t, revision)
		r.Meta.Reason = fmt.Sprintf("%x", noise(40<<10)) // about 40 KiB each, compressed
		plans = append(plans, r)
	}
	for name, test := range map[string]struct {
		parts map[string][]byte
		want  Dropped
	}{
		"everything fits":           {map[string][]byte{"votes": noise(100 << 10)}, Dropped{}},
		"old plans go":              {map[string][]byte{"votes": noise(700 << 10)}, Dropped{Plans: []int64{1, 2, 3, 4, 5, 6}}},
		"then the largest part":     {map[string][]byte{"votes": noise(600 << 10), "values": noise(500 << 10), "fleet": noise(10)}, Dropped{Plans: []int64{1}, Parts: []string{"votes"}}},
		"one that is larger goes":   {map[string][]byte{"votes": noise(899 << 10)}, Dropped{Parts: []string{"votes"}}},
		"and the newest plan stays": {map[string][]byte{"votes": noise(855 << 10)}, Dropped{Plans: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, dropped := encoded(t, Content{Plans: plans, Parts: test.parts})
			if diff := cmp.Diff(test.want, dropped, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			total := 0
			for key, content := range data {
				total += len(key) + len(content)
			}
			if total > maxHistory || data[planKey(10)] == nil {
				t.Errorf("%d bytes under %v, want at most %d and plan 10", total, slices.Sorted(maps.Keys(data)), maxHistory)
			}
		})
	}
}

func TestTheHistoryIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		saved   time.Time
		now     time.Time
		decided bool
		want    bool
	}{
		"never written":         {time.Time{}, at, false, true},
		"after a decision":      {at, at, true, true},
		"a moment later":        {at, at.Add(5*time.Minute - 1), false, false},
		"after five minutes":    {at, at.Add(5 * time.Minute), false, true},
		"by a clock that erred": {at, at.Add(-time.Second), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Due(test.saved, test.now, test.decided); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestTheLastPlanIsTheNewestThatCanBeRead(t *testing.T) {
	broken := record(t, 3, "a")
	broken.Text = strings.Replace(broken.Text, "kind: Plan", "kind: Plane", 1)
	want := newPlan("b")
	want.Revision = 2
	if diff := cmp.Diff(&want, Content{Plans: []Record{broken, record(t, 2, "b"), record(t, 1, "a")}}.LastPlan()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Content{Plans: []Record{broken}}).LastPlan(); got != nil {
		t.Errorf("got %+v of a history without a plan that can be read", got)
	}
}

func TestTheHistoryKeepsTheLastTenPlans(t *testing.T) {
	var plans []Record
	for _, revision := range []int64{3, 1, 7, 2, 9, 4, 11, 5, 6, 8, 10} {
		plans = append(plans, Record{Revision: revision, Text: "old"})
	}
	got := Content{}.kept(append(plans, Record{Revision: 7, Text: "new"}))
	var want []Record
	for revision := int64(11); revision >= 2; revision-- {
		want = append(want, Record{Revision: revision, Text: "old"})
	}
	want[4].Text = "new"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecodeHistory(f *testing.F) {
	data, _, err := Content{Plans: []Record{record(f, 7, "a")}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	bomb, err := gz.Pack(make([]byte, maxRecord+1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(planKey(7), data[planKey(7)])
	f.Add(planKey(8), data[planKey(7)])
	f.Add(planKey(7), data[planKey(7)][:20])
	f.Add(planKey(7), bomb)
	f.Add("plan.9223372036854775807.json.gz", []byte{0x1f, 0x8b})
	f.Add("plan.-1.json.gz", []byte{})
	f.Add("votes", []byte("{}"))
	f.Fuzz(func(t *testing.T, key string, content []byte) {
		h, problems := Decode(map[string][]byte{key: content})
		if len(h.Plans)+len(h.Parts)+len(problems) != 1 {
			t.Fatalf("one key became %d plans, %d parts and %d problems", len(h.Plans), len(h.Parts), len(problems))
		}
		for _, r := range h.Plans {
			if len(r.Text) > maxRecord || planKey(r.Revision) != key {
				t.Fatalf("key %q became a plan of revision %d with %d bytes", key, r.Revision, len(r.Text))
			}
			again, _, err := h.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if back, _ := Decode(again); !cmp.Equal(h, back, cmp.AllowUnexported(Content{})) {
				t.Fatalf("a history changed by being written: %s", cmp.Diff(h, back, cmp.AllowUnexported(Content{})))
			}
		}
	})
}

func TestPlansOfARolloutDoNotPushOutThoseThatOneCanGoBackTo(t *testing.T) {
	var h Content
	for revision := int64(1); revision <= 30; revision++ {
		r := record(t, revision, fmt.Sprintf("c%d", revision))
		if revision%3 != 0 {
			r = underWay(t, revision)
		}
		h.Plans = Content{}.kept(append(slices.Clone(h.Plans), r))
	}
	h.Plans = Content{}.kept(append(slices.Clone(h.Plans), underWay(t, 31)))
	var got []int64
	for _, r := range h.Plans {
		got = append(got, r.Revision)
	}
	if diff := cmp.Diff([]int64{31, 30, 27, 24, 21, 18, 15, 12, 9, 6}, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// underWay is a plan in the middle of a rollout.
func underWay(t *testing.T, revision int64) Record {
	t.Helper()
	p := newPlan("a")
	p.Revision, p.Rollout = revision, &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: at, Replicas: 2}
	text, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return Record{Revision: revision, Text: text}
}
