package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"ballast/certs/privatekey"
)

// backdate lets a certificate begin before it is made, for API servers whose clock is behind.
const backdate = 5 * time.Minute

// NewCA makes a CA of CADuration with a key of its own.
func NewCA(now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: CASecret}, NotBefore: now.Add(-backdate), NotAfter: now.Add(CADuration),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	pair, err := sign(template, nil, nil)
	if err != nil {
		return Pair{}, fmt.Errorf("making a CA: %w", err)
	}
	return pair, nil
}

// NewLeaf makes a server's certificate of LeafDuration for the names, signed by the CA, with a key of its own.
func NewLeaf(ca Pair, dnsNames []string, now time.Time) (Pair, error) {
	chain, err := certificates(ca.Cert)
	if err != nil || len(chain) == 0 {
		return Pair{}, errors.New("making a leaf: the CA is unreadable")
	}
	key, err := readKey(ca.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("making a leaf: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: Leaf}, DNSNames: dnsNames, NotBefore: now.Add(-backdate),
		NotAfter:              now.Add(LeafDuration),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	pair, err := sign(template, chain[0], key)
	if err != nil {
		return Pair{}, fmt.Errorf("making a leaf: %w", err)
	}
	return pair, nil
}

// sign makes a key and a certificate of it; without a parent the certificate is its own.
func sign(template, parent *x509.Certificate, signer crypto.Signer) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	if parent == nil {
		parent, signer = template, key
	}
	// 127 bits: CAs of the same name and another serial number are told apart.
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, fmt.Errorf("drawing a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, fmt.Errorf("signing: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// readKey reads a CA's key, ours or one that somebody brought, from the block that isPair judges. Its errors are
// constant: a parser's may quote what it read.
func readKey(text []byte) (crypto.Signer, error) {
	der, err := privatekey.DER(text)
	if err != nil {
		return nil, fmt.Errorf("the CA's key: %w", err)
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if key, ok := key.(crypto.Signer); ok {
			return key, nil
		}
	}
	return nil, errors.New("the CA's key is of no kind that signs")
}
