package decision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/webhook/objects"
	"ballast/webhook/steering"
)

// steered is a plan ConfigMap with these annotations of people's, without the group.
func steered(pairs ...string) objects.Plan {
	o := objects.Plan{HasAnnotations: true, Annotations: map[string]string{plan.AnnotationDigest: "abc"}}
	for i := 0; i < len(pairs); i += 2 {
		o.Annotations[plan.Group+"/"+pairs[i]] = pairs[i+1]
	}
	return o
}

func pinned(pins string) objects.Plan { return objects.Plan{HasPins: true, Pins: pins} }

// manyPins are that many, each to its place modulo 4.
func manyPins(n int) (text string, first []Field) {
	for i := range n {
		text += fmt.Sprintf("c-%02d: %d\n", i, i%4)
		if i < maxAuditPins {
			first = append(first, Field{fmt.Sprintf("pins.c-%02d", i), fmt.Sprint(i % 4)})
		}
	}
	return text, first
}

func TestActsAreWhatAWriteAddsChangesOrTakesAway(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9"
	nothing := steered()
	many, first := manyPins(37)
	twenty, all := manyPins(20)
	both := func(name, value string) []Field { return []Field{{name, value}} }
	for name, tc := range map[string]struct {
		object, old  objects.Plan
		asked, taken []Field // taken nil: as asked
	}{
		"nothing":                            {nothing, nothing, nil, nil},
		"ballast's own":                      {steered("digest", "def", "revision", "9"), nothing, nil, nil},
		"break-glass":                        {steered("enforcement", "off"), nothing, both("enforcement", "off"), nil},
		"break-glass that stood":             {steered("enforcement", "off"), steered("enforcement", "off"), nil, nil},
		"break-glass that ends":              {nothing, steered("enforcement", "off"), both("enforcement", ""), nil},
		"break-glass that ends by a word":    {steered("enforcement", "on"), steered("enforcement", "off"), both("enforcement", "on"), both("enforcement", "")},
		"break-glass that is mistyped":       {steered("enforcement", "Off"), nothing, both("enforcement", printable.Invalid), both("enforcement", "")},
		"a freeze":                           {steered("paused", "true"), nothing, both("paused", "true"), nil},
		"a freeze that is none":              {steered("paused", "false"), nothing, both("paused", "false"), both("paused", "")},
		"a freeze with a reason and a name":  {steered("paused", "true", "paused-reason", token, "paused-by", token), nothing, both("paused", "true"), nil},
		"a resumption":                       {nothing, steered("paused", "true"), both("paused", ""), nil},
		"a pasted token":                     {steered("paused", token), nothing, both("paused", printable.Invalid), both("paused", "")},
		"a cordon":                           {steered("cordon", "3=2026-11-20T17:00:00Z"), nothing, both("cordon", "3"), nil},
		"cordons, in whatever order":         {steered("cordon", " 11=2026-11-20T17:00:00+01:00, 3=2026-11-20T17:00:00Z"), nothing, both("cordon", "3,11"), nil},
		"a cordon that is named twice":       {steered("cordon", "3=2026-11-20T17:00:00Z,3=2026-11-21T17:00:00Z"), nothing, both("cordon", printable.Invalid), both("cordon", "3")},
		"a cordon that lasts longer":         {steered("cordon", "3=2026-11-21T17:00:00Z"), steered("cordon", "3=2026-11-20T17:00:00Z"), both("cordon", "3"), nil},
		"a cordon without a time":            {steered("cordon", "3"), nothing, both("cordon", printable.Invalid), both("cordon", "")},
		"a cordon beside one that cannot be": {steered("cordon", "3=2026-11-20T17:00:00Z,"+token), nothing, both("cordon", printable.Invalid), both("cordon", "3")},
		"a cordon that is taken away":        {nothing, steered("cordon", "3=2026-11-20T17:00:00Z"), both("cordon", ""), nil},
		"a rollback":                         {steered("rollback-to", "12"), nothing, both("rollback-to", "12"), nil},
		"a rebase undone":                    {steered("rebase", "undo"), nothing, both("rebase", "undo"), nil},
		"a rebase":                           {steered("rebase", "true"), nothing, both("rebase", "true"), nil},
		"a rollback to a word":               {steered("rollback-to", "last"), nothing, both("rollback-to", printable.Invalid), both("rollback-to", "")},
		"a rollback to what is no revision":  {steered("rollback-to", "99999999999"), nothing, both("rollback-to", printable.Invalid), both("rollback-to", "")},
		"a fleet of seven digits":            {steered("accept-discovery", "1000000"), nothing, both("accept-discovery", printable.Invalid), both("accept-discovery", "")},
		"a trip that is cleared":             {nothing, steered("tripped", "of 9 moves 4 came to nothing"), both("tripped", ""), nil},
		"a trip that somebody writes":        {steered("tripped", token), nothing, both("tripped", "set"), nil},
		"a fleet that is accepted":           {steered("accept-discovery", "12"), nothing, both("accept-discovery", "12"), nil},
		"a fleet that is accepted by a word": {steered("accept-discovery", "twelve"), nothing, both("accept-discovery", printable.Invalid), both("accept-discovery", "")},
		"a fleet below 0":                    {steered("accept-discovery", "-1"), nothing, both("accept-discovery", "-1"), both("accept-discovery", "")},
		"what `ballast resume` takes away":   {nothing, steered("tripped", "why", "paused", "true"), []Field{{"paused", ""}, {"tripped", ""}}, nil},
		"everything, in the order of the name": {steered("tripped", "x", "rollback-to", "1", "paused", "true", "enforcement", "off", "cordon", "1=2026-11-20T17:00:00Z", "accept-discovery", "3"), nothing,
			[]Field{{"accept-discovery", "3"}, {"cordon", "1"}, {"enforcement", "off"}, {"paused", "true"}, {"rollback-to", "1"}, {"tripped", "set"}}, nil},
		"a ConfigMap that is made":  {steered("paused", "true"), objects.Plan{}, both("paused", "true"), nil},
		"pins":                      {pinned("a: 1\nb: 2\nd: 4\n"), pinned("b: 2\nc: 3\nd: 5\n"), []Field{{"pins.a", "1"}, {"pins.c", ""}, {"pins.d", "4"}}, nil},
		"a comment on pins":         {pinned("# ada\na: 1\n"), pinned("a: 1\n"), nil, nil},
		"a pin's name that is none": {pinned("\"a b\": 1\n"), nothing, both("pins.invalid", "1"), nil},
		"twenty pins":               {pinned(twenty), nothing, all, nil},
		"many pins":                 {pinned(many), nothing, append(first, Field{"pins", "37"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.taken == nil {
				tc.taken = tc.asked
			}
			asked, taken := acts(tc.object, tc.old)
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.taken, taken); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyCordonsArePrintedInFew(t *testing.T) {
	var entries []string
	for i := range 25 {
		entries = append(entries, fmt.Sprintf("%d=2026-11-20T17:00:00Z", i))
	}
	asked, _ := acts(steered("cordon", strings.Join(entries, ",")), steered())
	want := []Field{{"cordon", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,+5"}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestAPinIsNotedOnce: pins that were judged are noted with where they came from, all others by what was written.
func TestAPinIsNotedOnce(t *testing.T) {
	stands := object(t, fleet(), "prod-us: 1\n")
	state := knowing(t, stands)
	row := strings.Replace(stands.Plan, "prod-eu: {replica: 3", "prod-eu: {replica: 1", 1)
	for name, tc := range map[string]struct {
		write               func(*objects.Plan)
		requested, enforced string
	}{
		"a pin":               {func(o *objects.Plan) { o.Pins = "prod-us: 2\n" }, "pins.prod-us=2", "pins.prod-us=2"},
		"a row and an act":    {func(o *objects.Plan) { o.Plan, o.Annotations[plan.AnnotationPaused] = row, "true" }, "plan=" + short(row) + " clusters.prod-eu=1 paused=true", "plan=" + short(stands.Plan) + " pins.prod-eu=1 paused=true"},
		"a row and a pin":     {func(o *objects.Plan) { o.Plan, o.Pins = row, "prod-us: 2\n" }, "plan=" + short(row) + " clusters.prod-eu=1 pins.prod-us=2", "plan=" + short(stands.Plan) + " pins.prod-eu=1 pins.prod-us=2"},
		"under break-glass":   {func(o *objects.Plan) { o.Annotations[plan.AnnotationEnforcement], o.Pins = "off", "prod-us: 2\n" }, "enforcement=off pins.prod-us=2", "enforcement=off pins.prod-us=2"},
		"a bad pin that went": {func(o *objects.Plan) { o.Pins = "" }, "pins.prod-us=-", "pins.prod-us=-"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Plan(state, Request{User: person}, edited(stands, tc.write), stands)
			got := [2]string{PrintFields(v.Requested), PrintFields(v.Enforced)}
			if diff := cmp.Diff([2]string{tc.requested, tc.enforced}, got); diff != "" {
				t.Errorf("requested, enforced (-want +got):\n%s", diff)
			}
		})
	}
}

// TestActsOnAClusterSecretAreWhatItBringsAlongToo: while a Secret is no cluster's no webhook is asked, so that what came
// then is told when it becomes one.
func TestActsOnAClusterSecretAreWhatItBringsAlongToo(t *testing.T) {
	nobodys := func(s objects.Secret) objects.Secret {
		return changed(s, func(s *objects.Secret) { s.Cluster = false })
	}
	note := func(name, value string) objects.Secret { return noted(cluster("3"), plan.Group+"/"+name, value) }
	both := changed(cluster("3"), func(s *objects.Secret) {
		s.Notes = map[string]string{plan.AnnotationPin: "2", plan.AnnotationUnmanaged: "true"}
	})
	comes, goes := Field{"secret-type", "cluster"}, Field{"secret-type", ""}
	for name, tc := range map[string]struct {
		create       bool
		object, old  objects.Secret
		asked, taken []Field // taken nil: as asked
	}{
		"a cluster's, as before":                {false, cluster("1"), cluster("3"), nil, nil},
		"it is made":                            {true, cluster("3"), objects.Secret{}, nil, nil},
		"it is made with an opt-out":            {true, note("unmanaged", "true"), objects.Secret{}, []Field{{"unmanaged", "true"}}, nil},
		"it is made with a pin":                 {true, note("pin", "2"), objects.Secret{}, []Field{{"pin", "2"}}, nil},
		"it opts out":                           {false, note("unmanaged", "true"), cluster("3"), []Field{{"unmanaged", "true"}}, nil},
		"it has opted out":                      {false, note("unmanaged", "true"), note("unmanaged", "true"), nil, nil},
		"it becomes a cluster's":                {false, cluster("3"), nobodys(cluster("3")), []Field{comes}, nil},
		"with the opt-out that it had":          {false, note("unmanaged", "true"), nobodys(note("unmanaged", "true")), []Field{{"unmanaged", "true"}, comes}, nil},
		"with the pin that it had":              {false, note("pin", "2"), nobodys(note("pin", "2")), []Field{{"pin", "2"}, comes}, nil},
		"with both":                             {false, both, nobodys(both), []Field{{"pin", "2"}, {"unmanaged", "true"}, comes}, nil},
		"with a pin that cannot be":             {false, note("pin", "-1"), nobodys(note("pin", "-1")), []Field{{"pin", "-1"}, comes}, []Field{{"pin", ""}, comes}},
		"with a pin that changes as it comes":   {false, note("pin", "1"), nobodys(note("pin", "2")), []Field{{"pin", "1"}, comes}, nil},
		"without the pin that it had":           {false, cluster("3"), nobodys(note("pin", "2")), []Field{comes}, nil},
		"it is a cluster's no more":             {false, nobodys(cluster("3")), cluster("3"), []Field{goes}, nil},
		"and pins itself as it leaves":          {false, nobodys(note("pin", "2")), cluster("3"), []Field{{"pin", "2"}, goes}, nil},
		"and leaves with the pin that was told": {false, nobodys(note("pin", "2")), note("pin", "2"), []Field{goes}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.taken == nil {
				tc.taken = tc.asked
			}
			v := Cluster(withPlan(nil, nil), Request{Create: tc.create, Namespace: "elsewhere", Name: "prod-eu", User: person}, tc.object, tc.old)
			if diff := cmp.Diff(append(shardIs(tc.object.Shard), tc.asked...), v.Requested); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.taken, v.Enforced); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMistypedAnnotationIsToldWhenItsSecretBecomesAClusters: nobody was there to tell it before.
func TestAMistypedAnnotationIsToldWhenItsSecretBecomesAClusters(t *testing.T) {
	object := noted(cluster("3"), plan.AnnotationUnmanaged, "True")
	old := changed(object, func(s *objects.Secret) { s.Cluster = false })
	v := Cluster(withPlan(nil, nil), Request{Namespace: "argocd", Name: "prod-eu", User: person}, object, old)
	want := []string{`ballast: annotation ballast.argoproj.io/unmanaged: "True" is passed over; write "true" to opt out`}
	if diff := cmp.Diff(want, v.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestEveryAnnotationThatSteersIsAnAct(t *testing.T) {
	for _, name := range append(steering.OnPlan().Names(), steering.OnCluster(0)().Names()...) {
		if f := (Field{name, ""}); !f.IsAct() {
			t.Errorf("%s is no act", name)
		}
	}
	for _, name := range []string{plan.ShardKey, fieldReplicas, plan.EnvReplicas, plan.KeyPlan, fieldImmutable, "requests.cpu"} {
		if f := (Field{name, "1"}); f.IsAct() {
			t.Errorf("%s is an act", name)
		}
	}
}

// Whoever has the planner's token acts in its name: what the planner itself never does is noted as anybody's.
func TestThePlannersUserDoesNothingUnnoticed(t *testing.T) {
	stands := steered("rollback-to", "3", "tripped", "4 of 9 moves came to nothing")
	for name, tc := range map[string]struct {
		object, old objects.Plan
		want        []Field
	}{
		"break-glass":                {steered("enforcement", "off"), steered(), []Field{{"enforcement", "off"}}},
		"break-glass is closed":      {steered(), steered("enforcement", "off"), []Field{{"enforcement", ""}}},
		"a freeze":                   {steered("paused", "true"), steered(), []Field{{"paused", "true"}}},
		"a cordon":                   {steered("cordon", "1=2026-11-20T17:00:00Z"), steered(), []Field{{"cordon", "1"}}},
		"a pin":                      {pinned("a: 1\n"), pinned(""), []Field{{"pins.a", "1"}}},
		"a rollback":                 {steered("rollback-to", "3"), steered(), []Field{{"rollback-to", "3"}}},
		"a rollback that is done":    {steered("tripped", "4 of 9 moves came to nothing"), stands, nil},
		"a trip, as the planner":     {stands, steered("rollback-to", "3"), nil},
		"nothing but a plan":         {objects.Plan{Plan: "b", HasPlan: true}, objects.Plan{Plan: "a", HasPlan: true}, nil},
		"more than that at one time": {steered("enforcement", "off"), stands, []Field{{"enforcement", "off"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Plan(withPlan(nil, nil), Request{Name: "ballast-plan", Namespace: "argocd", User: plannerUser}, tc.object, tc.old)
			want := Verdict{Reason: plan.InPlan, Revision: v.Revision, Requested: tc.want, Enforced: tc.want}
			if diff := cmp.Diff(want, v, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
