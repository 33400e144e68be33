package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// answers is a Nudger that always says the same.
type answers struct {
	woken string
	err   error
}

func (a answers) Nudge(context.Context, string, string, string, string) (string, error) {
	return a.woken, a.err
}

func TestANudgeIsAnAnswerOfItsOwn(t *testing.T) {
	step := diff.Nudge{Cluster: "a", Server: "https://a", Name: "a", Shard: 1, Since: start}
	refused := errors.New("patching applications is forbidden")
	for name, test := range map[string]struct {
		nudger Nudger
		want   Outcome
		err    string
	}{
		"done":                      {answers{"argocd/app-of-a", nil}, Applied, ""},
		"a cluster without any":     {answers{}, Unchanged, ""},
		"failed":                    {answers{"", refused}, Failed, `nudging an Application of cluster "a": patching applications is forbidden`},
		"an Applier without Nudger": {nil, Unchanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := New(Options{Nudger: test.nudger}).Apply(t.Context(), plan.Target{}, []diff.Step{step}).Results[0]
			message := ""
			if result.Err != nil {
				message = result.Err.Error()
			}
			if diff := cmp.Diff([]string{string(test.want), test.err}, []string{string(result.Outcome), message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNudgesAreMadeAtOnceAfter1sThenEvery5sAndSixTimes(t *testing.T) {
	p, step := newPace(1000), diff.Nudge{Cluster: "a", Shard: 1, Since: start}
	var made []time.Duration
	for now := time.Duration(0); now < 2*time.Minute; now += time.Second {
		if wait, spent := p.nudge(step, start.Add(now)); wait == 0 && !spent {
			made = append(made, now/time.Second)
		}
	}
	if diff := cmp.Diff([]time.Duration{0, 1, 6, 11, 16, 21}, made); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestThePaceOfNudgesIsOneMoves(t *testing.T) {
	type answer struct {
		Wait  time.Duration
		Spent bool
	}
	for name, test := range map[string]struct {
		step  diff.Nudge
		times int
		after time.Duration
		want  answer
	}{
		"the same":                 {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 2, 2 * time.Second, answer{Wait: 3 * time.Second}},
		"the same, once":           {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 1, time.Second / 2, answer{Wait: time.Second / 2}},
		"another cluster":          {diff.Nudge{Cluster: "b", Shard: 1, Since: start}, 1, 0, answer{}},
		"another replica":          {diff.Nudge{Cluster: "a", Shard: 2, Since: start}, 1, 0, answer{}},
		"another wave":             {diff.Nudge{Cluster: "a", Shard: 1, Since: start.Add(time.Second)}, 1, 0, answer{}},
		"a clock that went back":   {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 1, -time.Hour, answer{}},
		"six are enough":           {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, time.Minute, answer{Spent: true}},
		"what is long forgotten":   {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 7 * time.Hour, answer{}},
		"what is nearly forgotten": {diff.Nudge{Cluster: "a", Shard: 1, Since: start}, 6, 6 * time.Hour, answer{Spent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(1000)
			for i := range test.times {
				p.nudge(diff.Nudge{Cluster: "a", Shard: 1, Since: start}, start.Add(time.Duration(i-test.times+1)*nudgeEvery))
			}
			now := start.Add(test.after)
			p.forget(now)
			wait, spent := p.nudge(test.step, now)
			if diff := cmp.Diff(test.want, answer{wait, spent}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
