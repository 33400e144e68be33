// Package version names the build.
package version

import (
	"runtime"
	"runtime/debug"
)

// version and commit are set at the link: -ldflags "-X ballast/cmd/ballast/version.version=v1.2.3".
var version, commit = "", ""

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

// Commit is that of the sources, or "unknown".
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

// About is what somebody who asks for help should say of a build.
type About struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"provenKubernetes"`
	ArgoCD     string `json:"provenArgoCD"`
}

// This is the build that runs.
func This() About {
	return About{Build(), Commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, ProvenKubernetes,
		ProvenArgoCD}
}
