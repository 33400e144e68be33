package scrape

import (
	"fmt"
	"strings"
	"testing"
)

// odd are texts that the tenant of one Application may write as its destination's namespace, as Argo CD shows them.
func odd() map[string]string {
	return map[string]string{
		"an umlaut and equals signs":    "ü" + strings.Repeat("=", mostLabels+1),
		"a quote and equals signs":      `\"` + strings.Repeat("=", mostLabels+1),
		"a line break and equals signs": `\n` + strings.Repeat("=", mostLabels+1),
		"many quotes":                   strings.Repeat(`\"`, 30_000),
		"many letters beyond ASCII":     strings.Repeat("ü", 30_000),
		"what looks like labels":        strings.Repeat(`\",a=\"`, 5_000),
	}
}

// TestOneApplicationRefusesNoPodsAnswer: Argo CD shows a tenant's text as it stands, and every pod shows an Application whose
// cluster is not known.
func TestOneApplicationRefusesNoPodsAnswer(t *testing.T) {
	const line = `argocd_app_info{autosync_enabled="true",dest_namespace="%s",dest_server="%s",name="b",namespace="argocd",project="p",repo="r"%s} 1` + "\n"
	beyond := ""
	for i := range mostPlainLabels { // as --metrics-application-labels makes them: the parser's
		beyond += fmt.Sprintf(`,label_%d="x"`, i)
	}
	for what, namespace := range odd() {
		for _, more := range []string{"", beyond} {
			into, err := readAll(fmt.Sprintf(line, "default", "https://a", "") + fmt.Sprintf(line, namespace, "https://b", more))
			if err != nil {
				t.Errorf("%s: the pod's whole answer is refused: %v", what, err)
				continue
			}
			if a, b := into.Servers["https://a"].Apps, into.Servers["https://b"].Apps; a != 1 || b != 1 {
				t.Errorf("%s: %d and %d Applications are seen, want one of each", what, a, b)
			}
		}
	}
}

// TestNoTenantsTextNeedsTheParser, which takes a hundred times as long: eight pods are read at once, and each has five seconds.
func TestNoTenantsTextNeedsTheParser(t *testing.T) {
	for what, namespace := range odd() {
		server, value, plain := readPlain(fmt.Appendf(nil, `{dest_namespace="%s",dest_server="https://b"} 1`, namespace), "dest_server")
		if server != "https://b" || value != 1 || !plain {
			t.Errorf("%s: read as %q, %g, plain %t", what, server, value, plain)
		}
	}
}

// TestLongURLsTakeNobodysRoom: no cluster that is planned for has one, and 140 of them were more than a pod may name.
func TestLongURLsTakeNobodysRoom(t *testing.T) {
	var b strings.Builder
	b.WriteString(`argocd_app_info{dest_server="https://a",name="a"} 1` + "\n")
	for i := range 160 {
		fmt.Fprintf(&b, `argocd_app_info{dest_server="https://%d.%s",name="x"} 1`+"\n", i, strings.Repeat("x", 60_000))
	}
	into, err := readAll(b.String())
	if err != nil || len(into.Servers) != 1 || into.Servers["https://a"].Apps != 1 {
		t.Errorf("%d servers are seen, of which the cluster's has %+v: %v", len(into.Servers), into.Servers["https://a"], err)
	}
}
