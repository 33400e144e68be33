package manifests

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/certs"
	"ballast/e2e/apiserver"
)

// TestTheCertificatesPolicy on a real API server, as it is shipped and brought to another namespace.
func TestTheCertificatesPolicy(t *testing.T) {
	config := apiserver.Start(t)
	for dir, namespace := range map[string]string{overlays()["self-signed"]: "argocd", everything: namespace} {
		t.Run(namespace, func(t *testing.T) {
			p := installPolicy(t, config, decode(t, build(t, dir)), namespace)
			p.refusesWhatIsNoCertificate(t)
			p.refusesToMakeItOne(t)
			p.refusesAllButTheBundle(t)
			p.letsTheRotatorWork(t)
			p.concernsNobodyElse(t)
		})
	}
}

type policyBed struct {
	namespace     string
	person, certs client.WithWatch
}

// installPolicy installs what `ballast certs` may do, and waits until the policy is in force.
func installPolicy(t *testing.T, config *rest.Config, in install, namespace string) *policyBed {
	t.Helper()
	p := &policyBed{namespace: namespace, person: clientOf(t, config, ""), certs: clientOf(t, config, "system:serviceaccount:"+namespace+":ballast-certs")}
	role, binding, policy, policyBinding := in.Roles["ballast-certs"], in.RoleBindings["ballast-certs"], in.Policies["ballast-certs."+namespace], in.PolicyBindings["ballast-certs."+namespace]
	clusterRole, clusterBinding, webhooks := in.ClusterRoles["ballast-certs."+namespace], in.ClusterBindings["ballast-certs."+namespace], in.Webhooks["ballast."+namespace]
	for i := range webhooks.Webhooks { // nobody answers here
		webhooks.Webhooks[i].FailurePolicy = ptr.To(admissionregistration.Ignore)
	}
	held, heldBinding := in.Policies["ballast-certs-webhooks."+namespace], in.PolicyBindings["ballast-certs-webhooks."+namespace]
	webhooks.Annotations = map[string]string{"note": "a"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&role, &binding, &clusterRole, &clusterBinding, &webhooks, &policy, &policyBinding, &held, &heldBinding,
	} {
		if err := p.person.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.person.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	p.until(t, "the policy is in force", func() bool {
		err := p.create(t, func(s *corev1.Secret) { s.Name = "other" })
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
	p.until(t, "the policy of webhook configurations is in force", func() bool {
		err := p.patchWebhooks(t, `[{"op":"add","path":"/metadata/labels/more","value":"x"}]`)
		return err != nil && strings.Contains(err.Error(), held.Name)
	})
	if err := p.person.Get(t.Context(), client.ObjectKeyFromObject(&policy), &policy); err != nil {
		t.Fatal(err)
	}
	if check := policy.Status.TypeChecking; check != nil && len(check.ExpressionWarnings) > 0 {
		t.Errorf("the API server warns of %v", check.ExpressionWarnings)
	}
	return p
}

func clientOf(t *testing.T, config *rest.Config, user string) client.WithWatch {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	config.Impersonate.UserName = user
	if user != "" {
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:authenticated"}
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *policyBed) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// certificate is a Secret as package certs makes it, but for what is changed.
func (p *policyBed) certificate(change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: certs.LeafTLS, Labels: map[string]string{"app.kubernetes.io/part-of": "ballast"}},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("x"), corev1.TLSPrivateKeyKey: []byte("x"), corev1.ServiceAccountRootCAKey: []byte("x")},
	}
	if change != nil {
		change(s)
	}
	return s
}

// create tries to, by a dry-run.
func (p *policyBed) create(t *testing.T, change func(*corev1.Secret)) error {
	return p.certs.Create(t.Context(), p.certificate(change), client.DryRunAll)
}

const (
	twoNames  = "ballast certs writes the Secrets ballast-webhook-ca and ballast-webhook-tls and no other"
	oneType   = "ballast certs writes Secrets of type kubernetes.io/tls and no other; delete the one that has its name, and it is made anew"
	noAccount = "ballast certs writes no Secret that names a ServiceAccount"
	noArgoCD  = "ballast certs writes no Secret that Argo CD reads"
)

func (p *policyBed) refusesWhatIsNoCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		told   string // empty = accepted
	}{
		"the leaf":                                 {},
		"the CA":                                   {change: func(s *corev1.Secret) { s.Name = certs.CASecret }},
		"one of a name that Argo CD reads":         {change: func(s *corev1.Secret) { s.Name = "argocd-secret" }, told: twoNames},
		"one of a name that Kubernetes makes up":   {change: func(s *corev1.Secret) { s.Name, s.GenerateName = "", certs.LeafTLS }, told: twoNames},
		"a ServiceAccount's token":                 {change: token, told: oneType},
		"one without a type":                       {change: func(s *corev1.Secret) { s.Type = "" }, told: oneType},
		"a bootstrap token":                        {change: func(s *corev1.Secret) { s.Type = corev1.SecretTypeBootstrapToken }, told: oneType},
		"a certificate that names an account":      {change: account("name"), told: noAccount},
		"a certificate that names an account's id": {change: account("uid"), told: noAccount},
		"a cluster of Argo CD's":                   {change: argoCD("cluster"), told: noArgoCD},
		"credentials of repositories":              {change: argoCD("repo-creds"), told: noArgoCD},
		"another annotation":                       {change: func(s *corev1.Secret) { s.Annotations = map[string]string{"kubernetes.io/note": "x"} }},
		"another label":                            {change: func(s *corev1.Secret) { s.Labels["argocd.argoproj.io/instance"] = "ballast" }},
	} {
		err := p.create(t, c.change)
		if c.told == "" && err != nil || c.told != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.told)) {
			t.Errorf("%s: %v, want %q", name, err, c.told)
		}
	}
}

func token(s *corev1.Secret) {
	s.Type, s.Data = corev1.SecretTypeServiceAccountToken, nil
	s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "argocd-application-controller"}
}

func account(key string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Annotations = map[string]string{"kubernetes.io/service-account." + key: "x"} }
}

func argoCD(kind string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Labels["argocd.argoproj.io/secret-type"] = kind }
}

// refusesToMakeItOne: what is there already becomes nothing else by an update, either.
func (p *policyBed) refusesToMakeItOne(t *testing.T) {
	for name, c := range map[string]struct {
		before, change func(*corev1.Secret)
		told           string
	}{
		"new data":                          {change: func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("y") }},
		"a cluster of Argo CD's":            {change: argoCD("cluster"), told: noArgoCD},
		"an account":                        {change: account("name"), told: noAccount},
		"the data of one of another type":   {before: func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, told: oneType},
		"whose a token is, that stood here": {before: func(s *corev1.Secret) { s.Type = "example.com/token" }, change: account("name"), told: oneType},
	} {
		s := p.certificate(c.before)
		if err := p.person.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(s)
		} else {
			s.Data["more"] = []byte("y")
		}
		err := p.certs.Update(t.Context(), s, client.DryRunAll)
		if c.told == "" && err != nil || c.told != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.told)) {
			t.Errorf("%s: %v, want %q", name, err, c.told)
		}
		if err := p.person.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// letsTheRotatorWork as the ServiceAccount, from nothing, and after somebody damaged a Secret.
func (p *policyBed) letsTheRotatorWork(t *testing.T) {
	settings := certs.Settings{Namespace: p.namespace, Service: "ballast-webhook"}
	rotator := certs.NewRotator(certs.RotatorOptions{
		Client: p.certs, Settings: settings, Rules: certs.Rules{DNSNames: settings.DNSNames(), Settle: time.Millisecond, Overlap: time.Millisecond}, Configuration: settings.Configuration(), Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	work := func() {
		t.Helper()
		p.until(t, "the rotator is through", func() bool {
			more, err := rotator.Once(t.Context())
			if late := apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy"); err != nil && !late {
				t.Fatal(err)
			}
			return err == nil && more.IsZero()
		})
	}
	work()
	ca := p.read(t, certs.CASecret)
	ca.Data[corev1.TLSCertKey] = []byte("damaged")
	if err := p.person.Update(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	work()
	if got := string(p.read(t, certs.CASecret).Data[corev1.TLSCertKey]); !strings.Contains(got, "BEGIN CERTIFICATE") {
		t.Error("the CA is still damaged")
	}
	for _, name := range []string{certs.CASecret, certs.LeafTLS} {
		if got := p.read(t, name).Type; got != corev1.SecretTypeTLS {
			t.Errorf("%s is of type %s", name, got)
		}
	}
}

func (p *policyBed) read(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := p.person.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func (p *policyBed) concernsNobodyElse(t *testing.T) {
	for _, change := range []func(*corev1.Secret){token, argoCD("cluster"), func(s *corev1.Secret) { s.Type = "" }} {
		s := p.certificate(change)
		s.Name = "somebody-elses"
		if err := p.person.Create(t.Context(), s, client.DryRunAll); err != nil {
			t.Error(err)
		}
	}
}

func (p *policyBed) patchWebhooks(t *testing.T, patch string) error {
	o := &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: certs.Settings{Namespace: p.namespace}.Configuration()}}
	return p.certs.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(patch)), client.DryRunAll)
}

// refusesAllButTheBundle: who has the account's token cannot have the API server send writes elsewhere.
func (p *policyBed) refusesAllButTheBundle(t *testing.T) {
	const (
		onlyBundle = "of a webhook ballast certs writes clientConfig.caBundle and nothing else"
		onlyNotes  = "of a webhook configuration's metadata ballast certs writes the annotation ballast.argoproj.io/ca-bundled-at and nothing else"
	)
	ca, err := certs.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ patch, told string }{
		"the bundle":             {patch: `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"` + base64.StdEncoding.EncodeToString(ca.Cert) + `"}]`},
		"when it was written":    {patch: `[{"op":"add","path":"/metadata/annotations/ballast.argoproj.io~1ca-bundled-at","value":"2026-11-23T06:15:01.123456789Z"}]`},
		"filler for that":        {patch: `[{"op":"add","path":"/metadata/annotations/ballast.argoproj.io~1ca-bundled-at","value":"` + strings.Repeat("9", 65) + `"}]`, told: onlyNotes},
		"another of that prefix": {patch: `[{"op":"add","path":"/metadata/annotations/ballast.argoproj.io~1x","value":"a"}]`, told: onlyNotes},
		"another annotation":     {patch: `[{"op":"replace","path":"/metadata/annotations/note","value":"b"}]`, told: onlyNotes},
		"no annotations":         {patch: `[{"op":"remove","path":"/metadata/annotations"}]`, told: onlyNotes},
		"a label":                {patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, told: onlyNotes},
		"a URL":                  {patch: `[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://mallory.example/"}}]`, told: onlyBundle},
		"another Service":        {patch: `[{"op":"replace","path":"/webhooks/0/clientConfig/service/name","value":"mallory"}]`, told: onlyBundle},
		"another namespace":      {patch: `[{"op":"replace","path":"/webhooks/0/clientConfig/service/namespace","value":"mallory"}]`, told: onlyBundle},
		"another path":           {patch: `[{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/plan"}]`, told: onlyBundle},
		"a wider rule":           {patch: `[{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["*"]}]`, told: onlyBundle},
		"all namespaces":         {patch: `[{"op":"remove","path":"/webhooks/0/namespaceSelector"}]`, told: onlyBundle},
		"all objects":            {patch: `[{"op":"remove","path":"/webhooks/0/objectSelector"}]`, told: onlyBundle},
		"a failure that refuses": {patch: `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`, told: onlyBundle},
		"a webhook less":         {patch: `[{"op":"remove","path":"/webhooks/0"}]`, told: onlyBundle},
		"a webhook more":         {patch: `[{"op":"copy","from":"/webhooks/0","path":"/webhooks/4"},{"op":"replace","path":"/webhooks/4/name","value":"more.example.com"}]`, told: onlyBundle},
	} {
		t.Run(name, func(t *testing.T) { told(t, p.patchWebhooks(t, c.patch), c.told) })
	}
}
