package manifests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/e2e/apiserver"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// TestThePolicies of the base on a real API server without a webhook, as they are shipped and brought to another namespace.
func TestThePolicies(t *testing.T) {
	config := apiserver.Start(t)
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../e2e/nudge/testdata/application-crd.yaml"}}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct{ dir, namespace, account, workload string }{
		{overlays()["cert-manager"], "argocd", "ballast-planner", "argocd-application-controller"},
		{overlays()["retarget-example"], namespace, plannerAccount, workload},
	} {
		t.Run(at.namespace, func(t *testing.T) {
			t.Parallel() // each in a namespace of its own
			b := installBase(t, config, at.dir, at.namespace, at.account, at.workload)
			b.boundsThePlansConfigMap(t)
			b.boundsEachSteeringAnnotation(t)
			b.keepsThePlansOneWriter(t)
			b.keepsTheHistorysOneWriter(t)
			b.holdsThePlannerToItsFields(t)
			b.holdsThePlannerToTheNudge(t)
			b.boundsTheKeysAnnotations(t)
			b.keepsTheKeyFromTheGarbageCollector(t)
			if at.namespace == "argocd" { // it takes long, and the other's policies differ by names alone
				t.Run("a full ConfigMap is steered", b.steersAFullConfigMap)
				b.writesWhatOthersMadeLarge(t)
			}
		})
	}
}

// baseBed is a namespace under the base's policies, with what the planner writes in it.
type baseBed struct {
	namespace, workload string
	person, planner     client.WithWatch
	config              *rest.Config
	user                string            // the planner's
	standing            *corev1.ConfigMap // the plan that a planWrite without one of its own is tried against; nil: none stands
}

// as is somebody who may do everything.
func (b *baseBed) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(b.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{})
	b.must(t, err)
	return c
}

// installBase installs the policies and the planner's rights, waits until they are in force, and then fills the namespace.
func installBase(t *testing.T, config *rest.Config, dir, namespace, account, workload string) *baseBed {
	t.Helper()
	in := decode(t, build(t, dir))
	user := "system:serviceaccount:" + namespace + ":" + account
	b := &baseBed{config: config, namespace: namespace, workload: workload, user: user, person: clientOf(t, config, ""), planner: clientOf(t, config, user)}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, name := range []string{"ballast-planner", "ballast-planner-target", nudge} {
		role, binding := in.Roles[name], in.RoleBindings[name]
		objects = append(objects, &role, &binding)
	}
	for _, name := range []string{"ballast-plan." + namespace, "ballast-planner." + namespace} {
		policy, binding := in.Policies[name], in.PolicyBindings[name]
		objects = append(objects, &policy, &binding)
	}
	for _, o := range objects {
		b.must(t, b.person.Create(t.Context(), o))
		t.Cleanup(func() { _ = b.person.Delete(context.WithoutCancel(t.Context()), o) })
	}
	for what, refused := range map[string]func() error{
		"ballast-plan.": func() error {
			return b.person.Create(t.Context(), b.planMap(func(cm *corev1.ConfigMap) { cm.Data["notes"] = strings.Repeat("x", 20<<10) }), client.DryRunAll)
		},
		"ballast-planner.": func() error {
			cm := b.planMap(nil)
			cm.Name = "other"
			return b.planner.Create(t.Context(), cm, client.DryRunAll)
		},
	} {
		p := policyBed{}
		p.until(t, what+namespace+" is in force", func() bool { err := refused(); return err != nil && strings.Contains(err.Error(), what+namespace) })
	}
	return b
}

func (b *baseBed) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *baseBed) planMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "ballast-plan"}, Data: map[string]string{}}
	if change != nil {
		change(cm)
	}
	return cm
}

// thePlan is as large as one may be, and names its writer.
func thePlan(writer string) string {
	head := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\nrevision: 7\nplannerUser: " + writer + "\nreplicas: 4\nclusters:\n"
	const row = "  prod-eu-with-a-name: {replica: 3, load: \"1.82\"}\n"
	return head + strings.Repeat(row, (codec.MaxBytes-len(head))/len(row))
}

// ownNotes are the annotations that the planner writes.
func ownNotes() map[string]string {
	own := map[string]string{}
	for _, name := range []string{"revision", "digest", "mac", "decided-at", "decided-by", "reason", "stage"} {
		own["ballast.argoproj.io/"+name] = "its"
	}
	return own
}

// a write to the plan's ConfigMap, over what stands there.
type planWrite struct {
	stands, change func(*corev1.ConfigMap)
	told           string // empty = accepted
}

func (w planWrite) judge(t *testing.T, b *baseBed, as client.Client) {
	t.Helper()
	if w.stands != nil || b.standing == nil {
		b.stand(t, w.stands)
	}
	written := b.standing.DeepCopy()
	w.change(written)
	told(t, as.Update(t.Context(), written, client.DryRunAll), w.told)
	if w.stands != nil {
		b.clear(t)
	}
}

// stand has the planner make the plan's ConfigMap. It stands for all cases that ask for no other, since none writes but by a dry-run.
func (b *baseBed) stand(t *testing.T, change func(*corev1.ConfigMap)) {
	t.Helper()
	b.clear(t)
	cm := b.planMap(func(cm *corev1.ConfigMap) {
		cm.Data["plan"], cm.Data["pins"], cm.Annotations = thePlan("renamed"), "prod-eu: 3\n", ownNotes()
	})
	if change != nil {
		change(cm)
	}
	b.must(t, b.planner.Create(t.Context(), cm))
	b.standing = cm
}

func (b *baseBed) clear(t *testing.T) {
	t.Helper()
	if b.standing != nil {
		b.must(t, b.person.Delete(t.Context(), b.standing))
		b.standing = nil
	}
}

// judgeAll judges first what needs no ConfigMap of its own: that one is made once.
func (b *baseBed) judgeAll(t *testing.T, cases map[string]planWrite, judge func(t *testing.T, w planWrite)) {
	t.Helper()
	for _, name := range slices.SortedFunc(maps.Keys(cases), func(x, y string) int {
		return cmp.Or(cmp.Compare(rank(cases[x]), rank(cases[y])), cmp.Compare(x, y))
	}) {
		t.Run(name, func(t *testing.T) { judge(t, cases[name]) })
	}
	b.clear(t)
}

func rank(w planWrite) int {
	if w.stands == nil {
		return 0
	}
	return 1
}

func told(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%.400v, want %q", err, want)
	}
}

func notes(n int) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Data["notes"] = strings.Repeat("<", n) }
}

func annotated(key string, n int) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Annotations[key] = strings.Repeat("<", n) }
}

func (b *baseBed) boundsThePlansConfigMap(t *testing.T) {
	pins := func(n int) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data["pins"] = strings.Repeat("#", n) }
	}
	b.judgeAll(t, map[string]planWrite{
		"a pin":                        {change: func(cm *corev1.ConfigMap) { cm.Data["pins"] += "prod-us: 1\n" }},
		"a break-glass":                {change: annotated("ballast.argoproj.io/enforcement", 3)},
		"96 KiB of pins":               {change: pins(96 << 10)},
		"more pins":                    {change: pins(96<<10 + 1), told: "data.pins has 98305 bytes, and 98304 at most leave the plan its room: take out pins"},
		"pins by their bytes":          {change: func(cm *corev1.ConfigMap) { cm.Data["pins"] = strings.Repeat("\u00e9", 50<<10) }, told: "data.pins has 102400 bytes"},
		"16 KiB beside them":           {change: notes(16<<10 - len("notes"))},
		"a filler":                     {change: notes(16 << 10), told: "the ConfigMap holds 16389 bytes beside data.plan and data.pins, and 16384 at most leave the plan its room: keep other data in a ConfigMap of its own"},
		"the filler that escapes":      {change: notes(100 << 10), told: "holds 102405 bytes beside"},
		"a filler of names":            {change: func(cm *corev1.ConfigMap) { manyKeys(cm, 70) }, told: "bytes beside data.plan and data.pins"},
		"a binary filler":              {change: func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": make([]byte, 13<<10)} }, told: "bytes beside data.plan and data.pins"},
		"a filler that gets smaller":   {stands: notes(60 << 10), change: notes(50 << 10)},
		"a filler that stays":          {stands: notes(60 << 10), change: func(cm *corev1.ConfigMap) { cm.Data["pins"] = "" }},
		"a filler that grows":          {stands: notes(60 << 10), change: notes(60<<10 + 1), told: "bytes beside"},
		"208 KiB of annotations":       {change: annotated("note", 208<<10-len("note"))},
		"more annotations":             {change: annotated("note", 208<<10), told: "metadata.annotations has 212996 bytes, and 212992 at most beside ballast's own leave those their room"},
		"a name of ballast's group":    {change: annotated("ballast.argoproj.io/note", 208<<10), told: "metadata.annotations has"},
		"annotations that get smaller": {stands: annotated("note", 220<<10), change: annotated("note", 215<<10)},
		"4000 annotations":             {change: func(cm *corev1.ConfigMap) { maps.Copy(cm.Annotations, tiny(4000)) }},
		"6000 annotations":             {change: func(cm *corev1.ConfigMap) { maps.Copy(cm.Annotations, tiny(6000)) }, told: "metadata.annotations has more than 4096 entries, and as many at most beside ballast's own leave those their room"},
		"6000 annotations less one":    {stands: func(cm *corev1.ConfigMap) { maps.Copy(cm.Annotations, tiny(6000)) }, change: func(cm *corev1.ConfigMap) { delete(cm.Annotations, "a1") }},
		"6000 keys":                    {change: func(cm *corev1.ConfigMap) { maps.Copy(cm.Data, tiny(6000)) }, told: "the ConfigMap holds more than 4096 keys beside data.plan and data.pins"},
		"labels":                       {change: func(cm *corev1.ConfigMap) { cm.Labels = many("label", 64) }},
		"more labels":                  {change: func(cm *corev1.ConfigMap) { cm.Labels = many("label", 65) }, told: "metadata.labels has more than 64: take some out"},
		"a finalizer":                  {change: func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/a"} }},
		"nine finalizers": {change: func(cm *corev1.ConfigMap) {
			cm.Finalizers = slices.Collect(maps.Keys(many("example.com/finalizer", 9)))
		}, told: "metadata.finalizers has more than 8: take some out"},
		"an owner that is not there": {change: func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "f3d7a0c2-0000-4000-8000-000000000000"}}
		}, told: "nothing owns what the planner keeps: leave metadata.ownerReferences out"},
		"an immutable one":                 {change: func(cm *corev1.ConfigMap) { cm.Immutable = ptr.To(true) }, told: "the ConfigMap stays mutable, since the planner writes here"},
		"a list of writers":                {change: writers(65, 1), told: "metadata.managedFields has more than 64 entries"},
		"52 who apply":                     {change: writers(52, 1)},
		"53 who apply":                     {change: writers(53, 1), told: "or 52 of server-side apply"},
		"60 who apply, less one":           {stands: writers(60, 1), change: writers(59, 1)},
		"a list of many fields":            {change: writers(2, 40<<10), told: "or more than 65536 bytes of names"},
		"a list of deep fields":            {change: deepWriter(`{"f:data":{"f:a":{"f:b":{"f:c":{"f:deep":{}}}}}}`), told: "or names that no ConfigMap has"},
		"a list of an owner's fields":      {change: deepWriter(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"a\"}":{".":{},"f:name":{}}}}}`)},
		"a time of the last year":          {change: writtenAt(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))},
		"no time at all":                   {change: writtenAt(time.Time{})},
		"a time that JSON does not have":   {change: writtenAt(lastOfAll), told: beyondJSON},
		"a time before all":                {change: writtenAt(time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 60*60))), told: beyondJSON},
		"a time that protobuf has":         {change: writtenAt(time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)), told: beyondJSON},
		"a time that got in":               {stands: writtenAt(lastOfAll), change: annotated("ballast.argoproj.io/enforcement", 3)},
		"an annotation that is no text":    {change: func(cm *corev1.ConfigMap) { cm.Annotations["note"] = "a\xff" }, told: "invalid UTF-8"},
		"a freeze's reason of none":        {change: func(cm *corev1.ConfigMap) { cm.Annotations[plan.AnnotationPausedReason] = "\xff" }, told: "invalid UTF-8"},
		"pins that are no text":            {change: func(cm *corev1.ConfigMap) { cm.Data["pins"] += "\xff" }, told: "invalid UTF-8"},
		"a key that is no text":            {change: func(cm *corev1.ConfigMap) { cm.Data["x"] = "\xc3" }, told: "invalid UTF-8"},
		"beside what got in":               {stands: func(cm *corev1.ConfigMap) { cm.Annotations["note"], cm.Data["x"] = "\xff", "\xff" }, change: annotated("ballast.argoproj.io/enforcement", 3)},
		"what got in, and more":            {stands: func(cm *corev1.ConfigMap) { cm.Annotations["note"] = "\xff" }, change: func(cm *corev1.ConfigMap) { cm.Annotations["note"] = "\xff\xff" }, told: "invalid UTF-8"},
		"a list that is started from anew": {stands: writers(2, 20<<10), change: func(cm *corev1.ConfigMap) { cm.ManagedFields = []metav1.ManagedFieldsEntry{{}} }},
	}, func(t *testing.T, w planWrite) { w.judge(t, b, b.person) })
}

// boundsTheKeysAnnotations: beyond 4200 nobody looks at whether they are UTF-8, so that there are no more.
func (b *baseBed) boundsTheKeysAnnotations(t *testing.T) {
	var key corev1.Secret
	b.must(t, b.person.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: planKey}, &key))
	for name, c := range map[string]struct {
		notes map[string]string
		more  string
		told  string
	}{
		"4000":                         {notes: tiny(4000)},
		"4000, one of them is no text": {tiny(4000), "\xff", "invalid UTF-8"},
		"4300":                         {tiny(4300), "a", "metadata.annotations has more than 4200"},
		"4300, one of them is no text": {tiny(4300), "\xff", "metadata.annotations has more than 4200"},
	} {
		t.Run("a key with annotations: "+name, func(t *testing.T) {
			o := key.DeepCopy()
			if o.Annotations = c.notes; c.more != "" {
				o.Annotations["a1"] = c.more
			}
			told(t, b.person.Update(t.Context(), o, client.DryRunAll), c.told)
		})
	}
}

// keepsTheKeyFromTheGarbageCollector, which deletes what is owned by something that is not there.
func (b *baseBed) keepsTheKeyFromTheGarbageCollector(t *testing.T) {
	gone := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "f3d7a0c2-0000-4000-8000-000000000000"}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: planKey}}
	b.must(t, b.person.Get(t.Context(), client.ObjectKeyFromObject(key), key))
	for name, c := range map[string]struct {
		patch, told string
	}{
		"an owner that is not there": {`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"` + string(gone.UID) + `"}]}}`,
			"nothing owns what the planner keeps: leave metadata.ownerReferences out"},
		"no owner":         {`{"metadata":{"ownerReferences":[]}}`, ""},
		"a label":          {`{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a finalizer":      {`{"metadata":{"finalizers":["example.com/a"]}}`, ""},
		"what is its data": {`{"data":{"key":"Yg=="}}`, ""},
	} {
		t.Run("a key with "+name, func(t *testing.T) {
			patch := client.RawPatch(types.MergePatchType, []byte(c.patch))
			told(t, b.person.Patch(t.Context(), key.DeepCopy(), patch, client.DryRunAll), c.told)
		})
	}
	t.Run("a new key with an owner", func(t *testing.T) {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: planKey, OwnerReferences: []metav1.OwnerReference{gone}}}
		told(t, b.person.Create(t.Context(), made, client.DryRunAll), "nothing owns what the planner keeps: leave metadata.ownerReferences out")
	})
}

// steering are the annotations by which people steer, and the most bytes that each may have.
func steering() map[string]int {
	return map[string]int{
		plan.AnnotationEnforcement: 256, plan.AnnotationPaused: 256, plan.AnnotationRollback: 256,
		plan.AnnotationAcceptDiscovery: 256, plan.AnnotationPausedBy: 1 << 10, plan.AnnotationPausedReason: 4 << 10,
		plan.AnnotationTripped: 4 << 10, plan.AnnotationCordon: plan.MaxNoteBytes,
	}
}

func (b *baseBed) boundsEachSteeringAnnotation(t *testing.T) {
	const tooLong = "one of ballast's annotations is too long: cordon has 16384 bytes at most"
	cases := map[string]planWrite{}
	for key, most := range steering() {
		for name, w := range map[string]planWrite{
			"as long as may be":       {change: annotated(key, most)},
			"longer":                  {change: annotated(key, most+1), told: tooLong},
			"longer in bytes":         {change: func(cm *corev1.ConfigMap) { cm.Annotations[key] = strings.Repeat("\u00e9", most/2+1) }, told: tooLong},
			"shorter than it was":     {stands: annotated(key, most+2), change: annotated(key, most+1)},
			"as long as it was":       {stands: annotated(key, most+2), change: notes(1)},
			"longer than it was":      {stands: annotated(key, most+1), change: annotated(key, most+2), told: tooLong},
			"taken from what is long": {stands: annotated(key, most+1), change: func(cm *corev1.ConfigMap) { delete(cm.Annotations, key) }},
		} {
			cases[key+" "+name] = w
		}
	}
	b.judgeAll(t, cases, func(t *testing.T, w planWrite) { w.judge(t, b, b.person) })
}

// steersAFullConfigMap: whoever may write the ConfigMap fills it with as much of everything as passes, and people steer
// all the same, with every annotation at its longest; then the planner writes.
func (b *baseBed) steersAFullConfigMap(t *testing.T) {
	cm := b.planMap(func(cm *corev1.ConfigMap) { cm.Data["plan"], cm.Annotations = thePlan("renamed"), ownNotes() })
	b.must(t, b.planner.Create(t.Context(), cm))
	t.Cleanup(func() { b.must(t, b.person.Delete(context.WithoutCancel(t.Context()), cm)) })
	for name, fill := range map[string]func(*corev1.ConfigMap){"annotations": fillNotes, "data": fillData} {
		fill(cm)
		if err := b.person.Update(t.Context(), cm, client.FieldOwner("kubectl-annotate")); err != nil {
			t.Fatalf("filling the %s: %.400v", name, err)
		}
	}
	b.fillsTheWriters(t, cm)
	for want, patch := range map[string]string{
		"metadata.annotations has": `{"metadata":{"annotations":{"b":"y"}}}`,
		"data.pins has":            `{"data":{"pins":"` + strings.Repeat("#", 96<<10+1) + `"}}`,
		"bytes beside":             `{"data":{"b":"y"}}`,
	} {
		more := client.RawPatch(types.MergePatchType, []byte(patch))
		told(t, b.person.Patch(t.Context(), cm.DeepCopy(), more, client.DryRunAll), want)
	}
	steers := func(manager, key, value string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":"`+value+`"}}}`))
		if err := b.person.Patch(t.Context(), cm, patch, client.FieldOwner(manager)); err != nil {
			t.Errorf("%s writes %.8s to %s: %.400v", manager, value, key, err)
		}
	}
	for _, manager := range []string{"kubectl-annotate", "ballast"} { // one who wrote before, and another
		for key, most := range steering() {
			steers(manager, key, strings.Repeat("x", most))
		}
	}
	steers("kubectl-edit", plan.AnnotationEnforcement, "off")
	cm.Annotations[plan.AnnotationReason] = strings.Repeat("r", 4<<10)
	cm.Data["plan"] += "#"
	b.must(t, b.planner.Update(t.Context(), cm))
}

// fillNotes makes 4096 annotations of 52 bytes, of which each has a name of four: as many, and as large, as may be.
func fillNotes(cm *corev1.ConfigMap) {
	for i := range 4096 {
		cm.Annotations[fmt.Sprintf("a%03x", i)] = strings.Repeat("y", 48)
	}
}

func fillData(cm *corev1.ConfigMap) {
	cm.Data["pins"] = strings.Repeat("#", 96<<10)
	notes(16<<10 - len("notes"))(cm)
}

// fillsTheWriters with 52 who apply, of whom one has a name of a field as long as passes.
func (b *baseBed) fillsTheWriters(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	own := cm.ManagedFields
	writes := func(long int, opts ...client.UpdateOption) error {
		full := cm.DeepCopy()
		writers(52, 1)(full)
		full.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(fmt.Sprintf(`{"f:data":{"f:%s":{}}}`, strings.Repeat("<", long)))
		full.ManagedFields = append(full.ManagedFields, own...)
		return b.person.Update(t.Context(), full, append(opts, client.FieldOwner("kubectl-annotate"))...)
	}
	const most = 64 << 10 // of names; beside those of the long one's entry, "f:data" and "f:", stand the other 51's and the object's own
	long := most - len("f:data"+"f:") - 51*len("f:data"+"f:<")
	for _, entry := range own {
		var fields map[string]any
		raw, err := json.Marshal(entry.FieldsV1)
		b.must(t, err)
		b.must(t, json.Unmarshal(raw, &fields))
		long -= names(fields)
	}
	told(t, writes(long+1, client.DryRunAll), "or more than 65536 bytes of names")
	b.must(t, writes(long))
	b.must(t, b.person.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	if applied := len(cm.ManagedFields); applied < 53 {
		t.Fatalf("%d writers are kept", applied)
	}
}

// names is how long the names are in a list of fields, but for those of ballast's annotations and of what these are in.
func names(fields map[string]any) int {
	n := 0
	for name, below := range fields {
		inner, _ := below.(map[string]any)
		if name != "f:annotations" {
			n += len(name) + names(inner)
			continue
		}
		n -= len("f:metadata")
		for annotation := range inner {
			if annotation != "." && !strings.HasPrefix(annotation, "f:ballast.argoproj.io/") {
				n += len(annotation)
			}
		}
	}
	return n
}

func manyKeys(cm *corev1.ConfigMap, n int) {
	for key := range many(strings.Repeat("k", 240), n) {
		cm.Data[key] = ""
	}
}

func many(prefix string, n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("%s-%04d", prefix, i)] = ""
	}
	return out
}

// writers brings a list of n field managers, each with a field of a name so long.
func writers(n, long int) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		cm.ManagedFields = nil
		for i := range n {
			fields := fmt.Sprintf(`{"f:data":{"f:%s":{}}}`, strings.Repeat("<", long))
			cm.ManagedFields = append(cm.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: fmt.Sprintf("m%d", i), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: ptr.To(metav1.Unix(1, 0)),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			})
		}
	}
}

// lastOfAll is in the year 10000 once it is UTC, which the API server writes and cannot read.
var lastOfAll = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*60*60))

const beyondJSON = "metadata.managedFields has a time that is outside the years 0000 to 9999 in UTC, after which nobody could patch the object any more: leave it out, or start"

// writtenAt brings a list of one field manager, who wrote then.
func writtenAt(at time.Time) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		writers(1, 1)(cm)
		cm.ManagedFields[0].Time = &metav1.Time{Time: at}
	}
}

// deepWriter brings a list of one field manager.
func deepWriter(fields string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		writers(1, 1)(cm)
		cm.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(fields)
	}
}

const oneWriter = "data.plan and the annotations revision, digest, mac, decided-at, decided-by, reason and stage are the planner's alone: pins go to data.pins"

func (b *baseBed) keepsThePlansOneWriter(t *testing.T) {
	plan := func(text string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data["plan"] = text }
	}
	off := func(then func(*corev1.ConfigMap)) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Annotations["ballast.argoproj.io/enforcement"] = "off"; then(cm) }
	}
	cases := map[string]planWrite{
		"a row": {change: func(cm *corev1.ConfigMap) {
			cm.Data["plan"] = strings.Replace(cm.Data["plan"], "replica: 3", "replica: 0", 1)
		}, told: oneWriter},
		"an end":                     {change: func(cm *corev1.ConfigMap) { cm.Data["plan"] += "#" }, told: oneWriter},
		"none":                       {change: func(cm *corev1.ConfigMap) { delete(cm.Data, "plan") }, told: oneWriter},
		"no data":                    {change: func(cm *corev1.ConfigMap) { cm.Data = nil }, told: oneWriter},
		"another one by break-glass": {change: off(plan("replicas: 900\n")), told: oneWriter},
		"a row after break-glass":    {stands: off(func(*corev1.ConfigMap) {}), change: plan("replicas: 900\n"), told: oneWriter},
		"break-glass alone":          {change: off(func(*corev1.ConfigMap) {})},
		"a plan where none stands": {stands: func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = nil, nil }, change: func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"plan": thePlan("x")}
			cm.Annotations = ownNotes()
		}, told: oneWriter},
		"pins where none stand": {stands: func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = nil, nil }, change: func(cm *corev1.ConfigMap) {
			cm.Data = map[string]string{"pins": "a: 1"}
		}},
		"a plan in binaryData": {stands: func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = nil, nil }, change: func(cm *corev1.ConfigMap) {
			cm.BinaryData = map[string][]byte{"plan": []byte("x")}
		}, told: "binaryData has no room for plan and pins: pins go to data.pins"},
		"one's annotations": {change: annotated("ballast.argoproj.io/cordon", 9)},
		"all annotations":   {change: func(cm *corev1.ConfigMap) { cm.Annotations = nil }, told: oneWriter},
	}
	for key := range ownNotes() {
		cases["another "+key] = planWrite{change: annotated(key, 9), told: oneWriter}
		cases["no "+key] = planWrite{change: func(cm *corev1.ConfigMap) { delete(cm.Annotations, key) }, told: oneWriter}
		cases["a new "+key] = planWrite{stands: func(cm *corev1.ConfigMap) { delete(cm.Annotations, key) }, change: annotated(key, 9), told: oneWriter}
	}
	b.judgeAll(t, cases, func(t *testing.T, w planWrite) {
		w.judge(t, b, b.person)
		w.told = ""
		w.judge(t, b, b.planner)
	})
	for writer, c := range map[string]struct{ named, told string }{ // whom a plan names is no better than whoever wrote it
		"renamed":           {named: "renamed", told: oneWriter},
		"alice@example.com": {named: `"alice@example.com"`, told: oneWriter},
	} {
		t.Run("by the plan's own writer "+writer, func(t *testing.T) {
			w := planWrite{stands: plan(thePlan(c.named)), change: plan("replicas: 900\n"), told: c.told}
			w.judge(t, b, b.as(t, writer))
		})
	}
}

// fleet is what the planner writes in the namespace, as others left it.
func (b *baseBed) fleet() (*corev1.Secret, *corev1.Secret, *appsv1.StatefulSet, *appsv1.Deployment) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "a"}}
	}
	cluster, key := &corev1.Secret{ObjectMeta: meta("prod-eu"), Data: secretData()}, &corev1.Secret{ObjectMeta: meta(planKey)}
	cluster.Labels["argocd.argoproj.io/secret-type"] = "cluster"
	labels := map[string]string{"app": "controller"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		ServiceAccountName: "argocd-application-controller",
		InitContainers:     []corev1.Container{{Name: "first", Image: "argocd"}},
		Containers: []corev1.Container{
			{Name: "application-controller", Image: "argocd", Command: []string{"argocd-application-controller"}, Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: envReplicas, Value: "4"}, {Name: "B", Value: "b"}}},
			{Name: "sidecar", Image: "sidecar"},
		}}}
	set := &appsv1.StatefulSet{ObjectMeta: meta(b.workload), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(4)), ServiceName: "controller", Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	deployment := &appsv1.Deployment{ObjectMeta: meta(b.workload), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	return cluster, key, set, deployment
}

func secretData() map[string][]byte {
	return map[string][]byte{"name": []byte("prod-eu"), "server": []byte("https://10.0.0.1"), "config": []byte("{}"), "shard": []byte("1")}
}

const (
	planKey     = "ballast-plan-key"
	envReplicas = "ARGOCD_CONTROLLER_REPLICAS"
)

// patched is a patch of the planner's and what it is told; empty = accepted.
type patched struct {
	name, patch, told string
}

func (b *baseBed) try(t *testing.T, o client.Object, kind types.PatchType, cases []patched) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%T %s", o, c.name), func(t *testing.T) {
			told(t, b.planner.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(kind, []byte(c.patch)), client.DryRunAll), c.told)
		})
	}
}

const (
	onlyClusters    = "of Secrets the planner writes Argo CD's clusters and ballast-plan-key and no other"
	onlyShard       = "of a cluster's Secret the planner writes data.shard, of ballast-plan-key data.key, and nothing else"
	onlyAnnotations = "the planner leaves annotations of Secrets and workloads as they are"
	noLabels        = "the planner leaves labels, finalizers and owners as they are"
	onlySpec        = "of a workload the planner writes spec.replicas and the pod template, and nothing else"
	onlyRestart     = "of a pod template's metadata the planner writes the annotation kubectl.kubernetes.io/restartedAt and nothing else"
	onlyContainers  = "of a pod template's spec the planner writes the containers' env and resources and nothing else"
	onlyEnv         = "of a container's env the planner writes ARGOCD_CONTROLLER_REPLICAS, a number, and nothing else"
	onlyResources   = "of a container the planner writes ARGOCD_CONTROLLER_REPLICAS and the resources and nothing else"
	neverDeletes    = "the planner deletes nothing, and creates no Secret, workload or Application"
	twoMaps         = "the planner writes the ConfigMaps ballast-plan, ballast-history and ballast-plan-status and no other"
)

// aboutAnyObject are patches that no object takes.
func aboutAnyObject() []patched {
	return []patched{
		{"a label", `{"metadata":{"labels":{"team":"b"}}}`, noLabels},
		{"a label less", `{"metadata":{"labels":{"team":null}}}`, noLabels},
		{"a finalizer", `{"metadata":{"finalizers":["example.com/a"]}}`, noLabels},
		{"an owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, noLabels},
		{"an annotation of ballast's", `{"metadata":{"annotations":{"ballast.argoproj.io/unmanaged":"true"}}}`, onlyAnnotations},
		{"another annotation", `{"metadata":{"annotations":{"note":"b"}}}`, onlyAnnotations},
		{"an annotation less", `{"metadata":{"annotations":{"note":null}}}`, onlyAnnotations},
		{"a new annotation", `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"default"}}}`, onlyAnnotations},
	}
}

func (b *baseBed) holdsThePlannerToItsFields(t *testing.T) {
	cluster, key, set, deployment := b.fleet()
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "argocd-secret"}, Data: secretData()}
	repository := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "repository", Labels: map[string]string{"argocd.argoproj.io/secret-type": "repository"}}, Data: secretData()}
	for _, o := range []client.Object{cluster, key, set, deployment, other, repository} {
		b.must(t, b.person.Create(t.Context(), o))
	}
	shard := `{"data":{"shard":"Mw=="}}`
	b.try(t, cluster, types.MergePatchType, append(aboutAnyObject(),
		patched{"a shard", shard, ""},
		patched{"no shard", `{"data":{"shard":null}}`, ""},
		patched{"a server", `{"data":{"shard":"Mw==","server":"Yg=="}}`, onlyShard},
		patched{"a server in text", `{"stringData":{"server":"https://mallory"}}`, onlyShard},
		patched{"a token", `{"data":{"config":"Yg=="}}`, onlyShard},
		patched{"no token", `{"data":{"config":null}}`, onlyShard},
		patched{"a key", `{"data":{"key":"Yg=="}}`, onlyShard},
		patched{"no data", `{"data":null}`, onlyShard},
		patched{"that nobody changes it", `{"immutable":true}`, "the planner leaves a Secret's type and whether it is immutable as they are"},
		patched{"no cluster any more", `{"metadata":{"labels":{"argocd.argoproj.io/secret-type":null}}}`, noLabels},
	))
	for _, o := range []client.Object{other, repository} {
		b.try(t, o, types.MergePatchType, []patched{
			{"a shard", shard, onlyClusters},
			{"an annotation", `{"metadata":{"annotations":{"ballast.argoproj.io/pin":"1"}}}`, onlyClusters},
			{"that it is a cluster", `{"metadata":{"labels":{"argocd.argoproj.io/secret-type":"cluster"}}}`, onlyClusters},
		})
	}
	b.try(t, key, types.MergePatchType, append(aboutAnyObject(),
		patched{"the key", `{"data":{"key":"Yg=="}}`, ""},
		patched{"a shard", shard, onlyShard},
		patched{"a cluster", `{"metadata":{"labels":{"argocd.argoproj.io/secret-type":"cluster"}}}`, noLabels},
	))
	for _, o := range []client.Object{set, deployment} {
		b.holdsItToTheWorkload(t, o)
	}
	b.try(t, set, types.MergePatchType, []patched{
		{"a partition", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":3}}}}`, onlySpec},
		{"a history", `{"spec":{"revisionHistoryLimit":1}}`, onlySpec},
	})
	b.try(t, deployment, types.MergePatchType, []patched{{"a pause", `{"spec":{"paused":true}}`, onlySpec}})
	b.createsAndDeletesNothing(t, cluster, set, deployment)
}

func (b *baseBed) holdsItToTheWorkload(t *testing.T, o client.Object) {
	template := func(patch string) string { return `{"spec":{"template":` + patch + `}}` }
	pod := func(patch string) string { return template(`{"spec":` + patch + `}`) }
	container := func(name, patch string) string {
		return pod(`{"containers":[{"name":"` + name + `",` + patch + `}]}`)
	}
	its := func(patch string) string { return container("application-controller", patch) }
	b.try(t, o, types.MergePatchType, aboutAnyObject())
	b.try(t, o, types.StrategicMergePatchType, []patched{
		{"replicas", `{"spec":{"replicas":9}}`, ""},
		{"the env", its(`"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"9"}]`), ""},
		{"no env", its(`"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","$patch":"delete"}]`), ""},
		{"resources", its(`"resources":{"requests":{"cpu":"2"}}`), ""},
		{"a restart", template(`{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}`), ""},
		{"an annotation of the pods", template(`{"metadata":{"annotations":{"inject":"yes"}}}`), onlyRestart},
		{"a label of the pods", template(`{"metadata":{"labels":{"more":"yes"}}}`), onlyRestart},
		{"a finalizer of the pods", template(`{"metadata":{"finalizers":["example.com/a"]}}`), onlyRestart},
		{"an env by reference", its(`"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":null,"valueFrom":{"secretKeyRef":{"name":"argocd-secret","key":"x"}}}]`), onlyEnv},
		{"an env that is no number", its(`"env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"$(A)"}]`), onlyEnv},
		{"another env", its(`"env":[{"name":"A","value":"b"}]`), onlyEnv},
		{"a new env", its(`"env":[{"name":"HTTPS_PROXY","value":"http://mallory"}]`), onlyEnv},
		{"an env less", its(`"env":[{"name":"A","$patch":"delete"}]`), onlyEnv},
		{"an env of the sidecar", container("sidecar", `"env":[{"name":"A","value":"b"}]`), onlyEnv},
		{"an image", its(`"image":"mallory"`), onlyResources},
		{"an image of the sidecar", container("sidecar", `"image":"mallory"`), onlyResources},
		{"a command", its(`"command":["sh"]`), onlyResources},
		{"arguments", its(`"args":["--x"]`), onlyResources},
		{"an env of a Secret", its(`"envFrom":[{"secretRef":{"name":"argocd-secret"}}]`), onlyResources},
		{"a new container", container("new", `"image":"mallory"`), onlyResources},
		{"a container less", pod(`{"containers":[{"name":"sidecar","$patch":"delete"}]}`), onlyResources},
		{"a first container", pod(`{"initContainers":[{"name":"first","image":"mallory"}]}`), onlyContainers},
		{"a ServiceAccount", pod(`{"serviceAccountName":"default"}`), onlyContainers},
		{"a volume", pod(`{"volumes":[{"name":"a","emptyDir":{}}]}`), onlyContainers},
		{"a host's network", pod(`{"hostNetwork":true}`), onlyContainers},
	})
	told(t, b.planner.SubResource("scale").Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.DryRunAll), "")
}

// createsAndDeletesNothing even where somebody gives it the right.
func (b *baseBed) createsAndDeletesNothing(t *testing.T, there ...client.Object) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "all"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: b.user}}}
	b.must(t, b.person.Create(t.Context(), role))
	b.must(t, b.person.Create(t.Context(), binding))
	created := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "new", Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "argocd-cm"}}
	p := policyBed{}
	p.until(t, "the right is given", func() bool {
		err := b.planner.Create(t.Context(), created.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), neverDeletes)
	})
	for _, o := range there {
		told(t, b.planner.Delete(t.Context(), o, client.DryRunAll), neverDeletes)
		told(t, b.planner.DeleteAllOf(t.Context(), o, client.InNamespace(b.namespace), client.DryRunAll), neverDeletes)
	}
	told(t, b.planner.Create(t.Context(), settings.DeepCopy(), client.DryRunAll), twoMaps)
	b.must(t, b.person.Create(t.Context(), settings))
	settings.Data = map[string]string{"application.instanceLabelKey": "x"}
	told(t, b.planner.Update(t.Context(), settings, client.DryRunAll), twoMaps)
	told(t, b.planner.Delete(t.Context(), settings, client.DryRunAll), neverDeletes)
}

func (b *baseBed) holdsThePlannerToTheNudge(t *testing.T) {
	const only = "of an Application the planner writes the annotation argocd.argoproj.io/refresh and nothing else"
	var u unstructured.Unstructured
	u.SetAPIVersion("argoproj.io/v1alpha1")
	u.SetKind("Application")
	u.SetNamespace(b.namespace)
	u.SetName("guestbook")
	u.SetLabels(map[string]string{"team": "a"})
	u.SetAnnotations(map[string]string{"note": "a"})
	u.Object["spec"] = map[string]any{"project": "default", "destination": map[string]any{"server": "https://10.0.0.1"}}
	u.Object["status"] = map[string]any{"sourceType": "Kustomize"}
	b.must(t, b.person.Create(t.Context(), &u))
	refresh := func(value string) string {
		return `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":` + value + `}}}`
	}
	b.must(t, b.planner.Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(refresh(`"normal"`)))))
	b.try(t, &u, types.MergePatchType, []patched{
		{"the refresh taken back", refresh("null"), ""},
		{"another refresh", refresh(`"hard"`), ""},
		{"another annotation", `{"metadata":{"annotations":{"note":"b"}}}`, only},
		{"a new annotation", `{"metadata":{"annotations":{"notified.notifications.argoproj.io":"b"}}}`, only},
		{"one of ballast's", `{"metadata":{"annotations":{"ballast.argoproj.io/pin":"1"}}}`, only},
		{"an annotation less", `{"metadata":{"annotations":{"note":null}}}`, only},
		{"a label", `{"metadata":{"labels":{"team":"b"}}}`, noLabels},
		{"a finalizer", `{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`, noLabels},
		{"another cluster", `{"spec":{"destination":{"server":"https://mallory"}}}`, only},
		{"another project", `{"spec":{"project":"admins"}}`, only},
		{"a sync", `{"operation":{"sync":{"prune":true}}}`, only},
		{"a status", `{"status":{"sourceType":"Helm"}}`, only},
	})
}

// ownWrite is a write of a person's to a ConfigMap that is the planner's alone.
type ownWrite struct {
	change func(*corev1.ConfigMap)
	told   string // empty = accepted
}

const itsAlone = "what is in ballast-history and ballast-plan-status is the planner's alone: delete the ConfigMap, and the planner begins another one"

func (b *baseBed) keepsTheHistorysOneWriter(t *testing.T) {
	cases := map[string]ownWrite{
		"a note":                {change: annotated("note", 100)},
		"a long note":           {change: annotated("note", 220<<10), told: "metadata.annotations has"},
		"another record":        {change: func(cm *corev1.ConfigMap) { cm.BinaryData["records"] = []byte("forged") }, told: itsAlone},
		"a record more":         {change: func(cm *corev1.ConfigMap) { cm.BinaryData["more"] = []byte("forged") }, told: itsAlone},
		"no records":            {change: func(cm *corev1.ConfigMap) { cm.BinaryData = nil }, told: itsAlone},
		"text":                  {change: notes(1), told: itsAlone},
		"an immutable one":      {change: func(cm *corev1.ConfigMap) { cm.Immutable = ptr.To(true) }, told: "the ConfigMap stays mutable"},
		"a finalizer of others": {change: func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/a"} }},
	}
	b.keepsOneWriter(t, "ballast-history", "history", cases)
	b.keepsOneWriter(t, "ballast-plan-status", "status", cases)
}

// keepsOneWriter: nobody but the planner makes such a ConfigMap or writes its data.
func (b *baseBed) keepsOneWriter(t *testing.T, configMap, called string, cases map[string]ownWrite) {
	cm := b.planMap(func(cm *corev1.ConfigMap) {
		cm.Name, cm.BinaryData, cm.Annotations = configMap, map[string][]byte{"records": make([]byte, 900<<10)}, map[string]string{}
	})
	told(t, b.person.Create(t.Context(), cm.DeepCopy(), client.DryRunAll), itsAlone) // a backup, or one in the planner's place
	b.must(t, b.planner.Create(t.Context(), cm))
	for name, c := range cases {
		t.Run(called+" "+name, func(t *testing.T) {
			written := cm.DeepCopy()
			written.Data, written.Annotations = map[string]string{}, map[string]string{}
			c.change(written)
			told(t, b.person.Update(t.Context(), written.DeepCopy(), client.DryRunAll), c.told)
			if c.told == itsAlone {
				told(t, b.planner.Update(t.Context(), written, client.DryRunAll), "")
			}
		})
	}
	b.must(t, b.person.Delete(t.Context(), cm))
}
