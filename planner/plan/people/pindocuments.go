package people

import (
	"errors"
	"io"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// moreDocuments is the problem of a data.pins that goes on behind its first YAML document, whose mapping is root:
// nothing of it would be read. It is nil where the text ends there.
func moreDocuments(text string, root *yamlnode.Node) *PinProblem {
	if more := moreLines(text); more != nil || root != nil && root.Style&yamlnode.FlowStyle == 0 {
		return more
	}
	d := yamlnode.NewDecoder(strings.NewReader(text)) // braces may end anywhere
	for {
		var doc yamlnode.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &PinProblem{Line: strings.Count(strings.TrimRight(yamlLines(text), "\n "), "\n") + 1,
				Message: behindDocument}
		}
	}
}

// moreLines looks for the first line behind a document. A document ends at a `---` or `...` at the beginning of a line,
// in quotes and blocks, too, at a directive, and where a line begins further to the left than the first pin.
func moreLines(text string) *PinProblem {
	begun, later := false, false
	number, indent := 0, -1 // indent of the first pin; -1: it is still to come
	for line := range strings.Lines(yamlLines(text)) {
		number++
		rest := line
		switch {
		case endsDocument(line):
			later = later || begun
			begun = begun || line[0] == '-'
			rest = line[3:]
		case line[0] == '%' && !begun:
			continue
		case line[0] == '%':
			later = true
		}
		if rest = strings.TrimSpace(rest); rest == "" || rest[0] == '#' {
			continue
		}
		at := len(line) - len(strings.TrimLeft(line, " "))
		if endsDocument(line) || rest[0] == '{' {
			at = 0
		}
		if later || at < indent {
			return &PinProblem{Line: number, Message: behindDocument}
		}
		if indent < 0 {
			indent = at
		}
		begun = true
	}
	return nil
}

func endsDocument(line string) bool {
	for _, marker := range []string{"...", "---"} {
		if rest, ok := strings.CutPrefix(line, marker); ok && (rest == "" || strings.TrimLeft(rest[:1], " \t\r\n") == "") {
			return true
		}
	}
	return false
}

const behindDocument = "stands behind the end of the YAML document (a --- or ... line, or an indented first pin), where nothing is read; " +
	"write every pin at the beginning of a line of one document"

// yamlLines ends each line as people do; to YAML a few other characters end one, too.
func yamlLines(text string) string {
	if !strings.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
}
