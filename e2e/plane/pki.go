package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one trust domain. Keys are P-256: making
// an RSA key costs more than starting etcd.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key, PEM.
type pair struct{ cert, key []byte }

// validity outlives any demo. Half an hour of it lies in the past, for a clock
// that was set back.
const validity = 30 * 24 * time.Hour

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %q: %w", name, err)
	}
	template := certificate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading authority %q back: %w", name, err)
	}
	return &authority{cert: cert, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      subject,
		NotBefore:    now.Add(-30 * time.Minute),
		NotAfter:     now.Add(validity),
	}
}

// client signs an identity: the API server takes the user from the common name
// and the groups from the organizations.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server signs for hosts, which are names or addresses. etcd's peers use one
// certificate in both roles, so it may be a client too.
func (a *authority) server(name string, hosts ...string) (pair, error) {
	template := certificate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the key of %q: %w", name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %q: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encoding the key of %q: %w", name, err)
	}
	return pair{cert: encodePEM("CERTIFICATE", der), key: keyPEM}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write puts <name>.crt and <name>.key into the folder.
func (p pair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.cert, 0o600); err != nil {
		return fmt.Errorf("writing the certificate %q: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600); err != nil {
		return fmt.Errorf("writing the key %q: %w", name, err)
	}
	return nil
}
