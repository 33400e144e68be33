package discover

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// TestWhatASecondSecretLeavesBehindIsRemembered for an hour after it went: Argo CD may go by it until a restart.
func TestWhatASecondSecretLeavesBehindIsRemembered(t *testing.T) {
	of := func(name, server string) Secret { return secret(name, func(s *Secret) { s.Server = server }) }
	one, other, twin := of("a", "https://a"), of("b", "https://b"), of("z", "https://a/")
	aside, itself := of("z", plan.InClusterServer+"/"), of("y", plan.InClusterServer)
	for name, test := range map[string]struct {
		before, after []Secret
		later         time.Duration
		want          []string // that are misled
	}{
		"a twin that went":                {[]Secret{one, other, twin}, []Secret{one, other}, 59 * time.Minute, []string{"a"}},
		"an hour ago":                     {[]Secret{one, other, twin}, []Secret{one, other}, time.Hour, nil},
		"by a clock that went back":       {[]Secret{one, other, twin}, []Secret{one, other}, -time.Hour, []string{"a"}},
		"one that is there, and harmless": {[]Secret{one, other, twin}, []Secret{one, other, twin}, time.Minute, nil},
		"none":                            {[]Secret{one, other}, []Secret{one, other}, time.Minute, nil},
		"the owner's, and not the twin":   {[]Secret{one, other, twin}, []Secret{other, twin}, time.Minute, []string{"z"}},
		"of the cluster Argo CD runs in":  {[]Secret{one, aside}, []Secret{one}, time.Minute, []string{ImplicitID}},
		"whose own it was":                {[]Secret{one, itself}, []Secret{one}, time.Minute, []string{ImplicitID}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			_, known, err := Discover(Input{Secrets: test.before, InClusterEnabled: true}, Known{}, Options{MaxShrink: 1}, now)
			if err != nil {
				t.Fatal(err)
			}
			fleet, _, _ := Discover(Input{Secrets: test.after, InClusterEnabled: true}, known, Options{MaxShrink: 1}, now.Add(test.later))
			var misled []string
			for _, c := range fleet.Clusters {
				if c.Misled {
					misled = append(misled, c.Shard.ID)
				}
			}
			if diff := cmp.Diff(test.want, misled); diff != "" {
				t.Errorf("misled (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheMemoryOfTwinsIsBounded, whoever makes second Secrets of however many servers, and has none that is older than an hour.
func TestTheMemoryOfTwinsIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, before := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), map[string]time.Time{}
		for i := range rapid.IntRange(0, 2*mostLeaders).Draw(t, "servers") {
			before[fmt.Sprint(i)] = now.Add(-time.Duration(i%90) * time.Minute)
		}
		after := Fleet{}.twins(before, now)
		if len(after) > mostLeaders {
			t.Fatalf("%d servers are remembered", len(after))
		}
		for key, at := range after {
			if now.Sub(at) >= twinsAfter || !at.Equal(before[key]) {
				t.Fatalf("%s is remembered for %s", key, now.Sub(at))
			}
		}
	})
}
