package httpclient

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config/strict"
)

// OwnFiles finds the files of the planner's own identity that the HTTP client would read, and thereby send to whom the
// configuration names. resolve gives a path as the kernel would follow it.
func OwnFiles(h Config, p *field.Path, resolve func(string) string) field.ErrorList {
	var errs field.ErrorList
	eachFile(reflect.ValueOf(h.HTTPClientConfig), p, func(at *field.Path, path string) {
		if ownFile(path) || ownFile(resolve(path)) {
			errs = append(errs, field.Invalid(at, path, "is of the planner's own identity, which must not leave it: "+
				"mount a token for Prometheus alone (components/prometheus-token) and name that, or another copy of a CA"))
		}
	})
	return errs
}

// NamesFiles reports whether a client of this configuration would read files: on any other machine than the one it was
// written for these are others'.
func (h Config) NamesFiles() bool {
	names := false
	eachFile(reflect.ValueOf(h.HTTPClientConfig), nil, func(*field.Path, string) { names = true })
	return names
}

// AsWritten resolves nothing: where the file is not read yet, its folder is not known.
func AsWritten(path string) string { return path }

// Followed resolves symbolic links; what is not there is as it is written.
func Followed(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// ownFile reports whether a path leads to where Kubernetes mounts a pod's own token
// (/var/run/secrets/kubernetes.io/serviceaccount, and /var/run is /run), or into /proc or /dev, by which every file has
// more names (/dev/fd is /proc/self/fd). A relative path counts from wherever it may be.
func ownFile(path string) bool {
	clean := filepath.Clean("/"+path) + "/"
	return strings.HasPrefix(clean, "/proc/") || strings.HasPrefix(clean, "/dev/") ||
		strings.Contains(clean, "/kubernetes.io/serviceaccount/")
}

// eachFile shows every path that prometheus/common reads, in order: what is called *_file, and the files of a header.
func eachFile(v reflect.Value, p *field.Path, show func(*field.Path, string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachFile(v.Elem(), p, show)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			eachFile(v.MapIndex(key), p.Key(key.String()), show)
		}
	case reflect.Struct:
		filesOf(v, p, show)
	}
}

func filesOf(v reflect.Value, p *field.Path, show func(*field.Path, string)) {
	if m, ok := strict.InlineMap(v); ok {
		eachFile(m, p, show)
		return
	}
	if v.Type() == reflect.TypeFor[promconfig.URL]() {
		return
	}
	fields := strict.FieldsOf(v)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, at := fields[name].Value, p.Child(name)
		switch {
		case strings.HasSuffix(name, "_file") && value.Kind() == reflect.String:
			if value.Len() > 0 {
				show(at, value.String())
			}
		case name == "files" && value.Kind() == reflect.Slice:
			for i := range value.Len() {
				show(at.Index(i), value.Index(i).String())
			}
		default:
			eachFile(value, at, show)
		}
	}
}
