package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// Where nothing else makes certificates (no cert-manager), ballast makes its own, and keeps them in these two Secrets.
const (
	CASecret = "ballast-webhook-ca" // tls.crt, tls.key: the CA that signs
	// BundledAtKey is the annotation of the MutatingWebhookConfiguration that says when its caBundle was last written.
	BundledAtKey = "ballast.argoproj.io/ca-bundled-at"
)

// Pair is a certificate with its key, both PEM. It prints as neither.
type Pair struct{ Cert, Key []byte }

// Format keeps the key out of whatever prints a Pair, or what holds one.
func (Pair) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(certificate and key)") }

// MarshalText does the same for what encodes one.
func (Pair) MarshalText() ([]byte, error) { return []byte("(certificate and key)"), nil }

// State is what stands on the API server. What is not there is zero.
type State struct {
	CA        Pair
	Leaf      Pair
	LeafCA    []byte    // ca.crt beside the leaf: the CA that signed it
	Bundles   [][]byte  // the caBundle of each webhook; none without a webhook configuration
	BundledAt time.Time // when the caBundles were last written
}

// Rules are what a rotation goes by.
type Rules struct {
	DNSNames []string // of the leaf
	// Settle is how long API servers may take to learn a caBundle. They watch it, so that it is a second in truth.
	Settle time.Duration
	// Overlap is how long a webhook pod may take to load a leaf: the kubelet's sync of a Secret takes up to two
	// minutes.
	Overlap time.Duration
}

// The defaults of Rules.
const (
	DefaultSettle  = 30 * time.Second
	DefaultOverlap = 10 * time.Minute
)

// DefaultRules are those for the names of the settings.
func (s Settings) DefaultRules() Rules {
	return Rules{DNSNames: s.DNSNames(), Settle: DefaultSettle, Overlap: DefaultOverlap}
}

// Action is one thing to do. After each, the state is another.
type Action struct {
	Kind   ActionKind
	Why    ActionReason
	Bundle []byte    // of WriteBundle
	Until  time.Time // of Wait
}

// ActionKind is the closed set of actions.
type ActionKind string

// The actions.
const (
	IssueCA     ActionKind = "IssueCA"
	WriteBundle ActionKind = "WriteBundle"
	IssueLeaf   ActionKind = "IssueLeaf"
	Wait        ActionKind = "Wait" // nothing but time is missing
)

// ActionReason is why: a ProblemKind, or one of these.
type ActionReason string

// The reasons beside the kinds of problems.
const (
	Renewal      ActionReason = "Renewal"      // its time has come
	CAUnreadable ActionReason = "CAUnreadable" // no CA certificate in the CA's Secret, or none whose leaf is taken
	CAChanged    ActionReason = "CAChanged"    // the leaf is of another CA
	CAAdded      ActionReason = "CAAdded"      // to a bundle that does not hold it
	CARetired    ActionReason = "CARetired"    // no pod serves a leaf of it any more
	Undated      ActionReason = "Undated"      // nobody knows since when the bundle stands
	Settling     ActionReason = "Settling"     // API servers may not have seen the bundle
	Loading      ActionReason = "Loading"      // webhook pods may serve the leaf before
)

// maxRetained bounds the CAs that a caBundle holds beside the present one, whoever put them there: so many may come and
// go within one overlap without a lost call.
const maxRetained = 8

// maxCASize bounds a CA's certificate, in bytes of DER: an RSA CA's has 1,400. Each webhook's caBundle holds up to
// nine, and with more the configuration would be too large for the API server, for good.
const maxCASize = 8 << 10

// Next is what to do now, in this order; nothing, when all is well. A call of the webhook finds a leaf that its API
// server trusts at every moment of a rotation: a new CA is first added to the bundles; once every API server knows it,
// a leaf of it is issued; once every pod serves that, the CA before leaves the bundles.
func Next(now time.Time, s State, r Rules) []Action {
	ca, why := judgeCA(s.CA, r.DNSNames, now)
	if why != "" {
		return []Action{{Kind: IssueCA, Why: why}}
	}
	why = judgeServed(s, r, now)
	retained, loadedAt := []*x509.Certificate(nil), loadedAt(s.Leaf, r)
	if why != "" || now.Before(loadedAt) {
		retained = retain(s, ca, now)
	}
	bundle := join(ca, retained)
	var out []Action
	if reason := judgeBundles(s, ca, bundle, why != "" && len(retained) > 0, now.Add(r.Settle)); reason != "" {
		out = append(out, Action{Kind: WriteBundle, Why: reason, Bundle: bundle})
	}
	switch {
	case why == "" && len(retained) > 0:
		return append(out, Action{Kind: Wait, Why: Loading, Until: loadedAt})
	case why == "":
		return out
	case len(s.Bundles) == 0 || len(retained) == 0: // nobody can trust what is served now: nothing to lose by haste
		return append(out, Action{Kind: IssueLeaf, Why: why})
	case len(out) > 0:
		return append(out, Action{Kind: Wait, Why: Settling, Until: now.Add(r.Settle)})
	case now.Before(s.BundledAt.Add(r.Settle)):
		return append(out, Action{Kind: Wait, Why: Settling, Until: s.BundledAt.Add(r.Settle)})
	}
	return append(out, Action{Kind: IssueLeaf, Why: why})
}

// judgeCA reads the CA, and says why it has to be made anew; nothing if it does not. The names are those it signs for.
func judgeCA(pair Pair, names []string, now time.Time) (*x509.Certificate, ActionReason) {
	chain, err := certificates(pair.Cert)
	if err != nil || len(chain) != 1 || !maySign(chain[0]) {
		return nil, CAUnreadable
	}
	if !isPair(pair.Cert, pair.Key) {
		return nil, ActionReason(KeyMismatch)
	}
	switch left := chain[0].NotAfter.Sub(now); {
	case left < 0:
		return nil, ActionReason(Expired)
	case left < CARenewBefore:
		return nil, Renewal
	case now.Before(chain[0].NotBefore):
		return nil, ActionReason(NotYetValid)
	case !vouches(pair, names, now):
		return nil, CAUnreadable
	}
	return chain[0], ""
}

// maySign reports whether the certificate is a CA's, of a size at which signing and handing it out cost nothing.
func maySign(c *x509.Certificate) bool {
	signs := c.IsCA && c.KeyUsage&x509.KeyUsageCertSign != 0
	return signs && len(c.Raw) <= maxCASize && !vastKey(c)
}

// vouches reports whether a leaf that the CA signs now verifies under it, and API servers take it. What a CA may say of
// itself (purposes, names, extensions that are critical) forbids that in more ways than there are fields to compare, so
// it is tried.
func vouches(ca Pair, names []string, now time.Time) bool {
	leaf, err := NewLeaf(ca, names, now)
	if err != nil {
		return false
	}
	problems := Check(leaf.Cert, leaf.Key, ca.Cert, names, now)
	return !slices.ContainsFunc(problems, func(p Flaw) bool { return p.Kind == ChainBroken || p.Kind == HandshakeFails })
}

// judgeServed says why the leaf has to be made anew, by what Check finds of it under the present CA. Its CA signs it
// without another between, so that a second certificate in tls.crt is nothing that ballast wrote.
func judgeServed(s State, r Rules, now time.Time) ActionReason {
	chain, _ := certificates(s.Leaf.Cert)
	if len(chain) != 1 {
		return ActionReason(LeafUnreadable)
	}
	for _, p := range Check(s.Leaf.Cert, s.Leaf.Key, s.CA.Cert, r.DNSNames, now) {
		switch p.Kind {
		case LeafUnreadable, KeyMismatch, Expired, NotYetValid, NameMismatch, HandshakeFails, LeafAsCA:
			return ActionReason(p.Kind)
		case ChainBroken:
			return CAChanged
		case BundleEmpty, BundleUnreadable, BundleExpired, ExpiresSoon: // of the CA, which was judged before; or covered below
		}
	}
	if chain[0].NotAfter.Sub(now) < LeafRenewBefore {
		return Renewal
	}
	return ""
}

// loadedAt is when every pod serves the leaf; zero without one.
func loadedAt(leaf Pair, r Rules) time.Time {
	chain, _ := certificates(leaf.Cert)
	if len(chain) == 0 {
		return time.Time{}
	}
	return chain[0].NotBefore.Add(backdate + r.Overlap)
}

// retain collects the other certificates that are trusted now, in the bundles' order: what a pod serves may be theirs.
// Where there are too many, the leaf's own CA stays. ca.crt beside the leaf only says which that is: a CA stands in the
// bundles before a leaf of it is issued, and whoever may write that Secret would be trusted by all webhooks, and have
// the bundles settle without end.
func retain(s State, ca *x509.Certificate, now time.Time) []*x509.Certificate {
	var out []*x509.Certificate
	known := func(c *x509.Certificate) bool { return c.Equal(ca) || slices.ContainsFunc(out, c.Equal) }
	for _, text := range s.Bundles {
		found, _ := certificates(text) // those before something unreadable count
		for _, c := range found {
			if len(c.Raw) <= maxCASize && !now.After(c.NotAfter) && !known(c) {
				out = append(out, c)
			}
		}
	}
	if len(out) <= maxRetained {
		return out
	}
	beside, _ := certificates(s.LeafCA)
	first, rest := []*x509.Certificate(nil), []*x509.Certificate(nil)
	for _, c := range out {
		if slices.ContainsFunc(beside, c.Equal) {
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(first, rest...)[:maxRetained]
}

// join makes a caBundle: the CA, then the others.
func join(ca *x509.Certificate, others []*x509.Certificate) []byte {
	out := encode(ca)
	for _, c := range others {
		out = append(out, encode(c)...)
	}
	return out
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// judgeBundles says why the bundles have to be written. Where their age decides (dated), it has to be known, and not be
// a time that no clock shows.
func judgeBundles(s State, ca *x509.Certificate, want []byte, dated bool, latest time.Time) ActionReason {
	var why ActionReason
	for _, b := range s.Bundles {
		switch {
		case !bytes.Contains(b, encode(ca)):
			return CAAdded
		case !bytes.Equal(b, want):
			why = CARetired
		}
	}
	if why == "" && dated && len(s.Bundles) > 0 && (s.BundledAt.IsZero() || s.BundledAt.After(latest)) {
		return Undated
	}
	return why
}
