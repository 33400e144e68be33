// Package screen is the demo's terminal: headings, commands, tables, and what it waits for.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Screen prints for people: colours and a running clock on a terminal, plain lines and dots elsewhere.
type Screen struct {
	mu    sync.Mutex
	W     io.Writer
	tty   bool
	color bool
}

const (
	Bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	reset  = "\x1b[0m"

	eraseLine = "\r\x1b[K"
	barWidth  = 44
	lineWidth = 110
)

// New prints to a file, with colours if that is a terminal and NO_COLOR is not set (no-color.org).
func New(f *os.File) *Screen {
	info, err := f.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &Screen{W: f, tty: tty, color: tty && os.Getenv("NO_COLOR") == ""}
}

func (s *Screen) Paint(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + reset
}

func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		fmt.Fprintln(s.W, l)
	}
}

func (s *Screen) Heading(title string) { s.Print("", s.Paint(Bold, title)) }

// Say prints prose; check what holds; command what a person types and what she sees.
func (s *Screen) Say(format string, args ...any) { s.Print("  " + fmt.Sprintf(format, args...)) }

func (s *Screen) Check(what string) { s.Print("  " + s.Paint(Green, "✓") + " " + what) }

func (s *Screen) Command(line string) { s.Print("", "  "+s.Paint(dim, "$")+" "+s.Paint(Bold, line)) }

// Seen shows what a command printed; kubectl's warnings are what a person should notice.
func (s *Screen) Seen(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "Warning:") {
			line = s.Paint(Yellow, line)
		}
		s.Print("  " + line)
	}
}

// Table aligns columns; the first row is the header.
func (s *Screen) Table(rows [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tabwriter.NewWriter(s.W, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// Bar draws a share of a width that stands for most, to an eighth of a character.
func Bar(value, most float64) string {
	if most <= 0 || value <= 0 {
		return ""
	}
	eighths := int(value / most * barWidth * 8)
	b := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	if b == "" {
		return "▏"
	}
	return b
}

// Busy shows that something goes on, with its seconds: nothing is silent for longer than one of them.
func (s *Screen) Busy(what string, do func() error) error {
	stop := s.Ticking(func() string { return what })
	err := do()
	stop(err == nil)
	return err
}

// Ticking shows what is going on until stop is called. On a terminal the line changes in place, elsewhere it grows a
// dot a second.
func (s *Screen) Ticking(what func() string) (stop func(ok bool)) {
	start := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	shown := ""
	show := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch now := what(); {
		case s.tty:
			fmt.Fprint(s.W, eraseLine+"  "+s.Paint(dim,
				clip(fmt.Sprintf("… %s %.0f s", now, time.Since(start).Seconds()), lineWidth)))
		case now != shown:
			fmt.Fprint(s.W, newLineAfter(shown)+"  … "+now+" ")
			shown = now
		default:
			fmt.Fprint(s.W, ".")
		}
	}
	show()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				show()
			case <-done:
				return
			}
		}
	}()
	return func(ok bool) {
		close(done)
		<-ended
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tty {
			fmt.Fprint(s.W, eraseLine)
			if ok {
				fmt.Fprintf(s.W, "  %s\n", s.Paint(dim,
					fmt.Sprintf("  %s (%.1f s)", what(), time.Since(start).Seconds())))
			}
			return
		}
		fmt.Fprintf(s.W, " %.1f s\n", time.Since(start).Seconds())
	}
}

func newLineAfter(shown string) string {
	if shown == "" {
		return ""
	}
	return "\n"
}

func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
