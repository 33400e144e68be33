package matrix

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/placement"
	"ballast/planner/plan"
)

func sorted(list []string) []string { slices.Sort(list); return list }

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// secret is a cluster Secret; "" for no shard.
func secret(shard string, change ...func(map[string]any)) *unstructured.Unstructured {
	data := map[string]any{"name": encoded("prod"), "server": encoded("https://new.example"), "config": encoded(`{"bearerToken":"canary"}`)}
	if shard != "" {
		data["shard"] = encoded(shard)
	}
	object := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data,
		"metadata": map[string]any{"namespace": namespace, "labels": map[string]any{plan.SecretTypeLabel: plan.SecretTypeCluster}}}
	for _, c := range change {
		c(object)
	}
	return &unstructured.Unstructured{Object: object}
}

func with(path ...any) func(map[string]any) {
	return func(object map[string]any) {
		at := object
		for _, key := range path[:len(path)-2] {
			next, ok := at[key.(string)].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key.(string)] = next
			}
			at = next
		}
		at[path[len(path)-2].(string)] = path[len(path)-1]
	}
}

func without(key string) func(map[string]any) {
	return func(object map[string]any) { delete(object, key) }
}

func shardOf(u *unstructured.Unstructured) map[string]string {
	value, found, _ := unstructured.NestedString(u.Object, "data", "shard")
	if !found {
		return map[string]string{}
	}
	text, _ := base64.StdEncoding.DecodeString(value)
	return map[string]string{"shard": string(text)}
}

func shard(value string) map[string]string { return map[string]string{"shard": value} }

func setShard(value any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { with("data", "shard", value)(u.Object) }
}

// clusterCells are the write paths of a cluster Secret that the plan has on replica 3.
func clusterCells(assigned int) map[string]cell {
	const hint = `; to pin, add "{name}: 1" to data.pins of ConfigMap ballast-plan`
	restored := outcome{Fields: shard("3"), Audit: audit("Restored", "1", "shard=1", "shard=3"), Warnings: []string{"ballast: shard 1 was asked, 3 stays (plan 1)" + hint}}
	added := outcome{Fields: shard("3"), Audit: audit("Restored", "1", "shard=-", "shard=3")}
	dropped := outcome{Fields: shard("3"), Audit: audit("Restored", "1", "shard=-", "shard=3"),
		Warnings: []string{`ballast: no shard was asked, 3 stays (plan 1); to pin, add "{name}: 3" to data.pins of ConfigMap ballast-plan`}}
	stands := secret("3")
	left := outcome{Fields: shard("1"), Audit: audit("Unmanaged", "1", "shard=1 secret-type=-", "secret-type=-")}
	aside := secret("1", with("metadata", "labels", map[string]any{}), with("metadata", "annotations", map[string]any{plan.AnnotationUnmanaged: "true"}))
	joined := outcome{Fields: shard("1"), Audit: audit("Unmanaged", "1", "shard=1 unmanaged=true secret-type=cluster", "unmanaged=true secret-type=cluster")}
	frozen := secret("1", with("immutable", true), with("metadata", "annotations", map[string]any{plan.AnnotationUnmanaged: "true"}))
	immutable := outcome{Fields: shard("1"), Audit: audit("Immutable", "1", "shard=1 unmanaged=-", "unmanaged=-"),
		Warnings: []string{"ballast: the Secret is immutable: shard 1 stays, plan 1 has 3; re-create it to change that"}}
	in := immutable // by a word
	in.Audit = audit("Immutable", "1", "shard=1 unmanaged=false", "unmanaged=-")
	const jsonShard = `[{"op":"replace","path":"/data/shard","value":"MQ=="}]`
	return map[string]cell{
		"CREATE with another shard": {write: create(secret("1")), want: restored},
		"CREATE with stringData":    {write: create(secret("", with("stringData", "shard", "1"))), want: restored},
		"CREATE without a shard":    {write: create(secret("")), want: added},
		"CREATE without data":       {write: create(secret("", without("data"))), want: added},
		"CREATE with the shard":     {write: create(secret("3")), want: outcome{Fields: shard("3"), Audit: audit("InPlan", "1", "shard=3", "shard=3")}},
		"CREATE with a pasted token": {write: create(secret("eyJhbGciOiJSUzI1NiJ9")), want: outcome{Fields: shard("3"), Audit: audit("Restored", "1", "shard=invalid", "shard=3"),
			Warnings: []string{`ballast: shard invalid was asked, 3 stays (plan 1); to pin, add "{name}: 3" to data.pins of ConfigMap ballast-plan`}}},
		"CREATE under generateName": {write: create(secret("", with("metadata", "generateName", "gen-"))),
			want: outcome{Fields: shard(fmt.Sprint(assigned)), Audit: audit("Assigned", "1", "shard=-", fmt.Sprintf("shard=%d", assigned))}},
		"CREATE of a server that the plan knows": {write: create(secret("", with("metadata", "generateName", "gen-"), with("data", "server", encoded("https://known.example/")))),
			want: outcome{Fields: shard("2"), Audit: audit("Assigned", "1", "shard=-", "shard=2")}},
		"CREATE immutable":                     {write: create(secret("1", with("immutable", true))), want: restored},
		"PUT that makes it immutable":          {before: stands, write: put(func(u *unstructured.Unstructured) { setShard(encoded("1"))(u); u.Object["immutable"] = true }), want: restored},
		"CREATE of another Secret is not ours": {write: create(secret("1", with("metadata", "labels", map[string]any{}))), want: outcome{Fields: shard("1")}},

		"PUT of another shard":         {before: stands, write: put(setShard(encoded("1"))), want: restored},
		"PUT of stringData":            {before: stands, write: put(func(u *unstructured.Unstructured) { with("stringData", "shard", "1")(u.Object) }), want: restored},
		"PUT without the shard":        {before: stands, write: put(func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "data", "shard") }), want: dropped},
		"PUT without data":             {before: stands, write: put(func(u *unstructured.Unstructured) { delete(u.Object, "data") }), want: dropped},
		"PUT that changes the token":   {before: stands, write: put(func(u *unstructured.Unstructured) { with("data", "config", encoded("x"))(u.Object) }), want: outcome{Fields: shard("3"), Audit: audit("InPlan", "1", "shard=3", "shard=3")}},
		"PUT that takes the label off": {before: stands, write: put(func(u *unstructured.Unstructured) { u.SetLabels(nil); setShard(encoded("1"))(u) }), want: left},
		"PUT that puts the label on": {before: aside, write: put(func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster})
		}), want: joined},
		"PUT that opts out": {before: stands, write: put(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{plan.AnnotationUnmanaged: "true"})
			setShard(encoded("1"))(u)
		}), want: outcome{Fields: shard("1"), Audit: audit("Unmanaged", "1", "shard=1 unmanaged=true", "unmanaged=true")}},
		"PUT that means to opt out": {before: stands, write: put(func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{plan.AnnotationUnmanaged: "True"})
		}), want: outcome{Fields: shard("3"), Audit: audit("InPlan", "1", "shard=3 unmanaged=invalid", "shard=3 unmanaged=-"),
			Warnings: []string{`ballast: annotation ballast.argoproj.io/unmanaged: "True" is passed over; write "true" to opt out`}}},
		"PUT that pins": {before: stands, write: put(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{plan.AnnotationPin: "1"}) }),
			want: outcome{Fields: shard("1"), Audit: audit("Pinned", "1", "shard=3 pin=1", "shard=1 pin=1"),
				Warnings: []string{"ballast: shard 3 was asked, pin 1 stays; change the pin: data.pins of ConfigMap ballast-plan, or its annotation"}}},
		"PUT that pins what cannot be": {before: stands, write: put(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{plan.AnnotationPin: "16"}) }),
			want: outcome{Fields: shard("3"), Audit: audit("InPlan", "1", "shard=3 pin=16", "shard=3 pin=-"),
				Warnings: []string{`ballast: annotation ballast.argoproj.io/pin: "16" is passed over; a pin is a whole number from 0 to 15`}}},
		"PUT on an immutable Secret": {before: frozen, write: put(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }), want: immutable},

		"merge patch on an immutable Secret":      {before: frozen, write: patch(types.MergePatchType, `{"metadata":{"annotations":null}}`), want: immutable},
		"apply with force on an immutable Secret": {before: frozen, write: apply("gitops", true, secret("1", with("immutable", true), with("metadata", "annotations", map[string]any{plan.AnnotationUnmanaged: "false"}))), want: in},
		"JSON patch that takes the label off":     {before: stands, write: patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/labels"},{"op":"replace","path":"/data/shard","value":"MQ=="}]`), want: left},
		"merge patch that puts the label on":      {before: aside, write: patch(types.MergePatchType, `{"metadata":{"labels":{"`+plan.SecretTypeLabel+`":"`+plan.SecretTypeCluster+`"}}}`), want: joined},
		"merge patch that takes the label off":    {before: stands, write: patch(types.MergePatchType, `{"metadata":{"labels":null},"data":{"shard":"MQ=="}}`), want: left},

		"JSON patch":                {before: stands, write: patch(types.JSONPatchType, jsonShard), want: restored},
		"JSON patch of the removal": {before: stands, write: patch(types.JSONPatchType, `[{"op":"remove","path":"/data/shard"}]`), want: dropped},
		"JSON patch removing data":  {before: stands, write: patch(types.JSONPatchType, `[{"op":"remove","path":"/data"}]`), want: dropped},
		"merge patch":               {before: stands, write: patch(types.MergePatchType, `{"data":{"shard":"MQ=="}}`), want: restored},
		"merge patch of null":       {before: stands, write: patch(types.MergePatchType, `{"data":{"shard":null}}`), want: dropped},
		"merge patch of stringData": {before: stands, write: patch(types.MergePatchType, `{"stringData":{"shard":"1"}}`), want: restored},
		"strategic merge patch":     {before: stands, write: patch(types.StrategicMergePatchType, `{"data":{"shard":"MQ=="}}`), want: restored},

		"apply of a new Secret":      {write: apply("gitops", false, secret("1")), want: restored},
		"apply with force":           {before: stands, write: apply("gitops", true, secret("1")), want: restored},
		"apply by the field's owner": {before: stands, owner: "gitops", write: apply("gitops", false, secret("1")), want: restored},
		"apply without force": {before: stands, write: apply("gitops", false, secret("1")), stored: shard("3"),
			want: outcome{Error: `Apply failed with 1 conflict: conflict with "setup" using v1: .data.shard`}},
		"apply of a negative shard": {before: stands, write: apply("gitops", true, secret("-1")),
			want: outcome{Fields: shard("3"), Audit: audit("Restored", "1", "shard=-1", "shard=3"),
				Warnings: []string{`ballast: shard -1 was asked, 3 stays (plan 1); to pin, add "{name}: 3" to data.pins of ConfigMap ballast-plan`}}},
	}
}

func (s *site) clusters(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.run(t, table{
		resource: secrets, webhook: "clusters.ballast.argoproj.io", fields: shardOf,
		cells: clusterCells(placement.NewArrivals(s.source.State().View).Place("https://new.example", -1, nil)),
		names: func(i int) string { return fmt.Sprintf("c-%02d", i) },
		reset: func(*testing.T, string) {},
	})
}

// manyClusters creates 50 clusters at once: each has a replica the moment it exists, none more than twice the mean, and
// a write later moves none.
func (s *site) manyClusters(t *testing.T) {
	p := fleet(plan.StatefulSet, 2)
	for name, row := range p.Clusters {
		row.Replica = int(name[len(name)-1]) % 4
		p.Clusters[name] = row
	}
	s.decide(t, p, "")
	client := s.dynamic(t, s.person).Resource(secrets).Namespace(namespace)
	type made struct {
		name, shard string
		err         error
	}
	results := make(chan made, 50)
	for i := range 50 {
		go func() {
			object := secret("", with("data", "server", encoded(fmt.Sprintf("https://many-%d.example", i))))
			got, err := client.Create(context.Background(), named(object, fmt.Sprintf("many-%02d", i)), metav1.CreateOptions{})
			if err != nil {
				results <- made{err: err}
				return
			}
			results <- made{name: got.GetName(), shard: shardOf(got)["shard"]}
		}()
	}
	count := map[string]int{}
	for range 50 {
		m := <-results
		if m.err != nil {
			t.Fatal(m.err)
		}
		count[m.shard]++
		again, err := client.Patch(t.Context(), m.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"yes"}}}`), metav1.PatchOptions{})
		if err != nil || shardOf(again)["shard"] != m.shard {
			t.Errorf("%s moved from %s to %v: %v", m.name, m.shard, shardOf(again), err)
		}
	}
	for replica, n := range count {
		if n > 2*50/4 {
			t.Errorf("replica %s got %d of 50", replica, n)
		}
	}
}
