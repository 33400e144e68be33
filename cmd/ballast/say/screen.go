package say

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// ScreenOf is the terminal that a command writes to, nil where that is none.
func ScreenOf(w io.Writer) *Screen {
	under := w
	if c, ok := w.(*cleanWriter); ok {
		under = c.w
	}
	f, ok := under.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Screen{raw: f, clean: w, size: func() (width, height int, err error) { return term.GetSize(int(f.Fd())) }}
}

// Screen is a terminal that views are drawn on. What clears it goes around the gate that makes such sequences visible.
type Screen struct {
	raw, clean io.Writer
	size       func() (width, height int, err error)
}

// wipe takes the cursor to the first cell and empties the screen behind it.
const wipe = "\x1b[H\x1b[2J"

// Show shows a view in place of the one before, as much as there is room for.
func (s *Screen) Show(view []byte) error {
	if width, height, err := s.size(); err == nil {
		view = crop(view, width, height)
	}
	if _, err := io.WriteString(s.raw, wipe); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	if _, err := s.clean.Write(view); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	return nil
}

// crop keeps the first lines of a view that a terminal has room for, and says how many more there are. A line that is
// wider than the terminal takes several of its rows; the last row is the cursor's.
func crop(view []byte, width, height int) []byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(view, []byte("\n")), []byte("\n"))
	rows, fits := 0, 0
	room := height - 2 // the cursor, and the line that says what is missing
	for _, l := range lines {
		rows += max(1, (utf8.RuneCount(bytes.TrimSuffix(l, []byte("\n")))+width-1)/max(width, 1))
		if rows <= room {
			fits++
		}
	}
	if rows <= room+1 || width <= 0 || height <= 0 {
		return view
	}
	kept := append([]byte(nil), bytes.Join(lines[:fits], nil)...)
	return fmt.Appendf(kept, "... and %s that this terminal has no room for\n", Plural(len(lines)-fits, "line"))
}
