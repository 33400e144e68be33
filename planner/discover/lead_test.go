package discover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// led is a Secret of one server, made so long after noon.
func led(name string, created time.Duration, change func(*Secret)) Secret {
	s := secret(name, func(s *Secret) { s.Server, s.Created = "https://one", noon.Add(created) })
	if change != nil {
		change(&s)
	}
	return s
}

func optedOut(s *Secret)  { s.Unmanaged = true }
func immutable(s *Secret) { s.Immutable = true }

// TestASecretThatNobodyMayWriteStandsAlone beside another that leads: it must neither move that one nor hold it.
func TestASecretThatNobodyMayWriteStandsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		secrets []Secret
		groups  [][]string
	}{
		"a younger one that opted out":         {[]Secret{led("a", time.Hour, optedOut), led("b", 0, nil)}, [][]string{{"a"}, {"b"}}},
		"a younger one that is immutable":      {[]Secret{led("a", time.Hour, immutable), led("b", 0, nil)}, [][]string{{"a"}, {"b"}}},
		"an older one leads":                   {[]Secret{led("a", 0, immutable), led("b", time.Hour, nil)}, [][]string{{"a", "b"}}},
		"an older one that opted out":          {[]Secret{led("a", 0, optedOut), led("b", time.Hour, nil)}, [][]string{{"a", "b"}}},
		"two that opted out":                   {[]Secret{led("a", 0, optedOut), led("b", time.Hour, optedOut)}, [][]string{{"a"}, {"b"}}},
		"younger ones that are written follow": {[]Secret{led("a", 0, nil), led("b", time.Hour, nil), led("c", time.Hour, optedOut)}, [][]string{{"a", "b"}, {"c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet, _, _ := Discover(Input{Secrets: test.secrets}, Known{}, Options{MaxShrink: 1}, noon)
			var got [][]string
			for _, g := range fleet.Groups() {
				var members []string
				for _, i := range g.Clusters {
					members = append(members, fleet.Clusters[i].Shard.ID)
				}
				got = append(got, members)
			}
			if diff := cmp.Diff(test.groups, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestALeaderThatIsMadeAnewLeads: who made a second Secret gains nothing by it, within the hour in which a row waits, too.
func TestALeaderThatIsMadeAnewLeads(t *testing.T) {
	pinned := func(pin string) func(*Secret) { return func(s *Secret) { s.Pin = pin } }
	owners, sleeper := led("own", 0, pinned("1")), led("zz", time.Hour, pinned("3"))
	anew := led("own", 3*time.Hour, pinned("1"))
	var known Known
	for i, step := range []struct {
		after   time.Duration
		secrets []Secret
		pins    string
		leader  map[string]Leader
	}{
		{2 * time.Hour, []Secret{owners, sleeper}, "own=1", map[string]Leader{leaderKey("https://one"): {Name: "own"}}},
		{3 * time.Hour, []Secret{sleeper}, "", map[string]Leader{leaderKey("https://one"): {Name: "own", Known: true, Gone: noon.Add(3 * time.Hour)}}},
		{3*time.Hour + time.Minute, nil, "", map[string]Leader{leaderKey("https://one"): {Name: "own", Known: true, Gone: noon.Add(3 * time.Hour)}}},
		{3*time.Hour + 2*time.Minute, []Secret{anew, sleeper}, "own=1", map[string]Leader{leaderKey("https://one"): {Name: "own", Known: true}}},
		{4 * time.Hour, []Secret{sleeper}, "", map[string]Leader{leaderKey("https://one"): {Name: "own", Known: true, Gone: noon.Add(4 * time.Hour)}}},
		{5*time.Hour - 1, []Secret{sleeper}, "", map[string]Leader{leaderKey("https://one"): {Name: "own", Known: true, Gone: noon.Add(4 * time.Hour)}}},
		{5 * time.Hour, []Secret{sleeper}, "zz=3", nil},
		{5 * time.Hour, []Secret{anew, sleeper}, "zz=3", map[string]Leader{leaderKey("https://one"): {Name: "zz", Known: true}}},
	} {
		fleet, next, _ := Discover(Input{Secrets: slices.Clone(step.secrets)}, known, Options{MaxShrink: 1}, noon.Add(step.after))
		known = next
		pins := ""
		for _, c := range fleet.Clusters {
			if c.Pin != "" {
				pins += fmt.Sprintf("%s=%s", c.Shard.ID, c.Pin)
			}
		}
		if diff := cmp.Diff(step.leader, known.Leaders, cmpopts.IgnoreFields(Leader{}, "Made")); diff != "" || pins != step.pins {
			t.Errorf("step %d: pins %q, want %q; leaders (-want +got):\n%s", i, pins, step.pins, diff)
		}
	}
}

// TestWhoMakesAndDeletesSecretsKeepsNoPlanStill: what is not known for an hour is no loss.
func TestWhoMakesAndDeletesSecretsKeepsNoPlanStill(t *testing.T) {
	fleet := names(10)
	var known Known
	refused := 0
	batch := func(n int) []string {
		var all []string
		for i := range 30 {
			all = append(all, fmt.Sprintf("zz-%03d-%02d", n, i))
		}
		return all
	}
	here, generation, stood := append(slices.Clone(fleet), batch(0)...), 0, false
	for minute := range 24 * 60 {
		_, next, err := Discover(Input{Secrets: secrets(here)}, known, Options{MaxShrink: 0.5}, noon.Add(time.Duration(minute)*time.Minute))
		known = next
		switch {
		case err != nil && !stood: // others come while it is refused
			generation++
			here, stood = append(slices.Clone(fleet), batch(generation)...), true
		case err == nil && (stood || minute == 0): // and go as soon as they are believed
			here, stood = slices.Clone(fleet), false
		}
		if err != nil {
			refused++
		}
	}
	if most := int(AcceptAfter / time.Minute); refused > most {
		t.Errorf("nothing was planned in %d of %d minutes; one refusal takes %d", refused, 24*60, most)
	}
}

// TestWhoMakesManyIsKnownByAndBy: a quarter of the known ones a day, or ten.
func TestWhoMakesManyIsKnownByAndBy(t *testing.T) {
	for name, test := range map[string]struct {
		known, made int
		want        []int // how many are known after 2, 25, 50 and 75 hours
	}{
		"a small fleet": {20, 400, []int{30, 40, 50, 62}},
		"a large one":   {400, 4000, []int{500, 625, 781, 976}},
		"a few":         {400, 60, []int{460, 460, 460, 460}},
	} {
		t.Run(name, func(t *testing.T) {
			names := func(prefix string, n int) (all []string) {
				for i := range n {
					all = append(all, fmt.Sprintf("%s%04d", prefix, i))
				}
				return all
			}
			known, all := Known{Clusters: names("c", test.known)}, slices.Concat(names("c", test.known), names("zz", test.made))
			var got []int
			for minute := range 75*60 + 1 {
				var err error
				if known, err = known.accept(all, all, nil, Options{MaxShrink: 1}, noon.Add(time.Duration(minute)*time.Minute)); err != nil {
					t.Fatal(err)
				}
				if hour := minute / 60; minute%60 == 0 && (hour == 2 || hour == 25 || hour == 50 || hour == 75) {
					got = append(got, len(known.Clusters))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("known (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsKnownIsThereForAnHour(t *testing.T) {
	known := Known{Clusters: []string{"a"}}
	for i, step := range []struct {
		minute int
		found  []string
		want   Known
	}{
		{0, []string{"a", "b"}, Known{Clusters: []string{"a"}, Fresh: []string{"b"}, FreshSince: noon}},
		{59, []string{"a", "b", "c"}, Known{Clusters: []string{"a"}, Fresh: []string{"b"}, FreshSince: noon}},
		{60, []string{"a", "b", "c"}, Known{Clusters: []string{"a", "b"}, Fresh: []string{"c"}, FreshSince: noon.Add(time.Hour), Joined: 1, JoinedSince: noon.Add(time.Hour)}},
		{61, []string{"a", "b"}, Known{Clusters: []string{"a", "b"}, Joined: 1, JoinedSince: noon.Add(time.Hour)}},
		{200, []string{"b", "d"}, Known{Clusters: []string{"b"}, Fresh: []string{"d"}, FreshSince: noon.Add(200 * time.Minute),
			Joined: 1, JoinedSince: noon.Add(time.Hour), Lost: lost(noon.Add(200*time.Minute), "a")}},
	} {
		var err error
		if known, err = known.accept(step.found, step.found, nil, Options{MaxShrink: 1}, noon.Add(time.Duration(step.minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, known); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestTheMemoryOfLeadersIsBounded: the history has room for other things, too. Who was there for an hour is forgotten last, and of
// those who was made first.
func TestTheMemoryOfLeadersIsBounded(t *testing.T) {
	leaders := map[string]Leader{}
	for i := range 3000 {
		leaders[fmt.Sprintf("%04d", i)] = Leader{Name: fmt.Sprintf("c%04d", i), Known: i%2 == 1, Made: noon.Add(-time.Duration(i) * time.Minute)}
	}
	got := (Known{}).bounded(leaders)
	for key, l := range got {
		if !l.Known || l.Made.After(noon.Add(-1000*time.Minute)) {
			t.Errorf("%s is remembered, made %s; want the thousand known ones that were made first", key, l.Made)
		}
	}
	if len(got) != mostLeaders {
		t.Errorf("%d leaders are remembered, want %d", len(got), mostLeaders)
	}
}

// TestNobodysPairsPushALeaderOut: a thousand pairs of Secrets, opted out or not, whose servers' hashes sort first, stand for hours when
// an owner makes his Secret anew beside a younger twin.
func TestNobodysPairsPushALeaderOut(t *testing.T) {
	for _, optedOut := range []bool{true, false} {
		t.Run(fmt.Sprintf("opted out %t", optedOut), func(t *testing.T) { keepsItsLeader(t, optedOut) })
	}
}

func keepsItsLeader(t *testing.T, optedOut bool) {
	server := func(s string) func(*Secret) { return func(x *Secret) { x.Server = s } }
	at := func(created time.Time) func(*Secret) { return func(s *Secret) { s.Created = created } }
	pinned := func(s *Secret) { s.Pin = "3" }
	const victims = "https://victim"
	var pairs []Secret
	for i := 0; len(pairs) < 2*mostLeaders; i++ {
		if url := fmt.Sprintf("https://pair-%d", i); leaderKey(url) < leaderKey(victims) {
			for _, which := range []string{"a", "b"} {
				pairs = append(pairs, secret(fmt.Sprintf("zz-%d-%s", i, which), server(url), at(noon.Add(-time.Hour)), func(s *Secret) { s.Unmanaged = optedOut }))
			}
		}
	}
	others := []Secret{secret("c0"), secret("c1"), secret("c2"), secret("c3")}
	own, twin := secret("victim", server(victims), at(noon.Add(-48*time.Hour))), secret("twin", server(victims), at(noon.Add(2*time.Hour)), pinned)
	known, now := Known{}, noon
	look := func(secrets ...Secret) Fleet {
		now = now.Add(time.Minute)
		fleet, next, err := Discover(Input{Secrets: slices.Concat(secrets, others, pairs)}, known, Options{MaxShrink: 0.5}, now)
		if err != nil {
			t.Fatal(err)
		}
		known = next
		return fleet
	}
	for range 150 {
		look(own)
	}
	look(own, twin)
	look(twin)
	own.Created = now
	fleet := look(own, twin)
	for _, c := range fleet.Clusters {
		if c.Shard.ID == "twin" && (!c.Follows || c.Pin != "") {
			t.Errorf("the twin leads, or its pin %q counts, after the owner made his Secret anew", c.Pin)
		}
	}
}

// TestAFleetIsMissedBesideSecretsOfOthers: what ballast does not write is none of the fleet that is gone.
func TestAFleetIsMissedBesideSecretsOfOthers(t *testing.T) {
	stranger := secret("zz", func(s *Secret) { s.Unmanaged = true })
	_, known, err := Discover(Input{Secrets: append(secrets([]string{"a", "b", "c"}), stranger)}, Known{}, Options{MaxShrink: 0.5}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Discover(Input{Secrets: []Secret{stranger}}, known, Options{MaxShrink: 0.5}, noon.Add(time.Minute)); err == nil {
		t.Error("all of ballast's Secrets are gone, and it is believed at once")
	}
}

// TestNoLeaderIsPushedOutByWhatGoes: eleven hundred Secrets that were there for an hour, each alone with its server, are deleted while a
// pair stands, and the older of that is made anew. They were made later than it.
func TestNoLeaderIsPushedOutByWhatGoes(t *testing.T) {
	for name, test := range map[string]struct{ atOnce, sooner int }{
		"by and by, the pair stands":               {400, 0},
		"at once, the pair stands":                 {1100, 0},
		"with the one that leads, which was alone": {1099, 1},
	} {
		t.Run(name, func(t *testing.T) {
			const victims = "https://victim"
			server := func(s string) func(*Secret) { return func(x *Secret) { x.Server = s } }
			at := func(created time.Time) func(*Secret) { return func(s *Secret) { s.Created = created } }
			var fleet, crowd []Secret
			for i := range 2000 {
				fleet = append(fleet, secret(fmt.Sprintf("honest-%04d", i), server(fmt.Sprintf("https://h-%d", i)), at(noon.Add(-time.Hour))))
			}
			for i := 0; len(crowd) < 1100; i++ {
				if url := fmt.Sprintf("https://own-%d", i); leaderKey(url) < leaderKey(victims) {
					crowd = append(crowd, secret(fmt.Sprintf("aa-%04d", i), server(url), at(noon.Add(-time.Minute))))
				}
			}
			own, twin := secret("victim", server(victims), at(noon.Add(-48*time.Hour))), secret("twin", server(victims), at(noon), func(s *Secret) { s.Pin = "3" })
			known, now, before, born := Known{}, noon, map[string]string(nil), map[string]time.Time(nil)
			look := func(pair ...Secret) Fleet {
				now = now.Add(time.Minute)
				seen, next, err := Discover(Input{Secrets: slices.Concat(crowd, fleet, pair)}, known, Options{MaxShrink: 0.9, Before: before, Made: born}, now)
				if err != nil {
					t.Fatal(err)
				}
				known, before, born = next, map[string]string{}, map[string]time.Time{}
				for _, c := range seen.Clusters {
					before[c.Shard.ID], born[c.Shard.ID] = c.Shard.Server, c.Created
				}
				return seen
			}
			look(own)
			if look(own); test.sooner == 0 {
				look(own, twin)
			}
			for len(crowd) > test.sooner {
				if crowd = crowd[min(test.atOnce, len(crowd)):]; test.sooner > 0 {
					look()
					break
				}
				look(own, twin)
			}
			look(twin)
			made := own
			made.Created, made.UID = now, "anew"
			for _, c := range look(made, twin).Clusters {
				switch follows := c.Follows; {
				case c.Shard.ID == "victim" && follows, c.Shard.ID == "twin" && !follows:
					t.Errorf("%s follows: %t", c.Shard.ID, follows)
				}
			}
		})
	}
}

// TestTheOldestBecomeKnownFirst: who makes ten Secrets anew each day, with names before all others, takes nobody's room by it.
func TestTheOldestBecomeKnownFirst(t *testing.T) {
	at := func(created time.Time) func(*Secret) { return func(s *Secret) { s.Created = created } }
	var honest []Secret
	for i := range 100 {
		honest = append(honest, secret(fmt.Sprintf("c%03d", i), at(noon)))
	}
	known, made, now := Known{}, map[string]time.Time(nil), noon
	look := func(secrets ...Secret) {
		slices.SortFunc(secrets, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
		fleet, next, err := Discover(Input{Secrets: secrets}, known, Options{MaxShrink: 0.5, Made: made}, now)
		if err != nil {
			t.Fatal(err)
		}
		known, made = next, map[string]time.Time{}
		for _, c := range fleet.Clusters {
			made[c.Shard.ID] = c.Created
		}
	}
	look(honest[:10]...)
	for day := range 12 {
		var own []Secret
		for i := range 10 {
			own = append(own, secret(fmt.Sprintf("aa-%02d-%d", day, i), at(now)))
		}
		for range 24 * 6 {
			now = now.Add(10 * time.Minute)
			look(slices.Concat(honest, own)...)
		}
	}
	if unknown := slices.DeleteFunc(honest, func(s Secret) bool { return known.Has(s.Name) }); len(unknown) > 0 {
		t.Errorf("%d of the hundred that stand for twelve days are not known, the first is %s; %d are", len(unknown), unknown[0].Name, len(known.Clusters))
	}
	if len(known.Fresh) > 2*max(leastJoin, len(known.Clusters)*mostJoin/100) {
		t.Errorf("%d are waited for to be known", len(known.Fresh))
	}
}
