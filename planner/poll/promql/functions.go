package promql

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"ballast/planner/plan/people"
)

// fromSprig are sprig's functions of text and numbers. What each makes is at most six times what it is given (quote of
// what is no text), so that an account of what it is given bounds it.
var fromSprig = [...]string{
	"trim", "trimPrefix", "trimSuffix", "upper", "lower", "title", "untitle", "swapcase", "camelcase", "kebabcase",
	"snakecase", "trunc", "substr", "abbrev", "initials", "nospace", "quote", "squote", "cat",
	"contains", "hasPrefix", "hasSuffix", "base", "dir", "ext", "clean", "isAbs", "urlParse", "regexQuoteMeta",
	"b64enc", "b64dec", "b32enc", "b32dec", "sha1sum", "sha256sum", "sha512sum", "adler32sum",
	"default", "empty", "coalesce", "ternary", "fail", "toString", "int", "int64", "float64", "atoi",
	"add", "add1", "sub", "mul", "div", "mod", "max", "min", "floor", "ceil", "round",
}

// fromGo are the functions of text/template itself that make nothing longer than what they are given.
var fromGo = [...]string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice"}

// instead says what to write for a function that is not offered.
var instead = [...]struct{ mend, names string }{
	{"write the value out, for a template cannot look into its host", "env expandenv getHostByName"},
	{"use PromQL's own time(), for a template has no clock", `now ago date dateInZone date_in_zone dateModify
		date_modify mustDateModify must_date_modify htmlDate htmlDateInZone toDate mustToDate duration durationRound
		unixEpoch`},
	{"write the value out, for the same cluster must give the same query each time", `randAlphaNum randAlpha randAscii
		randNumeric randBytes randInt shuffle uuidv4 genPrivateKey genCA genCAWithKey genSelfSignedCert
		genSelfSignedCertWithKey genSignedCert genSignedCertWithKey buildCustomCert derivePassword bcrypt htpasswd
		encryptAES decryptAES`},
	{"use quote, or urlquery", `html js toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson`},
	{"use list or dict with all of its elements", `tuple set unset append push mustAppend mustPush prepend mustPrepend
		concat merge mustMerge mergeOverwrite mustMergeOverwrite chunk mustChunk deepCopy mustDeepCopy pick omit pluck
		without mustWithout uniq mustUniq compact mustCompact reverse mustReverse rest mustRest initial mustInitial
		sortAlpha fromJson mustFromJson until untilStep seq`},
	{"use get or index with the one key that is needed", "keys values dig"},
	{"use splitList", `split splitn regexSplit mustRegexSplit regexFindAll mustRegexFindAll toStrings`},
	{"use first, last, has or slice", "mustFirst mustLast mustHas mustSlice"},
	{"use eq, and, or", "deepEqual all any"},
	{"use repeat, and write line ends out", "indent nindent wrap wrapWith"},
	{"use trimAll", "trimall"},
	{"use add, sub, mul, div, max or min", "add1f addf subf mulf divf maxf minf biggest"},
}

// functions are those that are offered. A template is rendered for every cluster in every cycle, and whoever writes the
// configuration must not end the planner by it: nothing makes a list or a map of another one, and an account bounds all
// that is read and made.
func functions(a *account) template.FuncMap {
	offered, all := template.FuncMap{}, sprig.TxtFuncMap()
	for _, name := range fromSprig {
		offered[name] = a.charged(all[name])
	}
	for name, f := range map[string]any{
		"print": fmt.Sprint, "println": fmt.Sprintln, "urlquery": template.URLQueryEscaper,
		"b64dec": escaped(all["b64dec"].(func(string) string)), "b32dec": escaped(all["b32dec"].(func(string) string)),
		"urlParse": urlParse(all["urlParse"].(func(string) map[string]any)),
	} {
		offered[name] = a.charged(f)
	}
	maps.Copy(offered, template.FuncMap{
		"printf": a.printf, "repeat": a.repeat, "replace": a.replace, "trimAll": a.trimAll,
		"list": a.list, "dict": a.dict, "splitList": a.splitList, "join": a.join,
		"first": a.first, "last": a.last, "has": a.has, "get": a.get, "hasKey": a.hasKey,
	})
	for _, must := range []string{"regex", "mustRegex"} {
		offered[must+"Match"], offered[must+"Find"] = a.regexMatch, a.regexFind
		offered[must+"ReplaceAll"], offered[must+"ReplaceAllLiteral"] = a.regexReplaceAll, a.regexReplaceAllLiteral
	}
	return offered
}

// escaped is a function that decodes: what a value hid comes to light escaped.
func escaped(decode func(string) string) func(string) string {
	return func(text string) string { return Escape(decode(text)) }
}

// urlParse decodes a URL's path and fragment.
func urlParse(parse func(string) map[string]any) func(string) map[string]any {
	return func(url string) map[string]any {
		parts := parse(url)
		for name, part := range parts {
			if text, ok := part.(string); ok {
				parts[name] = Escape(text)
			}
		}
		return parts
	}
}

// refusal is why a template may not use a function, and what to write instead.
func refusal(name string, offered template.FuncMap) error {
	for _, i := range instead {
		if slices.Contains(strings.Fields(i.names), name) {
			return fmt.Errorf("the function %q may not be used in a query: %s", name, i.mend)
		}
	}
	names := slices.Sorted(maps.Keys(offered))
	names = append(names, fromGo[:]...)
	if nearest := people.Nearest(name, names); nearest != "" {
		return fmt.Errorf("the function %q may not be used in a query: did you mean %s?", name, nearest)
	}
	return fmt.Errorf("the function %q may not be used in a query: use %s", name, strings.Join(names, ", "))
}
