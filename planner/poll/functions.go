package poll

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
)

// withheld are the functions that sprig itself calls repeatable and that are not: they read a clock or a time zone, draw
// random numbers, or list a map in no order.
var withheld = [...]string{
	"env", "expandenv", "getHostByName", "now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify",
	"mustDateModify", "must_date_modify", "htmlDate", "htmlDateInZone", "toDate", "mustToDate", "durationRound",
	"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"buildCustomCert", "derivePassword", "bcrypt", "htpasswd", "encryptAES", "decryptAES", "keys", "values",
}

// maxElements bounds lists and maps, which a query needs few of.
const maxElements = 1 << 10

var (
	errTooManyElements = fmt.Errorf("it makes a list or a map of more than %d", maxElements)
	errNested          = errors.New("it puts a list or a map into another one")
	errLoops           = errors.New("range, define, block and template may go on without end: write the query without them")
)

// functions are sprig's that may be used. A template is rendered for every cluster in every cycle, and whoever writes the
// configuration must not hang the planner: what a function makes is bounded, and so is what it makes it of.
func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range withheld {
		delete(all, name)
	}
	for _, name := range []string{"until", "untilStep", "seq", "indent", "nindent", "wrapWith"} {
		delete(all, name)
	}
	for name, f := range all {
		all[name] = boundedFunc(f, slices.Contains(makers[:], name))
	}
	all["repeat"] = func(count int, text string) (string, error) {
		if count < 0 || len(text) > 0 && count > maxQuery/len(text) {
			return "", errTooLong
		}
		return strings.Repeat(text, count), nil
	}
	all["replace"] = func(old, with, text string) (string, error) {
		if len(text)+strings.Count(text, old)*len(with) > maxQuery {
			return "", errTooLong
		}
		return strings.ReplaceAll(text, old, with), nil
	}
	for _, name := range []string{"regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral"} {
		all[name] = regexReplace(!strings.HasSuffix(name, "Literal"))
	}
	return all
}

// makers make lists and maps of what they are given. Of flat things alone: a list of itself, and of itself, is as long as its
// print is endless.
var makers = [...]string{"list", "tuple", "dict", "set", "append", "push", "mustAppend", "mustPush", "prepend", "mustPrepend"}

// boundedFunc is a template's function that fails where what it makes is too long; flat says that of its arguments only the first
// may be a list or a map.
func boundedFunc(f any, flat bool) any {
	call := reflect.ValueOf(f)
	of := call.Type()
	in, out := make([]reflect.Type, of.NumIn()), []reflect.Type{of.Out(0), reflect.TypeFor[error]()}
	for i := range in {
		in[i] = of.In(i)
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, of.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		err := judgeArguments(args, of.IsVariadic(), flat)
		if err != nil {
			return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
		}
		results := call.Call
		if of.IsVariadic() {
			results = call.CallSlice
		}
		made := results(args)
		if len(made) == 2 && !made[1].IsNil() {
			return made
		}
		err = judgeSize(made[0])
		return []reflect.Value{made[0], reflect.ValueOf(&err).Elem()}
	}).Interface()
}

func judgeArguments(args []reflect.Value, variadic, flat bool) error {
	if !flat {
		return nil
	}
	for i, a := range args {
		if variadic && i == len(args)-1 {
			for k := range a.Len() {
				if isNested(a.Index(k)) {
					return errNested
				}
			}
			continue
		}
		if i > 0 && isNested(a) {
			return errNested
		}
	}
	return nil
}

func isNested(v reflect.Value) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v.Kind() == reflect.Map || v.Kind() == reflect.Slice
}

func judgeSize(v reflect.Value) error {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.String && v.Len() > maxQuery:
		return errTooLong
	case (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() > maxElements:
		return errTooManyElements
	}
	return nil
}

// regexReplace replaces every match; expand takes $1 and the like for what was found.
func regexReplace(expand bool) func(pattern, text, with string) (string, error) {
	return func(pattern, text, with string) (string, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return "", err
		}
		most := len(with)
		if expand {
			most += strings.Count(with, "$") * len(text)
		}
		if len(text)+len(re.FindAllStringIndex(text, -1))*most > 16*maxQuery {
			return "", errTooLong
		}
		made := re.ReplaceAllLiteralString
		if expand {
			made = re.ReplaceAllString
		}
		out := made(text, with)
		return out, judgeSize(reflect.ValueOf(out))
	}
}

// endless refuses what may go on without end.
func endless(nodes *parse.ListNode) error {
	if nodes == nil {
		return nil
	}
	for _, n := range nodes.Nodes {
		var err error
		switch n := n.(type) {
		case *parse.RangeNode, *parse.TemplateNode:
			return errLoops
		case *parse.IfNode:
			err = errors.Join(endless(n.List), endless(n.ElseList))
		case *parse.WithNode:
			err = errors.Join(endless(n.List), endless(n.ElseList))
		}
		if err != nil {
			return errLoops
		}
	}
	return nil
}
