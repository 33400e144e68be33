package main

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

// screen prints for people: colours and a running clock on a terminal, plain lines and dots elsewhere.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	tty   bool
	color bool
}

const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"

	eraseLine = "\r\x1b[K"
	barWidth  = 44
	lineWidth = 110
)

// newScreen prints to a file, with colours if that is a terminal and NO_COLOR is not set (no-color.org).
func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &screen{w: f, tty: tty, color: tty && os.Getenv("NO_COLOR") == ""}
}

func (s *screen) paint(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + reset
}

func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		fmt.Fprintln(s.w, l)
	}
}

func (s *screen) heading(title string) { s.print("", s.paint(bold, title)) }

// say prints prose; check what holds; command what a person types and what she sees.
func (s *screen) say(format string, args ...any) { s.print("  " + fmt.Sprintf(format, args...)) }

func (s *screen) check(what string) { s.print("  " + s.paint(green, "✓") + " " + what) }

func (s *screen) command(line string) { s.print("", "  "+s.paint(dim, "$")+" "+s.paint(bold, line)) }

// seen shows what a command printed; kubectl's warnings are what a person should notice.
func (s *screen) seen(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "Warning:") {
			line = s.paint(yellow, line)
		}
		s.print("  " + line)
	}
}

// table aligns columns; the first row is the header.
func (s *screen) table(rows [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tabwriter.NewWriter(s.w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// bar draws a share of a width that stands for most, to an eighth of a character.
func bar(value, most float64) string {
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

// busy shows that something goes on, with its seconds: nothing is silent for longer than one of them.
func (s *screen) busy(what string, do func() error) error {
	stop := s.ticking(func() string { return what })
	err := do()
	stop(err == nil)
	return err
}

// ticking shows what is going on until stop is called. On a terminal the line changes in place, elsewhere it grows a
// dot a second.
func (s *screen) ticking(what func() string) (stop func(ok bool)) {
	start := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	shown := ""
	show := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch now := what(); {
		case s.tty:
			fmt.Fprint(s.w, eraseLine+"  "+s.paint(dim, clip(fmt.Sprintf("… %s %.0f s", now, time.Since(start).Seconds()), lineWidth)))
		case now != shown:
			fmt.Fprint(s.w, newLineAfter(shown)+"  … "+now+" ")
			shown = now
		default:
			fmt.Fprint(s.w, ".")
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
			fmt.Fprint(s.w, eraseLine)
			if ok {
				fmt.Fprintf(s.w, "  %s\n", s.paint(dim, fmt.Sprintf("  %s (%.1f s)", what(), time.Since(start).Seconds())))
			}
			return
		}
		fmt.Fprintf(s.w, " %.1f s\n", time.Since(start).Seconds())
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
