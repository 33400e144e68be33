package promql

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a query, in bytes.
const (
	maxTemplate = 16 << 10 // as it is written; what people write has some 2 KiB
	maxQuery    = 64 << 10 // as it is rendered, and any value in it: a Prometheus takes no longer ones in a URL
	maxError    = 1000     // of what is said of one
)

// Bounds of one rendering. A query of Prometheus's own mixins has 2 KiB.
const (
	maxWork     = 256 << 10 // bytes that functions read and make in all: four of the longest queries
	maxElements = 1 << 10   // of a list or a map, of which a query needs few
	scalarSize  = 24        // bytes of a number's text, and what an element of a list takes beside its text
	maxFormat   = 1 << 10   // of a format, in bytes
	maxWidth    = 99        // of what printf fills up
)

// Bounds of regular expressions. Go's take time in proportion to pattern and text, but .{0,900} is a short pattern of
// 900 steps a letter, and replacing all of a text begins anew after each match.
const (
	maxPattern = 256     // bytes
	maxProgram = 1000    // steps a letter; those that people write have some 50
	maxSteps   = 4 << 20 // of all searches of one rendering: 60 steps a letter, for each match in a URL of 250 letters
)

var (
	errTooMuch         = fmt.Errorf("its functions read and make more than %d KiB in all: shorten it", maxWork>>10)
	errTooManyElements = fmt.Errorf("it makes a list or a map of more than %d", maxElements)
	errNested          = errors.New("it gives a list or a map to a function of text: use join, get, first, last or index")
	errVerb            = fmt.Errorf("printf takes %%s, %%d, %%q, %%v, %%x, %%t, %%c, %%e, %%f and %%g in order, "+
		"up to %d wide, in a format of %d bytes", maxWidth, maxFormat)
	errTooLong   = errors.New("the query is longer than 64 KiB")
	errCharacter = errors.New("printf's %c makes a quote, a backslash or a control character of a number: write it into the format")
	errDictPairs = errors.New("dict takes keys that are text, each with its value")
)

// account counts what the functions of one rendering read and make, and the steps of its regular expressions: the most
// that they may take, and those that they took.
type account struct{ left, steps, took int }

func newAccount() account { return account{left: maxWork, steps: maxSteps} }

// charge takes bytes off.
func (a *account) charge(bytes int) error {
	if bytes > a.left {
		a.left = 0
		return errTooMuch
	}
	a.left -= bytes
	return nil
}

// made charges what a function is about to make, or has made.
func (a *account) made(bytes int) error {
	if bytes > maxQuery {
		return errTooLong
	}
	return a.charge(bytes)
}

// read charges what a function is given: lists and maps only where it takes them.
func (a *account) read(values ...any) error {
	for _, v := range values {
		switch v.(type) {
		case nil, string, bool, int, int64, uint8, float64:
		default:
			return errNested
		}
		if err := a.charge(size(v)); err != nil {
			return err
		}
	}
	return nil
}

// size is what a value takes, in bytes of text.
func size(v any) int {
	sum := scalarSize
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, e := range v {
			sum += scalarSize + size(e)
		}
	case map[string]any:
		for key, e := range v {
			sum += scalarSize + len(key) + size(e)
		}
	}
	return sum
}

// charged is a function of scalars whose arguments and result are charged.
func (a *account) charged(f any) any {
	call := reflect.ValueOf(f)
	of := call.Type()
	in, out := make([]reflect.Type, of.NumIn()), []reflect.Type{of.Out(0), reflect.TypeFor[error]()}
	for i := range in {
		in[i] = of.In(i)
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, of.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if err := a.read(flat(args, of.IsVariadic())...); err != nil {
			return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
		}
		results := call.Call
		if of.IsVariadic() {
			results = call.CallSlice
		}
		got := results(args)
		if len(got) == 2 && !got[1].IsNil() {
			return got
		}
		err := a.made(size(got[0].Interface()))
		return []reflect.Value{got[0], reflect.ValueOf(&err).Elem()}
	}).Interface()
}

// flat are the arguments of a call, those of ... too.
func flat(args []reflect.Value, variadic bool) (values []any) {
	for i, arg := range args {
		if !variadic || i < len(args)-1 {
			values = append(values, arg.Interface())
			continue
		}
		for k := range arg.Len() {
			values = append(values, arg.Index(k).Interface())
		}
	}
	return values
}

func (a *account) repeat(count int, text string) (string, error) {
	if count < 0 || len(text) > 0 && count > maxQuery/len(text) {
		return "", errTooLong
	}
	if err := a.made(count * len(text)); err != nil {
		return "", err
	}
	return strings.Repeat(text, count), nil
}

func (a *account) replace(old, with, text string) (string, error) {
	if err := a.read(old, with, text); err != nil {
		return "", err
	}
	if err := a.made(len(text) + strings.Count(text, old)*len(with)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, old, with), nil
}

// trimAll bounds its cutset too, which is looked through for each letter.
func (a *account) trimAll(cutset, text string) (string, error) {
	if len(cutset) > maxPattern {
		return "", errTooMuch
	}
	return strings.Trim(text, cutset), a.read(cutset, text)
}

// verbs are a format that takes its arguments in order; no * and no [1], which make one argument wide, or many times.
var verbs = regexp.MustCompile(`^(?:[^%]|%%|%[-+# 0]*[0-9]{0,2}(?:\.[0-9]{0,2})?[sdqvxXtceEfFgG])*$`)

// character is a format that makes a letter of a number.
var character = regexp.MustCompile(`%[-+# 0-9.]*c`)

// quotes reports whether a value is the number of a letter that is escaped in values.
func quotes(value any) bool {
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 32)
	_, isText := value.(string)
	return err == nil && !isText && needsEscape(rune(n))
}

func (a *account) printf(format string, values ...any) (string, error) {
	if err := a.read(append(values, format)...); err != nil {
		return "", err
	}
	if len(format) > maxFormat || !verbs.MatchString(format) {
		return "", errVerb
	}
	if character.MatchString(format) && slices.ContainsFunc(values, quotes) {
		return "", errCharacter
	}
	if err := a.charge(maxWidth * len(values)); err != nil {
		return "", err
	}
	out := fmt.Sprintf(format, values...)
	return out, a.made(len(out))
}

func (a *account) list(values ...any) ([]any, error) {
	if len(values) > maxElements {
		return nil, errTooManyElements
	}
	if err := a.read(values...); err != nil {
		return nil, err
	}
	return values, a.charge(size(values))
}

func (a *account) dict(pairs ...any) (map[string]any, error) {
	if len(pairs) > 2*maxElements {
		return nil, errTooManyElements
	}
	if err := a.read(pairs...); err != nil {
		return nil, err
	}
	d := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok || i+1 == len(pairs) {
			return nil, errDictPairs
		}
		d[key] = pairs[i+1]
	}
	return d, a.charge(size(d))
}

func (a *account) splitList(between, text string) ([]any, error) {
	if err := a.read(between, text); err != nil {
		return nil, err
	}
	parts := strings.SplitN(text, between, maxElements+1)
	if len(parts) > maxElements {
		return nil, errTooManyElements
	}
	list := make([]any, len(parts))
	for i, p := range parts {
		list[i] = p
	}
	return list, a.charge(size(list))
}

func (a *account) join(between string, list []any) (string, error) {
	if err := a.charge(size(list)); err != nil {
		return "", err
	}
	if err := a.made(len(between) * len(list)); err != nil {
		return "", err
	}
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = fmt.Sprint(e)
	}
	out := strings.Join(parts, between)
	return out, a.made(len(out))
}

func (a *account) first(list []any) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return list[0], a.charge(size(list[0]))
}

func (a *account) last(list []any) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return a.first(list[len(list)-1:])
}

func (a *account) has(wanted any, list []any) (bool, error) {
	if err := a.read(wanted); err != nil {
		return false, err
	}
	return slices.Contains(list, wanted), a.charge(size(list))
}

// get is "" where there is no such key, as sprig's is.
func (a *account) get(d map[string]any, key string) (any, error) {
	if v, ok := d[key]; ok {
		return v, a.charge(len(key) + size(v))
	}
	return "", a.charge(len(key))
}

func (a *account) hasKey(d map[string]any, key string) (bool, error) {
	_, ok := d[key]
	return ok, a.charge(len(key))
}
