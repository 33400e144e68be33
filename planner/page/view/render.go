package view

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's files
	"encoding/base64"
	"fmt"
	"html/template"
)

//go:embed assets/page.html
var source string

//go:embed assets/page.css
var style []byte

//go:embed assets/page.js
var script []byte

//go:embed assets/icon.svg
var icon []byte

// Asset is a file that the page loads from where it came from.
type Asset struct {
	Path, Type string
	Content    []byte
}

// Assets are all that the page loads.
func Assets() []Asset {
	return []Asset{{"/page.css", "text/css; charset=utf-8", style},
		{"/page.js", "text/javascript; charset=utf-8", script}, {"/icon.svg", "image/svg+xml", icon}}
}

// Policy is the Content-Security-Policy of the page that is served: what its own origin has, and no script within it.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// parsed is the template; it is read once, from what is built in.
var parsed = template.Must(template.New("page").Parse(source))

// content is what the template is filled with: a view, and for a page that stands alone what it would load.
type content struct {
	View
	Alone  bool
	Policy string
	Style  template.CSS
	Script template.JS
}

// HTML is a view as a page that loads its style and its script from /page.css and /page.js.
func HTML(v View) ([]byte, error) { return fill(content{View: v}) }

// Alone is a view as one file that loads nothing. Its policy lets the script run that is in it, and no other; a report
// has none.
func Alone(v View) ([]byte, error) {
	v.Live = false
	if v.Report {
		policy := fmt.Sprintf("default-src 'none'; style-src '%s'; base-uri 'none'; form-action 'none'", digest(style))
		return fill(content{View: v, Alone: true, Policy: policy, Style: template.CSS(style)})
	}
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		digest(style), digest(script))
	return fill(content{View: v, Alone: true, Policy: policy, Style: template.CSS(style), Script: template.JS(script)})
}

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func fill(c content) ([]byte, error) {
	var b bytes.Buffer
	if err := parsed.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("making the page: %w", err)
	}
	return b.Bytes(), nil
}
