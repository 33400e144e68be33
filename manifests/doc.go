// Package manifests is what ballast installs: a kustomize base, components and overlays. Its tests build each overlay
// and judge the objects that come out.
package manifests
