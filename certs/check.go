package certs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"ballast/certs/privatekey"
)

// Flaw is one thing that is wrong with the webhook's certificates. Message never holds key material.
type Flaw struct {
	Kind    ProblemKind
	Message string
	Mend    string
}

// Error makes the problem an error.
func (p Flaw) Error() string {
	return fmt.Sprintf("%s: %s: %s", p.Kind, p.Message, p.Mend)
}

// ProblemKind is the closed set of problems.
type ProblemKind string

// The problems, the gravest first.
const (
	LeafUnreadable   ProblemKind = "LeafUnreadable"   // no certificate in tls.crt
	BundleEmpty      ProblemKind = "BundleEmpty"      // the API server trusts whatever its host trusts
	BundleUnreadable ProblemKind = "BundleUnreadable" // something in the caBundle is no certificate
	KeyMismatch      ProblemKind = "KeyMismatch"      // the key is absent, or another certificate's
	Expired          ProblemKind = "Expired"
	NotYetValid      ProblemKind = "NotYetValid"
	NameMismatch     ProblemKind = "NameMismatch"   // not made for the Service's names
	ChainBroken      ProblemKind = "ChainBroken"    // no CA of the caBundle signed the leaf
	HandshakeFails   ProblemKind = "HandshakeFails" // all of it verifies, and yet no TLS client takes it
	BundleExpired    ProblemKind = "BundleExpired"
	LeafAsCA         ProblemKind = "LeafAsCA" // works until the leaf renews, and then not at all
	ExpiresSoon      ProblemKind = "ExpiresSoon"
)

// ProblemKinds lists the closed set.
func ProblemKinds() []ProblemKind {
	return []ProblemKind{LeafUnreadable, BundleEmpty, BundleUnreadable, KeyMismatch, Expired, NotYetValid, NameMismatch,
		ChainBroken, HandshakeFails, BundleExpired, LeafAsCA, ExpiresSoon}
}

// ExpiresSoonBefore is when a leaf should long have renewed: half of LeafRenewBefore has passed without.
const ExpiresSoonBefore = LeafRenewBefore / 2

const (
	mendRenew  = "delete Secret " + LeafTLS + " and cert-manager issues it anew; if it does not, read the status of Certificate " + Leaf
	mendInject = "annotate the MutatingWebhookConfiguration with " + InjectKey + ": NAMESPACE/" + Leaf +
		", and see that cert-manager's cainjector runs"
	mendIssuer = "let Certificate " + Leaf + " be issued by Issuer " + CA + ", not by a selfSigned one"
	mendCA     = "renew Certificate " + CA + " and see that cert-manager's cainjector runs"
	mendClock  = "compare the clocks of this machine and of the one that issued it"
)

// Check judges a leaf certificate with its chain, its key, and the caBundle that API servers verify it by, at now.
// Every name of dnsNames has to be the leaf's. Problems come the gravest first; none means that a call succeeds, and
// will.
func Check(leafPEM, keyPEM, caBundle []byte, dnsNames []string, now time.Time) []Flaw {
	chain, chainErr := certificates(leafPEM)
	bundle, bundleErr := certificates(caBundle)
	var out []Flaw
	add := func(kind ProblemKind, mend, format string, args ...any) {
		out = append(out, Flaw{kind, fmt.Sprintf(format, args...), mend})
	}
	switch {
	case len(chain) == 0:
		add(LeafUnreadable, mendRenew, "tls.crt holds no certificate")
	case chainErr != nil:
		add(LeafUnreadable, mendRenew, "tls.crt: %v", chainErr)
	}
	switch {
	case bundleErr != nil:
		add(BundleUnreadable, mendInject, "the caBundle: %v", bundleErr)
	case len(bundle) == 0:
		add(BundleEmpty, mendInject, "the caBundle is empty, so that the API server knows no CA to verify the webhook by")
	}
	if len(chain) > 0 {
		out = append(out, judgeLeaf(chain[0], leafPEM, keyPEM, dnsNames, now)...)
		if len(bundle) > 0 {
			out = append(out, judgeChain(chain, bundle, now)...)
		}
	}
	if len(dnsNames) > 0 && !slices.ContainsFunc(out, prevents) {
		out = append(out, judgeHandshake(leafPEM, keyPEM, bundle, dnsNames[0], now)...)
	}
	order := ProblemKinds()
	slices.SortStableFunc(out, func(a, b Flaw) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return out
}

// prevents says that no call succeeds now, so that a handshake has nothing to add.
func prevents(p Flaw) bool { return p.Kind != LeafAsCA && p.Kind != ExpiresSoon }

func judgeLeaf(leaf *x509.Certificate, leafPEM, keyPEM []byte, dnsNames []string, now time.Time) []Flaw {
	var out []Flaw
	if vastKey(leaf) {
		out = append(out, Flaw{HandshakeFails,
			fmt.Sprintf("no API server takes it: its RSA key has more than %d bits", privatekey.MaxBits), mendRenew})
	} else if !isPair(leafPEM, keyPEM) {
		out = append(out, Flaw{KeyMismatch, "tls.key is not the key of tls.crt", mendRenew})
	}
	for _, name := range dnsNames {
		if leaf.VerifyHostname(name) != nil {
			out = append(out, Flaw{NameMismatch, fmt.Sprintf("it is made for %q, not for %q", leaf.DNSNames, name),
				fmt.Sprintf("name %s in dnsNames of Certificate %s", name, Leaf)})
		}
	}
	switch left := leaf.NotAfter.Sub(now); {
	case now.Before(leaf.NotBefore):
		out = append(out, Flaw{NotYetValid, "it is valid from " + date(leaf.NotBefore), mendClock})
	case left < 0:
		out = append(out, Flaw{Expired, "it was valid until " + date(leaf.NotAfter), mendRenew})
	case left < min(ExpiresSoonBefore, leaf.NotAfter.Sub(leaf.NotBefore)/6):
		out = append(out, Flaw{ExpiresSoon, "it is valid until " + date(leaf.NotAfter) + " and should have renewed",
			mendRenew})
	}
	return out
}

// isPair reports whether a key is that of a certificate.
func isPair(cert, key []byte) bool {
	_, err := privatekey.Pair(cert, key)
	return err == nil
}

// judgeChain verifies as an API server does, at a time at which the leaf is valid, so that an expired one is reported
// as that and not as a broken chain, too.
func judgeChain(chain, bundle []*x509.Certificate, now time.Time) []Flaw {
	leaf := chain[0]
	at := now
	if at.Before(leaf.NotBefore) || at.After(leaf.NotAfter) {
		at = leaf.NotBefore
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	selfTrusted, end := false, time.Time{}
	for _, ca := range bundle {
		roots.AddCert(ca)
		selfTrusted = selfTrusted || ca.Equal(leaf)
		if ca.NotAfter.After(end) {
			end = ca.NotAfter
		}
	}
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	var out []Flaw
	if selfTrusted {
		out = append(out, Flaw{LeafAsCA, "the caBundle is the leaf itself: after its renewal no call succeeds until the new one is injected", mendIssuer})
	}
	switch left := end.Sub(now); {
	case left < 0:
		return append(out, Flaw{BundleExpired, "every certificate of the caBundle is past its end, the last on " +
			date(end), mendCA})
	case left < CARenewBefore/12 && !selfTrusted:
		out = append(out, Flaw{ExpiresSoon, "the caBundle is valid until " + date(end) + " and should have renewed",
			mendCA})
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := leaf.Verify(options); err != nil && !selfTrusted {
		out = append(out, Flaw{ChainBroken, "no CA of the caBundle vouches for it as a server's certificate",
			mendInject + "; if it was just renewed, wait a minute"})
	}
	return out
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// certificates reads every certificate of a PEM text. Other blocks are an error; text around them is PEM's comment.
func certificates(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			if len(out) == 0 && len(text) > 0 {
				return nil, fmt.Errorf("it is not PEM")
			}
			return out, nil
		}
		text = rest
		if block.Type != "CERTIFICATE" {
			return out, fmt.Errorf("it holds a block of type %q, where certificates belong", blockType(block.Type))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return out, fmt.Errorf("certificate %d in it is malformed", len(out)+1)
		}
		out = append(out, c)
	}
}

// blockType names only types that are known to be names: a pasted text may be anything.
func blockType(t string) string {
	known := []string{"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "CERTIFICATE REQUEST", "PUBLIC KEY",
		"X509 CRL"}
	if slices.Contains(known, t) {
		return t
	}
	return "unknown"
}
