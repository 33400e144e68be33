package discover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTooManySecretsAreOneProblem that says how many, and what to do; what Argo CD may take for a planned one keeps nothing waiting.
func TestTooManySecretsAreOneProblem(t *testing.T) {
	in := Input{LeftOut: 31_000, Secrets: []Secret{secret("a", func(s *Secret) { s.Beside = true }), secret("b", func(s *Secret) { s.Namesake = true }), secret("c")}}
	fleet, _, err := Discover(in, Known{}, Options{MaxShrink: 1}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := []SecretProblem{{"", TooMany, "left out of the plan: 31000 cluster Secrets beyond the 20000 that are planned, of which those come first that are known (there for an hour, and not beyond a quarter or ten new ones a day), then the oldest; " +
		"2 Secrets of the plan with the server or the data.name of one that is left out, which Argo CD may take instead, so that a few of them without an owner keep nothing waiting; " +
		"see who made so many (kubectl get secrets --sort-by=.metadata.creationTimestamp, with discover.selector), and delete those that no cluster needs"}}
	if diff := cmp.Diff(want, fleet.Problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := map[string][2]any{}
	for _, c := range fleet.Clusters {
		got[c.Shard.ID] = [2]any{c.Misled, c.Called()}
	}
	if diff := cmp.Diff(map[string][2]any{"a": {true, "a"}, "b": {false, ""}, "c": {false, "c"}}, got); diff != "" {
		t.Errorf("misled and called (-want +got):\n%s", diff)
	}
}

// TestWhatArgoCDFindsNobodyBy: a name that two Secrets have, whatever their servers and whether they are planned for, and the Secret's
// own name where it gives the cluster none; and of a server with a Secret that it cannot read, any may be taken.
func TestWhatArgoCDFindsNobodyBy(t *testing.T) {
	named := func(name, cluster, server string, change ...func(*Secret)) Secret {
		return secret(name, append([]func(*Secret){func(s *Secret) { s.Cluster, s.Server = cluster, server }}, change...)...)
	}
	type found struct {
		Called map[string]string
		Unread []string
		Misled []string // by another Secret of their server
		Shared []string
	}
	for name, test := range map[string]struct {
		secrets []Secret
		want    found
	}{
		"names of their own": {[]Secret{named("a", "one", "https://a"), named("b", "two", "https://b")}, found{Called: map[string]string{"a": "one", "b": "two"}}},
		"no name":            {[]Secret{named("a", "", "https://a")}, found{Called: map[string]string{"a": ""}}},
		"two servers":        {[]Secret{named("a", "one", "https://a"), named("b", "one", "https://b")}, found{Called: map[string]string{"a": "", "b": ""}, Shared: []string{"a", "b"}}},
		"one server":         {[]Secret{named("a", "one", "https://a"), named("b", "one", "https://a")}, found{Called: map[string]string{"a": "", "b": ""}, Shared: []string{"a", "b"}}},
		"one that is left out": {[]Secret{named("a", "one", "https://a"), named("b", "one", "")},
			found{Called: map[string]string{"a": ""}, Shared: []string{"a"}}},
		"one that is too long": {[]Secret{named("a", "one", "https://a"), named("b", "one", "https://b", func(s *Secret) { s.TooLong = true })},
			found{Called: map[string]string{"a": ""}, Shared: []string{"a"}}},
		"a twin that is not read": {[]Secret{named("a", "one", "https://a"), named("b", "two", "https://a", func(s *Secret) { s.Unread = true }), named("c", "three", "https://c")},
			found{Called: map[string]string{"a": "one", "b": "two", "c": "three"}, Unread: []string{"b"}, Misled: []string{"a"}}},
		"a twin that is skipped": {[]Secret{named("a", "one", "https://a"), named("b", "two", "https://a", func(s *Secret) { s.SkipReconcile = true })},
			found{Called: map[string]string{"a": "one", "b": "two"}, Misled: []string{"a"}}},
		"a twin that no replica has": {[]Secret{named("a", "one", "https://a"), named("b", "two", "https://a", func(s *Secret) { s.Shard = ShardValue{State: ShardNegative} })},
			found{Called: map[string]string{"a": "one", "b": "two"}, Misled: []string{"a"}}},
		"one that no replica has": {[]Secret{named("a", "one", "https://a", func(s *Secret) { s.Shard = ShardValue{State: ShardNegative} })},
			found{Called: map[string]string{"a": "one"}}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet, _, err := Discover(Input{Secrets: test.secrets}, Known{}, Options{MaxShrink: 1}, time.Time{})
			got := found{Called: map[string]string{}}
			for _, c := range fleet.Clusters {
				got.Called[c.Shard.ID] = c.Called()
				if c.Misled {
					got.Misled = append(got.Misled, c.Shard.ID)
				}
				if c.Unread {
					got.Unread = append(got.Unread, c.Shard.ID)
				}
			}
			for _, p := range fleet.Problems {
				if p.Kind == SharedName {
					got.Shared = append(got.Shared, p.Secret)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
