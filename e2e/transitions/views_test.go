package transitions

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"ballast/e2e/assets"
	"ballast/e2e/gaps"
)

// views is Argo CD's package in a process of its own, as in gaps.Views, but asked without waiting for the answer: a round
// trip between two processes costs far more than the answer, and a busy machine makes that milliseconds.
type views struct {
	in      *bufio.Writer
	answers *json.Decoder
	asked   []question
}

// question is what was asked and what the answer must keep to.
type question struct {
	what   string
	urls   []string
	claims []claim // one a URL; none: the answer is what was found
}

// mostAsked keeps the questions and the answers on their way below what a pipe holds (64 KiB), or both ends would wait for
// each other: a question takes 2 KiB at most, where a pod starts.
const mostAsked = 24

func startViews(t *testing.T) *views {
	t.Helper()
	argocd, err := assets.BuildArgoCD(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argocd.Views())
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() }) // its input ends, or the test's context has ended it
	return newViews(in, out)
}

func newViews(in io.Writer, out io.Reader) *views {
	return &views{in: bufio.NewWriterSize(in, 64<<10), answers: json.NewDecoder(bufio.NewReader(out))}
}

// ask sends a question.
func (v *views) ask(q question, steps []gaps.Step) error {
	request, err := json.Marshal(struct {
		Steps []gaps.Step `json:"steps"`
		Ask   []string    `json:"ask"`
	}{steps, q.urls})
	if err == nil {
		_, err = v.in.Write(append(request, '\n'))
	}
	if err != nil {
		return fmt.Errorf("asking after %q: %w", q.what, err)
	}
	v.asked = append(v.asked, q)
	return nil
}

// answer is that of the oldest question that is open: for each URL the pods that manage it, ascending.
func (v *views) answer() (question, map[string][]int, error) {
	q := v.asked[0]
	v.asked = v.asked[1:]
	var a struct {
		Owners [][]string `json:"owners"`
		Error  string     `json:"error"`
	}
	err := v.in.Flush()
	if err == nil {
		err = v.answers.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	owners := map[string][]int{}
	for i, pods := range a.Owners {
		owners[q.urls[i]] = make([]int, len(pods))
		for j, pod := range pods {
			var notOrdinal error
			owners[q.urls[i]][j], notOrdinal = strconv.Atoi(pod)
			err = errors.Join(err, notOrdinal)
		}
		slices.Sort(owners[q.urls[i]])
	}
	if err != nil {
		err = fmt.Errorf("reading the answer after %q: %w", q.what, err)
	}
	return q, owners, err
}
