package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/webhook/intake"
)

// putBack is a review of a write that takes a plan and annotations away, which are put back: each of so many bytes, all of one
// character as it is written.
func putBack(planBytes, noteBytes int, character string) string {
	var notes []string
	for _, key := range plan.PlannersAnnotations() {
		notes = append(notes, `"`+key+`":"`+strings.Repeat(character, noteBytes/len(character))+`"`)
	}
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"argocd","operation":"UPDATE",` +
		`"resource":{"resource":"configmaps"},"name":"ballast-plan","userInfo":{"username":"mallory"},"object":{"metadata":{"name":"ballast-plan"},"data":{}},` +
		`"oldObject":{"metadata":{"name":"ballast-plan","annotations":{` + strings.Join(notes, ",") + `}},"data":{"plan":"` + strings.Repeat(character, planBytes/len(character)) + `"}}}}`
}

// unread is a caller who does not read what it is answered, until it is told to.
type unread struct {
	*httptest.ResponseRecorder
	writes, read chan struct{}
}

func (u unread) Write(b []byte) (int, error) {
	close(u.writes)
	<-u.read
	return u.ResponseRecorder.Write(b)
}

// TestAnAnswerThatNobodyReadsHoldsNoMoreThanItself of the budget: others are decided meanwhile.
func TestAnAnswerThatNobodyReadsHoldsNoMoreThanItself(t *testing.T) {
	for name, planBytes := range map[string]int{"light": 160 << 10, "heavy": codec.MaxBytes} {
		t.Run(name, func(t *testing.T) {
			budgets := newParses()
			h := &handler{kinds()[3], &plans{known: withPlan(nil, nil)}, intake.NewBodies(), budgets, NewMetrics(prometheus.NewRegistry()), logr.Discard(), newPutBacks(time.Now())}
			body := putBack(planBytes, 0, "x")
			rv, err := parseReview([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			weight := rv.weight(nil)
			w := unread{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
			answered := make(chan struct{})
			go func() {
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/plan", strings.NewReader(body)))
				close(answered)
			}()
			<-w.writes
			size := map[string]int64{"light": parseLight, "heavy": parseMost}[name]
			rest := size - int64(2*len(body)) // what it answers is no larger
			if !budgets.of(weight).TryAcquire(netip.Addr{}, rest) {
				t.Errorf("an answer to a review of %d bytes holds more of the budget than %d", len(body), size-rest)
			} else {
				budgets.of(weight).Release(rest)
			}
			close(w.read)
			<-answered
			if !budgets.of(weight).TryAcquire(netip.Addr{}, size) {
				t.Error("not all of it came back")
			}
		})
	}
}
