package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"ballast/planner/replay/trace"
)

// open is where the load comes from. What it returns beside is called when all is read.
func (o *options) open(ctx context.Context, in io.Reader, progress io.Writer, files comparison) (trace.Source, func(), error) {
	switch {
	case o.last != "":
		return o.fromPrometheus(ctx, progress, files)
	case o.generates:
		s, err := trace.ParseSynthetic(o.generate)
		if err != nil {
			return nil, nil, fmt.Errorf("--generate: %w", err)
		}
		g, err := trace.Generate(s)
		if err != nil {
			return nil, nil, fmt.Errorf("--generate: %w", err)
		}
		return o.recorded(g, func() {})
	}
	source, closes, err := read(o.trace, in)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the trace %q: %w", o.trace, err)
	}
	return o.recorded(source, closes)
}

// read opens a trace in either format.
func read(name string, in io.Reader) (trace.Source, func(), error) {
	size, closes := int64(0), func() {}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		if info, err := file.Stat(); err == nil {
			size = info.Size()
		}
		in, closes = file, func() { file.Close() }
	}
	text := bufio.NewReader(in)
	source, err := ofFormat(text, size)
	if err != nil {
		closes()
		return nil, nil, err
	}
	return named{source, name}, closes, nil
}

func ofFormat(text *bufio.Reader, size int64) (trace.Source, error) {
	first, err := text.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(first) == 1 && first[0] == '{' {
		return trace.NewLines(text, size)
	}
	return trace.NewTable(text, size)
}

// named is a file's trace, whose mistakes name it.
type named struct {
	trace.Source
	name string
}

// Next implements trace.Source.
func (n named) Next() (trace.Step, error) {
	s, err := n.Source.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("reading the trace %q: %w", n.name, err)
	}
	return s, err
}

// recorded also writes what is read where --record says so. A file that is there is somebody's.
func (o *options) recorded(s trace.Source, closes func()) (trace.Source, func(), error) {
	if o.record == "" {
		return s, closes, nil
	}
	file, err := os.OpenFile(o.record, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		err = errors.New("it is there already: name another file, or replay that one")
	}
	if err != nil {
		closes()
		return nil, nil, fmt.Errorf("--record: writing %q: %w", o.record, err)
	}
	both := func() { file.Close(); closes() }
	w, err := trace.NewWriter(file, s.Header())
	if err != nil {
		both()
		return nil, nil, err
	}
	return &tee{s, w}, both, nil
}

// tee writes what is read.
type tee struct {
	trace.Source
	to *trace.Writer
}

// Next implements trace.Source.
func (t *tee) Next() (trace.Step, error) {
	s, err := t.Source.Next()
	if err != nil {
		return s, err
	}
	return s, t.to.Write(s)
}

// chain is two traces of one header after each other.
type chain struct {
	trace.Source // under way
	rest         trace.Source
}

// Next implements trace.Source.
func (c *chain) Next() (trace.Step, error) {
	s, err := c.Source.Next()
	if errors.Is(err, io.EOF) && c.rest != nil {
		c.Source, c.rest = c.rest, nil
		return c.Source.Next()
	}
	return s, err
}
