package validation

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/certs/privatekey"
	"ballast/planner/config/httpclient"
)

// validateKeys refuses a private key that Go would compute with for minutes or days. What is no key at all is left to
// who reads it: a configuration that was printed has a mask there.
func validateKeys(h httpclient.Config, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	judge := func(text string, at *field.Path) {
		_, err := privatekey.DER([]byte(text))
		if err != nil && !errors.Is(err, privatekey.ErrNone) && !errors.Is(err, privatekey.ErrKind) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, err.Error()+": give it another key"))
		}
	}
	judge(string(h.TLSConfig.Key), p.Child("tls_config", "key"))
	if o := h.OAuth2; o != nil {
		judge(string(o.ClientCertificateKey), p.Child("oauth2", "client_certificate_key"))
		judge(string(o.TLSConfig.Key), p.Child("oauth2", "tls_config", "key"))
	}
	return errs
}
