package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/cycle/problem"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

func TestWhatBecomesOfASecretIsToldOnIt(t *testing.T) {
	step := diff.PatchShard{Secret: "prod-eu", Shard: 3, Was: "1"}
	with := func(why diff.Why, was string) diff.PatchShard {
		s := step
		s.Why, s.Was = why, was
		return s
	}
	on := SecretRef{"prod-eu", "u1"}
	back := "data.shard is 3 again: it was %s, which the plan does not have; a pin in data.pins or the annotation ballast.argoproj.io/pin moves the cluster"
	fleet := discover.Fleet{Clusters: []discover.Cluster{{Shard: plan.Shard{ID: "prod-eu", UID: "u1"}}, {Shard: plan.Shard{ID: "in-cluster"}}}}
	told := OnSecrets([]problem.Problem{{Kind: "Orphaned", Subject: "prod-eu", Message: "nobody has it"}, {Kind: "Unwell", Subject: "prod-eu"},
		{Kind: "Doubled", Subject: "in-cluster", Message: "two have it"}}, fleet)
	if len(told) != 1 {
		t.Fatalf("told is %v", told)
	}
	for name, test := range map[string]struct{ got, want Event }{
		"moved":       {ShardWritten(with(diff.Moved, "1"), "u1"), Event{"Normal", "ClusterMoved", "data.shard is 3 instead of 1: the plan moves the cluster", false, on}},
		"pinned":      {ShardWritten(with(diff.Pinned, "1"), "u1"), Event{"Normal", "ClusterPinned", "data.shard is 3 instead of 1: a person pinned the cluster there", false, on}},
		"a new one":   {ShardWritten(with(diff.Unstamped, "-"), "u1"), Event{"Normal", "ClusterAssigned", "data.shard is 3 from now on: the Secret had none", false, on}},
		"put back":    {ShardWritten(with(diff.Drifted, "1"), "u1"), Event{"Warning", "ClusterPutBack", fmt.Sprintf(back, "1"), false, on}},
		"not a shard": {ShardWritten(with(diff.Broken, "invalid"), "u1"), Event{"Warning", "ClusterPutBack", fmt.Sprintf(back, "invalid"), false, on}},
		"refused": {ShardRefused(step, "u1", "denied"), Event{"Warning", "ClusterRefused",
			"data.shard stays 1 instead of 3: the API server refuses the write: denied", false, on}},
		"orphaned": {told[0], Event{"Warning", "Orphaned", "nobody has it", false, on}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Five thousand Secrets that are written at once make twenty events and one that counts the others.
func TestABurstOnSecretsIsCounted(t *testing.T) {
	var n SecretNews
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	all := func(from, to int) (events []Event) {
		for i := range to - from {
			events = append(events, ShardWritten(diff.PatchShard{Secret: fmt.Sprint("c", from+i), Shard: 1, Was: "0", Why: diff.Moved}, "u"))
		}
		return events
	}
	burst := n.Of(all(0, 5000), now)
	if len(burst) != mostOnSecrets+1 || !strings.HasPrefix(burst[mostOnSecrets].Message, "and 4980 more of ClusterMoved") || burst[mostOnSecrets].Secret.Name != "" {
		t.Errorf("%d events, the last %+v", len(burst), burst[len(burst)-1])
	}
	if again := n.Of(all(0, 20), now.Add(time.Minute)); len(again) != 0 {
		t.Errorf("what was told is told again: %v", again)
	}
	if more := n.Of(all(5000, 5100), now.Add(time.Minute)); len(more) != 0 {
		t.Errorf("within the span %d more are told", len(more))
	}
	rest := n.Of(nil, now.Add(secretsSpan))
	if len(rest) != 1 || !strings.HasPrefix(rest[0].Message, "and 100 more of ClusterMoved") {
		t.Errorf("those are counted by %v", rest)
	}
	if later := n.Of(all(0, 2), now.Add(toldAgain)); len(later) != 2 {
		t.Errorf("after %s %v is told", toldAgain, later)
	}
}

// What lasts is in every cycle, with other numbers each time: it is told once on its Secret, or counted once.
func TestWhatLastsIsToldOnceOfASecret(t *testing.T) {
	var n SecretNews
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	fleet := discover.Fleet{}
	for i := range 25 {
		fleet.Clusters = append(fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: fmt.Sprint("c", i), UID: "u"}})
	}
	told, counts := map[string]int{}, []string{}
	for minute := range 60 {
		var orphans []problem.Problem
		for _, c := range fleet.Clusters {
			orphans = append(orphans, problem.Problem{Kind: "Orphaned", Subject: c.Shard.ID, Message: fmt.Sprint(minute, " Applications wait")})
		}
		refused := ShardRefused(diff.PatchShard{Secret: "c0"}, "u", fmt.Sprint("try ", minute))
		back := ShardWritten(diff.PatchShard{Secret: "c0", Was: fmt.Sprint(minute), Why: diff.Drifted}, "u")
		for _, e := range n.Of(append([]Event{refused, back}, OnSecrets(orphans, fleet)...), start.Add(time.Duration(minute)*time.Minute)) {
			if e.Secret.Name == "" {
				counts = append(counts, e.Message)
				continue
			}
			told[e.Secret.Name+" "+e.Reason]++
		}
	}
	want := map[string]int{"c0 ClusterRefused": 1, "c0 ClusterPutBack": 1}
	for i := range 25 { // five of them ten minutes later than the others
		want[fmt.Sprintf("c%d Orphaned", i)] = 1
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
	if len(counts) != 1 || !strings.HasPrefix(counts[0], "and 5 more of Orphaned") {
		t.Errorf("counted are %q", counts)
	}
}

// Where a cluster goes is news each time that it goes elsewhere.
func TestAClusterThatMovesOnIsNews(t *testing.T) {
	var n SecretNews
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	move := func(why diff.Why, to int) Event {
		return ShardWritten(diff.PatchShard{Secret: "c0", Shard: to, Was: "0", Why: why}, "u")
	}
	all := []Event{move(diff.Moved, 1), move(diff.Moved, 2), move(diff.Pinned, 1), move(diff.Pinned, 2)}
	if told := n.Of(slices.Concat(all, all), now); !slices.Equal(all, told) {
		t.Errorf("told are %v", told)
	}
}

// A Secret that was deleted and made anew is another one, and what ended for ten minutes is news when it comes again.
func TestAnotherSecretOfTheNameAndAnotherTimeAreNews(t *testing.T) {
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	refused := func(uid string) Event { return ShardRefused(diff.PatchShard{Secret: "c0"}, uid, "no") }
	orphaned := Event{Reason: "Orphaned", Secret: SecretRef{"c0", "u1"}}
	var n SecretNews
	for _, test := range []struct {
		minute int
		asked  Event
		told   int
	}{
		{0, refused("u1"), 1}, {1, refused("u1"), 0}, {2, refused("u2"), 1}, {3, refused("u2"), 0},
		{20, orphaned, 1}, {29, orphaned, 0}, {38, orphaned, 0}, {48, orphaned, 1}, {49, orphaned, 0},
	} {
		if told := n.Of([]Event{test.asked}, start.Add(time.Duration(test.minute)*time.Minute)); len(told) != test.told {
			t.Errorf("at minute %d of %+v %d are told, expected %d", test.minute, test.asked, len(told), test.told)
		}
	}
}

// Whoever has one Secret go to and fro, or pins ten of them, leaves room for what others must hear of.
func TestOnesOwnMovesLeaveRoomForOthersNews(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	pinned := func(secret, uid string, to int) Event {
		return ShardWritten(diff.PatchShard{Secret: secret, Shard: to, Was: "0", Why: diff.Pinned}, uid)
	}
	for name, test := range map[string]struct {
		own  func(i int) Event
		told int
	}{
		"one Secret that moves": {func(i int) Event { return pinned("own", "u", i) }, mostOnOne},
		"one that is made anew": {func(i int) Event { return pinned("own", fmt.Sprint(i), 1) }, mostOnOne},
		"one that is failed over": {func(i int) Event {
			return Event{Reason: "ClusterMoved", Message: fmt.Sprint(i), Secret: SecretRef{"own", "u"}}
		}, mostOnOne},
		"twenty Secrets of one person": {func(i int) Event { return pinned(fmt.Sprint("own", i), "u", 1) }, mostByPeople},
	} {
		t.Run(name, func(t *testing.T) {
			var n SecretNews
			own, others := []Event{}, []Event{}
			for i := range 20 {
				own = append(own, test.own(i))
			}
			for i := range mostOnSecrets {
				others = append(others, Event{Reason: "Orphaned", Secret: SecretRef{fmt.Sprint("other", i), "u"}})
			}
			told := n.Of(own, now)
			if more := told[len(told)-1]; len(told) != test.told+1 || !strings.HasPrefix(more.Message, fmt.Sprintf("and %d more of", 20-test.told)) {
				t.Errorf("of the own ones %v are told", told)
			}
			if told := n.Of(others, now.Add(time.Minute)); !slices.Equal(others, told) {
				t.Errorf("of the others' %d are told, expected %d", len(told), len(others))
			}
		})
	}
}

// Whoever fills twenty Secrets of their own with what the API server refuses, or that nobody reconciles, takes no room of others' Secrets:
// each reason has its own, and of one reason the oldest Secrets are told first. What had no room is told when there is some.
func TestTwentySecretsOfOneUserTakeNobodysRoom(t *testing.T) {
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var fleet discover.Fleet
	var n SecretNews
	var problems []problem.Problem
	refused := []Event{}
	for i := range 20 {
		name := fmt.Sprint("a-own", i)
		fleet.Clusters = append(fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: name, UID: "u"}, Created: start})
		problems = append(problems, problem.Problem{Kind: "Orphaned", Subject: name})
		refused = append(refused, ShardRefused(diff.PatchShard{Secret: name}, "u", "no"))
	}
	fleet.Clusters = append(fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: "prod", UID: "u"}, Created: start.Add(-time.Hour)})
	problems = append(problems, problem.Problem{Kind: "Orphaned", Subject: "prod", Message: "prod"}, problem.Problem{Kind: "Doubled", Subject: "prod", Message: "prod"})
	on := func(events []Event, secret string) (reasons []string) {
		for _, e := range events {
			if e.Secret.Name == secret {
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons
	}
	look := func(all []Event, after time.Duration) []Event { return n.Of(all, start.Add(after)) }

	if told := on(look(refused, 0), "a-own9"); !slices.Equal(told, []string{"ClusterRefused"}) {
		t.Errorf("of what is refused first %v is told", told)
	}
	all := OnSecrets(OldestFirst(problems, fleet), fleet)
	if told := on(look(all, time.Minute), "prod"); !slices.Equal(told, []string{"Orphaned", "Doubled"}) {
		t.Errorf("of another's Secret %v is told", told)
	}
	late := append(OnSecrets([]problem.Problem{{Kind: "Orphaned", Subject: "a-own0"}}, fleet), ShardRefused(diff.PatchShard{Secret: "prod"}, "u", "no"))
	for _, test := range []struct {
		after time.Duration
		told  []string
	}{{2 * time.Minute, nil}, {9 * time.Minute, nil}, {secretsSpan, []string{"ClusterRefused"}}, {secretsSpan + time.Minute, nil}} {
		if told := on(look(append(late, all...), test.after), "prod"); !slices.Equal(told, test.told) {
			t.Errorf("after %s %v is told of what came later, expected %v", test.after, told, test.told)
		}
	}
	var told News
	first := told.Of(OldestFirst(problems, fleet))
	if first[0].Message != "prod" || first[1].Message != "prod" {
		t.Errorf("on the plan %v are told first", first[:2])
	}
}

// However many Secrets come and go, what is remembered of them is bounded, and each that is not told is counted.
func TestWhatIsKnownOfSecretsIsBounded(t *testing.T) {
	var n SecretNews
	now, asked, counted := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), mostKnown+100, 0
	var events []Event
	for i := range asked {
		events = append(events, ShardRefused(diff.PatchShard{Secret: fmt.Sprint(i)}, "u", "no"))
	}
	told := n.Of(events, now)
	if _, err := fmt.Sscanf(told[len(told)-1].Message, "and %d more", &counted); err != nil {
		t.Fatal(err)
	}
	if len(n.known) != asked-mostKnown || counted != asked-mostByPeople {
		t.Errorf("%d are known, %d counted", len(n.known), counted)
	}
	for i := range mostKnown - len(n.known) {
		n.known[fmt.Sprint("another", i)] = knownNews{since: now, last: now.Add(secretsSpan)}
	}
	if told := n.Of([]Event{ShardRefused(diff.PatchShard{Secret: "new"}, "u", "no")}, now.Add(secretsSpan)); len(told) != 1 || told[0].Secret.Name != "new" {
		t.Errorf("of what is new once as many are known as may be %v is told", told)
	}
}

// Whatever happens when, no ten minutes have more than twenty events of a reason on Secrets, and each that has none is counted once.
func TestNoSpanHasTooManyEventsOnSecrets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n SecretNews
		told, ofOne := map[string][]time.Time{}, map[string][]time.Time{}
		now, asked, counted := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), 0, 0
		tell := func(events []Event) {
			for _, e := range n.Of(events, now) {
				if e.Secret.Name != "" {
					told[e.Reason] = append(told[e.Reason], now)
					if e.Secret.Name == "one" {
						ofOne[e.Reason] = append(ofOne[e.Reason], now)
					}
					continue
				}
				var more int
				if _, err := fmt.Sscanf(e.Message, "and %d more", &more); err != nil {
					t.Fatal(err)
				}
				counted += more
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			var events []Event
			for range rapid.IntRange(0, 30).Draw(t, "events") {
				events = append(events, drawnNews(t, asked))
				asked++
			}
			tell(events)
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second)
		}
		now = now.Add(secretsSpan)
		tell(nil)
		all := 0
		for reason, most := range map[string]int{"ClusterMoved": mostOnSecrets, "ClusterPinned": mostByPeople, "ClusterPutBack": mostByPeople} {
			if of, one := mostWithin(told[reason]), mostWithin(ofOne[reason]); of > most || one > mostOnOne {
				t.Fatalf("of %s within %s %d, of one Secret %d", reason, secretsSpan, of, one)
			}
			all += len(told[reason])
		}
		if all+counted != asked {
			t.Fatalf("%d told, %d counted, of %d", all, counted, asked)
		}
	})
}

// drawnNews is one that nobody has heard of: of a Secret of its own, or of one that others have, too.
func drawnNews(t *rapid.T, i int) Event {
	step := diff.PatchShard{Secret: fmt.Sprint(i), Shard: 1, Was: fmt.Sprint(i), Why: rapid.SampledFrom([]diff.Why{diff.Moved, diff.Pinned, diff.Drifted}).Draw(t, "why")}
	if rapid.Bool().Draw(t, "one Secret of all") {
		step.Secret = "one"
	}
	return ShardWritten(step, fmt.Sprint(i))
}

// mostWithin is the most of those times that are in one secretsSpan.
func mostWithin(times []time.Time) (most int) {
	for i, at := range times {
		within := slices.IndexFunc(times[i:], func(later time.Time) bool { return later.Sub(at) >= secretsSpan })
		if within < 0 {
			within = len(times) - i
		}
		most = max(most, within)
	}
	return most
}
