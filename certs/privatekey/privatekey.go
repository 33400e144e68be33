// Package privatekey judges a private key before anything computes with it.
//
// Go parses an RSA key that lacks its CRT values by computing q^(p-2) mod p, before it compares p*q with n: a key of
// half a mebibyte that its author made up takes days, and nothing ends that. Here integers are only read, and bounded.
package privatekey

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	// MaxBits is the longest RSA key that Go's TLS clients take of a server, and API servers are such clients
	// (crypto/tls, checkKeySize). Go reads the worst of that length in two seconds.
	MaxBits = 8192
	// maxBytes is how long a key may be: an RSA key of MaxBits takes 6.4 KB in PEM.
	maxBytes = 16 << 10
)

// Why a key is refused. None of them quotes what it is about.
var (
	ErrBytes   = errors.New("it has more than 16 KiB, and the longest key that TLS takes has 6.4")
	ErrNone    = errors.New("it holds no private key in PEM")
	ErrKind    = errors.New("its private key is none of RSA, EC and Ed25519, or is encrypted")
	ErrBits    = errors.New("its RSA key has more than 8192 bits, which no TLS client of Go's takes")
	ErrPrimes  = errors.New("its RSA key has more than two primes")
	ErrNumbers = errors.New("its RSA key's integers are those of no key: its modulus is not the product of its primes, " +
		"or is below another of them")
)

// Refuses reports whether an error of this package is about the key by itself, so that another key mends it. All others
// of Pair are about the certificate, a key that is not the certificate's, or one that Go does not parse.
func Refuses(err error) bool {
	return slices.ContainsFunc([]error{ErrBytes, ErrNone, ErrKind, ErrBits, ErrPrimes, ErrNumbers},
		func(why error) bool { return errors.Is(err, why) })
}

// Pair is tls.X509KeyPair of a key that was judged. That one's errors quote what the certificate's file holds, without
// a bound and with whatever bytes: what is told of them has 200 characters, quoted.
func Pair(cert, key []byte) (tls.Certificate, error) {
	if _, err := DER(key); err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%.200q", err.Error())
	}
	return pair, nil
}

// DER is the key of a PEM text, which is that of the block that tls.X509KeyPair reads, once it was judged.
func DER(text []byte) ([]byte, error) {
	if len(text) > maxBytes {
		return nil, ErrBytes
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return block.Bytes, Judge(block.Bytes)
		}
	}
	return nil, ErrNone
}

// Judge says why nothing may compute with a key in DER (PKCS #1, PKCS #8 or SEC 1); nil where all may. It goes by what
// the key is, as Go's parsers do, and not by what a PEM block calls it. It does not say that they take the key.
func Judge(der []byte) error {
	if len(der) > maxBytes {
		return ErrBytes
	}
	var rsa pkcs1
	if _, err := asn1.Unmarshal(der, &rsa); err == nil {
		return rsa.judge()
	}
	var wrapped pkcs8
	if _, err := asn1.Unmarshal(der, &wrapped); err == nil {
		return wrapped.judge()
	}
	if _, err := asn1.Unmarshal(der, &sec1{}); err == nil {
		return nil
	}
	return ErrKind
}

// pkcs1 is an RSA key, by RFC 8017, A.1.2, as crypto/x509 reads it.
type pkcs1 struct {
	Version    int
	N          *big.Int
	E          int
	D, P, Q    *big.Int
	Dp         *big.Int       `asn1:"optional"`
	Dq         *big.Int       `asn1:"optional"`
	Qinv       *big.Int       `asn1:"optional"`
	MorePrimes []furtherPrime `asn1:"optional,omitempty"`
}

type furtherPrime struct{ Prime, Exp, Coeff *big.Int }

func (k pkcs1) judge() error {
	bits := k.N.BitLen()
	if bits > MaxBits {
		return ErrBits
	}
	if len(k.MorePrimes) > 0 {
		return ErrPrimes
	}
	for _, of := range []*big.Int{k.D, k.P, k.Q, k.Dp, k.Dq, k.Qinv} {
		if of != nil && of.CmpAbs(k.N) > 0 {
			return ErrNumbers
		}
	}
	// Both primes have at most MaxBits here, so that the product costs nothing.
	if k.P.Sign() <= 0 || new(big.Int).Mul(k.P, k.Q).Cmp(k.N) != 0 {
		return ErrNumbers
	}
	return nil
}

// pkcs8 is a key of any kind, by RFC 5208, as crypto/x509 reads it.
type pkcs8 struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
}

// The kinds of key that a TLS server may have.
func oidRSA() asn1.ObjectIdentifier     { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1} }
func oidEC() asn1.ObjectIdentifier      { return asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1} }
func oidEd25519() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 3, 101, 112} }

func (k pkcs8) judge() error {
	switch kind := k.Algorithm.Algorithm; {
	case kind.Equal(oidRSA()):
		var rsa pkcs1
		if _, err := asn1.Unmarshal(k.PrivateKey, &rsa); err != nil {
			return ErrKind
		}
		return rsa.judge()
	case kind.Equal(oidEC()), kind.Equal(oidEd25519()): // their curves bound what they cost
		return nil
	}
	return ErrKind
}

// sec1 is an EC key, by RFC 5915, as crypto/x509 reads it.
type sec1 struct {
	Version    int
	PrivateKey []byte
	Curve      asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
	PublicKey  asn1.BitString        `asn1:"optional,explicit,tag:1"`
}
