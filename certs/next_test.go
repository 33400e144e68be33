package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/certs/privatekey"
	"ballast/webhook/fixture"
)

func rules() Rules { return DefaultSettings().DefaultRules() }

// made fails the test where nothing should fail.
func made(t testing.TB) func(Pair, error) Pair {
	return func(p Pair, err error) Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// four is the bundle in each of the four webhooks.
func four(texts ...[]byte) [][]byte {
	b := bytes.Join(texts, nil)
	return [][]byte{b, b, b, b}
}

// step is an Action without the bytes.
type step struct {
	Kind ActionKind
	Why  ActionReason
	CAs  int // in the bundle
	Wait time.Duration
}

func steps(now time.Time, actions []Action) []step {
	var out []step
	for _, a := range actions {
		s := step{Kind: a.Kind, Why: a.Why, CAs: bytes.Count(a.Bundle, []byte("BEGIN CERTIFICATE"))}
		if !a.Until.IsZero() {
			s.Wait = a.Until.Sub(now)
		}
		out = append(out, s)
	}
	return out
}

func TestNext(t *testing.T) {
	must := made(t)
	names := rules().DNSNames
	ca, ca2 := must(NewCA(start())), must(NewCA(start().Add(5*day)))
	leaf, leaf2 := must(NewLeaf(ca, names, start())), must(NewLeaf(ca2, names, start().Add(5*day)))
	misnamed := must(NewLeaf(ca, []string{"ballast-webhook.gitops.svc"}, start()))
	own := pairOf(t, ca)
	weak := issueFor(t, keyOn(t, elliptic.P224()), &own, nil)
	vast := Pair{vastCertificate(t, own), ca.Key}
	well := State{CA: ca, Leaf: leaf, LeafCA: ca.Cert, Bundles: four(ca.Cert), BundledAt: start()}
	with := func(change func(*State)) State {
		s := well
		s.Bundles = slices.Clone(s.Bundles)
		change(&s)
		return s
	}
	moving := with(func(s *State) { s.CA, s.Bundles, s.BundledAt = ca2, four(ca2.Cert, ca.Cert), start().Add(5*day) })
	moved := with(func(s *State) {
		*s = State{CA: ca2, Leaf: leaf2, LeafCA: ca2.Cert, Bundles: four(ca2.Cert, ca.Cert), BundledAt: start().Add(5 * day)}
	})

	for name, c := range map[string]struct {
		state State
		after time.Duration
		want  []step
	}{
		"all is well":                             {well, day, nil},
		"nothing is there":                        {State{}, 0, []step{{Kind: IssueCA, Why: CAUnreadable}}},
		"only a CA, and nobody calls":             {State{CA: ca}, 0, []step{{Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"a CA and webhooks that never worked":     {State{CA: ca, Bundles: four(nil)}, 0, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 1}, {Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"the CA's key is lost":                    {with(func(s *State) { s.CA.Key = nil }), day, []step{{Kind: IssueCA, Why: ActionReason(KeyMismatch)}}},
		"the CA is a leaf":                        {with(func(s *State) { s.CA = leaf }), day, []step{{Kind: IssueCA, Why: CAUnreadable}}},
		"the CA is in its last year":              {well, CADuration - CARenewBefore + day, []step{{Kind: IssueCA, Why: Renewal}}},
		"the CA is past its end":                  {well, CADuration + day, []step{{Kind: IssueCA, Why: ActionReason(Expired)}}},
		"the CA is of tomorrow":                   {well, -day, []step{{Kind: IssueCA, Why: ActionReason(NotYetValid)}}},
		"the leaf's Secret was deleted":           {with(func(s *State) { s.Leaf, s.LeafCA = Pair{}, nil }), day, []step{{Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"the leaf has eleven days left":           {well, 19 * day, nil},
		"the leaf has nine days left":             {well, 21 * day, []step{{Kind: IssueLeaf, Why: Renewal}}},
		"the leaf is past its end":                {well, 31 * day, []step{{Kind: IssueLeaf, Why: ActionReason(Expired)}}},
		"the leaf has another key":                {with(func(s *State) { s.Leaf.Key = leaf2.Key }), day, []step{{Kind: IssueLeaf, Why: ActionReason(KeyMismatch)}}},
		"the leaf has another namespace's names":  {with(func(s *State) { s.Leaf = misnamed }), day, []step{{Kind: IssueLeaf, Why: ActionReason(NameMismatch)}}},
		"the leaf is the CA itself":               {with(func(s *State) { s.Leaf = ca }), day, []step{{Kind: IssueLeaf, Why: ActionReason(NameMismatch)}}},
		"the leaf has a stranger beside it":       {with(func(s *State) { s.Leaf.Cert = slices.Concat(leaf.Cert, ca2.Cert) }), day, []step{{Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"the leaf has its own CA beside it":       {with(func(s *State) { s.Leaf.Cert = slices.Concat(leaf.Cert, ca.Cert) }), day, []step{{Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"the leaf has a vast key's beside it":     {with(func(s *State) { s.Leaf.Cert = slices.Concat(leaf.Cert, vast.Cert) }), day, []step{{Kind: IssueLeaf, Why: ActionReason(LeafUnreadable)}}},
		"the leaf is of a curve nobody takes":     {with(func(s *State) { s.Leaf = Pair{weak.certPEM(), weak.keyPEM(t)} }), day, []step{{Kind: IssueLeaf, Why: ActionReason(HandshakeFails)}}},
		"the CA has a vast key":                   {with(func(s *State) { s.CA = vast }), day, []step{{Kind: IssueCA, Why: CAUnreadable}}},
		"the CA is large":                         {with(func(s *State) { s.CA = largeCA(t, maxCASize) }), day, []step{{Kind: IssueCA, Why: CAUnreadable}}},
		"a new CA, and a large stranger":          {with(func(s *State) { s.CA, s.Bundles = ca2, four(ca.Cert, largeCA(t, maxCASize).Cert) }), 5 * day, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 2}, {Kind: Wait, Why: Settling, Wait: DefaultSettle}}},
		"one webhook lost its bundle":             {with(func(s *State) { s.Bundles[2] = nil }), day, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 1}}},
		"a bundle holds what is no PEM":           {with(func(s *State) { s.Bundles[0] = []byte("Cg==") }), day, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 1}}},
		"a bundle holds a stranger":               {with(func(s *State) { s.Bundles = four(ca.Cert, ca2.Cert) }), 6 * day, []step{{Kind: WriteBundle, Why: CARetired, CAs: 1}}},
		"a new CA that no bundle holds yet":       {with(func(s *State) { s.CA = ca2 }), 5 * day, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 2}, {Kind: Wait, Why: Settling, Wait: DefaultSettle}}},
		"a new CA that API servers may not know":  {moving, 5*day + time.Second, []step{{Kind: Wait, Why: Settling, Wait: DefaultSettle - time.Second}}},
		"a new CA that every API server knows":    {moving, 5*day + DefaultSettle, []step{{Kind: IssueLeaf, Why: CAChanged}}},
		"a new CA in bundles of an unknown age":   {with(func(s *State) { *s = moving; s.BundledAt = time.Time{} }), 6 * day, []step{{Kind: WriteBundle, Why: Undated, CAs: 2}, {Kind: Wait, Why: Settling, Wait: DefaultSettle}}},
		"a new CA in bundles of next year":        {with(func(s *State) { *s = moving; s.BundledAt = start().Add(365 * day) }), 6 * day, []step{{Kind: WriteBundle, Why: Undated, CAs: 2}, {Kind: Wait, Why: Settling, Wait: DefaultSettle}}},
		"a new CA, and the old one's bundle lost": {with(func(s *State) { *s = moving; s.Bundles = four(nil) }), 6 * day, []step{{Kind: WriteBundle, Why: CAAdded, CAs: 1}, {Kind: IssueLeaf, Why: CAChanged}}},
		"a new CA, and nobody calls":              {with(func(s *State) { *s = moving; s.Bundles = nil }), 5 * day, []step{{Kind: IssueLeaf, Why: CAChanged}}},
		"a new leaf that pods may not serve yet":  {moved, 5*day + time.Minute, []step{{Kind: Wait, Why: Loading, Wait: DefaultOverlap - time.Minute}}},
		"a new leaf that every pod serves":        {moved, 5*day + DefaultOverlap, []step{{Kind: WriteBundle, Why: CARetired, CAs: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := start().Add(c.after)
			if diff := cmp.Diff(c.want, steps(now, Next(now, c.state, rules()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// pairOf reads a CA that ballast made.
func pairOf(t testing.TB, ca Pair) pair {
	t.Helper()
	chain, err := certificates(ca.Cert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{chain[0], key.(*ecdsa.PrivateKey)}
}

// largeCA is a CA whose name alone has that many bytes.
func largeCA(t testing.TB, size int) Pair {
	t.Helper()
	ca := issue(t, nil, func(c *x509.Certificate) { asCA(c); c.Subject.CommonName = strings.Repeat("a", size) })
	return Pair{ca.certPEM(), ca.keyPEM(t)}
}

// TestACAWhoseLeafNobodyTakesDoesNotVouch: its name stands in the leaf, whose message no client reads to its end.
func TestACAWhoseLeafNobodyTakesDoesNotVouch(t *testing.T) {
	for size, want := range map[int]bool{64: true, 300 << 10: false} {
		if got := vouches(largeCA(t, size), rules().DNSNames, start()); got != want {
			t.Errorf("with a name of %d bytes: %t", size, got)
		}
	}
}

// selfMade are CAs as somebody may put them into the CA's Secret: each has its key, its time and the right to sign.
func selfMade(t testing.TB) map[string]Pair {
	t.Helper()
	made := map[string]Pair{}
	for name, change := range map[string]func(*x509.Certificate){
		"plain":                func(*x509.Certificate) {},
		"for our names":        func(c *x509.Certificate) { c.PermittedDNSDomains = rules().DNSNames },
		"for clients":          func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"for other names":      func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com"} },
		"for all but our name": func(c *x509.Certificate) { c.ExcludedDNSDomains = []string{"svc"} },
		"critical and unknown": func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		},
	} {
		template := &x509.Certificate{Subject: pkix.Name{CommonName: CASecret}, NotBefore: start().Add(-time.Hour),
			NotAfter: start().Add(CADuration), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		change(template)
		pair, err := sign(template, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		made[name] = pair
	}
	return made
}

// TestACAThatVouchesForNoLeafIsReplaced: else every call of the webhook fails for good, and a leaf is issued again and again.
func TestACAThatVouchesForNoLeafIsReplaced(t *testing.T) {
	must := made(t)
	own := must(NewCA(start()))
	leaf := must(NewLeaf(own, rules().DNSNames, start()))
	keep := []step{{Kind: WriteBundle, Why: CAAdded, CAs: 2}, {Kind: Wait, Why: Settling, Wait: DefaultSettle}}
	replace := []step{{Kind: IssueCA, Why: CAUnreadable}}
	for name, want := range map[string][]step{
		"plain": keep, "for our names": keep,
		"for clients": replace, "for other names": replace, "for all but our name": replace, "critical and unknown": replace,
	} {
		t.Run(name, func(t *testing.T) {
			s := State{CA: selfMade(t)[name], Leaf: leaf, LeafCA: own.Cert, Bundles: four(own.Cert), BundledAt: start()}
			if diff := cmp.Diff(want, steps(start(), Next(start(), s, rules()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAFloodOfCAsDoesNotPushOutTheLeafsOwn(t *testing.T) {
	must := made(t)
	own := must(NewCA(start()))
	s := State{CA: must(NewCA(start())), Leaf: must(NewLeaf(own, rules().DNSNames, start())), LeafCA: own.Cert}
	var strangers [][]byte
	for range 2 * maxRetained {
		strangers = append(strangers, must(NewCA(start())).Cert)
	}
	s.Bundles = four(append(strangers, own.Cert)...)
	actions := Next(start(), s, rules())
	if len(actions) != 2 || actions[0].Kind != WriteBundle {
		t.Fatalf("got %v", steps(start(), actions))
	}
	if got := bytes.Count(actions[0].Bundle, []byte("BEGIN")); got != 1+maxRetained {
		t.Errorf("the bundle holds %d certificates", got)
	}
	if problems := Check(s.Leaf.Cert, s.Leaf.Key, actions[0].Bundle, rules().DNSNames, start()); len(problems) > 0 {
		t.Errorf("the leaf that is served is no longer trusted: %v", problems)
	}
}

// TestAForeignCAOfTheLeafsSecretIsTrustedNowhere, and one every 25 s does not keep the leaf from being issued: the
// bundles settle for 30 s after each write of them.
func TestAForeignCAOfTheLeafsSecretIsTrustedNowhere(t *testing.T) {
	must := made(t)
	old, now := must(NewCA(start())), start()
	s := State{CA: must(NewCA(start())), Leaf: must(NewLeaf(old, rules().DNSNames, start())), Bundles: four(old.Cert), BundledAt: start()}
	for range 10 {
		foreign := must(NewCA(now)).Cert
		s.LeafCA = foreign
		for _, a := range Next(now, s, rules()) {
			switch a.Kind {
			case WriteBundle:
				if bytes.Contains(a.Bundle, foreign) {
					t.Fatal("a foreign CA goes into the bundles")
				}
				s.Bundles, s.BundledAt = four(a.Bundle), now
			case IssueLeaf:
				if now.Sub(start()) < DefaultSettle {
					t.Errorf("issued after %s, before the bundles settled", now.Sub(start()))
				}
				return
			case IssueCA, Wait:
			}
		}
		now = now.Add(25 * time.Second)
	}
	t.Error("the leaf is never issued")
}

// TestWhoAlternatesTheLeafsCAKeepsNoLeafFromBeingIssued: two CAs that the bundles hold take turns beside the leaf, every
// 20 s. With as many as a bundle may hold, and with one more, the bundles are written at most once.
func TestWhoAlternatesTheLeafsCAKeepsNoLeafFromBeingIssued(t *testing.T) {
	must := made(t)
	var cas [][]byte
	old := must(NewCA(start()))
	cas = append(cas, old.Cert)
	for range maxRetained {
		cas = append(cas, must(NewCA(start())).Cert)
	}
	for name, held := range map[string]int{"two": 2, "as many as may be": maxRetained, "one more": maxRetained + 1} {
		t.Run(name, func(t *testing.T) {
			ca, now := must(NewCA(start())), start()
			s := State{CA: ca, Leaf: must(NewLeaf(old, rules().DNSNames, start())), BundledAt: start(),
				Bundles: four(slices.Concat(ca.Cert, slices.Concat(cas[:held]...)))}
			var got []ActionKind
			for i := range 6 {
				s.LeafCA = cas[i%2]
				for _, a := range Next(now, s, rules()) {
					got = append(got, a.Kind)
					if a.Kind == WriteBundle {
						s.Bundles, s.BundledAt = four(a.Bundle), now
					}
				}
				if slices.Contains(got, IssueLeaf) {
					break
				}
				now = now.Add(20 * time.Second)
			}
			want := []ActionKind{Wait, Wait, IssueLeaf}
			if held > maxRetained {
				want = slices.Insert(want, 0, WriteBundle)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACAThatSomebodyBroughtMaySign(t *testing.T) {
	own := issue(t, nil, asCA) // its key is in SEC 1, as openssl writes it
	leaf := made(t)(NewLeaf(Pair{own.certPEM(), own.keyPEM(t)}, rules().DNSNames, start()))
	if problems := Check(leaf.Cert, leaf.Key, own.certPEM(), rules().DNSNames, start()); len(problems) > 0 {
		t.Error(problems)
	}
	_, err := NewLeaf(Pair{own.certPEM(), own.certPEM()}, rules().DNSNames, start())
	if err == nil || err.Error() != "making a leaf: the CA's key: it holds no private key in PEM" {
		t.Errorf("got %v", err)
	}
}

// TestNobodyComputesWithAVastKey: it stands in the Secret of the leaf or of the CA, or before the CA's own in a block of
// another type. Go reads such a key for a quarter of an hour.
func TestNobodyComputesWithAVastKey(t *testing.T) {
	must := made(t)
	ca := must(NewCA(start()))
	leaf := must(NewLeaf(ca, rules().DNSNames, start()))
	vast := fixture.VastKey(t)
	well := State{CA: ca, Leaf: leaf, LeafCA: ca.Cert, Bundles: four(ca.Cert), BundledAt: start()}
	leafs, cas := well, well
	leafs.Leaf.Key, cas.CA.Key = vast, vast
	before := bytes.ReplaceAll(vast, []byte("RSA PRIVATE KEY"), []byte("JUNK"))
	for name, test := range map[string]struct {
		state State
		want  []step
	}{
		"the leaf's": {leafs, []step{{Kind: IssueLeaf, Why: ActionReason(KeyMismatch)}}},
		"the CA's":   {cas, []step{{Kind: IssueCA, Why: ActionReason(KeyMismatch)}}},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.AtOnce(t, "deciding what is next", func() {
				if diff := cmp.Diff(test.want, steps(start(), Next(start(), test.state, rules()))); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
	fixture.AtOnce(t, "signing a leaf", func() {
		if _, err := NewLeaf(Pair{ca.Cert, append(before[:len(before):len(before)], ca.Key...)}, rules().DNSNames, start()); err != nil {
			t.Errorf("with another block before the CA's key: %v", err)
		}
		if _, err := NewLeaf(Pair{ca.Cert, vast}, rules().DNSNames, start()); !errors.Is(err, privatekey.ErrNumbers) {
			t.Errorf("by a vast key: %v", err)
		}
	})
}

func TestAPairPrintsNothingOfItsKey(t *testing.T) {
	state := State{CA: made(t)(NewCA(start()))}
	key := strings.Split(string(state.CA.Key), "\n")[1]
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	printed := string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb, state) + fmt.Sprintf(verb, state.CA)
	}
	for _, secret := range []string{key, fmt.Sprintf("%x", key), fmt.Sprintf("%d", []byte(key[:8]))} {
		if strings.Contains(printed, strings.Trim(secret, "[]")) {
			t.Error("the key shows")
		}
	}
}

// FuzzNext: whatever stands in the Secrets and bundles, nothing panics, what is to be written verifies, and nothing holds a key.
func FuzzNext(f *testing.F) {
	must := made(f)
	ca := must(NewCA(start()))
	leaf := must(NewLeaf(ca, rules().DNSNames, start()))
	f.Add(ca.Cert, ca.Key, leaf.Cert, leaf.Key, ca.Cert, ca.Cert, int64(0))
	f.Add(ca.Cert, ca.Key, []byte{}, []byte{}, []byte("Cg=="), ca.Key, int64(1<<40))
	f.Add(leaf.Cert, leaf.Key, ca.Cert, ca.Key, slices.Concat(leaf.Cert, ca.Cert), ca.Cert, int64(-1<<50))
	f.Fuzz(func(t *testing.T, caCert, caKey, cert, key, leafCA, bundle []byte, at int64) {
		s := State{CA: Pair{caCert, caKey}, Leaf: Pair{cert, key}, LeafCA: leafCA, Bundles: [][]byte{bundle, nil}, BundledAt: start()}
		now := start().Add(time.Duration(at))
		for _, a := range Next(now, s, rules()) {
			if a.Kind != WriteBundle {
				continue
			}
			if got, err := certificates(a.Bundle); err != nil || len(got) == 0 || len(got) > 1+maxRetained {
				t.Errorf("the bundle holds %d certificates: %v", len(got), err)
			}
			if bytes.Contains(a.Bundle, []byte("KEY")) {
				t.Error("the bundle holds a key")
			}
		}
	})
}
