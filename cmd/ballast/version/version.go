// Package version names the build.
package version

import (
	"runtime/debug"
)

// version is set at the link: -ldflags "-X ballast/cmd/ballast/version.version=v1.2.3".
var version = ""

// Build falls back to what the Go toolchain recorded, so that `go install` and test binaries name themselves
// too.
func Build() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
