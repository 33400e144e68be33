package release

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates are those of Mozilla's list that hold without a bound on the names they vouch for, from a pinned Go
// module: what the machine that builds has does not matter.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return out.Bytes()
}

func layer(at time.Time, entries ...entry) (v1.Layer, error) {
	raw, err := tarred(entries, at)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
}

// image is scratch, the CA certificates and the binary, as the user that the manifests run it as.
func image(binary []byte, arch string, o Options) (v1.Image, error) {
	roots, err := layer(o.Time, entry{"etc/", 0o755, nil}, entry{"etc/ssl/", 0o755, nil},
		entry{"etc/ssl/certs/", 0o755, nil},
		entry{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()})
	if err != nil {
		return nil, fmt.Errorf("making the certificates' layer: %w", err)
	}
	program, err := layer(o.Time, entry{"ballast", 0o755, binary})
	if err != nil {
		return nil, fmt.Errorf("making the binary's layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, roots, program)
	if err != nil {
		return nil, fmt.Errorf("stacking the layers: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: o.Time}
	file.Config = v1.Config{User: "65532:65532", Entrypoint: []string{"/ballast"}, Labels: map[string]string{
		"org.opencontainers.image.title": "ballast", "org.opencontainers.image.version": o.Version,
		"org.opencontainers.image.revision": o.Commit, "org.opencontainers.image.licenses": "Apache-2.0",
	}}
	for i := range file.History {
		file.History[i].Created = v1.Time{Time: o.Time}
	}
	return mutate.ConfigFile(img, file)
}

// writeImages writes one index of both architectures as a layout and as its archive.
func writeImages(binaries map[string][]byte, o Options) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		img, err := image(binaries["linux/"+arch], arch, o)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	dir := filepath.Join(o.Out, "image")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("emptying the image's layout: %w", err)
	}
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("making the image's layout: %w", err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.Version,
		"io.containerd.image.name": o.Image + ":" + o.Version})
	if err := path.AppendIndex(index, named); err != nil {
		return fmt.Errorf("writing the image's layout: %w", err)
	}
	files, err := entries(dir, "")
	if err != nil {
		return err
	}
	archive, err := tarred(files, o.Time)
	if err != nil {
		return err
	}
	return o.write(o.name()+"-image.tar", archive)
}
