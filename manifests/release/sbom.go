package release

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

type spdx struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      spdxCreation   `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []spdxRelation `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string    `json:"SPDXID"`
	Name             string    `json:"name"`
	Version          string    `json:"versionInfo,omitempty"`
	Download         string    `json:"downloadLocation"`
	LicenseConcluded string    `json:"licenseConcluded"`
	LicenseDeclared  string    `json:"licenseDeclared"`
	Copyright        string    `json:"copyrightText"`
	Analyzed         bool      `json:"filesAnalyzed"`
	Refs             []spdxRef `json:"externalRefs,omitempty"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unsaid = "NOASSERTION"

// sbom lists what a binary says that it was linked of, as SPDX 2.3.
func sbom(binary io.ReaderAt, digest string, o Options) ([]byte, error) {
	info, err := buildinfo.Read(binary)
	if err != nil {
		return nil, fmt.Errorf("reading what the binary is built of: %w", err)
	}
	doc := spdx{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: o.name(),
		Namespace: "https://ballast.argoproj.io/spdx/" + o.name() + "/" + digest,
		Creation:  spdxCreation{o.Time.UTC().Format(time.RFC3339), []string{"Tool: ballast-release"}},
	}
	main := spdxPackage{ID: "SPDXRef-ballast", Name: "ballast", Version: o.Version, Download: unsaid,
		LicenseConcluded: "Apache-2.0", LicenseDeclared: "Apache-2.0", Copyright: unsaid}
	doc.Packages = append(doc.Packages, main)
	doc.Relationships = append(doc.Relationships, spdxRelation{doc.ID, "DESCRIBES", main.ID})
	linked := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	for i, m := range linked {
		if m.Replace != nil {
			m = m.Replace
		}
		p := spdxPackage{ID: fmt.Sprintf("SPDXRef-%d", i), Name: m.Path, Version: m.Version, Download: unsaid,
			LicenseConcluded: unsaid, LicenseDeclared: unsaid, Copyright: unsaid,
			Refs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, spdxRelation{main.ID, "DEPENDS_ON", p.ID})
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}
