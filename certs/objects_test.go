package certs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestNamesFollowTheSettings(t *testing.T) {
	s := Settings{Namespace: "gitops", Service: "hook"}
	if diff := cmp.Diff([]string{"hook.gitops.svc", "hook.gitops.svc.cluster.local"}, s.DNSNames()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := s.InjectFrom(); got != "gitops/ballast-webhook" {
		t.Errorf("injected from %s", got)
	}
}

func TestTheChainIsSelfSignedThenCAThenLeaf(t *testing.T) {
	type link struct{ Issuer, SignsWith, Certificate, IssuedBy, Secret string }
	s := DefaultSettings()
	issuers, certificates := s.Issuers(), s.Certificates()
	if len(issuers) != 2 || len(certificates) != 2 || issuers[0].Spec.SelfSigned == nil || issuers[1].Spec.CA == nil {
		t.Fatalf("got %d issuers and %d certificates", len(issuers), len(certificates))
	}
	got := []link{
		{issuers[0].Name, "", certificates[0].Name, certificates[0].Spec.IssuerRef.Name, certificates[0].Spec.SecretName},
		{issuers[1].Name, issuers[1].Spec.CA.SecretName, certificates[1].Name, certificates[1].Spec.IssuerRef.Name, certificates[1].Spec.SecretName},
	}
	want := []link{
		{"ballast-root", "", "ballast-ca", "ballast-root", "ballast-ca"},
		{"ballast-ca", "ballast-ca", "ballast-webhook", "ballast-ca", "ballast-webhook-tls"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !certificates[0].Spec.IsCA || certificates[1].Spec.IsCA {
		t.Error("the CA is not one, or the leaf is")
	}
}

func TestTheLeafsSpecIsWhatCertManagerReads(t *testing.T) {
	text, err := yaml.Marshal(DefaultSettings().Certificates()[1].Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `dnsNames:
- ballast-webhook.argocd.svc
- ballast-webhook.argocd.svc.cluster.local
duration: 720h0m0s
issuerRef:
  group: cert-manager.io
  kind: Issuer
  name: ballast-ca
privateKey:
  algorithm: ECDSA
  rotationPolicy: Always
  size: 256
renewBefore: 240h0m0s
secretName: ballast-webhook-tls
usages:
- digital signature
- server auth
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
