package manifests

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/e2e/plane/identity"
)

const (
	onlyOurs = "spec: cert-manager signs with a Secret that an Issuer names, or sends it to the Issuer's server, and ballast-ca, " +
		"ballast-client-ca, ballast-plan-key, ballast-webhook-ca and ballast-webhook-tls are ballast's alone; name another Secret"
	noPod = "spec: the label app.kubernetes.io/name: ballast makes a solver's pod pass for one of ballast's; " +
		"name another in podTemplate.metadata.labels"
	nextKey = "status.nextPrivateKeySecretName: cert-manager signs with the key of that Secret, and puts it into the Certificate's own; " +
		"leave the field to cert-manager"
)

// ofYAML is an object of that spec, in one line.
func (b *issuerBed) ofYAML(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	of := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &of); err != nil {
		t.Fatal(err)
	}
	u := b.object(kind, name, of)
	if kind == "Challenge" {
		u.SetAPIVersion("acme.cert-manager.io/v1")
	}
	return u
}

// acmeOf is the spec of an Issuer with these solvers.
func acmeOf(solvers string) string {
	return "{acme: {server: x, privateKeySecretRef: {name: mine}, solvers: [" + solvers + "]}}"
}

// keepsItsSecretsFromIssuers, which cert-manager reads with a right of its own and sends to the Issuer's server.
func (b *issuerBed) keepsItsSecretsFromIssuers(t *testing.T) {
	solver := func(dns string) string { return acmeOf("{http01: {ingress: {}}}, {dns01: {" + dns + "}}") }
	akamai := func(token string) string {
		return "akamai: {serviceConsumerDomain: x, clientTokenSecretRef: {name: x}, clientSecretSecretRef: {name: x}, " +
			"accessTokenSecretRef: {name: " + token + "}}"
	}
	vault := func(auth string) string { return "{vault: {server: x, path: x, auth: {" + auth + "}}}" }
	for name, spec := range map[string]string{
		"a CA":                      "{ca: {secretName: SECRET}}",
		"an app role of Vault's":    vault("appRole: {path: x, roleId: x, secretRef: {name: SECRET, key: tls.key}}"),
		"a token of Vault's":        vault("tokenSecretRef: {name: SECRET, key: tls.key}"),
		"an account at Vault":       vault("kubernetes: {role: x, secretRef: {name: SECRET, key: tls.key}}"),
		"a client of Vault's":       vault("clientCertificate: {secretName: SECRET}"),
		"a caller of Vault's":       "{vault: {server: x, path: x, auth: {tokenSecretRef: {name: x}}, clientCertSecretRef: {name: SECRET}}}",
		"a caller's key at Vault":   "{vault: {server: x, path: x, auth: {tokenSecretRef: {name: x}}, clientKeySecretRef: {name: SECRET}}}",
		"a bundle for Vault":        "{vault: {server: x, path: x, auth: {tokenSecretRef: {name: x}}, caBundleSecretRef: {name: SECRET}}}",
		"credentials of Venafi's":   "{venafi: {zone: x, tpp: {url: x, credentialsRef: {name: SECRET}}}}",
		"a bundle for Venafi":       "{venafi: {zone: x, tpp: {url: x, credentialsRef: {name: x}, caBundleSecretRef: {name: SECRET}}}}",
		"a token of Venafi's cloud": "{venafi: {zone: x, cloud: {apiTokenSecretRef: {name: SECRET}}}}",
		"credentials of NGTS":       "{venafi: {zone: x, ngts: {tsgID: x, credentialsRef: {name: SECRET}}}}",
		"an account's key":          "{acme: {server: x, privateKeySecretRef: {name: SECRET}}}",
		"a binding": "{acme: {server: x, privateKeySecretRef: {name: x}, " +
			"externalAccountBinding: {keyID: x, keySecretRef: {name: SECRET}}}}",
		"Akamai":                solver(akamai("SECRET")),
		"Cloud DNS":             solver("cloudDNS: {project: x, serviceAccountSecretRef: {name: SECRET}}"),
		"Cloudflare":            solver("cloudflare: {apiTokenSecretRef: {name: SECRET}}"),
		"Route 53":              solver("route53: {secretAccessKeySecretRef: {name: SECRET}}"),
		"Azure":                 solver("azureDNS: {resourceGroupName: x, subscriptionID: x, clientSecretSecretRef: {name: SECRET}}"),
		"DigitalOcean":          solver("digitalocean: {tokenSecretRef: {name: SECRET}}"),
		"ACME-DNS":              solver("cnameStrategy: Follow, acmeDNS: {host: x, accountSecretRef: {name: SECRET}}"),
		"RFC 2136":              solver("rfc2136: {nameserver: 10.0.0.1, tsigSecretSecretRef: {name: SECRET}}"),
		"a webhook's Secret":    solver("webhook: {groupName: x, solverName: x, config: {n: 1, secretName: SECRET}}"),
		"a webhook's reference": solver("webhook: {groupName: x, solverName: x, config: {l: [x], apiKeySecretRef: {name: SECRET, key: x}}}"),
	} {
		t.Run(name, func(t *testing.T) {
			for secret, want := range map[string]string{"ballast-ca": onlyOurs, "ballast-client-ca": onlyOurs, "ballast-plan-key": onlyOurs,
				"ballast-webhook-ca": onlyOurs, "ballast-webhook-tls": onlyOurs, "mine": ""} {
				made := b.ofYAML(t, "Issuer", "mine", strings.ReplaceAll(spec, "SECRET", secret))
				told(t, b.editor.Create(t.Context(), made.DeepCopy(), client.DryRunAll), want)
				made.SetNamespace(metav1.NamespaceDefault)
				told(t, b.editor.Create(t.Context(), made, client.DryRunAll), "")
			}
		})
	}
	many := acmeOf(strings.Repeat("{dns01: {"+akamai("x")+"}},", 1000)) // costs no more than the API server lets an expression
	told(t, b.editor.Create(t.Context(), b.ofYAML(t, "Issuer", "mine", many), client.DryRunAll), "")
	mine := b.ofYAML(t, "Issuer", "mine", "{selfSigned: {}}")
	b.create(t, mine)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selfSigned":null,"ca":{"secretName":"ballast-client-ca"}}}`))
	told(t, b.editor.Patch(t.Context(), mine, patch, client.DryRunAll), onlyOurs)
}

// judgesSolvers of Issuers and of Challenges, by the pods that they have made, too.
func (b *issuerBed) judgesSolvers(t *testing.T) {
	const labels = "podTemplate: {metadata: {labels: {a: b, app.kubernetes.io/name: ballast}}}"
	challenge := func(solver string) string {
		return "{authorizationURL: x, url: x, dnsName: x, key: x, token: x, type: DNS-01, issuerRef: {name: mine}, solver: {" + solver + "}}"
	}
	ingress := "http01: {ingress: {" + labels + "}}"
	for name, c := range map[string]struct{ kind, spec, told string }{
		"a Challenge":             {"Challenge", challenge("dns01: {acmeDNS: {host: x, accountSecretRef: {name: ballast-ca}}}"), onlyOurs},
		"another's Challenge":     {"Challenge", challenge("dns01: {acmeDNS: {host: x, accountSecretRef: {name: mine}}}"), ""},
		"a Challenge's pod":       {"Challenge", challenge(ingress), noPod},
		"an Ingress's pod":        {"Issuer", acmeOf("{" + ingress + "}"), noPod},
		"a route's pod":           {"Issuer", acmeOf("{}, {http01: {gatewayHTTPRoute: {" + labels + "}}}"), noPod},
		"a pod of another's name": {"Issuer", acmeOf("{" + strings.ReplaceAll(ingress, ": ballast", ": b") + "}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			told(t, b.editor.Create(t.Context(), b.ofYAML(t, c.kind, "mine", c.spec), client.DryRunAll), c.told)
		})
	}
}

// leavesTheNextKeyToCertManager: whatever Secret a Certificate's status names has its key signed with.
func (b *issuerBed) leavesTheNextKeyToCertManager(t *testing.T) {
	mine := b.certificate("mine", "mine", "mine")
	mine.Object["status"] = map[string]any{"nextPrivateKeySecretName": "ballast-ca"} // what a create drops
	b.create(t, mine)
	if mine.Object["status"] != nil {
		t.Fatalf("a Certificate is created with the status %v", mine.Object["status"])
	}
	merge := func(status string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`))
	}
	const next, issuing = `{"nextPrivateKeySecretName":"ballast-ca"}`,
		`{"conditions":[{"type":"Issuing","status":"True","reason":"x","message":"x"}]}`
	judge := func(t *testing.T, by client.Client, of *unstructured.Unstructured, status, want string) {
		t.Helper()
		told(t, by.Status().Patch(t.Context(), of.DeepCopy(), merge(status), client.DryRunAll), want)
	}
	for name, c := range map[string]struct {
		by           client.Client
		status, told string
	}{
		"an editor's":                 {b.editor, next, nextKey},
		"an editor's of another":      {b.editor, `{"nextPrivateKeySecretName":"mine"}`, nextKey},
		"an editor's of no name":      {b.editor, `{"nextPrivateKeySecretName":""}`, nextKey},
		"an editor's that is renewed": {b.editor, issuing, ""},
		"cert-manager's":              {b.signer, next, ""},
	} {
		t.Run(name, func(t *testing.T) { judge(t, c.by, mine, c.status, c.told) })
	}
	written := mine.DeepCopy()
	written.Object["status"] = map[string]any{"nextPrivateKeySecretName": "ballast-ca"}
	told(t, b.editor.Status().Update(t.Context(), written.DeepCopy(), client.DryRunAll), nextKey)
	told(t, b.editor.Update(t.Context(), written.DeepCopy(), client.DryRunAll), "") // which leaves the status as it is
	applied := b.object("Certificate", "mine", nil)
	applied.Object = map[string]any{"apiVersion": applied.Object["apiVersion"], "kind": "Certificate",
		"metadata": applied.Object["metadata"], "status": written.Object["status"]}
	told(t, b.editor.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("x"),
		&client.SubResourceApplyOptions{ApplyOptions: client.ApplyOptions{DryRun: []string{metav1.DryRunAll}}}), nextKey)
	if err := b.signer.Status().Patch(t.Context(), mine, merge(next)); err != nil {
		t.Fatal(err)
	}
	judge(t, b.editor, mine, issuing, "") // what stands may stay
	judge(t, b.editor, mine, `{"nextPrivateKeySecretName":null}`, nextKey)
	judge(t, b.signer, b.certificate("before", "", ""), next, "") // what no other rule would let be
	judge(t, b.editor, b.certificate("before", "", ""), issuing, "")
}

// certManager is cert-manager's own controllers, with the rights of its chart and no others.
const certManager = "cert-manager"

func startCertManager(t *testing.T, config *rest.Config, binary string, admin client.Client) {
	t.Helper()
	of := func(group string, verbs string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}
	}
	const look, theirs = "get list watch", "cert-manager.io"
	meta := metav1.ObjectMeta{Name: certManager}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: certManager, Name: certManager}}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: meta}, account,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			of(theirs, "update patch", "issuers", "issuers/status", "certificates", "certificates/status"),
			of(theirs, "update patch", "certificaterequests", "certificaterequests/status"),
			of(theirs, "create delete", "certificaterequests"), // of ingress-shim
			of(theirs, look, "certificates", "certificaterequests", "clusterissuers", "issuers"),
			of(theirs, "update", "certificates/finalizers", "certificaterequests/finalizers"),
			of(theirs, "approve", "signers"),
			of("acme."+theirs, look, "orders", "challenges"),
			of("", look+" create update delete patch", "secrets"), of("", "create patch", "events"),
			// The cainjector's, which runs beside them.
			of("admissionregistration.k8s.io", look+" update patch", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
			of("apiregistration.k8s.io", look+" update patch", "apiservices"),
			of("apiextensions.k8s.io", look+" update patch", "customresourcedefinitions"),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: certManager},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: certManager, Name: certManager}}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	its, file := rest.AnonymousClientConfig(config), filepath.Join(t.TempDir(), "kubeconfig")
	its.BearerToken = token.Status.Token
	if err := identity.WriteKubeconfig(file, its, ""); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(binary, "--kubeconfig="+file)
	run.Dir = t.TempDir()
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
}

// issued is the certificate that Secret has; nil: none yet.
func (b *issuerBed) issued(t *testing.T, secret string) *x509.Certificate {
	t.Helper()
	s := &corev1.Secret{}
	if err := b.admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: secret}, s); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// renew is what `cmctl renew` does, with another next key where one is named.
func (b *issuerBed) renew(t *testing.T, certificate, nextKey string) error {
	t.Helper()
	for {
		u := b.object("Certificate", certificate, nil)
		if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		if nextKey != "" {
			_ = unstructured.SetNestedField(u.Object, nextKey, "status", "nextPrivateKeySecretName")
		}
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Issuing", "status": "True", "reason": "x", "message": "x",
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")}}, "status", "conditions")
		if err := b.editor.Status().Update(t.Context(), u); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// TestCertManagerTakesNoKeyOfBallastsForAnothers by its own controllers, which issue and renew under the policy with the
// rights of their chart.
func TestCertManagerTakesNoKeyOfBallastsForAnothers(t *testing.T) {
	config, binaries := withCertManagersKinds(t)
	b := installIssuerPolicy(t, config, overlays()["cert-manager"], "argocd")
	startCertManager(t, config, binaries.Path(assets.CertManager), b.admin)
	for _, u := range b.shipped {
		b.create(t, u)
	}
	until := func(what string, done func() bool) { t.Helper(); (&policyBed{}).until(t, what, done) }
	until("the webhook's certificate is issued", func() bool { return b.issued(t, "ballast-webhook-tls") != nil })

	for _, o := range []client.Object{
		b.ofYAML(t, "Issuer", "root", "{selfSigned: {}}"),
		b.ofYAML(t, "Certificate", "mine", `{secretName: mine, isCA: true, commonName: ballast-ca, issuerRef: {name: root},
			privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}}`),
	} {
		told(t, b.editor.Create(t.Context(), o), "")
	}
	until("the editor's certificate is issued", func() bool { return b.issued(t, "mine") != nil })
	told(t, b.renew(t, "mine", "ballast-ca"), nextKey)
	for name, secret := range map[string]string{"mine": "mine", "ballast-webhook": "ballast-webhook-tls"} {
		before := b.issued(t, secret)
		told(t, b.renew(t, name, ""), "")
		until(name+" is renewed", func() bool { return b.issued(t, secret).SerialNumber.Cmp(before.SerialNumber) != 0 })
	}
	ballasts, is := b.issued(t, "ballast-ca").PublicKey.(*ecdsa.PublicKey)
	if !is || ballasts.Equal(b.issued(t, "mine").PublicKey) {
		t.Error("the editor's CA has the key of ballast's")
	}
}
