package picture

import (
	"fmt"
	"html/template"
	"time"

	"ballast/planner/page/view"
	"ballast/planner/printable"
	"ballast/planner/replay"
)

// maxText bounds what people named, in characters.
const maxText = 500

// Page is a page that stands alone, by the page's own renderer: the figures, the picture, and what they mean. It loads
// nothing and runs nothing.
func Page(title string, reports []replay.Report, notes []string) ([]byte, error) {
	return view.Alone(View(title, reports, notes))
}

// View is that page's content.
func View(title string, reports []replay.Report, notes []string) view.View {
	v := view.View{Report: true, Title: printable.Text(title, maxText), Mode: "replay",
		Tables: []view.Table{figures(reports)}}
	if replay.Sized(reports) {
		v.Tables = append(v.Tables, sizes(reports))
	}
	for _, n := range notes {
		v.Notes = append(v.Notes, view.Note{Level: view.Info, Title: "Note", Text: printable.Text(n, maxText)})
	}
	v.Drawings = []view.Drawing{{ID: "drawing", Title: "Over time",
		Says: "The same figures over time, a line a configuration. The tables have them as numbers.",
		SVG:  template.HTML(SVG(title, reports))}} // whose texts are escaped: TestWhateverIsDrawnIsXML
	for _, c := range replay.Columns()[1:] {
		v.Foot = append(v.Foot, c.Name+": "+c.Says)
	}
	return v
}

func figures(reports []replay.Report) view.Table {
	t := view.Table{ID: "figures", Title: "Figures", Caption: "What each configuration made of the same loads"}
	for _, c := range replay.Columns() {
		t.Head = append(t.Head, c.Name)
	}
	for _, r := range reports {
		var row []string
		for _, c := range replay.Columns() {
			row = append(row, printable.Text(c.Cell(r), maxText))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sizes is the table of what sizes cost.
func sizes(reports []replay.Report) view.Table {
	t := view.Table{ID: "sizes", Title: "Sizes", Caption: "What sizes would have cost, each way of choosing them"}
	for _, c := range replay.SizeColumns() {
		t.Head = append(t.Head, c.Name)
	}
	for _, r := range reports {
		if r.Sizes == nil {
			continue
		}
		for _, way := range r.Sizes.Ways {
			var row []string
			for _, c := range replay.SizeColumns() {
				row = append(row, printable.Text(c.Cell(r, way), maxText))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// Title says what was replayed.
func Title(what string, reports []replay.Report) string {
	if len(reports) == 0 {
		return what
	}
	r := reports[0]
	return fmt.Sprintf("%s: %d clusters, %s to %s", what, r.Clusters, r.From.UTC().Format(time.DateOnly),
		r.To.UTC().Format(time.DateOnly))
}
