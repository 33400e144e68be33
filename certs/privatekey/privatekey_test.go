package privatekey_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/certs/privatekey"
	"ballast/webhook/fixture"
)

// rsaKey is a PKCS #1 key of those integers, in DER.
func rsaKey(t testing.TB, n, d, p, q *big.Int, crt ...*big.Int) []byte {
	t.Helper()
	integers := append([]*big.Int{new(big.Int), n, big.NewInt(3), d, p, q}, crt...)
	der, err := asn1.Marshal(integers)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// wrapped is a PKCS #8 key of that kind.
func wrapped(t testing.TB, kind asn1.ObjectIdentifier, key []byte) []byte {
	t.Helper()
	type algorithm struct {
		Kind       asn1.ObjectIdentifier
		Parameters asn1.RawValue
	}
	der, err := asn1.Marshal(struct {
		Version int
		Kind    algorithm
		Key     []byte
	}{0, algorithm{kind, asn1.NullRawValue}, key})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func odd(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return n.SetBit(n, 0, 1)
}

func times(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

// TestAKeyIsRefusedBeforeAnythingComputesWithIt: with each of those that have a vast prime Go computes for minutes or
// days, so that the answer has to come first.
func TestAKeyIsRefusedBeforeAnythingComputesWithIt(t *testing.T) {
	one, three, five := big.NewInt(1), big.NewInt(3), big.NewInt(5)
	oid := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	vast := rsaKey(t, five, one, odd(96000), three)
	days := rsaKey(t, five, one, odd(3_000_000), three)
	further, err := asn1.Marshal(struct {
		Version       int
		N, E, D, P, Q *big.Int
		Dp, Dq, Qinv  *big.Int
		More          []struct{ Prime, Exp, Coeff *big.Int }
	}{1, big.NewInt(105), three, one, three, five, one, one, one, []struct{ Prime, Exp, Coeff *big.Int }{{big.NewInt(7), one, one}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text []byte
		want error
	}{
		"a prime of 3,000,000 bits":         {inPEM("RSA PRIVATE KEY", days), privatekey.ErrBytes},
		"a prime of 96,000 bits":            {inPEM("RSA PRIVATE KEY", vast), privatekey.ErrNumbers},
		"the second prime, of 96,000 bits":  {inPEM("RSA PRIVATE KEY", rsaKey(t, five, one, three, odd(96000))), privatekey.ErrNumbers},
		"in PKCS #8":                        {inPEM("PRIVATE KEY", wrapped(t, oid, vast)), privatekey.ErrNumbers},
		"called an EC key":                  {inPEM("EC PRIVATE KEY", vast), privatekey.ErrNumbers},
		"PKCS #1 in a block called PKCS #8": {inPEM("PRIVATE KEY", vast), privatekey.ErrNumbers},
		"PKCS #8 in a block called PKCS #1": {inPEM("RSA PRIVATE KEY", wrapped(t, oid, vast)), privatekey.ErrNumbers},
		"with bytes behind it":              {inPEM("RSA PRIVATE KEY", append(bytes.Clone(vast), 5, 0)), privatekey.ErrNumbers},
		"behind a certificate":              {append(inPEM("CERTIFICATE", nil), inPEM("PRIVATE KEY", rsaKey(t, five, one, odd(90000), three))...), privatekey.ErrNumbers},
		"a modulus that is its product":     {inPEM("RSA PRIVATE KEY", rsaKey(t, times(odd(40000), three), one, odd(40000), three)), privatekey.ErrBits},
		"a modulus of 8193 bits":            {inPEM("RSA PRIVATE KEY", rsaKey(t, times(odd(8192), three), one, odd(8192), three)), privatekey.ErrBits},
		"an exponent of 96,000 bits":        {inPEM("RSA PRIVATE KEY", rsaKey(t, big.NewInt(15), odd(96000), three, five)), privatekey.ErrNumbers},
		"a CRT value of 96,000 bits":        {inPEM("RSA PRIVATE KEY", rsaKey(t, big.NewInt(15), three, three, five, one, one, odd(96000))), privatekey.ErrNumbers},
		"a product that is another":         {inPEM("RSA PRIVATE KEY", rsaKey(t, big.NewInt(15), three, three, three)), privatekey.ErrNumbers},
		"primes below zero":                 {inPEM("RSA PRIVATE KEY", rsaKey(t, big.NewInt(15), one, big.NewInt(-3), big.NewInt(-5))), privatekey.ErrNumbers},
		"three primes":                      {inPEM("RSA PRIVATE KEY", further), privatekey.ErrPrimes},
		"a key of X25519":                   {inPEM("PRIVATE KEY", wrapped(t, asn1.ObjectIdentifier{1, 3, 101, 110}, nil)), privatekey.ErrKind},
		"a certificate":                     {inPEM("CERTIFICATE", vast), privatekey.ErrNone},
		"nothing":                           {nil, privatekey.ErrNone},
		"junk in a block":                   {inPEM("RSA PRIVATE KEY", []byte("junk")), privatekey.ErrKind},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.AtOnce(t, "reading the key", func() {
				cert, _ := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
				_, err := privatekey.Pair(cert, test.text)
				if !errors.Is(err, test.want) || !privatekey.Refuses(err) {
					t.Errorf("%v, not %v; of the key: %t", err, test.want, privatekey.Refuses(err))
				}
			})
		})
	}
}

// TestWhatIsToldOfAPairIsBounded: the certificate's file may hold whatever blocks, and their types stand in the error.
func TestWhatIsToldOfAPairIsBounded(t *testing.T) {
	authority := fixture.NewAuthority(t)
	cert, _ := authority.Leaf(t, 1, time.Now().Add(time.Hour))
	_, key := authority.Leaf(t, 2, time.Now().Add(time.Hour))
	for name, test := range map[string]struct {
		cert []byte
		want string
	}{
		"of another certificate": {cert, `"tls: private key does not match public key"`},
		"of many blocks": {bytes.Repeat(inPEM("A \x1b[2J\u2028", nil), 1<<12),
			`"tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [` +
				strings.Repeat(`A \x1b[2J\u2028 `, 10) + `A \x1b["`},
	} {
		if _, err := privatekey.Pair(test.cert, key); err == nil || err.Error() != test.want || privatekey.Refuses(err) {
			t.Errorf("%s: %v\nwant %s", name, err, test.want)
		}
	}
}

// TestTheWorstKeyThatPassesIsReadSoon: its prime is as long as its modulus, and nothing but a computation finds that.
func TestTheWorstKeyThatPassesIsReadSoon(t *testing.T) {
	cert, _ := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
	p := odd(8190)
	n := times(p, big.NewInt(3))
	key := inPEM("RSA PRIVATE KEY", rsaKey(t, n, new(big.Int).Sub(n, big.NewInt(2)), p, big.NewInt(3)))
	if _, err := privatekey.DER(key); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	fixture.AtOnce(t, "reading the key", func() { _, _ = privatekey.Pair(cert, key) })
	t.Logf("in %s", time.Since(began))
}

// TestAnyGeneratedKeyPasses, in each form that Go writes.
func TestAnyGeneratedKeyPasses(t *testing.T) {
	passes := func(t *rapid.T, kind string, der []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := privatekey.DER(inPEM(kind, der))
		if err != nil || !bytes.Equal(got, der) {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var key any
		var err error
		switch kind := rapid.SampledFrom([]string{"RSA", "P224", "P256", "P384", "P521", "Ed25519"}).Draw(t, "kind"); kind {
		case "RSA":
			var of *rsa.PrivateKey
			of, err = rsa.GenerateKey(rand.Reader, rapid.SampledFrom([]int{1024, 1025, 2048}).Draw(t, "bits"))
			key = of
			passes(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(of), err)
		case "Ed25519":
			_, key, err = ed25519.GenerateKey(rand.Reader)
		default:
			curves := map[string]elliptic.Curve{"P224": elliptic.P224(), "P256": elliptic.P256(), "P384": elliptic.P384(), "P521": elliptic.P521()}
			var of *ecdsa.PrivateKey
			of, err = ecdsa.GenerateKey(curves[kind], rand.Reader)
			key = of
			der, failed := x509.MarshalECPrivateKey(of)
			passes(t, "EC PRIVATE KEY", der, failed)
		}
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		passes(t, "PRIVATE KEY", der, err)
	})
}

// FuzzJudge: whatever it passes is read by Go within a moment, and it refuses nothing that Go reads, but for what is
// too long, has more primes, or is no key of a TLS server.
func FuzzJudge(f *testing.F) {
	ca := fixture.NewAuthority(f)
	cert, ec := ca.Leaf(f, 1, time.Now().Add(time.Hour))
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		f.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(small)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ec)
	f.Add(inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small)))
	f.Add(inPEM("RSA PRIVATE KEY", rsaKey(f, small.N, small.D, small.Primes[0], small.Primes[1])))
	f.Add(inPEM("PRIVATE KEY", pkcs8))
	f.Add(inPEM("RSA PRIVATE KEY", rsaKey(f, big.NewInt(5), big.NewInt(1), odd(96000), big.NewInt(3))))
	f.Fuzz(func(t *testing.T, text []byte) {
		der, err := privatekey.DER(text)
		if errors.Is(err, privatekey.ErrBytes) || err != nil && len(der) > 1<<10 {
			return // Go may read it for as long as it likes
		}
		_, pair := tls.X509KeyPair(cert, text)
		_, read := x509.ParsePKCS1PrivateKey(der)
		other := errors.Is(err, privatekey.ErrPrimes) || errors.Is(err, privatekey.ErrKind)
		if err != nil && !other && (pair == nil || read == nil) {
			t.Errorf("%v, and Go reads it: %v, %v", err, pair, read)
		}
	})
}
