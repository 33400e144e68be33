package certs

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// dated is what stood from a time on.
type dated[T any] struct {
	at    time.Time
	value T
}

// model is a cluster whose API servers and webhook pods are as slow as the rules allow.
type model struct {
	State
	now     time.Time
	rules   Rules
	bundles []dated[[]byte]
	leaves  []dated[Pair]
	writes  int
	lostCAs int
}

// act does what Next says, and does it again, as Rotator.Once does. It gives how many rounds it took.
func (m *model) act(t *rapid.T) int {
	for round := range maxPasses {
		actions := Next(m.now, m.State, m.rules)
		if len(actions) == 0 || actions[0].Kind == Wait {
			return round
		}
		for _, a := range actions {
			m.do(t, a)
		}
	}
	t.Fatalf("it does not come to rest")
	return 0
}

func (m *model) do(t *rapid.T, a Action) {
	var err error
	m.writes++
	switch a.Kind {
	case IssueCA:
		m.CA, err = NewCA(m.now)
	case WriteBundle:
		for i := range m.Bundles {
			m.Bundles[i] = a.Bundle
		}
		m.BundledAt = m.now
		m.bundles = append(m.bundles, dated[[]byte]{m.now, a.Bundle})
	case IssueLeaf:
		m.Leaf, err = NewLeaf(m.CA, m.rules.DNSNames, m.now)
		m.LeafCA = m.CA.Cert
		m.leaves = append(m.leaves, dated[Pair]{m.now, m.Leaf})
	case Wait:
		m.writes--
	}
	if err != nil {
		t.Fatal(err)
	}
}

// current are the values that somebody who lags by at most that may have: the one of then, and all since.
func current[T any](history []dated[T], now time.Time, lag time.Duration) []T {
	var out []T
	for i, d := range history {
		if i+1 == len(history) || history[i+1].at.After(now.Add(-lag)) {
			out = append(out, d.value)
		}
	}
	return out
}

// lost is why a call of any API server to any pod would fail.
func (m *model) lost() error {
	for _, bundle := range current(m.bundles, m.now, m.rules.Settle) {
		for _, leaf := range current(m.leaves, m.now, m.rules.Overlap) {
			for _, p := range Check(leaf.Cert, leaf.Key, bundle, m.rules.DNSNames, m.now) {
				if p.Kind != ExpiresSoon && p.Kind != BundleExpired {
					return p
				}
			}
		}
	}
	return nil
}

// TestNoCallIsEverLost: whichever Secrets are deleted and however the time goes, while fewer than
// maxRetained CAs are lost, no API server distrusts any pod, all comes
// to rest by itself, and what rests is well.
func TestNoCallIsEverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: start(), rules: rules(), State: State{Bundles: make([][]byte, 4)}}
		m.act(t)
		if err := m.lost(); err != nil {
			t.Fatalf("after the first run: %v", err)
		}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			event := rapid.SampledFrom([]string{"time", "time", "ca", "leaf", "both", "renewal"}).Draw(t, "event")
			if event != "time" && event != "leaf" {
				if m.lostCAs++; m.lostCAs == maxRetained { // a bundle holds no more
					break
				}
			}
			switch event {
			case "ca":
				m.CA = Pair{}
			case "leaf":
				m.Leaf, m.LeafCA = Pair{}, nil
			case "both":
				m.CA, m.Leaf, m.LeafCA = Pair{}, Pair{}, nil
			case "renewal": // a CA that comes to its last year
				m.CA = aged(t, m)
			case "time":
				m.now = m.now.Add(rapid.SampledFrom([]time.Duration{
					time.Second, DefaultSettle / 2, DefaultSettle, time.Minute, DefaultOverlap, time.Hour, day, 5 * day,
				}).Draw(t, "step"))
			}
			if rapid.IntRange(0, 3).Draw(t, "awake") > 0 { // else nobody looks for a while
				m.act(t)
			}
			if err := m.lost(); err != nil {
				t.Fatalf("a call is lost: %v", err)
			}
		}
		m.rest(t)
	})
}

// aged is the CA as it will be in its last year: unfit to sign, by its time alone.
func aged(t *rapid.T, m *model) Pair {
	ca, err := NewCA(m.now.Add(-CADuration + CARenewBefore - time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// rest lets time go by until nothing is to do, and judges what stands then.
func (m *model) rest(t *rapid.T) {
	for range 6 {
		m.act(t)
		actions := Next(m.now, m.State, m.rules)
		if len(actions) == 0 {
			break
		}
		m.now = actions[0].Until
		if err := m.lost(); err != nil {
			t.Fatalf("a call is lost while it comes to rest: %v", err)
		}
	}
	before := m.writes
	m.act(t)
	if got := Next(m.now, m.State, m.rules); len(got) > 0 || m.writes != before {
		t.Fatalf("at rest there is %v to do", steps(m.now, got))
	}
	for i, b := range m.Bundles {
		if problems := Check(m.Leaf.Cert, m.Leaf.Key, b, m.rules.DNSNames, m.now); len(problems) > 0 {
			t.Fatalf("webhook %d at rest: %v", i, problems)
		}
		if string(b) != string(m.CA.Cert) {
			t.Fatalf("webhook %d trusts more than the CA at rest", i)
		}
	}
}

// TestWhateverStandsItComesToRest: from any mixture of good, foreign, broken and absent parts.
func TestWhateverStandsItComesToRest(t *testing.T) {
	must := made(t)
	ca, ca2 := must(NewCA(start())), must(NewCA(start()))
	leaf, leaf2 := must(NewLeaf(ca, rules().DNSNames, start())), must(NewLeaf(ca2, rules().DNSNames, start()))
	pairs := []Pair{{}, ca, ca2, leaf, leaf2, {ca.Cert, leaf.Key}, {[]byte("x"), ca.Key}}
	brought := selfMade(t)
	for _, name := range slices.Sorted(maps.Keys(brought)) {
		pairs = append(pairs, brought[name])
	}
	texts := [][]byte{nil, ca.Cert, ca2.Cert, leaf.Cert, []byte("x"), ca.Key}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []byte { return rapid.SampledFrom(texts).Draw(t, name) }
		m := &model{now: start().Add(time.Duration(rapid.Int64Range(int64(-30*day), int64(60*day)).Draw(t, "now"))), rules: rules()}
		m.CA, m.Leaf = rapid.SampledFrom(pairs).Draw(t, "ca"), rapid.SampledFrom(pairs).Draw(t, "leaf")
		m.LeafCA = draw("ca.crt")
		for i := range rapid.IntRange(0, 4).Draw(t, "webhooks") {
			m.Bundles = append(m.Bundles, append(draw(fmt.Sprint("bundle", i)), draw(fmt.Sprint("more", i))...))
		}
		m.BundledAt = rapid.SampledFrom([]time.Time{{}, m.now, m.now.Add(-day), m.now.Add(365 * day)}).Draw(t, "bundledAt")
		for range 6 {
			m.act(t)
			if actions := Next(m.now, m.State, m.rules); len(actions) > 0 {
				m.now = actions[0].Until
			}
		}
		m.rest(t)
	})
}
