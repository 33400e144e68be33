package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const day = 24 * time.Hour

// start is when everything was issued, unless a test says otherwise.
func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (p pair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

func (p pair) keyPEM(t testing.TB) []byte {
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// issue signs by the issuer, or by itself when that is nil.
func issue(t testing.TB, issuer *pair, change func(*x509.Certificate)) pair {
	t.Helper()
	return issueFor(t, keyOn(t, elliptic.P256()), issuer, change)
}

func keyOn(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// vastCertificate is a CA's certificate, PEM, of an RSA key of 16384 bits, which nobody has.
func vastCertificate(t testing.TB, issuer pair) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), 16383)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: start(), BasicConstraintsValid: true}
	asCA(template)
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.cert, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}, issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func issueFor(t testing.TB, key *ecdsa.PrivateKey, issuer *pair, change func(*x509.Certificate)) pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leaf"}, BasicConstraintsValid: true,
		NotBefore: start(), NotAfter: start().Add(LeafDuration), DNSNames: DefaultSettings().DNSNames(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert, key}
}

func asCA(c *x509.Certificate) {
	c.Subject.CommonName, c.DNSNames, c.ExtKeyUsage = CA, nil, nil
	c.IsCA, c.KeyUsage, c.NotAfter = true, x509.KeyUsageCertSign, start().Add(CADuration)
}

func TestCheck(t *testing.T) {
	ca := issue(t, nil, asCA)
	leaf := issue(t, &ca, nil)
	renewedCA := issueFor(t, ca.key, nil, func(c *x509.Certificate) { asCA(c); c.SerialNumber = big.NewInt(2) })
	otherCA := issue(t, nil, asCA)
	shortCA := issue(t, nil, func(c *x509.Certificate) { asCA(c); c.NotAfter = start().Add(20 * day) })
	middle := issue(t, &ca, func(c *x509.Certificate) { asCA(c); c.Subject.CommonName = "middle" })
	deep := issue(t, &middle, nil)
	alone := issue(t, nil, nil)
	client := issue(t, &ca, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	misnamed := issue(t, &ca, func(c *x509.Certificate) { c.DNSNames = []string{"ballast-webhook.gitops.svc"} })
	key := leaf.keyPEM(t)
	weak := issueFor(t, keyOn(t, elliptic.P224()), &ca, nil)
	vast := vastCertificate(t, ca)

	for name, c := range map[string]struct {
		leaf, key, bundle []byte
		after             time.Duration
		want              []ProblemKind
	}{
		"a leaf of the bundled CA":                  {leaf.certPEM(), key, ca.certPEM(), day, nil},
		"a leaf with its intermediate":              {slices.Concat(deep.certPEM(), middle.certPEM()), deep.keyPEM(t), ca.certPEM(), day, nil},
		"a leaf without its intermediate":           {deep.certPEM(), deep.keyPEM(t), ca.certPEM(), day, []ProblemKind{ChainBroken}},
		"a bundle of two, the second being right":   {leaf.certPEM(), key, slices.Concat(otherCA.certPEM(), ca.certPEM()), day, nil},
		"a CA that renewed with its key":            {leaf.certPEM(), key, renewedCA.certPEM(), day, nil},
		"a leaf at the time of its renewal":         {leaf.certPEM(), key, ca.certPEM(), 20 * day, nil},
		"a leaf that did not renew":                 {leaf.certPEM(), key, ca.certPEM(), 26 * day, []ProblemKind{ExpiresSoon}},
		"an expired leaf":                           {leaf.certPEM(), key, ca.certPEM(), 31 * day, []ProblemKind{Expired}},
		"a leaf of tomorrow":                        {leaf.certPEM(), key, ca.certPEM(), -day, []ProblemKind{NotYetValid}},
		"another CA in the bundle":                  {leaf.certPEM(), key, otherCA.certPEM(), day, []ProblemKind{ChainBroken}},
		"a client's certificate":                    {client.certPEM(), client.keyPEM(t), ca.certPEM(), day, []ProblemKind{ChainBroken}},
		"another namespace's name":                  {misnamed.certPEM(), misnamed.keyPEM(t), ca.certPEM(), day, []ProblemKind{NameMismatch, NameMismatch}},
		"another certificate's key":                 {leaf.certPEM(), ca.keyPEM(t), ca.certPEM(), day, []ProblemKind{KeyMismatch}},
		"a key that takes minutes to be read":       {leaf.certPEM(), append(leaf.keyPEM(t), make([]byte, 16<<10)...), ca.certPEM(), day, []ProblemKind{KeyMismatch}},
		"no key":                                    {leaf.certPEM(), nil, ca.certPEM(), day, []ProblemKind{KeyMismatch}},
		"no bundle":                                 {leaf.certPEM(), key, nil, day, []ProblemKind{BundleEmpty}},
		"a bundle that is no PEM":                   {leaf.certPEM(), key, []byte("none"), day, []ProblemKind{BundleUnreadable}},
		"a key in the bundle":                       {leaf.certPEM(), key, slices.Concat(ca.certPEM(), key), day, []ProblemKind{BundleUnreadable}},
		"no leaf":                                   {nil, key, ca.certPEM(), day, []ProblemKind{LeafUnreadable}},
		"a mangled leaf":                            {mangled(leaf), key, ca.certPEM(), day, []ProblemKind{LeafUnreadable}},
		"a self-signed leaf as the bundle":          {alone.certPEM(), alone.keyPEM(t), alone.certPEM(), day, []ProblemKind{LeafAsCA}},
		"a CA about to end":                         {leaf.certPEM(), key, issueFor(t, ca.key, nil, func(c *x509.Certificate) { asCA(c); c.NotAfter = start().Add(20 * day) }).certPEM(), day, []ProblemKind{ExpiresSoon}},
		"a CA past its end":                         {leaf.certPEM(), key, shortCA.certPEM(), 21 * day, []ProblemKind{BundleExpired}},
		"everything at once, the gravest first":     {misnamed.certPEM(), key, otherCA.certPEM(), 31 * day, []ProblemKind{KeyMismatch, Expired, NameMismatch, NameMismatch, ChainBroken}},
		"a leaf and a certificate of a vast key":    {slices.Concat(leaf.certPEM(), vast), key, ca.certPEM(), day, []ProblemKind{HandshakeFails}},
		"a leaf and a thousand certificates":        {slices.Concat(leaf.certPEM(), bytes.Repeat(otherCA.certPEM(), 1000)), key, ca.certPEM(), day, []ProblemKind{HandshakeFails}},
		"a leaf and a stranger":                     {slices.Concat(leaf.certPEM(), otherCA.certPEM()), key, ca.certPEM(), day, nil},
		"a leaf of a curve that TLS 1.3 has not":    {weak.certPEM(), weak.keyPEM(t), ca.certPEM(), day, []ProblemKind{HandshakeFails}},
		"a leaf of a vast key":                      {vast, key, ca.certPEM(), day, []ProblemKind{NameMismatch, NameMismatch, HandshakeFails}},
		"too much beside a leaf that is the bundle": {slices.Concat(alone.certPEM(), vast), alone.keyPEM(t), alone.certPEM(), day, []ProblemKind{HandshakeFails, LeafAsCA}},
		"too much beside a leaf that did not renew": {slices.Concat(leaf.certPEM(), vast), key, ca.certPEM(), 26 * day, []ProblemKind{HandshakeFails, ExpiresSoon}},
		"too much beside an expired leaf":           {slices.Concat(leaf.certPEM(), vast), key, ca.certPEM(), 31 * day, []ProblemKind{Expired}},
		"nothing at all, as before the first issue": {nil, nil, nil, day, []ProblemKind{LeafUnreadable, BundleEmpty}},
	} {
		t.Run(name, func(t *testing.T) {
			problems := Check(c.leaf, c.key, c.bundle, DefaultSettings().DNSNames(), start().Add(c.after))
			var got []ProblemKind
			for _, p := range problems {
				got = append(got, p.Kind)
				if p.Message == "" || p.Mend == "" {
					t.Errorf("%s has no message or no mend", p.Kind)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%v", diff, problems)
			}
		})
	}
}

// mangled is PEM around what is no certificate.
func mangled(p pair) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw[:40]})
}

func TestAProblemSaysWhatIsWrongAndItsMend(t *testing.T) {
	ca := issue(t, nil, asCA)
	leaf := issue(t, &ca, nil)
	problems := Check(leaf.certPEM(), leaf.keyPEM(t), ca.certPEM(), []string{"other.argocd.svc"}, start().Add(31*day))
	problems = append(problems, Check(slices.Concat(leaf.certPEM(), vastCertificate(t, ca)), leaf.keyPEM(t), ca.certPEM(), DefaultSettings().DNSNames(), start())...)
	got := make([]string, len(problems))
	for i, p := range problems {
		got[i] = p.Error()
	}
	want := []string{
		"Expired: it was valid until 2026-03-31T12:00:00Z: delete Secret ballast-webhook-tls and cert-manager issues it anew; if it does not, read the status of Certificate ballast-webhook",
		`NameMismatch: it is made for ["ballast-webhook.argocd.svc" "ballast-webhook.argocd.svc.cluster.local"], not for "other.argocd.svc": name other.argocd.svc in dnsNames of Certificate ballast-webhook`,
		`HandshakeFails: no API server takes it: "tls: server sent certificate containing RSA key larger than 8192 bits": ` + mendRenew,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzCheck: nothing panics, every problem is of the closed set, and no key is printed.
func FuzzCheck(f *testing.F) {
	ca := issue(f, nil, asCA)
	leaf := issue(f, &ca, nil)
	key := leaf.keyPEM(f)
	f.Add(leaf.certPEM(), key, ca.certPEM())
	f.Add(key, leaf.certPEM(), key)
	f.Add(mangled(leaf), key, slices.Concat(ca.certPEM(), leaf.certPEM()))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{}, []byte("-----BEGIN SECRET-----\nAAAA\n-----END SECRET-----"))
	kinds := ProblemKinds()
	f.Fuzz(func(t *testing.T, leaf, key, bundle []byte) {
		for _, p := range Check(leaf, key, bundle, DefaultSettings().DNSNames(), start()) {
			if !slices.Contains(kinds, p.Kind) {
				t.Errorf("unknown kind %q", p.Kind)
			}
			if text := strings.TrimSpace(string(key)); len(text) > 40 && strings.Contains(p.Error(), text) {
				t.Errorf("%s prints the key", p.Kind)
			}
		}
	})
}
