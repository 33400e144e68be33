package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`, as `go doc test2json` has it.
type event struct {
	Action     string
	Package    string
	ImportPath string // of what is built
	Test       string
	Output     string
	Elapsed    float64 // seconds, of a test or package that is over
}

// report is what is known of the packages that are not over.
type report struct {
	out     io.Writer
	now     func() time.Time
	running map[string]*running
	told    time.Time // when something was printed last
	slow    []event   // the ends of tests that took long, the slowest first
}

// What is told of slow tests at the end: who wants the whole to be faster begins there.
const (
	slowAfter = 30 * time.Second
	slowest   = 12
)

// running is a package whose tests have begun. Output is what its tests said that did not pass yet, in order.
type running struct {
	since  time.Time
	tests  []string // those that run, the one that began last at the end
	output []event
}

// follow reads to the end.
func follow(in io.Reader, out io.Writer, now func() time.Time, quiet time.Duration) error {
	r := &report{out: out, now: now, running: map[string]*running{}, told: now()}
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(in)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	tick := time.NewTicker(quiet / 6)
	defer tick.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				if err := <-failed; !errors.Is(err, io.EOF) {
					return err
				}
				r.rest()
				return nil
			}
			r.line(line)
		case <-tick.C:
			if r.now().Sub(r.told) >= quiet {
				r.tell()
			}
		}
	}
}

// line takes one in. What is no event, such as a fault of go itself, is printed as it is.
func (r *report) line(text []byte) {
	var e event
	if err := json.Unmarshal(text, &e); err != nil || e.Action == "" {
		r.say(string(text))
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &running{since: r.now()}
	}
	switch e.Action {
	case "start":
		r.running[e.Package] = p
	case "run", "cont":
		p.tests = append(p.tests, e.Test)
	case "pause":
		p.over(e.Test)
	case "build-output":
		r.say(e.Output)
	case "output":
		p.output = append(p.output, e)
	case "pass", "skip", "fail":
		p.over(e.Test)
		r.time(e)
		if e.Test != "" && e.Action != "fail" {
			p.output = slices.DeleteFunc(p.output, func(o event) bool { return o.Test == e.Test })
		}
		if e.Test == "" {
			r.end(e, p)
		}
	}
}

func (p *running) over(test string) {
	p.tests = slices.DeleteFunc(p.tests, func(t string) bool { return t == test })
}

// end prints a package's result: of one that passed the line that says so, of another all that its tests said which
// did not pass.
func (r *report) end(e event, p *running) {
	delete(r.running, e.Package)
	for _, o := range p.output {
		said := strings.HasPrefix(o.Output, "ok ") || strings.HasPrefix(o.Output, "? ")
		if e.Action == "fail" || o.Test == "" && said {
			r.say(o.Output)
		}
	}
}

// time remembers a slow test, with what runs under it as one.
func (r *report) time(e event) {
	if e.Test == "" || strings.Contains(e.Test, "/") || e.Elapsed < slowAfter.Seconds() {
		return
	}
	r.slow = append(r.slow, e)
	slices.SortStableFunc(r.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	r.slow = r.slow[:min(len(r.slow), slowest)]
}

// rest prints what was said by packages of which no end came, and the slowest tests.
func (r *report) rest() {
	for _, e := range r.slow {
		r.say(fmt.Sprintf("slow \t%s\t%s took %.0fs\n", e.Package, e.Test, e.Elapsed))
	}
	for _, name := range r.names() {
		for _, o := range r.running[name].output {
			r.say(o.Output)
		}
	}
}

func (r *report) say(text string) {
	_, _ = io.WriteString(r.out, text)
	r.told = r.now()
}

// names are the packages that run, the one that began first at the head.
func (r *report) names() []string {
	var names []string
	for name := range r.running {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(r.running[a].since.Compare(r.running[b].since), cmp.Compare(a, b))
	})
	return names
}

// tell says what runs.
func (r *report) tell() {
	names := r.names()
	if len(names) == 0 {
		r.say("...  building\n")
		return
	}
	for _, name := range names {
		p := r.running[name]
		test := ""
		if len(p.tests) > 0 {
			test = ", " + p.tests[len(p.tests)-1]
		}
		r.say(fmt.Sprintf("...  \t%s\trunning for %s%s\n", name, r.now().Sub(p.since).Round(time.Second), test))
	}
}
