package manifests

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"ballast/e2e/apiserver"
	"ballast/e2e/assets"
)

// withCertManagersKinds is an API server that has them, with the rights that cert-manager's chart gives.
func withCertManagersKinds(t *testing.T) (*rest.Config, assets.Binaries) {
	t.Helper()
	config := apiserver.Start(t)
	binaries, err := assets.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{binaries.CRDs()}}); err != nil {
		t.Fatal(err)
	}
	grantAsCertManagerDoes(t, clientOf(t, config, ""))
	return config, binaries
}

// TestTheCASignsForNobodyElse on a real API server with cert-manager's CRDs, as the policy is shipped and brought to another
// namespace.
func TestTheCASignsForNobodyElse(t *testing.T) {
	config, _ := withCertManagersKinds(t)
	for dir, namespace := range map[string]string{overlays()["cert-manager"]: "argocd", overlays()["retarget-example"]: namespace} {
		t.Run(namespace, func(t *testing.T) {
			b := installIssuerPolicy(t, config, dir, namespace)
			t.Run("as it is shipped", b.letsTheShippedPass)
			t.Run("requests", b.signsForCertManagerAlone)
			t.Run("what is made beside", b.keepsOthersFromTheCA)
			t.Run("what is ballast's", b.keepsBallastsOwn)
			t.Run("what serves", b.keepsTheWebhookServing)
			t.Run("what cert-manager reads for an Issuer", b.keepsItsSecretsFromIssuers)
			t.Run("by whom it proves names", b.judgesSolvers)
			t.Run("whose key is next", b.leavesTheNextKeyToCertManager)
			t.Run("what was there before", b.leavesWhatWasThere)
		})
	}
}

// editor has what cert-manager's aggregated role "edit" gives, a patch where that updates, and Challenges, which that gave
// before; signer has what its controller has.
const (
	editor = "editor"
	signer = "system:serviceaccount:somewhere:another-cert-manager"
)

func grantAsCertManagerDoes(t *testing.T, person client.Client) {
	t.Helper()
	write := []string{"create", "delete", "patch", "update"}
	of := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"cert-manager.io"}, Resources: resources, Verbs: verbs}
	}
	for user, rules := range map[string][]rbacv1.PolicyRule{
		editor: {of(write, "certificates", "certificaterequests", "issuers"), of([]string{"update", "patch"}, "certificates/status"),
			{APIGroups: []string{"acme.cert-manager.io"}, Resources: []string{"challenges"}, Verbs: write}},
		signer: {of(write, "certificates", "certificaterequests"),
			of([]string{"update", "patch"}, "certificates/status", "certificaterequests/status")},
	} {
		meta := metav1.ObjectMeta{Name: strings.ReplaceAll(user, ":", "-")}
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}},
		} {
			if err := person.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// issuerBed is a namespace under the policy.
type issuerBed struct {
	namespace             string
	shipped               map[string]*unstructured.Unstructured // by kind and name
	admin, editor, signer client.Client
}

// installIssuerPolicy returns once the policy is in force.
func installIssuerPolicy(t *testing.T, config *rest.Config, dir, namespace string) *issuerBed {
	t.Helper()
	text := build(t, dir)
	in, name := decode(t, text), "ballast-issuer."+namespace
	b := &issuerBed{namespace: namespace, shipped: map[string]*unstructured.Unstructured{},
		admin: clientOf(t, config, ""), editor: clientOf(t, config, editor), signer: clientOf(t, config, signer)}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), u); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(u.GetAPIVersion(), "cert-manager.io/") {
			b.shipped[u.GetKind()+" "+u.GetName()] = u
		}
	}
	policy, binding := in.Policies[name], in.PolicyBindings[name]
	b.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	b.create(t, b.request("before", "ballast-ca")) // before there is a policy
	b.create(t, b.certificate("before", "before", "ballast-root"))
	b.create(t, &policy)
	b.create(t, &binding)
	(&policyBed{}).until(t, name+" is in force", func() bool {
		err := b.editor.Create(t.Context(), b.request("x", "ballast-ca"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), name)
	})
	if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(&policy), &policy); err != nil {
		t.Fatal(err)
	}
	if check := policy.Status.TypeChecking; check != nil && len(check.ExpressionWarnings) > 0 {
		t.Errorf("the API server warns of %v", check.ExpressionWarnings)
	}
	return b
}

func (b *issuerBed) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := b.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.admin.Delete(context.WithoutCancel(t.Context()), o) })
}

func (b *issuerBed) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": b.namespace, "name": name}, "spec": spec}}
}

// request asks the issuer to sign, with a key of whoever makes it.
func (b *issuerBed) request(name, issuer string) *unstructured.Unstructured {
	return b.object("CertificateRequest", name, map[string]any{"request": "eA==", "issuerRef": map[string]any{"name": issuer}})
}

func (b *issuerBed) certificate(name, secret, issuer string) *unstructured.Unstructured {
	return b.object("Certificate", name, map[string]any{"secretName": secret, "isCA": true, "commonName": "x",
		"issuerRef": map[string]any{"name": issuer, "kind": "Issuer", "group": "cert-manager.io"}})
}

func (b *issuerBed) issuer(name, secret string) *unstructured.Unstructured {
	return b.object("Issuer", name, map[string]any{"ca": map[string]any{"secretName": secret}})
}

func (b *issuerBed) letsTheShippedPass(t *testing.T) {
	if got, want := strings.Join(slices.Sorted(maps.Keys(b.shipped)), ", "),
		"Certificate ballast-ca, Certificate ballast-webhook, Issuer ballast-ca, Issuer ballast-root"; got != want {
		t.Fatalf("shipped are %s, want %s", got, want)
	}
	for name, o := range b.shipped {
		for who, c := range map[string]client.Client{"an administrator": b.admin, "an editor": b.editor} {
			t.Run(name+" by "+who, func(t *testing.T) { told(t, c.Create(t.Context(), o.DeepCopy(), client.DryRunAll), "") })
		}
	}
}

func (b *issuerBed) signsForCertManagerAlone(t *testing.T) {
	const ours = "spec.issuerRef.name: ballast-ca and ballast-root sign what cert-manager itself requests for ballast's Certificates; " +
		"name another issuer"
	for name, c := range map[string]struct {
		by     client.Client
		issuer string
		told   string
	}{
		"anybody's, of the CA":           {b.editor, "ballast-ca", ours},
		"anybody's, of the root":         {b.editor, "ballast-root", ours},
		"anybody's, of another":          {b.editor, "mine", ""},
		"cert-manager's, of the CA":      {b.signer, "ballast-ca", ""},
		"cert-manager's, of the root":    {b.signer, "ballast-root", ""},
		"an administrator's, of the CA":  {b.admin, "ballast-ca", ""},
		"cert-manager's, of another one": {b.signer, "mine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			told(t, c.by.Create(t.Context(), b.request("x", c.issuer), client.DryRunAll), c.told)
		})
	}
	elsewhere := b.request("x", "ballast-ca")
	elsewhere.SetNamespace(metav1.NamespaceDefault)
	told(t, b.editor.Create(t.Context(), elsewhere, client.DryRunAll), "")
	mine := b.request("mine", "mine")
	b.create(t, mine)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"issuerRef":{"name":"ballast-ca"}}}`))
	told(t, b.editor.Patch(t.Context(), mine, patch, client.DryRunAll), ours)
}

// keepsOthersFromTheCA: who may make Certificates and Issuers needs no request of his own.
func (b *issuerBed) keepsOthersFromTheCA(t *testing.T) {
	const (
		issuer = "neither is of another Certificate; name another issuer"
		secret = "and ballast-webhook-ca, is of another Certificate; name another Secret"
		ca     = "spec: cert-manager signs with a Secret that an Issuer names, or sends it to the Issuer's server, and ballast-ca, "
	)
	for name, c := range map[string]struct {
		made *unstructured.Unstructured
		told string
	}{
		"an Issuer of the CA's Secret":              {b.issuer("mine", "ballast-ca"), ca},
		"an Issuer of another Secret":               {b.issuer("mine", "mine"), ""},
		"an Issuer of another kind":                 {b.object("Issuer", "mine", map[string]any{"selfSigned": map[string]any{}}), ""},
		"a CA below the CA":                         {b.certificate("mine", "mine", "ballast-ca"), issuer},
		"a CA of the root's":                        {b.certificate("mine", "mine", "ballast-root"), issuer},
		"a Certificate in the CA's Secret":          {b.certificate("mine", "ballast-ca", "mine"), secret},
		"a Certificate in the webhook's Secret":     {b.certificate("mine", "ballast-webhook-tls", "mine"), secret},
		"a Certificate in the callers' CA's Secret": {b.certificate("mine", "ballast-client-ca", "mine"), secret},
		"a Certificate in the plan's key":           {b.certificate("mine", "ballast-plan-key", "mine"), secret},
		"a Certificate in ballast certs' CA":        {b.certificate("mine", "ballast-webhook-ca", "mine"), secret},
		"a Certificate of another issuer":           {b.certificate("mine", "mine", "mine"), ""},
		"a Certificate by the name of the webhook":  {b.certificate("mine", "ballast-webhook", "mine"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			told(t, b.editor.Create(t.Context(), c.made.DeepCopy(), client.DryRunAll), c.told)
			c.made.SetNamespace(metav1.NamespaceDefault)
			told(t, b.editor.Create(t.Context(), c.made, client.DryRunAll), "")
		})
	}
}

// keepsBallastsOwn: another issuer or Secret of theirs would have its CA in the webhook configuration.
func (b *issuerBed) keepsBallastsOwn(t *testing.T) {
	for _, o := range b.shipped {
		b.create(t, o)
	}
	const leave = "leave it as it is shipped"
	for name, c := range map[string]struct{ of, patch, told string }{
		"the webhook's issuer":          {"Certificate ballast-webhook", `{"spec":{"issuerRef":{"name":"mine"}}}`, "spec.issuerRef: "},
		"a ClusterIssuer":               {"Certificate ballast-webhook", `{"spec":{"issuerRef":{"kind":"ClusterIssuer"}}}`, "spec.issuerRef: "},
		"an issuer of another group":    {"Certificate ballast-webhook", `{"spec":{"issuerRef":{"group":"example.com"}}}`, "spec.issuerRef: "},
		"the webhook's Secret":          {"Certificate ballast-webhook", `{"spec":{"secretName":"mine"}}`, "spec.secretName: "},
		"a webhook that is a CA":        {"Certificate ballast-webhook", `{"spec":{"isCA":true}}`, "spec.isCA: "},
		"the CA's issuer":               {"Certificate ballast-ca", `{"spec":{"issuerRef":{"name":"mine"}}}`, "spec.issuerRef: "},
		"the CA's Secret":               {"Certificate ballast-ca", `{"spec":{"secretName":"mine"}}`, "spec.secretName: "},
		"the CA's Issuer's Secret":      {"Issuer ballast-ca", `{"spec":{"ca":{"secretName":"mine"}}}`, leave},
		"the CA's Issuer by another":    {"Issuer ballast-ca", `{"spec":{"ca":null,"selfSigned":{}}}`, leave},
		"the CA's Issuer and another":   {"Issuer ballast-ca", `{"spec":{"acme":{"server":"x","privateKeySecretRef":{"name":"x"}}}}`, leave},
		"the root of another CA":        {"Issuer ballast-root", `{"spec":{"ca":{"secretName":"mine"},"selfSigned":null}}`, leave},
		"the root and another":          {"Issuer ballast-root", `{"spec":{"ca":{"secretName":"mine"}}}`, leave},
		"how long the webhook's lasts":  {"Certificate ballast-webhook", `{"spec":{"duration":"1440h"}}`, ""},
		"a label":                       {"Issuer ballast-ca", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"the same issuer, by its group": {"Certificate ballast-ca", `{"spec":{"issuerRef":{"group":""}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch("application/merge-patch+json", []byte(c.patch))
			told(t, b.editor.Patch(t.Context(), b.shipped[c.of].DeepCopy(), patch, client.DryRunAll), c.told)
		})
	}
}

// keepsTheWebhookServing: who may write Certificates and no Secret makes none of ballast's a cluster's, and none that is believed no more.
// It follows keepsBallastsOwn, whose Certificates are gone by then.
func (b *issuerBed) keepsTheWebhookServing(t *testing.T) {
	for _, o := range b.shipped {
		o.SetResourceVersion("")
		o.SetUID("")
		b.create(t, o)
	}
	const (
		webhook, ca = "Certificate ballast-webhook", "Certificate ballast-ca"
		names       = "spec.dnsNames: the API server asks for ballast-webhook."
		as          = "spec.privateKey.rotationPolicy, spec.commonName, spec.subject, spec.literalSubject: under a CA of another key"
		dear        = "spec.privateKey.algorithm: a handshake by RSA, which is meant where none is named, costs the webhook up to"
		lasts       = "spec.duration, spec.renewBefore: Certificate ballast-ca outlasts each of the webhook's"
	)
	own := "ballast-webhook." + b.namespace + ".svc"
	for name, c := range map[string]struct{ of, patch, told string }{
		"a cluster's label":             {webhook, `{"spec":{"secretTemplate":{"labels":{"argocd.argoproj.io/secret-type":"cluster"}}}}`, "spec.secretTemplate: "},
		"a replicator's annotation":     {webhook, `{"spec":{"secretTemplate":{"annotations":{"a":"b"}}}}`, "spec.secretTemplate: "},
		"a label of the CA's":           {ca, `{"spec":{"secretTemplate":{"labels":{"a":"b"}}}}`, "spec.secretTemplate: "},
		"another name":                  {webhook, `{"spec":{"dnsNames":["x.example"]}}`, names + b.namespace + ".svc, and takes"},
		"no name":                       {webhook, `{"spec":{"dnsNames":null,"commonName":"` + own + `"}}`, names},
		"another namespace's name":      {webhook, `{"spec":{"dnsNames":["ballast-webhook.default.svc"]}}`, names},
		"one more name":                 {webhook, `{"spec":{"dnsNames":["` + own + `","x.example"]}}`, ""},
		"a client's":                    {webhook, `{"spec":{"usages":["client auth"]}}`, "spec.usages: "},
		"a client's and a server's":     {webhook, `{"spec":{"usages":["client auth","server auth"]}}`, ""},
		"no usages":                     {webhook, `{"spec":{"usages":null}}`, ""},
		"a CA of clients":               {ca, `{"spec":{"usages":["cert sign","client auth"]}}`, "spec.usages: "},
		"a CA that says so":             {ca, `{"spec":{"usages":["cert sign","crl sign"]}}`, ""},
		"a CA that is none":             {ca, `{"spec":{"isCA":false}}`, "spec.isCA: "},
		"a CA for other names":          {ca, `{"spec":{"nameConstraints":{"permitted":{"dnsDomains":["x.example"]}}}}`, "spec.nameConstraints: "},
		"a CA for an hour":              {ca, `{"spec":{"duration":"1h","renewBefore":null}}`, lasts},
		"a CA for as long as none says": {ca, `{"spec":{"duration":null,"renewBefore":null}}`, lasts},
		"a CA that is renewed late":     {ca, `{"spec":{"renewBefore":"1h"}}`, lasts},
		"late by a percentage":          {ca, `{"spec":{"renewBefore":null,"renewBeforePercentage":1}}`, lasts},
		"a CA for a year":               {ca, `{"spec":{"duration":"8760h","renewBefore":"720h"}}`, ""},
		"a CA of its third":             {ca, `{"spec":{"renewBefore":null}}`, ""},
		"a CA of ever another key":      {ca, `{"spec":{"privateKey":{"rotationPolicy":"Always"}}}`, as},
		"a CA of whatever key":          {ca, `{"spec":{"privateKey":{"rotationPolicy":null}}}`, as},
		"a CA without a key policy":     {ca, `{"spec":{"privateKey":null}}`, as},
		"a CA of another name":          {ca, `{"spec":{"commonName":"x"}}`, as},
		"a CA of no name":               {ca, `{"spec":{"commonName":null}}`, as},
		"a CA of a subject":             {ca, `{"spec":{"subject":{"organizations":["x"]}}}`, as},
		"a CA of a literal subject":     {ca, `{"spec":{"commonName":null,"literalSubject":"CN=ballast-ca"}}`, as},
		"both names":                    {ca, `{"spec":{"literalSubject":"CN=x"}}`, as},
		"how many requests stay":        {ca, `{"spec":{"revisionHistoryLimit":2}}`, ""},
		"a dear key":                    {webhook, `{"spec":{"privateKey":{"algorithm":"RSA","size":8192}}}`, dear},
		"a dear key that nobody names":  {webhook, `{"spec":{"privateKey":{"algorithm":null,"size":8192}}}`, dear},
		"no key policy":                 {webhook, `{"spec":{"privateKey":null}}`, dear},
		"another key":                   {webhook, `{"spec":{"privateKey":{"size":384,"rotationPolicy":"Never"}}}`, ""},
		"a key of Edwards' curve":       {webhook, `{"spec":{"privateKey":{"algorithm":"Ed25519","size":null}}}`, ""},
		"a keystore":                    {webhook, `{"spec":{"keystores":{"pkcs12":{"create":true,"passwordSecretRef":{"name":"a","key":"b"}}}}}`, ""},
		"another format":                {webhook, `{"spec":{"additionalOutputFormats":[{"type":"CombinedPEM"}]}}`, ""},
		"a subject":                     {webhook, `{"spec":{"literalSubject":"CN=a"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch("application/merge-patch+json", []byte(c.patch))
			told(t, b.editor.Patch(t.Context(), b.shipped[c.of].DeepCopy(), patch, client.DryRunAll), c.told)
		})
	}
	mine := b.certificate("mine", "mine", "mine") // and what is not ballast's is as its maker likes it
	for field, value := range map[string]any{"dnsNames": []any{"x.example"}, "usages": []any{"client auth"}, "duration": "1h",
		"secretTemplate": map[string]any{"labels": map[string]any{"a": "b"}}} {
		if err := unstructured.SetNestedField(mine.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	told(t, b.editor.Create(t.Context(), mine, client.DryRunAll), "")
}

// leavesWhatWasThere: a label of it may be written, and it may go.
func (b *issuerBed) leavesWhatWasThere(t *testing.T) {
	was := b.request("before", "ballast-ca")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	told(t, b.editor.Patch(t.Context(), was, patch, client.DryRunAll), "")
	told(t, b.editor.Delete(t.Context(), was, client.DryRunAll), "")
}
