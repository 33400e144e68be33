package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// numbered is a write with its own audit ID.
func numbered(t testing.TB, id string) string {
	t.Helper()
	return string(secretWrite(t, map[string]any{"auditID": id}))
}

// readAll reads logs called a, b, ... and returns the audit IDs of their writes.
func readAll(t *testing.T, texts ...string) ([]string, Log) {
	t.Helper()
	log, ids := Log{}, []string(nil)
	for i, text := range texts {
		err := log.Read(string(rune('a'+i)), iotest.HalfReader(strings.NewReader(text)), func(w Write) error {
			ids = append(ids, w.AuditID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	log.seen = recent{}
	return ids, log
}

func TestRead(t *testing.T) {
	one, two := numbered(t, "1"), numbered(t, "2")
	other := header + `"stage":"ResponseComplete","verb":"get"}`
	huge := func(size int) string {
		bare := string(secretWrite(t, map[string]any{"auditID": "huge", "requestObject": ""}))
		return strings.Replace(bare, `"requestObject":""`, `"requestObject":"`+strings.Repeat("x", size-len(bare))+`"`, 1)
	}
	for name, c := range map[string]struct {
		texts []string
		ids   []string
		want  Log
	}{
		"an empty log":              {texts: []string{""}},
		"writes in their order":     {texts: []string{one + "\n" + other + "\r\n\n" + two + "\n"}, ids: []string{"1", "2"}, want: Log{Lines: 3, Events: 3}},
		"no end of the last line":   {texts: []string{one + "\n" + two}, ids: []string{"1", "2"}, want: Log{Lines: 2, Events: 2}},
		"a last line being written": {texts: []string{one + "\n" + two[:100]}, ids: []string{"1"}, want: Log{Lines: 2, Events: 1, Unfinished: Trouble{1, "a", 2}}},
		"broken lines": {
			texts: []string{one + "\n", "no JSON\n" + two[:200] + "\n" + two + one + "\n{}\n" + `{"a":"audit.k8s.io/","b":"ballast.argoproj.io"}` + "\n\x00\x00\n" + two + "\n"},
			ids:   []string{"1", "2"}, want: Log{Lines: 8, Events: 2, Broken: Trouble{6, "b", 1}},
		},
		"a line of the bound":    {texts: []string{huge(MaxLine-1) + "\n" + one + "\n"}, ids: []string{"huge", "1"}, want: Log{Lines: 2, Events: 2}},
		"a line above the bound": {texts: []string{one + "\n" + huge(MaxLine) + "\n" + two + "\n"}, ids: []string{"1", "2"}, want: Log{Lines: 3, Events: 2, TooLong: Trouble{1, "a", 2}}},
		"no end of a huge line":  {texts: []string{one + "\n" + huge(MaxLine+readAhead)}, ids: []string{"1"}, want: Log{Lines: 2, Events: 1, TooLong: Trouble{1, "a", 2}}},
		"a request logged twice": {texts: []string{one + "\n" + one + "\n", two + "\n" + one + "\n"}, ids: []string{"1", "2"}, want: Log{Lines: 4, Events: 4}},
		"stages of one request": {
			texts: []string{strings.Replace(one, "ResponseComplete", "RequestReceived", 1) + "\n" + one + "\n"},
			ids:   []string{"1"}, want: Log{Lines: 2, Events: 2},
		},
		"an audit ID that a client chose twice": {
			texts: []string{one + "\n" + strings.Replace(one, "12:00:00.5Z", "12:00:00.500001Z", 1) + "\n"},
			ids:   []string{"1", "1"}, want: Log{Lines: 2, Events: 2},
		},
		"two writes of one audit ID at one instant": {
			texts: []string{one + "\n" + strings.Replace(one, "shard=1", "shard=2", 1) + "\n"},
			ids:   []string{"1", "1"}, want: Log{Lines: 2, Events: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ids, log := readAll(t, c.texts...)
			if diff := cmp.Diff(c.ids, ids); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, log, cmpopts.IgnoreUnexported(Log{})); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadReportsWhatEndsIt(t *testing.T) {
	text := numbered(t, "1") + "\n" + numbered(t, "2") + "\n"
	disk, full := errors.New("disk"), errors.New("full")
	for name, c := range map[string]struct {
		in    io.Reader
		each  error
		cause error
		want  string
		ids   int
	}{
		"a log that breaks off":  {io.MultiReader(strings.NewReader(text), iotest.ErrReader(disk)), nil, disk, `reading "audit.log": disk`, 2},
		"an output that is full": {strings.NewReader(text), full, full, "full", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ids := 0
			err := (&Log{}).Read("audit.log", c.in, func(Write) error { ids++; return c.each })
			if !errors.Is(err, c.cause) || err.Error() != c.want || ids != c.ids {
				t.Errorf("%d writes and then %v, want %d and %q", ids, err, c.ids, c.want)
			}
		})
	}
}

func TestRecentForgetsOnlyWhatIsLongGone(t *testing.T) {
	var r recent
	id := func(i int) []byte { return []byte(fmt.Sprint(i)) }
	for i := range 2*remembered + 1 {
		if !r.first(id(i)) {
			t.Fatalf("request %d is taken for another one", i)
		}
	}
	for _, i := range []int{2 * remembered, remembered + 1, remembered} {
		if r.first(id(i)) {
			t.Errorf("request %d of %d is forgotten", i, 2*remembered+1)
		}
	}
	if got := len(r.now) + len(r.old); got > 2*remembered {
		t.Errorf("%d requests are remembered, want %d at most", got, 2*remembered)
	}
}

// TestMemoryDoesNotGrowWithTheLog reads 256 MiB, mostly one line that has no end.
func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	const size = 256 << 20
	endless := io.LimitReader(zeros{}, size)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	log := &Log{}
	if err := log.Read("a", io.MultiReader(strings.NewReader(numbered(t, "1")+"\n"), endless), func(Write) error { return nil }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 6*MaxLine {
		t.Errorf("%d bytes were allocated for a log of %d, want at most %d", got, size, 6*MaxLine)
	}
	if diff := cmp.Diff(Trouble{1, "a", 2}, log.TooLong); diff != "" {
		t.Errorf("too long (-want +got):\n%s", diff)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// synthetic is a log of about a size in which one event in every is ours, and the others are what a cluster logs anyway.
func synthetic(b *testing.B, size, every int) []byte {
	b.Helper()
	ours := secretWrite(b, map[string]any{"auditID": "ID-000000000"})
	other := bytes.ReplaceAll(ours, []byte("ballast.argoproj.io"), []byte("something.example.io"))
	random := rand.New(rand.NewPCG(1, 1))
	var log bytes.Buffer
	for n := 0; log.Len() < size; n++ {
		line := other
		if random.IntN(every) == 0 {
			line = ours
		}
		log.Write(bytes.Replace(line, []byte("ID-000000000"), fmt.Appendf(nil, "ID-%09d", n), 1))
		log.WriteByte('\n')
	}
	return log.Bytes()
}

// BenchmarkRead reads 100 MB of level Metadata, with every event ours and with one in a hundred.
func BenchmarkRead(b *testing.B) {
	for _, every := range []int{1, 100} {
		b.Run(fmt.Sprintf("ours=1in%d", every), func(b *testing.B) {
			text := synthetic(b, 100e6, every)
			events := int64(0)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				log, totals := &Log{}, &Totals{}
				if err := log.Read("a", bytes.NewReader(text), func(w Write) error { totals.Add(w); return nil }); err != nil {
					b.Fatal(err)
				}
				events += log.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
