package connect

import (
	"fmt"
	"regexp"
	"strings"
)

// refused is how an API server words a right that RBAC does not grant. A webhook's refusal has no such words.
var refused = regexp.MustCompile(`cannot ([a-z]+) resource "([a-z./]+)" in API group "([a-z0-9.]*)"( in the namespace "[a-z0-9-]+")?`)

// missing adds which verb on which resource is missing, and how to find out what else is.
func missing(err error, namespace string) error {
	m := refused.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	resource, sub, _ := strings.Cut(m[2], "/")
	if m[3] != "" {
		resource += "." + m[3]
	}
	named, where := resource, "--all-namespaces"
	if m[4] != "" {
		where = "--namespace=" + namespace
	}
	if sub != "" {
		named, where = named+"/"+sub, "--subresource="+sub+" "+where
	}
	return fmt.Errorf("%w\nthe right to %s %s is missing: `kubectl auth can-i %[2]s %[4]s %[5]s` says no; "+
		"the command's --help says what it needs", err, m[1], named, resource, where)
}
