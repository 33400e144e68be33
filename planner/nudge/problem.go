package nudge

// ListingReason says what kind of problem it is. The set is closed.
type ListingReason string

// The reasons of problems.
const (
	NamespaceForbidden ListingReason = "NamespaceForbidden" // Applications that Argo CD looks at cannot be listed
	PatternUnread      ListingReason = "PatternUnread"      // an entry of application.namespaces that Argo CD reads
	TooMany            ListingReason = "TooMany"            // more Applications than are kept
)

// ListingProblem is what keeps Applications from being found, while others are. Message is a sentence for people.
type ListingProblem struct {
	Reason  ListingReason
	Message string
}

// Messages are the sentences of problems.
func Messages(problems []ListingProblem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Message)
	}
	return all
}
