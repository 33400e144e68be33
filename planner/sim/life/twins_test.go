package life

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// together: the plan has one replica for the Secrets of a server, unless people keep one of them or part them (parted).
func (j *judge) together() {
	for _, first := range j.Clusters {
		if j.First(first) != first || j.anyOptedOut(first) || !differ(j.planned(j.Plan, first)) {
			continue
		}
		if why := j.parted(first); why != "" && !j.stays(first) {
			j.fail("%s: %s", j.rowsOf(first), why)
		}
	}
}

// secretAt is a Secret of a server with the replica of its row.
type secretAt struct {
	name    string
	replica int
}

// planned are the Secrets of a server that a plan has; none where there is one Secret.
func (l *luck) planned(p *plan.Plan, name string) []secretAt {
	secrets := l.SecretsOf(name)
	if p == nil || len(secrets) == 1 {
		return nil
	}
	var at []secretAt
	for _, secret := range secrets {
		if row, known := p.Clusters[secret]; known {
			at = append(at, secretAt{secret, row.Replica})
		}
	}
	return at
}

// parted says what is wrong with rows of one server that differ; empty: people part them, as the last cycle knew it.
// Pins come before the server (PinConflict tells): a row may be at its own pin, and the others are beside one of the pins.
// A Secret that nobody may write stays where it is. One that does not lead moves no other, nor is it moved.
func (j *judge) parted(first string) string {
	var pinned, others []secretAt
	for _, s := range j.planned(j.Plan, first) {
		pin, asked := j.Last.Pins[s.name]
		switch carries, barred := j.barred(s.name); {
		case barred && s.name != first:
			if plan.NewView(*j.Plan, nil).Stays(carries) && carries != s.replica {
				return fmt.Sprintf("nobody may write %s, which carries %d", s.name, carries)
			}
		case asked && pin == s.replica:
			pinned = append(pinned, s)
		default:
			others = append(others, s)
		}
	}
	if _, barred := j.barred(first); barred && len(pinned) > 0 {
		others = slices.DeleteFunc(others, func(s secretAt) bool { return s.name == first })
	}
	for _, s := range others {
		beside := slices.ContainsFunc(pinned, func(p secretAt) bool { return p.replica == s.replica })
		if s.replica != others[0].replica || len(pinned) > 0 && !beside {
			return fmt.Sprintf("nobody parts %s from the others", s.name)
		}
	}
	if differ(pinned) && j.Plan.Mode.Enforced() && !j.tells("PinConflict", pinned) {
		return "people are told of no PinConflict"
	}
	return ""
}

// pinnedApart reports whether Secrets of a server are at pins that differ: Argo CD goes by whichever it saw last, so that the
// cluster may have no owner until people pin both alike.
func (j *judge) pinnedApart(name string) bool {
	return differ(slices.DeleteFunc(j.planned(j.Plan, name), func(s secretAt) bool {
		pin, asked := j.Last.Pins[s.name]
		return !asked || pin != s.replica
	}))
}

func differ(at []secretAt) bool {
	return slices.ContainsFunc(at, func(s secretAt) bool { return s.replica != at[0].replica })
}

// barred reports whether the last cycle knew that nobody may write a Secret, and the shard that it carries; -1: none.
func (j *judge) barred(name string) (carries int, barred bool) {
	c := j.found(name)
	return shardOf(c), c.Immutable
}

// found is a Secret as the last cycle saw it.
func (j *judge) found(name string) discover.Cluster {
	for _, c := range j.Last.Fleet.Clusters {
		if c.Shard.ID == name {
			return c
		}
	}
	return discover.Cluster{}
}

func shardOf(c discover.Cluster) int {
	if c.Explicit.State != discover.ShardValid {
		return -1
	}
	return c.Explicit.N
}

func (j *judge) tells(kind string, of []secretAt) bool {
	return slices.ContainsFunc(j.Last.Problems, func(p problem.Problem) bool {
		return p.Kind == kind && slices.ContainsFunc(of, func(s secretAt) bool { return s.name == p.Subject })
	})
}

// stays reports whether the rows stand as they did, and the last cycle could not change them: the discovery is refused, or
// its plan was lost.
func (j *judge) stays(first string) bool {
	lost := !j.Last.Next.SameEnforced(*j.Plan)
	refused := !j.Last.Memory.Known.ShrunkFirst.IsZero()
	return (lost || refused) && slices.Equal(j.planned(j.before, first), j.planned(j.Plan, first))
}

// rejoins reports whether a Secret goes where another one of its server stood, after they stood apart.
func (j *judge) rejoins(name string) bool {
	before, to := j.planned(j.before, name), j.Plan.Clusters[name].Replica
	return differ(before) && slices.ContainsFunc(before, func(s secretAt) bool { return s.replica == to })
}

func (j *judge) rowsOf(first string) string {
	said := ""
	for _, s := range j.planned(j.Plan, first) {
		said += fmt.Sprintf("%s is on %d, ", s.name, s.replica)
	}
	return said + "all of one server"
}

// twinned is a judged life of twelve clusters on three replicas; c05 and c09 are Secrets of c01's server.
func twinned(t *testing.T, c config.PlannerConfig) (*luck, *judge) {
	l := &luck{Life: New(1, c, 3, "3", loadsOf(1, 12)), coin: rand.New(rand.NewPCG(1, 11)), draw: wider,
		gone: map[string]time.Time{}, ends: map[string]time.Time{}, waits: map[string]int{}}
	for _, twin := range []string{"c05", "c09"} {
		l.Twins[twin] = "c01"
		for _, p := range l.Pods {
			delete(p.Gained, twin)
			delete(p.Took, twin)
		}
	}
	return l, l.judged(t)
}

// rows are the replicas of c01, c05 and c09.
func (l *luck) rows() (rows []int) {
	for _, s := range l.planned(l.Plan, "c01") {
		rows = append(rows, s.replica)
	}
	return rows
}

// TestWhatPartsTheSecretsOfAServer: people's pins, and a Secret that nobody may write and that leads no other; and nothing else.
func TestWhatPartsTheSecretsOfAServer(t *testing.T) {
	alone := func(name string) string { return fmt.Sprintf("nobody parts %s from the others", name) }
	apart := plan.Pins{"c01": 0, "c05": 1}
	for name, test := range map[string]struct {
		rows   [3]int // of c01, c05 and c09; c01 leads
		pins   plan.Pins
		barred map[string]int // nobody may write it, and it carries that shard
		told   string
		want   string
	}{
		"nobody":                            {rows: [3]int{0, 1, 0}, want: alone("c05")},
		"the pin of one":                    {rows: [3]int{0, 1, 0}, pins: plan.Pins{"c05": 1}, want: alone("c01")},
		"the pin of one, elsewhere":         {rows: [3]int{0, 1, 0}, pins: plan.Pins{"c05": 2}, want: alone("c05")},
		"two pins alike":                    {rows: [3]int{0, 1, 1}, pins: plan.Pins{"c01": 1, "c09": 1}, want: alone("c01")},
		"two pins":                          {rows: [3]int{0, 1, 0}, pins: apart, told: "c05"},
		"two pins, and nobody is told":      {rows: [3]int{0, 1, 0}, pins: apart, want: "people are told of no PinConflict"},
		"two pins, and the third elsewhere": {rows: [3]int{0, 1, 2}, pins: apart, told: "c05", want: alone("c09")},
		"two pins, not the leader's":        {rows: [3]int{1, 0, 1}, pins: plan.Pins{"c05": 0, "c09": 1}, told: "c09"},
		"one that is barred":                {rows: [3]int{0, 1, 0}, barred: map[string]int{"c05": 1}},
		"one that is barred, moved": {rows: [3]int{0, 1, 0}, barred: map[string]int{"c05": 2},
			want: "nobody may write c05, which carries 2"},
		"beside one that is barred":          {rows: [3]int{0, 1, 1}, barred: map[string]int{"c05": 1}, want: alone("c09")},
		"the leader, which is barred":        {rows: [3]int{0, 1, 1}, barred: map[string]int{"c01": 0}, want: alone("c05")},
		"the leader, which is barred, a pin": {rows: [3]int{0, 1, 1}, barred: map[string]int{"c01": 0}, pins: plan.Pins{"c05": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l, j := twinned(t, configuration())
			l.Plan = &plan.Plan{Mode: plan.Enforce, Replicas: 3, Clusters: map[string]plan.Row{}}
			for i, secret := range []string{"c01", "c05", "c09"} {
				c := discover.Cluster{Shard: plan.Shard{ID: secret}}
				if carries, barred := test.barred[secret]; barred {
					c.Immutable, c.Explicit = true, discover.ShardValue{State: discover.ShardValid, N: carries}
				}
				l.Last.Fleet.Clusters = append(l.Last.Fleet.Clusters, c)
				l.Plan.Clusters[secret] = plan.Row{Replica: test.rows[i]}
			}
			l.Last.Pins, l.Last.Problems = test.pins, []problem.Problem{{Kind: "PinConflict", Subject: test.told}}
			if got := j.parted("c01"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestSecretsThatWerePinnedApartGoTogetherAgain as soon as the pins are gone, whatever keeps ballast still: apart, Argo CD goes by
// whichever it saw last, and the cluster may have no owner.
func TestSecretsThatWerePinnedApartGoTogetherAgain(t *testing.T) {
	for name, still := range map[string]func(*luck){
		"enforced":    func(*luck) {},
		"frozen":      func(l *luck) { l.Paused = true },
		"mode Hold":   func(l *luck) { l.Config.Mode = plan.Hold },
		"break-glass": func(l *luck) { l.Glass = true },
		"stopped":     func(l *luck) { l.Tripped = "by a person" },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := twinned(t, configuration())
			l.Pass(2 * time.Hour)
			l.Pins = plan.Pins{"c01": 0, "c05": 2}
			l.Pass(2 * time.Hour)
			if diff := cmp.Diff([]int{0, 2, 0}, l.rows()); diff != "" {
				t.Errorf("pinned apart (-want +got):\n%s", diff)
			}
			still(l)
			l.Pass(10 * time.Minute)
			l.Pins = nil
			l.Pass(2 * time.Minute)
			if diff := cmp.Diff([]int{0, 0, 0}, l.rows()); diff != "" {
				t.Errorf("without pins (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASecretThatNobodyMayWriteKeepsNoOtherOfItsServer on a replica that died, and is beside it again once it may be written.
func TestASecretThatNobodyMayWriteKeepsNoOtherOfItsServer(t *testing.T) {
	for name, still := range map[string]func(*luck){"enforced": func(*luck) {}, "frozen": func(l *luck) { l.Paused = true }} {
		t.Run(name, func(t *testing.T) {
			l, _ := twinned(t, configuration())
			l.Pass(2 * time.Hour)
			l.Refused["c05"] = true
			at := l.rows()[0]
			l.Broken[at] = true
			l.Pass(time.Hour)
			to := l.rows()[0]
			if diff := cmp.Diff([]int{to, at, to}, l.rows()); diff != "" || to == at {
				t.Errorf("replica %d died (-want +got):\n%s", at, diff)
			}
			still(l)
			l.Pass(10 * time.Minute)
			delete(l.Refused, "c05")
			l.Pass(2 * time.Minute)
			if diff := cmp.Diff([]int{to, to, to}, l.rows()); diff != "" {
				t.Errorf("it may be written (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASecondSecretThatGoesLeavesNobodyAstray: every pod of Argo CD takes 0 for its server's shard then. ballast tells of it, and one
// write mends it, within the move budget and with one owner at any time.
func TestASecondSecretThatGoesLeavesNobodyAstray(t *testing.T) {
	l := New(1, configuration(), 3, "3", loadsOf(1, 12))
	l.Twins["c05"], l.Twins["c09"] = "c01", "c02"
	for _, p := range l.Pods {
		for _, twin := range []string{"c05", "c09"} {
			delete(p.Gained, twin)
			delete(p.Took, twin)
		}
	}
	l.Pins = plan.Pins{"c01": 2, "c02": 1, "c05": 2, "c09": 1}
	l.Pass(24 * time.Hour)
	owners := func() [2][]int { return [2][]int{l.Owners("c01"), l.Owners("c02")} }
	if diff := cmp.Diff([2][]int{{2}, {1}}, owners()); diff != "" || l.Plan.Rollout != nil {
		t.Fatalf("owners before (-want +got):\n%s", diff)
	}
	l.Pins = nil
	l.Pass(time.Minute)
	l.Retire("c05")
	l.Retire("c09")
	l.Pass(4 * time.Minute)
	if diff := cmp.Diff([2][]int{{0}, {0}}, owners()); diff != "" {
		t.Fatalf("owners once they went (-want +got):\n%s", diff)
	}
	told, written := false, map[string][]int{}
	l.Wrote = func(step diff.Step) {
		if s, is := step.(diff.PatchShard); is {
			written[s.Secret] = append(written[s.Secret], s.Shard)
		}
	}
	for range 16 * 60 {
		l.Pass(time.Second)
		told = told || slices.ContainsFunc(l.Last.Problems, func(p problem.Problem) bool { return p.Kind == "OwnerAstray" && p.Subject == "c01" })
		for _, of := range owners() {
			if len(of) != 1 {
				t.Fatalf("owners %v at %s", owners(), l.Now)
			}
		}
	}
	want := [2][]int{{l.Plan.Clusters["c01"].Replica}, {l.Plan.Clusters["c02"].Replica}}
	if diff := cmp.Diff(want, owners()); diff != "" || !told {
		t.Errorf("told: %t; owners (-want +got):\n%s", told, diff)
	}
	delete(written, "c10") // levelled afterwards
	if diff := cmp.Diff(map[string][]int{"c01": {0}}, written); diff != "" || len(l.Forgot) > 0 {
		t.Errorf("still astray: %v; writes (-want +got):\n%s", l.Forgot, diff)
	}
}
