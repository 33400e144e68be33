package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/manifests/folder"
)

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// tarred is the files in the order of their names, all of one time and of nobody: the same files give the same bytes.
func tarred(files []entry, at time.Time) ([]byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range files {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatPAX,
			Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %q: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("packing %q: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("ending an archive: %w", err)
	}
	return out.Bytes(), nil
}

func zipped(files []entry, at time.Time) ([]byte, error) {
	raw, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}
	if _, err := w.Write(raw); err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}
	return out.Bytes(), nil
}

// entries reads a folder's files, below a name in the archive.
func entries(root, below string) ([]entry, error) {
	files, err := folder.Read(root)
	if err != nil {
		return nil, err
	}
	var read []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		read = append(read, entry{below + name, 0o644, files[name]})
	}
	return read, nil
}
