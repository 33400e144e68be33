package nudge

import "ballast/planner/paged"

// An Application may be 100 KB long, a hostile one 1.5 MB, and 500 of them, as maps, half a gigabyte: the planner's
// limit. So a page is decoded into what is kept of it only, and is as long as the bytes of the last one allow. Where it
// is longer than that, because others come than came, it is asked for anew with fewer.
const (
	firstPage = paged.First
	longest   = 500
	pageBytes = 4 << 20
)

// nextLimit is how many Applications the next page may have, after one of so many and so many bytes.
func nextLimit(applications, bytes int) int {
	if applications <= 0 || bytes <= 0 {
		return firstPage
	}
	return max(1, min(longest, pageBytes*applications/bytes))
}

func newPage() *paged.List[document] { return paged.NewList[document](applicationKind) }
