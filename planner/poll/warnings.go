package poll

import (
	"fmt"
	"strings"
)

// few keeps the first three messages, and counts the others.
type few struct {
	first []string
	count int
}

func (f *few) add(format string, values ...any) {
	if f.count++; f.count <= 3 {
		f.first = append(f.first, fmt.Sprintf(format, values...))
	}
}

func (f *few) told() []string {
	if f.count <= 3 {
		return f.first
	}
	return append(f.first, fmt.Sprintf("and %d more", f.count-3))
}

// some3 are the first three messages, and how many more there are.
func some3(messages []string) []string {
	var f few
	for _, m := range messages {
		f.add("%s", m)
	}
	return f.told()
}

// clipped is a text's beginning, in memory of its own.
func clipped(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxMessage]), "") + "…"
}
