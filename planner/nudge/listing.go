package nudge

import (
	"cmp"
	"fmt"
	"time"
)

// listing is what one look at all Applications found.
type listing struct {
	partial      bool // there may be more than were kept: too many of them, or in a namespace that was not read
	namespace    string
	setting      string // application.namespaces, as it was then
	problems     []ListingProblem
	at           time.Time // when it began
	took         time.Duration
	applications index
}

// serves tells whether it is of at most that age. One that took long is good for as long again four
// times, so that at most a fifth of the time goes into listings, and whoever waited for it takes it.
func (l *listing) serves(namespace string, now time.Time, age time.Duration) bool {
	if l == nil || l.namespace != namespace {
		return false
	}
	old := now.Sub(l.at)
	return old >= 0 && old <= max(age, 5*l.took)
}

// run is a listing of Applications that goes on, listsFor at most, some 300,000 of them take a minute. Whoever asks for
// one waits for it as long as it likes to.
type run struct {
	namespace string
	began     time.Time
	done      chan struct{}
	found     *listing
	err       error
}

// mostKept is what the Applications of a listing may take, some 300,000 of them.
const mostKept = 96 << 20

// kept are the Applications of a listing, as far as there is room: who may create them must not fill the planner's
// memory.
type kept struct {
	applications []Application
	bytes, more  int
	most         int  // bytes; 0 stands for mostKept
	unread       bool // some of the namespaces are not known, or may not be listed
}

func (k *kept) add(a Application) {
	const itself = 160
	size := itself + len(a.Namespace) + len(a.Name) + len(a.Server) + len(a.Cluster)
	if k.bytes+size > cmp.Or(k.most, mostKept) {
		k.more++
		return
	}
	k.applications, k.bytes = append(k.applications, a), k.bytes+size
}

// left adds a Problem of those that had no room.
func (k *kept) left(problems []ListingProblem) []ListingProblem {
	if k.more == 0 {
		return problems
	}
	return append(problems, ListingProblem{TooMany,
		fmt.Sprintf("%d Applications are read, and %d more are not: their clusters' new owners begin at the next resync; see who makes so many", len(k.applications), k.more)})
}
