package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddsUpComparesAPersonsRowWithHerWrites(t *testing.T) {
	const totals = "USER   IMPERSONATED BY   ACCOUNT   WRITES   REWRITTEN   REFUSED   FAULTED   FAILED OPEN   FAILED CLOSED   DRY RUNS   LAST\n" +
		"bob     -   person   4   2   1   0   0   0   0   2026-11-20T15:46:05Z\n" +
		"alice   -   person   3   1   1   0   0   0   1   2026-11-20T15:46:05Z\n"
	writes := []audited{{Effect: "Rewritten"}, {Effect: "Refused"}, {Effect: "Agreed"}, {Effect: "Rewritten", DryRun: true}}
	for name, tc := range map[string]struct {
		person string
		writes []audited
		want   string
	}{
		"they are the sums":     {"alice", writes, ""},
		"a write is missing":    {"alice", writes[1:], "the totals of alice: alice - person 3 1 1, want alice - person 2 0 1"},
		"the row is not there":  {"carol", writes, "the totals have no row of carol"},
		"another person's sums": {"bob", writes, "the totals of bob: bob - person 4 2 1, want bob - person 3 1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := addsUp(totals, tc.person, tc.writes); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadAuditedReadsAnObjectALine(t *testing.T) {
	got, err := readAudited(`{"verb":"patch","kind":"statefulset","subresource":"scale","name":"a","effect":"Rewritten","reason":"Restored","revision":5,"requested":"replicas=1","enforced":"replicas=4"}` + "\n" +
		`{"verb":"create","kind":"secret","name":"b","effect":"Agreed","reason":"InPlan","requested":"shard=-","enforced":"-","dryRun":true}` + "\n")
	want := []audited{
		{Verb: "patch", Kind: "statefulset", Subresource: "scale", Name: "a", Effect: "Rewritten", Reason: "Restored", Revision: 5, Requested: "replicas=1", Enforced: "replicas=4"},
		{Verb: "create", Kind: "secret", Name: "b", Effect: "Agreed", Reason: "InPlan", Requested: "shard=-", Enforced: "-", DryRun: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("writes (-want +got):\n%s%v", diff, err)
	}
	if _, err := readAudited("{}\n{"); err == nil {
		t.Error("half an object was read")
	}
}
