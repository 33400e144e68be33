// Package strict reads YAML into structs, and collects every mistake with its path and
// line instead of stopping at the first. The libraries' strict modes stop, or forget the
// path, or print the value, which may be a secret.
package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/plan/people"
)

// Decoder fills structs, and keeps what was wrong.
type Decoder struct {
	errs  field.ErrorList
	more  int            // mistakes beyond MaxMistakes
	lines map[string]int // path: line, for mistakes found later
}

// Bounds of what a file of MaxBytes may become.
const (
	MaxMistakes = 100 // more than anybody reads at once
	maxItems    = 64  // of a list of settings: each metric is a query or more a cycle, and a value a cluster
)

// NewDecoder has seen nothing yet.
func NewDecoder() *Decoder { return &Decoder{lines: map[string]int{}} }

// Decode fills what target points at.
func (d *Decoder) Decode(n *yamlnode.Node, target any) {
	d.value(n, reflect.ValueOf(target).Elem(), nil)
}

// Errors are the mistakes so far, in the order in which they were found.
func (d *Decoder) Errors() field.ErrorList { return d.errs }

// full counts a mistake that is one too many to tell.
func (d *Decoder) full() bool {
	if len(d.errs) < MaxMistakes {
		return false
	}
	d.more++
	return true
}

// defaulter is an implementation or item that does not start from zero values.
type defaulter interface{ SetDefaults() }

// invalid never prints the value: the file's author sees it at the path, and it may be a secret.
func (d *Decoder) invalid(p *field.Path, format string, args ...any) {
	if d.full() {
		return
	}
	d.errs = append(d.errs, field.Invalid(p, field.OmitValueType{}, fmt.Sprintf(format, args...)))
}

func (d *Decoder) value(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	if at := p.String(); d.lines[at] == 0 { // its key's line, where it has one
		d.lines[at] = n.Line
	}
	if n.ShortTag() == "!!null" && n.Kind == yamlnode.ScalarNode {
		d.invalid(p, "must not be null: leave it out for its default")
		return
	}
	switch target := v.Addr().Interface().(type) {
	case *promconfig.URL:
		d.text(n, p, func() error { return hide(n.Decode(target), "is not a URL") })
		return
	case *promconfig.TLSVersion:
		d.text(n, p, func() error { return hide(n.Decode(target), "is not one of TLS10, TLS11, TLS12, TLS13") })
		return
	case encoding.TextUnmarshaler:
		d.text(n, p, func() error { return target.UnmarshalText([]byte(n.Value)) })
		return
	}
	d.kind(n, v, p)
}

func (d *Decoder) kind(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		d.pointer(n, v, p)
	case reflect.Struct:
		if m, ok := InlineMap(v); ok {
			d.mapping(n, m, p)
			return
		}
		d.fields(n, v, p)
		if s, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
			d.judge(p, s.Validate())
		}
	case reflect.Map:
		d.mapping(n, v, p)
	case reflect.Slice:
		d.list(n, v, p)
	case reflect.Interface:
		d.free(n, v, p)
	default:
		d.plain(n, v, p)
	}
}

// hide replaces a library's error, which may quote the value.
func hide(err error, message string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", message)
}

// judge takes over what prometheus/common says of its own structs; those messages name fields, never values.
func (d *Decoder) judge(p *field.Path, err error) {
	if err != nil {
		d.invalid(p, "%v", err)
	}
}

func (d *Decoder) text(n *yamlnode.Node, p *field.Path, read func() error) {
	if n.Kind != yamlnode.ScalarNode {
		d.invalid(p, "is %s, where one value belongs", kindName(n))
		return
	}
	if err := read(); err != nil {
		d.invalid(p, "%v", err)
	}
}

func (d *Decoder) plain(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	d.text(n, p, func() error {
		switch v.Kind() {
		case reflect.String:
			if n.ShortTag() != "!!str" {
				return fmt.Errorf("is not text: put it in quotes")
			}
			v.SetString(n.Value)
		case reflect.Bool:
			if n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
				return fmt.Errorf("is neither true nor false")
			}
			v.SetBool(n.Value == "true")
		case reflect.Int:
			i, err := strconv.ParseInt(n.Value, 10, 64)
			if n.ShortTag() != "!!int" || err != nil || strconv.FormatInt(i, 10) != n.Value {
				return fmt.Errorf("is not a whole number, like 3")
			}
			v.SetInt(i)
		default:
			return fmt.Errorf("cannot be read into %s", v.Type())
		}
		return nil
	})
}

func (d *Decoder) pointer(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	fill(v)
	d.value(n, v.Elem(), p)
}

// fill points a nil pointer at its type's defaults.
func fill(v reflect.Value) {
	if !v.IsNil() {
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	if s, ok := v.Interface().(defaulter); ok {
		s.SetDefaults()
	}
}

func (d *Decoder) list(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	if n.Kind != yamlnode.SequenceNode {
		d.invalid(p, "is %s, where a list belongs", kindName(n))
		return
	}
	if len(n.Content) > maxItems && v.Type().Elem().Kind() == reflect.Struct {
		d.invalid(p, "has %d entries: leave %d at most", len(n.Content), maxItems)
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, items.Index(i), p.Index(i))
	}
	v.Set(items)
}

// mapping replaces a map whole: what a file names is what there is.
func (d *Decoder) mapping(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	if n.Kind != yamlnode.MappingNode {
		d.invalid(p, "is %s, where a mapping belongs", kindName(n))
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Content)/2))
	d.pairs(n, p, func(key string, value *yamlnode.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item, p.Key(key))
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
	})
}

// free takes what has no type of ours: oauth2's claims.
func (d *Decoder) free(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	var out any
	switch n.Kind {
	case yamlnode.MappingNode:
		m := map[string]any{}
		d.mapping(n, reflect.ValueOf(&m).Elem(), p)
		out = m
	case yamlnode.SequenceNode:
		var l []any
		d.list(n, reflect.ValueOf(&l).Elem(), p)
		out = l
	default:
		if err := n.Decode(&out); err != nil || n.ShortTag() == "!!float" && strings.ContainsAny(n.Value, "nN") {
			d.invalid(p, "is not a value that JSON can carry")
			return
		}
	}
	v.Set(reflect.ValueOf(&out).Elem())
}

// fields fills a struct. Afterwards the implementation that the mapping names is the only one that is set.
func (d *Decoder) fields(n *yamlnode.Node, v reflect.Value, p *field.Path) {
	if n.Kind != yamlnode.MappingNode {
		d.invalid(p, "is %s, where a mapping belongs", kindName(n))
		return
	}
	known := FieldsOf(v)
	errsBefore := len(d.errs)
	var named []string
	d.pairs(n, p, func(key string, value *yamlnode.Node) {
		f, ok := known[key]
		if !ok {
			d.unknown(key, known, p)
			d.mend(v, key)
			return
		}
		if f.Implementation {
			named = append(named, key)
		}
		d.field(value, f, p.Child(key))
	})
	d.choose(known, named, len(n.Content) == 0 && len(d.errs) == errsBefore, p)
}

func (d *Decoder) field(n *yamlnode.Node, f Field, p *field.Path) {
	null := n.Kind == yamlnode.ScalarNode && n.ShortTag() == "!!null"
	switch {
	case null && f.nullable, null && f.switchable && n.Value != "":
		f.Value.SetZero()
		return
	case null && f.switchable: // its lines may have been commented out one by one
		d.invalid(p, "is empty: write null to turn it off, or {} for its defaults")
		return
	case f.switchable && n.Kind == yamlnode.ScalarNode:
		d.invalid(p, "is one value, where a mapping belongs: write null to turn it off")
		return
	case null && f.Implementation:
		d.invalid(p, "is empty: write {} for its defaults")
		fill(f.Value)
		return
	}
	if f.replaced {
		f.Value.SetZero()
	}
	d.value(n, f.Value, p)
}

// choose keeps the implementation that was named. A phase with settings beside its implementation may leave it out and
// keeps its default; an empty mapping says nothing at all, which nobody means.
func (d *Decoder) choose(known map[string]Field, named []string, empty bool, p *field.Path) {
	all := Implementations(known)
	switch {
	case len(all) == 0:
	case len(named) > 1:
		d.invalid(p, "names %s: name one", strings.Join(named, " and "))
	case len(named) == 1:
		for _, name := range all {
			if name != named[0] {
				known[name].Value.SetZero()
			}
		}
	case empty && !d.full():
		d.errs = append(d.errs, field.Required(p, "name one of "+strings.Join(all, ", ")))
	}
}

// unknown names the field that was probably meant.
func (d *Decoder) unknown(key string, known map[string]Field, p *field.Path) {
	if d.full() {
		return
	}
	names := make([]string, 0, len(known))
	for name := range known {
		if strings.EqualFold(name, key) {
			d.errs = append(d.errs, field.Forbidden(p.Child(key), fmt.Sprintf("is not a field: write %s", name)))
			return
		}
		names = append(names, name)
	}
	slices.Sort(names)
	d.errs = append(d.errs, field.Forbidden(p.Child(key), "is not a field: "+Hint(key, names)))
}

// mender says where a field that it has not belongs.
type mender interface{ Mend(field string) string }

// mend adds that to the mistake that was just told.
func (d *Decoder) mend(of reflect.Value, key string) {
	if m, ok := of.Addr().Interface().(mender); ok && d.more == 0 {
		d.errs[len(d.errs)-1].Detail = m.Mend(key)
	}
}

// Hint names what was probably meant, else what there is.
func Hint(name string, names []string) string {
	if nearest := people.Nearest(name, names); nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	if len(names) == 0 {
		return "there are none here"
	}
	return "there are " + strings.Join(names, ", ")
}

// pairs calls with each key once, in the file's order.
func (d *Decoder) pairs(n *yamlnode.Node, p *field.Path, each func(string, *yamlnode.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch at := p.Child(key.Value); {
		case key.ShortTag() == "!!merge":
			d.invalid(p, "has a merge key in line %d: write its fields out", key.Line)
			continue
		case key.Kind != yamlnode.ScalarNode || key.ShortTag() != "!!str":
			d.invalid(p, "has a key that is not text in line %d: put it in quotes", key.Line)
			continue
		case seen[key.Value]:
			d.invalid(at, "stands twice, again in line %d: delete one", key.Line)
			continue
		default:
			d.lines[at.String()] = key.Line
		}
		seen[key.Value] = true
		each(key.Value, n.Content[i+1])
	}
}

func kindName(n *yamlnode.Node) string {
	switch n.Kind {
	case yamlnode.MappingNode:
		return "a mapping"
	case yamlnode.SequenceNode:
		return "a list"
	default:
		return "one value"
	}
}
