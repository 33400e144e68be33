package replay

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/replay"
	"ballast/planner/replay/picture"
	"ballast/planner/replay/trace"
)

// result is what a replay answers, in every form.
type result struct {
	Trace   traceView       `json:"trace"`
	Setups  []replay.Report `json:"setups"`
	Remarks []string        `json:"remarks,omitempty"` // what people should know of the figures
}

type traceView struct {
	Source   string    `json:"source"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Step     string    `json:"step"`
	Metrics  []string  `json:"metrics"`
	Clusters int       `json:"clusters"` // the most at once
	Evidence evidence  `json:"evidence"`
}

func (o *options) print(out io.Writer, h trace.Header, read trace.Evidence, reports []replay.Report) error {
	r := result{Setups: reports, Remarks: remarks(h, reports),
		Trace: traceView{Source: o.source(), Step: config.Duration(h.Step).String(),
			Metrics: h.Metrics, From: reports[0].From, To: reports[0].To, Clusters: reports[0].Clusters,
			Evidence: o.evidence(h, read, reports)}}
	switch o.output {
	case asHTML:
		notes := append([]string{r.Trace.Evidence.says(r.Trace), r.Trace.Evidence.assumes()}, r.Remarks...)
		text, err := picture.Page(picture.Title(o.source(), reports), reports, notes)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	case asSVG:
		_, err := out.Write(picture.SVG(picture.Title(o.source(), reports), reports))
		return err
	}
	return say.Print(o.output, out, r)
}

// source is what was replayed, in a few words.
func (o *options) source() string {
	switch {
	case o.last != "":
		return "the last " + o.last
	case o.generates:
		return strings.TrimSpace("synthetic " + o.generate)
	case o.trace == "-":
		return "standard input"
	}
	return o.trace
}

// remarks say what the figures rest on where that is not what people would think. What holds of several setups is said
// once.
func remarks(h trace.Header, reports []replay.Report) (all []string) {
	if replay.Worked(h) {
		all = append(all, "The trace has loads, and not what they are made of: "+
			"poll, normalize and index of the configurations are set aside.")
	}
	var said []string
	of := map[string][]string{} // the setups of which each holds
	for _, r := range reports {
		for _, remark := range remarksOf(r) {
			if of[remark] == nil {
				said = append(said, remark)
			}
			of[remark] = append(of[remark], r.Name)
		}
	}
	for _, remark := range said {
		all = append(all, setups(of[remark], len(reports))+": "+remark)
	}
	return all
}

// setups names some of so many.
func setups(names []string, all int) string {
	if all > 1 && len(names) == all {
		return "every setup"
	}
	return strings.Join(names, ", ")
}

func remarksOf(r replay.Report) (all []string) {
	for _, k := range r.Kept {
		all = append(all, fmt.Sprintf("in %s loads moved nothing, for %s.", say.Plural(k.Cycles, "cycle"), k.Kind))
	}
	if r.Sizes != nil {
		for _, b := range r.Sizes.Blocked {
			all = append(all, fmt.Sprintf("in %s a change of size waited, for %s.", say.Plural(b.Cycles, "cycle"),
				b.Reason))
		}
	}
	switch {
	case r.Unmeasured == r.Cycles:
		all = append(all, "no load was ever known: look at the trace's values.")
	case r.Unmeasured > 0:
		all = append(all, fmt.Sprintf("in %s no load was known; they count for no share of the time.",
			say.Plural(r.Unmeasured, "cycle")))
	}
	return all
}

// WriteTable implements say.Result.
func (r result) WriteTable(w io.Writer) error {
	say.To(w, "%s: %s, %s to %s, a step every %s\n", r.Trace.Source, say.Plural(r.Trace.Clusters, "cluster"),
		r.Trace.From.Format("2006-01-02 15:04"), r.Trace.To.Format("2006-01-02 15:04"), r.Trace.Step)
	say.To(w, "%s\n%s\n\n", r.Trace.Evidence.says(r.Trace), r.Trace.Evidence.assumes())
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for i, c := range replay.Columns() {
		say.To(t, tab(i)+"%s", c.Name)
	}
	say.To(t, "\n")
	for _, s := range r.Setups {
		for i, c := range replay.Columns() {
			say.To(t, tab(i)+"%s", c.Cell(s))
		}
		say.To(t, "\n")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.writeSizes(w); err != nil {
		return err
	}
	say.To(w, "\nMAX/IDEAL is what the fullest replica carried over what it would in an ideal plan: an even share, or the heaviest cluster.\n")
	for _, remark := range r.Remarks {
		say.To(w, "%s\n", remark)
	}
	return nil
}

// writeSizes is the table of what sizes cost, of the setups that have some.
func (r result) writeSizes(w io.Writer) error {
	if !replay.Sized(r.Setups) {
		return nil
	}
	say.To(w, "\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for i, c := range replay.SizeColumns() {
		say.To(t, tab(i)+"%s", c.Name)
	}
	say.To(t, "\n")
	for _, s := range r.Setups {
		if s.Sizes == nil {
			continue
		}
		for _, way := range s.Sizes.Ways {
			for i, c := range replay.SizeColumns() {
				say.To(t, tab(i)+"%s", c.Cell(s, way))
			}
			say.To(t, "\n")
		}
	}
	return t.Flush()
}

func tab(i int) string {
	if i == 0 {
		return ""
	}
	return "\t"
}
