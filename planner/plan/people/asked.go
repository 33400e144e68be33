package people

import "strconv"

// What people may ask for by a number. The webhook notes these numbers in audit logs, whose fields have as many digits.
const (
	MaxAccepted = 999_999       // clusters, in AnnotationAcceptDiscovery
	MaxRollback = 9_999_999_999 // a revision, in AnnotationRollback; revisions go up by one, and from a forged one by a million
)

// ParseAsked reads the number of an annotation, from 0 to most.
func ParseAsked(text string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, false
	}
	return n, true
}
