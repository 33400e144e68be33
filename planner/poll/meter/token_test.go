package meter_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"ballast/planner/poll/meter"
)

// issuer is a token endpoint: its answers, and what it was asked.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // how the client showed itself, and the form
	say   func(w http.ResponseWriter, form url.Values, n int)
}

func issuing(t testing.TB, secure bool, say func(w http.ResponseWriter, form url.Values, n int)) *issuer {
	t.Helper()
	i := &issuer{say: say}
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		i.mu.Lock()
		defer i.mu.Unlock()
		id, secret, _ := r.BasicAuth()
		i.asked = append(i.asked, r.Method+" "+r.URL.Path+" "+id+":"+secret+" "+r.PostForm.Encode())
		i.say(w, r.PostForm, len(i.asked))
	}))
	if secure {
		i.StartTLS()
	} else {
		i.Start()
	}
	t.Cleanup(i.Close)
	return i
}

// numbered answers T1, T2 and so on, which last for an hour.
func numbered(w http.ResponseWriter, _ url.Values, n int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"T%d","token_type":"bearer","expires_in":3600}`, n)
}

// echo is a server that answers with the Authorization that it got.
func echo(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w,
			r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// client is one with these settings of oauth2.
func client(t testing.TB, o config.OAuth2) *http.Client {
	t.Helper()
	c := config.DefaultHTTPClientConfig
	c.OAuth2 = &o
	return clientOf(t, c)
}

func clientOf(t testing.TB, c config.HTTPClientConfig) *http.Client {
	t.Helper()
	made, err := meter.NewHTTPClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.CloseIdleConnections)
	return made
}

// ask gives the answer, or the error's own words.
func ask(t testing.TB, c *http.Client, at string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("query=up"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		return strings.TrimPrefix(err.Error(), fmt.Sprintf("Post %q: ", at))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every setting of oauth2 does what it does in prometheus/common, which is asked no longer.
func TestTheSettingsOfOAuth2AreUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i := issuing(t, false, numbered)
	write(file, "of-a-file\n")
	c := client(t, config.OAuth2{ClientID: "ballast", ClientSecretFile: file, TokenURL: i.URL + "/token", Scopes: []string{"a", "b"},
		EndpointParams: map[string]string{"audience": "prometheus"}})
	at := echo(t)
	got := []string{ask(t, c, at), ask(t, c, at)} // the second one's token is the first one's
	write(file, "another\n")
	got = append(got, ask(t, c, at), ask(t, c, at))
	if diff := cmp.Diff([]string{"Bearer T1", "Bearer T1", "Bearer T2", "Bearer T2"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	want := []string{
		"POST /token ballast:of-a-file audience=prometheus&grant_type=client_credentials&scope=a+b",
		"POST /token ballast:another audience=prometheus&grant_type=client_credentials&scope=a+b",
	}
	if diff := cmp.Diff(want, i.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c, at); !strings.Contains(got, "for a token: unable to read file "+file) {
		t.Errorf("without the file: %q", got)
	}
}

// An endpoint that takes the secret in the form alone is found out once.
func TestTheSecretGoesAsTheEndpointTakesIt(t *testing.T) {
	i := issuing(t, false, func(w http.ResponseWriter, form url.Values, n int) {
		if form.Get("client_secret") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"T%d","expires_in":1}`, n)
	})
	c, at := client(t, config.OAuth2{ClientID: "ballast", ClientSecret: "s", TokenURL: i.URL}), echo(t)
	got := []string{ask(t, c, at), ask(t, c, at)}
	if diff := cmp.Diff([]string{"Bearer T2", "Bearer T3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"POST / ballast:s grant_type=client_credentials",
		"POST / : client_id=ballast&client_secret=s&grant_type=client_credentials",
		"POST / : client_id=ballast&client_secret=s&grant_type=client_credentials"}
	if diff := cmp.Diff(want, i.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// A question for a token that hangs ends by itself, so that the next one is asked.
func TestATokenEndpointThatComesBackIsAsked(t *testing.T) {
	release, back := make(chan struct{}), atomic.Bool{}
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !back.Load() {
			<-release
			return
		}
		numbered(w, nil, 1)
	}))
	defer tokens.Close()
	defer close(release)
	c, at := client(t, config.OAuth2{ClientID: "ballast", ClientSecret: "s", TokenURL: tokens.URL}), echo(t)
	if got := meter.TokenWait(c); got != 15*time.Second {
		t.Errorf("it waits for %s", got)
	}
	meter.SetTokenWait(c, 20*time.Millisecond)
	if got := ask(t, c, at); !strings.HasPrefix(got, "asking poll.prometheus.http.oauth2.token_url for a token: ") {
		t.Errorf("it hangs: %q", got)
	}
	back.Store(true)
	meter.SetTokenWait(c, time.Minute)
	if got := ask(t, c, at); got != "Bearer T1" {
		t.Errorf("it is back: %q", got)
	}
}

func TestTheWayToTheTokenEndpointIsTheConfigured(t *testing.T) {
	i, at := issuing(t, true, numbered), echo(t)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	o := config.OAuth2{ClientID: "ballast", ClientSecret: "s", TokenURL: i.URL}
	if got := ask(t, client(t, o), at); !strings.Contains(got, "certificate signed by unknown authority") {
		t.Errorf("without its CA: %q", got)
	}
	o.TLSConfig.CA = ca
	if got := ask(t, client(t, o), at); got != "Bearer T1" {
		t.Errorf("with its CA: %q", got)
	}
	o.TLSConfig.CA, o.TLSConfig.CAFile = "", filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(o.TLSConfig.CAFile, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, client(t, o), at); got != "Bearer T2" {
		t.Errorf("with its CA's file: %q", got)
	}
	proxy := issuing(t, false, numbered)
	to, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	o = config.OAuth2{ClientID: "ballast", ClientSecret: "s", TokenURL: "http://issuer.example/oauth/token",
		ProxyConfig: config.ProxyConfig{ProxyURL: config.URL{URL: to}}}
	if got := ask(t, client(t, o), at); got != "Bearer T1" {
		t.Errorf("by a proxy: %q", got)
	}
	if diff := cmp.Diff([]string{"POST /oauth/token ballast:s grant_type=client_credentials"}, proxy.asked); diff != "" {
		t.Errorf("the proxy was asked (-want +got):\n%s", diff)
	}
}

func TestAKeyOfOAuth2SignsWhatItAsksWith(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		o    config.OAuth2
		want map[string]any // of the assertion, with its header's alg and kid
	}{
		"as little as may be": {config.OAuth2{ClientCertificateKey: config.Secret(text)},
			map[string]any{"alg": "RS256", "kid": nil, "iss": "ballast", "sub": "ballast", "aud": "URL", "scope": nil, "tenant": nil}},
		"all": {config.OAuth2{ClientCertificateKeyFile: file, ClientCertificateKeyID: "k1", SignatureAlgorithm: "RS384", Iss: "i",
			Audience: "a", Scopes: []string{"x", "y"},
			Claims: map[string]any{"tenant": "t"}, EndpointParams: map[string]string{"p": "v"}},
			map[string]any{"alg": "RS384", "kid": "k1", "iss": "i", "sub": "ballast", "aud": "a", "scope": "x y", "tenant": "t"}},
		"the third": {config.OAuth2{ClientCertificateKeyFile: file, SignatureAlgorithm: "RS512"},
			map[string]any{"alg": "RS512", "kid": nil, "iss": "ballast", "sub": "ballast", "aud": "URL", "scope": nil, "tenant": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			var form url.Values
			i := issuing(t, false, func(w http.ResponseWriter, asked url.Values, n int) {
				form = asked
				claims := jwt.MapClaims{}
				token, err := jwt.ParseWithClaims(asked.Get("assertion"), claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil })
				if err != nil {
					t.Errorf("the assertion: %v", err)
					return
				}
				for name := range test.want {
					got[name] = claims[name]
				}
				got["alg"], got["kid"] = token.Header["alg"], token.Header["kid"]
				numbered(w, asked, n)
			})
			o := test.o
			o.ClientID, o.TokenURL, o.GrantType = "ballast", i.URL, "urn:ietf:params:oauth:grant-type:jwt-bearer"
			if test.want["aud"] == "URL" {
				test.want["aud"] = i.URL
			}
			c, at := client(t, o), echo(t)
			if first, second := ask(t, c, at), ask(t, c, at); first != "Bearer T1" || second != "Bearer T1" {
				t.Errorf("%q, %q", first, second)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if form.Get("grant_type") != o.GrantType || form.Get("p") != o.EndpointParams["p"] {
				t.Errorf("asked with %v", form)
			}
		})
	}
}

func TestSettingsOfOAuth2ThatCannotBe(t *testing.T) {
	at := echo(t)
	for name, test := range map[string]struct {
		o    config.OAuth2
		want string
	}{
		"a reference":      {config.OAuth2{ClientSecretRef: "r"}, "reading the credential of oauth2: cannot use secret ref without manager"},
		"a CA's reference": {config.OAuth2{TLSConfig: config.TLSConfig{CARef: "r"}}, "setting up oauth2: cannot use secret ref without manager"},
		"no CA":            {config.OAuth2{TLSConfig: config.TLSConfig{CA: "none"}}, "setting up oauth2: unable to use specified CA cert inline"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.DefaultHTTPClientConfig
			c.OAuth2 = &test.o
			if _, err := meter.NewHTTPClient(c); err == nil || err.Error() != test.want {
				t.Errorf("%v", err)
			}
		})
	}
	for name, test := range map[string]struct {
		o    config.OAuth2
		want string
	}{
		"no key": {config.OAuth2{GrantType: "urn:ietf:params:oauth:grant-type:jwt-bearer", ClientCertificateKey: "CANARY",
			TokenURL: at}, "reading oauth2.client_certificate_key: its private key is none of RSA, EC and Ed25519, or is encrypted: " +
			"give it another key"},
		"a parameter twice": {config.OAuth2{TokenURL: at, Scopes: []string{"a"}, EndpointParams: map[string]string{"scope": "b"}},
			`oauth2: cannot overwrite parameter "scope"`},
		"a URL that is none":  {config.OAuth2{TokenURL: "://"}, "missing protocol scheme"},
		"nothing answers":     {config.OAuth2{TokenURL: "http://127.0.0.1:1"}, "dial tcp 127.0.0.1:1: connect: connection refused"},
		"a CA without a file": {config.OAuth2{TokenURL: "ftp://x"}, `unsupported protocol scheme "ftp"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := ask(t, client(t, test.o), at), "asking poll.prometheus.http.oauth2.token_url for a token: "+test.want; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// told are all the words that an answer of the token endpoint may become.
var told = regexp.MustCompile(`^asking poll\.prometheus\.http\.oauth2\.token_url for a token: (?:` +
	`it answers with status [0-9]{3}(?:, [a-z_]+)?|it answers with (?:invalid_[a-z]+|unauthorized_client|unsupported_grant_type|` +
	`access_denied|server_error|temporarily_unavailable)|` +
	`it redirects \([0-9]{3}\), which is not followed: name the endpoint itself|its answer is no token: look at what answers there|` +
	`its answer has more than 64 KiB, which no token has: look at what answers there|unexpected EOF|` +
	`what answers there does not speak HTTP as it should: look at what the URL names)$`)

// Whoever may name the endpoint may name any server that the planner reaches: what that answers is not theirs to read, nor
// where it redirects to theirs to reach.
func TestNothingOfATokenAnswerIsTold(t *testing.T) {
	const asking = "asking poll.prometheus.http.oauth2.token_url for a token: "
	at := echo(t)
	reached := 0
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer behind.Close()
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a page": {404, "CANARY of a page", "it answers with status 404"},
		"a registered code": {400, `{"error":"invalid_client","error_description":"CANARY","error_uri":"CANARY"}`,
			"it answers with status 400, invalid_client"},
		"a code of its own":        {401, `{"error":"CANARY"}`, "it answers with status 401"},
		"a registered code by 200": {200, `{"error":"invalid_scope","error_description":"CANARY"}`, "it answers with invalid_scope"},
		"a code of its own by 200": {200, `{"error":"CANARY"}`, "its answer is no token: look at what answers there"},
		"no JSON by 200":           {200, `CANARY`, "its answer is no token: look at what answers there"},
		"no form by 200":           {200, `a=%CANARY`, "its answer is no token: look at what answers there"},
		"JSON that is no token":    {200, `{"access_token":{"CANARY":1}}`, "its answer is no token: look at what answers there"},
		"a token that is too large": {200, `{"access_token":"` + strings.Repeat("a", 64<<10) + `"}`,
			"its answer has more than 64 KiB, which no token has: look at what answers there"},
		"a redirect":             {302, "CANARY", "it redirects (302), which is not followed: name the endpoint itself"},
		"a redirect of the form": {307, "CANARY", "it redirects (307), which is not followed: name the endpoint itself"},
	} {
		for _, content := range []string{"application/json", "text/plain"} {
			t.Run(name+" as "+content, func(t *testing.T) {
				i := issuing(t, false, func(w http.ResponseWriter, _ url.Values, _ int) {
					w.Header().Set("Content-Type", content)
					w.Header().Set("Location", behind.URL+"/CANARY")
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body)
				})
				got := ask(t, client(t, config.OAuth2{ClientID: "c", ClientSecret: "s", TokenURL: i.URL}), at)
				if strings.Contains(got, "CANARY") || !told.MatchString(got) {
					t.Errorf("%q is told", got)
				}
				if content == "application/json" && got != asking+test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
			})
		}
	}
	if reached > 0 {
		t.Errorf("%d redirects are followed", reached)
	}
}

// speaks is a port that says a text to whoever comes, once it was asked: what ends with a request half read resets the connection, and
// the text may be lost with it.
func speaks(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
			return
		}
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffer.WriteString(text)
		_ = buffer.Flush()
		_ = connection.Close()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A port that speaks no HTTP says its first line to nobody, and a head that is none its values.
func TestNothingOfAnotherProtocolIsTold(t *testing.T) {
	at := echo(t)
	for name, text := range map[string]string{
		"a banner":     "SSH-2.0-CANARY\r\n\r\n",
		"a status":     "HTTP/1.1 CANARY x\r\n\r\n",
		"a line":       "HTTP/1.1 200 OK\r\nCANARY\r\n\r\n",
		"an encoding":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: CANARY\r\n\r\n",
		"a length":     "HTTP/1.1 200 OK\r\nContent-Length: CANARY\r\n\r\n",
		"a redirect":   "HTTP/1.1 302 Found\r\nLocation: http://[CANARY\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"half a token": "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nCANARY",
	} {
		t.Run(name, func(t *testing.T) {
			u := speaks(t, text)
			if got := ask(t, client(t, config.OAuth2{ClientID: "c", ClientSecret: "s", TokenURL: u}), at); !told.MatchString(got) {
				t.Errorf("of a token: %q", got)
			}
			asks, err := meter.NewHTTPClient(config.DefaultHTTPClientConfig)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, body, err := meter.NewClient(nil, asks, meter.NewAllowance(meter.NewSemaphore())).Do(t.Context(), request)
			if err == nil || strings.Contains(err.Error(), "CANARY") || len(body) > 0 {
				t.Errorf("of a query: %v, %q", err, body)
			}
		})
	}
}

// FuzzTokenAnswers: no answer is told of in its own words, and each that is a token is used.
func FuzzTokenAnswers(f *testing.F) {
	for _, body := range []string{`{"access_token":"T"}`, `{"access_token":"T","expires_in":"x"}`, `{"error":"invalid_client"}`,
		`access_token=T`, `null`, `[]`, ``, `{"access_token":`, "\xff"} {
		f.Add(200, "application/json", body)
		f.Add(400, "text/plain", body)
	}
	var mu sync.Mutex
	var status int
	var content, body string
	i := issuing(f, false, func(w http.ResponseWriter, _ url.Values, _ int) {
		w.Header()["Content-Type"] = []string{content}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	at := echo(f)
	f.Fuzz(func(t *testing.T, s int, c, b string) {
		mu.Lock()
		defer mu.Unlock()
		if s < 200 || s > 599 || strings.ContainsAny(c, "\r\n\x00") {
			return
		}
		status, content, body = s, c, b
		got := ask(t, client(t, config.OAuth2{ClientID: "c", ClientSecret: "s", TokenURL: i.URL}), at)
		var is struct {
			Token string `json:"access_token"`
		}
		if told.MatchString(got) || got == `net/http: invalid header field value for "Authorization"` {
			if s == 200 && c == "application/json" && b == `{"access_token":"T"}` {
				t.Errorf("a token is none: %q", got)
			}
			return
		}
		if s/100 != 2 {
			t.Errorf("%q is told", got)
		}
		if json.Unmarshal([]byte(b), &is) == nil && c == "application/json" && !strings.Contains(got, strings.TrimSpace(is.Token)) {
			t.Errorf("%q is sent", got)
		}
	})
}
