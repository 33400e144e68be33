package calibrate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"ballast/cmd/ballast/say"
	"ballast/planner/calibrate"
)

// found is what calibrate says.
type found struct {
	Fits   []calibrate.Fit                `json:"fits"`
	Limits map[calibrate.Resource]float64 `json:"limits,omitempty"`
	Advice *calibrate.Advice              `json:"advice,omitempty"`
	Config string                         `json:"config,omitempty"` // to paste
	Notes  []string                       `json:"notes,omitempty"`

	shares bool // of references
	fill   float64
}

// find fits what was measured, and makes a configuration of the resource that was asked for, or that binds.
func find(s calibrate.Samples, of calibrate.Resource, fill float64) (*found, error) {
	f := &found{Limits: s.Limits, shares: s.References != nil, fill: fill}
	var failed error // the first
	for _, r := range calibrate.Resources() {
		fit, err := calibrate.Of(s, r)
		switch {
		case err == nil:
			f.Fits = append(f.Fits, fit)
		case of == r:
			return nil, err
		default:
			failed = cmp.Or(failed, err)
			f.Notes = append(f.Notes, err.Error())
		}
	}
	if len(f.Fits) == 0 {
		return nil, failed
	}
	at := calibrate.Binds(s, f.Fits)
	if chosen := slices.IndexFunc(f.Fits, func(fit calibrate.Fit) bool { return fit.Resource == of }); chosen >= 0 {
		at = chosen
	}
	fit := f.Fits[at]
	advice, err := calibrate.Advise(s, fit, fill)
	if err != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %v", fit.Resource, err))
		return f, nil
	}
	f.Advice, f.Config = &advice, block(s, fit, advice, f.memory(), fill)
	if advice.Why != "" {
		f.Notes = append(f.Notes, "no capacity: "+advice.Why)
	}
	return f, nil
}

// memory is the fit of memory that a bound may go by; nil: none is, or a pod without any cluster is as full as it may
// be.
func (f *found) memory() *calibrate.Fit {
	at := slices.IndexFunc(f.Fits, func(fit calibrate.Fit) bool { return fit.Resource == calibrate.Memory })
	limit, limited := f.Limits[calibrate.Memory]
	if at < 0 || !limited || !f.Fits[at].Trusted() {
		return nil
	}
	if fit := &f.Fits[at]; fit.Base+fit.Margin < f.fill*limit {
		return fit
	}
	return nil
}

// bound is what no replica's clusters may take together of its memory, whatever their load.
func bound(b *strings.Builder, memory calibrate.Fit, fill float64) {
	say.To(b, "  dimensions:\n")
	say.To(b, "    memory: # a bound beside the load; the base is what a pod takes without any cluster, and what the fit is off by\n")
	say.To(b, "      limitShare: \"%s\"\n", strconv.FormatFloat(fill, 'f', -1, 64))
	say.To(b, "      base: \"%d\"\n      weights:\n", int64(math.Ceil(memory.Base+memory.Margin)))
	for _, id := range slices.Sorted(maps.Keys(memory.Per)) {
		say.To(b, "        %s: \"%s\"\n", id, strconv.FormatFloat(math.Ceil(memory.Per[id]*1000)/1000, 'f', -1, 64))
	}
}

// block is the part of the configuration that says the advice, and the bound of memory where there is one.
func block(s calibrate.Samples, f calibrate.Fit, a calibrate.Advice, memory *calibrate.Fit, fill float64) string {
	var b strings.Builder
	say.To(&b, "# fitted to the pods' %s: R2 %.2f, of %s of %s\n", f.Resource, f.R2,
		say.Plural(f.Samples, "sample"), say.Plural(f.Pods, "pod"))
	if !f.Trusted() {
		say.To(&b, "# not to be trusted: the metrics do not predict it\n")
	}
	kind := "none"
	if s.References != nil {
		kind = "reference"
	}
	say.To(&b, "normalize:\n  %s: {}\nindex:\n  pNorm:\n    p: \"1\"\n    weights:\n", kind)
	for _, id := range slices.Sorted(maps.Keys(a.Weights)) {
		say.To(&b, "      %s: \"%s\"\n", id, strconv.FormatFloat(a.Weights[id], 'f', -1, 64))
	}
	if memory != nil {
		bound(&b, *memory, fill)
	}
	if a.Capacity != nil {
		say.To(&b, "partition:\n  capacity: \"%s\"\n", significant(*a.Capacity))
	}
	return b.String()
}

// significant is a number with four digits, and no exponent, as the configuration has it; never 0 for what is above it.
func significant(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	text := strconv.FormatFloat(rounded, 'f', -1, 64)
	if whole, behind, _ := strings.Cut(text, "."); len(behind) > 12 {
		text = whole + "." + behind[:12]
	}
	return text
}

// WriteTable implements say.Result.
func (f *found) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "OF\tSAMPLES\tPODS\tR2\tOF PODS LEFT OUT\tOF THE LOAD AS IT IS\tMOST\tLIMIT\n")
	for _, fit := range f.Fits {
		limit := "-"
		if l, ok := f.Limits[fit.Resource]; ok {
			limit = amount(fit.Resource, l)
		}
		say.To(t, "%s\t%d\t%d\t%.2f\t%s\t%s\t%s\t%s\n", fit.Resource, fit.Samples, fit.Pods, fit.R2, share(fit.HeldOut),
			share(fit.LoadR2),
			amount(fit.Resource, fit.Most), limit)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, fit := range f.Fits {
		if err := f.fit(w, fit); err != nil {
			return err
		}
	}
	for _, n := range f.Notes {
		say.To(w, "\nnote: %s.\n", strings.TrimSuffix(n, "."))
	}
	if f.Advice != nil {
		f.advise(w)
	}
	return nil
}

// fit says what a resource is made of.
func (f *found) fit(w io.Writer, fit calibrate.Fit) error {
	name := map[calibrate.Resource]string{calibrate.Memory: "Memory", calibrate.CPU: "CPU"}[fit.Resource]
	say.To(w, "\n%s of a pod: %s, and\n", name, amount(fit.Resource, fit.Base))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, id := range slices.Sorted(maps.Keys(fit.Per)) {
		why := ""
		switch {
		case slices.Contains(fit.Flat, id):
			why = "it is the same on every pod at every time, and says nothing"
		case slices.ContainsFunc(fit.Together, func(p [2]string) bool { return p[0] == id || p[1] == id }):
			why = "it goes up and down with another: which of them it is nobody can tell"
		}
		if why == "" {
			say.To(t, "  %s\t%s each\n", id, amount(fit.Resource, fit.Per[id]))
			continue
		}
		say.To(t, "  %s\t%s each\t%s\n", id, amount(fit.Resource, fit.Per[id]), why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	say.To(w, "  95 %% of the samples are at most %s above that.\n", amount(fit.Resource, fit.Margin))
	if !fit.Trusted() {
		say.To(w, "  WARNING: below %.1f the metrics do not predict it: do not size by them.\n", calibrate.Trusted)
	}
	return nil
}

func (f *found) advise(w io.Writer) {
	say.To(w, "\nTo paste into the configuration (a load of 1 is %s of %s", amount(f.Advice.Resource, f.Advice.PerLoad),
		f.Advice.Resource)
	if f.Advice.Capacity != nil {
		say.To(w, "; a full replica uses %.0f %% of the limit", 100*f.fill)
	}
	say.To(w, "):\n\n")
	for line := range strings.Lines(f.Config) {
		say.To(w, "  %s\n", strings.TrimRight(line, "\n"))
	}
	if f.shares {
		say.To(w, "\nThe values count as shares of the plan's references, as they are now: after `ballast rebase` calibrate again.\n")
	}
}

func share(r2 *float64) string {
	if r2 == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *r2)
}

// amount is a number of bytes or cores.
func amount(of calibrate.Resource, v float64) string {
	if of == calibrate.CPU {
		return fmt.Sprintf("%.3g cores", v)
	}
	switch {
	case v >= 1<<30:
		return fmt.Sprintf("%.2f GiB", v/(1<<30))
	case v >= 1<<20:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%.1f KiB", v/(1<<10))
	}
	return fmt.Sprintf("%.3g B", v)
}
