package failover

// NoteKind is what a note is about: the reason of its event. The set is closed.
type NoteKind string

// The kinds.
const (
	PinnedStays    NoteKind = "PinnedStays"    // a pinned cluster stays on a replica that is to be empty
	FixedStays     NoteKind = "FixedStays"     // so does one whose Secret nobody may write
	HourWaits      NoteKind = "HourWaits"      // an unwell replica waits for its hour
	BudgetWaits    NoteKind = "BudgetWaits"    // clusters wait for the move budget
	BeyondCapacity NoteKind = "BeyondCapacity" // a replica received more than it may carry
	NowhereToGo    NoteKind = "NowhereToGo"    // every replica is unwell, cordoned or shut
	GroupStays     NoteKind = "GroupStays"     // a cluster stays on a replica that is to be empty: every other has one of its group, which is kept apart
	MemoryStays    NoteKind = "MemoryStays"    // a cluster stays where it is to leave, for no other replica has the memory that it takes
	MemoryCrowded  NoteKind = "MemoryCrowded"  // a cluster that nobody has goes to a replica that has not the memory that it takes
	GroupCrowded   NoteKind = "GroupCrowded"   // a cluster that nobody has goes to a replica that has another one of its group, which is kept apart
)

// Note is what people should know. Cluster is empty where it is about a replica.
type Note struct {
	Kind    NoteKind `json:"kind"`
	Cluster string   `json:"cluster,omitempty"`
	Replica int      `json:"replica"`
	Message string   `json:"message"`
}
