package inputs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/poll"
	"ballast/planner/size"
)

// Pods are those of a StatefulSet of that name and number of replicas. Seen are the ordinals of those that there are
// now; nil: they could not be listed.
type Pods struct {
	Workload string
	Replicas int
	Seen     map[int]bool
}

// ordinal is the replica whose pod has that name. A leading zero, a sign or anything behind the number is another pod's
// name.
func (p Pods) ordinal(pod string) (int, bool) {
	text, ours := strings.CutPrefix(pod, p.Workload+"-")
	if !ours {
		return 0, false
	}
	replica, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(replica) != text || replica < 0 || replica >= p.Replicas {
		return 0, false
	}
	return replica, p.Seen == nil || p.Seen[replica]
}

// OfReplicas gives replicas the values of their pods. What is no number, is older than that, or is of a pod that is not
// the workload's is left out; two series of one pod say nothing of any. Where nothing is left, it says why.
func OfReplicas(f poll.Fetched, p Pods, oldest time.Time) (r size.Reading, why string) {
	if f.Err != "" {
		return size.Reading{Missing: true}, f.Err
	}
	r.Replica = map[int]float64{}
	twice, strangers := map[int]bool{}, []string{}
	for _, s := range f.Samples {
		replica, ours := p.ordinal(s.Key)
		bad := math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0
		switch {
		case !ours:
			strangers = append(strangers, s.Key)
		case twice[replica]:
			return size.Reading{Missing: true}, fmt.Sprintf("two series are of pod %q: aggregate the query by its label", s.Key)
		default:
			twice[replica] = true
			if old := !s.At.IsZero() && s.At.Before(oldest); !bad && !old {
				r.Replica[replica] = s.Value
				r.Total += s.Value
			}
		}
	}
	switch {
	case len(r.Replica) > 0:
		return r, ""
	case len(f.Samples) == 0:
		why = "the query has no answer"
	case len(strangers) == len(f.Samples):
		slices.Sort(strangers)
		why = fmt.Sprintf("none of the pods is one of %s's: %q is not", p.Workload, strangers[0])
	default:
		why = "no value is a number of 0 or more, and no older than poll.prometheus.maxAge"
	}
	return size.Reading{Missing: true}, why
}
