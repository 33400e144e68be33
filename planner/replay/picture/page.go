package picture

import (
	"bytes"
	"fmt"
	"html"
	"time"

	"ballast/planner/replay"
)

const pageStyle = `body{font:14px/1.5 sans-serif;margin:2em auto;max-width:1000px;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}th,td{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}th{font-weight:600}svg{max-width:100%;height:auto}p.note{color:#555}`

// Page is a page that stands alone: the figures, the picture, and what they mean. It loads nothing and runs nothing.
func Page(title string, reports []replay.Report, notes []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n<style>%s</style></head><body>\n",
		html.EscapeString(title), pageStyle)
	fmt.Fprintf(&b, "<h1>%s</h1>\n<table><thead><tr>", html.EscapeString(title))
	for _, c := range replay.Columns() {
		fmt.Fprintf(&b, "<th title=\"%s\">%s</th>", html.EscapeString(c.Says), html.EscapeString(c.Name))
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, r := range reports {
		b.WriteString("<tr>")
		for _, c := range replay.Columns() {
			fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(c.Cell(r)))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>\n")
	b.Write(SVG(title, reports))
	b.WriteString("<ul>\n")
	for _, c := range replay.Columns()[1:] {
		fmt.Fprintf(&b, "<li><b>%s</b>: %s</li>\n", html.EscapeString(c.Name), html.EscapeString(c.Says))
	}
	b.WriteString("</ul>\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "<p class=\"note\">%s</p>\n", html.EscapeString(n))
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}

// Title says what was replayed.
func Title(what string, reports []replay.Report) string {
	if len(reports) == 0 {
		return what
	}
	r := reports[0]
	return fmt.Sprintf("%s: %d clusters, %s to %s", what, r.Clusters, r.From.UTC().Format(time.DateOnly), r.To.UTC().Format(time.DateOnly))
}
