package say

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// The colours of a terminal's own palette, so that they can be read on a light ground as on a dark one.
const (
	red, green, yellow, bold = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m"
	plain                    = "\x1b[0m"
)

// paints are the words that a line may begin with, by what they ask of people. What follows a word tells it from a
// longer one.
func paints() []paint {
	return []paint{
		{"Fault ", red}, {"Warning ", yellow}, {"Unknown ", yellow}, {"OK ", green}, // doctor
		{"Unwell ", red}, {"Orphaned ", red}, {"Doubled ", red}, // status
		{"Now:", bold}, {"Would be:", bold}, {"  ! ", red}, // plan: ! keeps everything as it is
		{"note:", yellow}, {"ballast:", red}, // what a command says beside its answer
	}
}

type paint struct{ word, colour string }

// painter colours the words that lines begin with.
type painter struct {
	within bool   // of a line
	held   string // its beginning, which may become one of the words
}

// painterOf is of a terminal whose person wants colours, nil of everything else.
func painterOf(f *os.File) *painter {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &painter{}
}

// on is the text with its colours. What may go on as one of the words is kept until it does, or does not.
func (p *painter) on(text string) string {
	text, p.held = p.held+text, ""
	var b strings.Builder
	for text != "" {
		if !p.within {
			word, may := begins(text)
			if may {
				p.held = text
				break
			}
			if name := strings.TrimRight(word.word, " "); name != "" {
				b.WriteString(word.colour + name + plain)
				text = text[len(name):]
			}
		}
		line, rest, ended := strings.Cut(text, "\n")
		b.WriteString(line)
		if ended {
			b.WriteByte('\n')
		}
		text, p.within = rest, !ended
	}
	return b.String()
}

// begins is the word that a line begins with; may: it is too short to tell.
func begins(line string) (word paint, may bool) {
	for _, p := range paints() {
		if strings.HasPrefix(line, p.word) {
			return p, false
		}
		may = may || strings.HasPrefix(p.word, line)
	}
	return paint{}, may
}
