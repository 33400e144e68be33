package meter

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/common/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

const (
	jwtBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	maxTokenWait  = 15 * time.Second // for one answer of the token endpoint, from dialling to the last byte
	maxTokenBytes = 64 << 10         // read of one; an access token has some 2 KiB
)

// bearer adds an OAuth 2 access token to each request. prometheus/common's own asks for one under no deadline, while
// every other request waits for it. Here a request waits for a token no longer than it may last itself, and each
// question for one ends by its own time.
type bearer struct {
	next   http.RoundTripper
	tokens *tokens
	asking singleflight.Group
}

// RoundTrip sends a request with the token.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.token(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("asking poll.prometheus.http.oauth2.token_url for a token: %w", err)
	}
	with := r.Clone(r.Context())
	token.SetAuthHeader(with)
	return b.next.RoundTrip(with)
}

func (b *bearer) token(ctx context.Context) (*oauth2.Token, error) {
	select {
	case got := <-b.asking.DoChan("", func() (any, error) { return b.tokens.get() }):
		token, _ := got.Val.(*oauth2.Token)
		return token, got.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CloseIdleConnections lets the HTTP client close what it keeps open.
func (b *bearer) CloseIdleConnections() {
	b.tokens.client.CloseIdleConnections()
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// flow is how a token is asked for.
type flow interface {
	TokenSource(ctx context.Context) oauth2.TokenSource
}

// tokens keeps the last token until it expires or the credential changes. It is asked by one at a time.
type tokens struct {
	config     config.OAuth2
	credential config.SecretReader // nil is none
	client     *http.Client
	used       string // the credential of flow
	flow       flow
	last       *oauth2.Token
	answered   bool // the endpoint did, the last time that it was asked
}

func newTokens(o config.OAuth2) (*tokens, error) {
	t := &tokens{config: o}
	text, file, ref := o.ClientSecret, o.ClientSecretFile, o.ClientSecretRef
	if o.GrantType == jwtBearer {
		text, file, ref = o.ClientCertificateKey, o.ClientCertificateKeyFile, o.ClientCertificateKeyRef
	}
	var err error
	if t.credential, err = secretOf(text, file, ref); err != nil {
		return nil, fmt.Errorf("reading the credential of oauth2: %w", err)
	}
	transport, err := t.transport()
	if err != nil {
		return nil, fmt.Errorf("setting up oauth2: %w", err)
	}
	t.client = &http.Client{Transport: transport, Timeout: maxTokenWait}
	return t, nil
}

// transport leads to the token endpoint, as prometheus/common's does.
func (t *tokens) transport() (http.RoundTripper, error) {
	o := &t.config
	var settings config.TLSRoundTripperSettings
	var errs [3]error
	settings.CA, errs[0] = secretOf(config.Secret(o.TLSConfig.CA), o.TLSConfig.CAFile, o.TLSConfig.CARef)
	settings.Cert, errs[1] = secretOf(config.Secret(o.TLSConfig.Cert), o.TLSConfig.CertFile, o.TLSConfig.CertRef)
	settings.Key, errs[2] = secretOf(o.TLSConfig.Key, o.TLSConfig.KeyFile, o.TLSConfig.KeyRef)
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	first, err := newTLSConfig(context.Background(), o.TLSConfig)
	if err != nil {
		return nil, err
	}
	to := func(c *tls.Config) (http.RoundTripper, error) {
		return answers{came: &t.answered, next: &http.Transport{
			TLSClientConfig: c, Proxy: o.Proxy(), ProxyConnectHeader: o.GetProxyConnectHeader(), MaxIdleConnsPerHost: 1,
			IdleConnTimeout: 10 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
			ExpectContinueTimeout:  time.Second,
			MaxResponseHeaderBytes: maxHead,
		}}, nil
	}
	if !hasCA(o.TLSConfig) { // see rotating
		return to(first)
	}
	return config.NewTLSRoundTripper(first, settings, to)
}

// get gives a token that is valid.
func (t *tokens) get() (token *oauth2.Token, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it ended in a panic of type %T", p)
		}
	}()
	credential := ""
	if t.credential != nil {
		if credential, err = t.credential.Fetch(context.Background()); err != nil {
			return nil, err
		}
	}
	if t.config.GrantType == jwtBearer && credential != t.used {
		if err = judgeSigning(credential); err != nil {
			return nil, err
		}
	}
	if t.flow == nil || credential != t.used {
		t.flow, t.used, t.last = t.flowWith(credential), credential, nil
	}
	if t.last.Valid() {
		return t.last, nil
	}
	t.answered = false
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, t.client)
	if token, err = t.flow.TokenSource(ctx).Token(); err != nil {
		return nil, t.inWords(err)
	}
	t.last = token
	return token, nil
}

// flowWith is prometheus/common's use of its settings.
func (t *tokens) flowWith(credential string) flow {
	o, params := t.config, url.Values{}
	for name, value := range o.EndpointParams {
		params.Set(name, value)
	}
	if o.GrantType != jwtBearer {
		return &clientcredentials.Config{
			ClientID: o.ClientID, ClientSecret: credential, Scopes: o.Scopes, TokenURL: o.TokenURL,
			EndpointParams: params,
		}
	}
	algorithm := jwt.SigningMethodRS256
	for _, a := range []*jwt.SigningMethodRSA{jwt.SigningMethodRS384, jwt.SigningMethodRS512} {
		if a.Name == o.SignatureAlgorithm {
			algorithm = a
		}
	}
	return &config.JwtGrantTypeConfig{
		PrivateKey: []byte(credential), PrivateKeyID: o.ClientCertificateKeyID, SigningAlgorithm: algorithm,
		Iss: cmp.Or(o.Iss, o.ClientID), Subject: o.ClientID, Audience: o.Audience, PrivateClaims: o.Claims,
		Scopes: o.Scopes, TokenURL: o.TokenURL, EndpointParams: params,
	}
}

// answers reads what the token endpoint answers. Who may write its URL may name any server that the planner reaches, so
// that of an answer which is no token only its status and a registered error code are told, and no redirect is
// followed.
type answers struct {
	next *http.Transport
	came *bool
}

// errNoToken is what is made of an answer that is none.
var errNoToken = errors.New("its answer is no token: look at what answers there")

// RoundTrip gives an answer that may be a token, and of any other one an error.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, plainly(err)
	}
	*a.came = true
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxTokenBytes+1))
	switch status := response.StatusCode; {
	case err != nil:
		return nil, plainly(err)
	case status/100 == 3:
		return nil, fmt.Errorf("it redirects (%d), which is not followed: name the endpoint itself", status)
	case status/100 != 2:
		return nil, fmt.Errorf("it answers with status %d%s", status, errorCode(text))
	case len(text) > maxTokenBytes:
		return nil, fmt.Errorf("its answer has more than %d KiB, which no token has: look at what answers there",
			maxTokenBytes>>10)
	}
	response.Body = answered{bytes.NewReader(text)}
	return response, nil
}

// CloseIdleConnections lets the HTTP client close what it keeps open.
func (a answers) CloseIdleConnections() { a.next.CloseIdleConnections() }

// answered is the body of an answer that was read.
type answered struct{ *bytes.Reader }

// Close does nothing.
func (answered) Close() error { return nil }

// errorCode is the registered error code of an answer, as in RFC 6749, 5.2 and its like, behind a comma.
func errorCode(text []byte) string {
	var of struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &of) != nil || !slices.Contains(errorCodes(), of.Error) {
		return ""
	}
	return ", " + of.Error
}

func errorCodes() []string {
	return []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
		"unsupported_grant_type", "invalid_scope",
		"invalid_target", "access_denied", "server_error", "temporarily_unavailable"}
}

// inWords is what is told of a token that could not be had. What is read of an answer is not.
func (t *tokens) inWords(err error) error {
	var refused *oauth2.RetrieveError
	var sent *url.Error
	switch {
	case errors.As(err, &sent):
		return sent.Err
	case !t.answered: // such as a key that is none
		return err
	case errors.As(err, &refused) && slices.Contains(errorCodes(), refused.ErrorCode):
		return fmt.Errorf("it answers with %s", refused.ErrorCode)
	}
	return errNoToken
}
