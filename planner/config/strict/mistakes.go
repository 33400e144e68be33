package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wholeFile is how the empty path prints.
const wholeFile = "<nil>"

// Mistakes adds what validation found, each with its line, in the file's order. A value that could not be read is not
// judged a second time.
func (d *Decoder) Mistakes(found field.ErrorList) field.ErrorList {
	errs, unread := slices.Clone(d.errs), map[string]bool{}
	for _, e := range errs {
		unread[e.Field] = true
	}
	for _, e := range found {
		if !unread[e.Field] {
			errs = append(errs, e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(d.line(a.Field), d.line(b.Field)) })
	if more := d.more + len(errs) - MaxMistakes; more > 0 {
		rest := fmt.Sprintf("has %d mistakes more", more)
		errs = append(errs[:MaxMistakes], field.Invalid(nil, field.OmitValueType{}, rest))
	}
	for _, e := range errs {
		switch line := d.line(e.Field); {
		case line > 0 && e.Detail == "":
			e.Detail = fmt.Sprintf("line %d", line)
		case line > 0:
			e.Detail += fmt.Sprintf(" (line %d)", line)
		}
		if e.Field == wholeFile {
			e.Field = "the file"
		}
	}
	return errs
}

// line is where a field stands, or the field that it is missing from; 0 where that is the file.
func (d *Decoder) line(path string) int {
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}
