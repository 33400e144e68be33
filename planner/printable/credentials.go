package printable

import (
	"slices"
	"strings"
)

// Mark stands where a credential stood.
const Mark = "***"

// secretive are the parts of a query parameter's name by which it counts as a credential.
var secretive = []string{"token", "pass", "pwd", "secret", "key", "cred", "auth", "sig", "session", "jwt"}

// MaskCredentials puts Mark in the place of user, password and credential-like query parameters of every URL in a text.
// The rest stays as it is, bytes that are no text included; doing it twice changes nothing.
func MaskCredentials(s string) string {
	if strings.Contains(s, "//") {
		s = maskUsers(s)
	}
	if strings.Contains(s, "=") {
		s = maskParameters(s)
	}
	return s
}

// MaskServer masks the credentials of a text that is one URL as a whole: nothing but its last @ ends them, and a
// parameter that is not spelled plainly may be one.
func MaskServer(url string) string {
	if at := strings.LastIndexByte(url, '@'); at >= 0 {
		from := strings.Index(url[:at], "//")
		if from < 0 {
			from = -2
		}
		url = url[:from+2] + Mark + url[at:]
	}
	return maskOdd(MaskCredentials(url))
}

// maskOdd masks the values of a URL's parameters that have more than plain characters in them: escapes, and what nobody
// sees, hide a name.
func maskOdd(url string) string {
	from := strings.IndexAny(url, "?#")
	if from < 0 {
		return url
	}
	var b strings.Builder
	b.WriteString(url[:from])
	for rest := url[from:]; rest != ""; {
		end := len(rest)
		if n := strings.IndexAny(rest[1:], "?#&;"); n >= 0 {
			end = 1 + n
		}
		parameter := rest[1:end]
		if strings.ContainsFunc(parameter, isOdd) {
			name, _, named := strings.Cut(parameter, "=")
			parameter = Mark
			if named {
				parameter = name + "=" + Mark
			}
		}
		b.WriteString(rest[:1] + parameter)
		rest = rest[end:]
	}
	return b.String()
}

// isOdd reports whether a character is none of those that a plain parameter has.
func isOdd(r rune) bool {
	plain := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !plain && !strings.ContainsRune("=-._~:/,+*", r)
}

// word is the run of characters around a URL in a text; at is its last @, in bytes of the text.
type word struct{ end, at int }

func wordAt(s string, from int) word {
	w := word{end: len(s)}
	if n := strings.IndexAny(s[from:], " \t\r\n\""); n >= 0 {
		w.end = from + n
	}
	w.at = from + strings.LastIndexByte(s[from:w.end], '@')
	return w
}

// maskUsers masks what stands between // and the @ of each URL. Each character is looked at a bounded number of times:
// a text may be of a megabyte, and be written to be slow.
func maskUsers(s string) string {
	var b strings.Builder
	var w word
	from := 0
	for {
		next := strings.Index(s[from:], "//")
		if next < 0 {
			b.WriteString(s[from:])
			return b.String()
		}
		start := from + next + 2
		for start < len(s) && s[start] == '/' {
			start++
		}
		b.WriteString(s[from:start])
		if start >= w.end {
			w = wordAt(s, start)
		}
		from = start
		end := w.end
		if n := strings.IndexAny(s[start:w.end], "/?#"); n >= 0 {
			end = start + n
		}
		host := s[start:end]
		port, cut := afterPort(host)
		switch at := strings.LastIndexByte(host, '@'); {
		case at >= 0:
			b.WriteString(Mark)
			from = start + at
		case port >= 0 && w.at >= start: // a password with a / in it
			b.WriteString(Mark)
			from = w.at
		case port >= 0: // a password whose end was cut off
			b.WriteString(host[:port] + Mark)
			from = start + cut
		}
	}
}

// afterPort is from where to where something stands that is no port, behind a colon that would begin one; -1 where
// there is none. What ends a sentence, a bracket or a quoted text is no part of it.
func afterPort(host string) (from, to int) {
	from = strings.LastIndexByte(host, ']') + 1
	colon := strings.IndexByte(host[from:], ':')
	if colon < 0 {
		return -1, -1
	}
	from += colon + 1
	rest := strings.TrimRight(host[from:], `.,;:)]}>'\*`)
	if strings.Trim(rest, "0123456789") == "" {
		return -1, -1
	}
	return from, from + len(rest)
}

// maskParameters masks the values of query parameters by their names: ?token=, &api_key=, and the same in a fragment.
func maskParameters(s string) string {
	var b strings.Builder
	from := 0
	for {
		next := strings.IndexByte(s[from:], '=')
		if next < 0 {
			b.WriteString(s[from:])
			return b.String()
		}
		equals := from + next
		b.WriteString(s[from : equals+1])
		name := s[from:equals]
		from = equals + 1
		if at := strings.LastIndexAny(name, `?&#;\`); at >= 0 && isSecretive(name[at:]) {
			end := len(s)
			if n := strings.IndexAny(s[from:], " \t\r\n\"'`<>&#;\\"); n >= 0 {
				end = from + n
			}
			if end > from {
				b.WriteString(Mark)
			}
			from = end
		}
	}
}

func isSecretive(name string) bool {
	if strings.ContainsAny(name, " \t\r\n\"'`<>{}(),") {
		return false // what stands before the = is no parameter of a URL
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretive, func(part string) bool { return strings.Contains(name, part) })
}
