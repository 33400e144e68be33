package discover

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostSources is how many of a container's envFrom are looked through: each is a read in every cycle.
const mostSources = 16

// errUnseen stands for a value that no ConfigMap shows.
var errUnseen = errors.New("it stands in no ConfigMap that can be read")

// said is what a variable's reference holds, as the kubelet would give it to a pod that starts now: empty where the
// reference is optional and leads nowhere. Nil: it is no ConfigMap's, or may not be read. A Secret is never read for it.
func said(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (*string, error) {
	value, err := refer(ctx, r, namespace, c, name)
	if errors.Is(err, errUnseen) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &value, nil
}

func refer(ctx context.Context, r client.Reader, namespace string, c corev1.Container, name string) (string, error) {
	if e := lastEntry(c, name); e != nil {
		if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			return "", errUnseen
		}
		ref := e.ValueFrom.ConfigMapKeyRef
		data, err := readConfigMap(ctx, r, namespace, ref.Name)
		value, found := data[ref.Key]
		if required := !ptr.Deref(ref.Optional, false); err == nil && !found && required {
			err = errUnseen // a pod that starts now does not run; those that run started with a value
		}
		return value, err
	}
	if len(c.EnvFrom) > mostSources {
		return "", errUnseen
	}
	for _, source := range slices.Backward(c.EnvFrom) { // the last one that has it
		key, ok := unprefixed(name, source.Prefix)
		switch {
		case !ok:
			continue
		case source.ConfigMapRef == nil:
			return "", errUnseen
		}
		data, err := readConfigMap(ctx, r, namespace, source.ConfigMapRef.Name)
		if err != nil {
			return "", err
		}
		if value, found := data[key]; found {
			return value, nil
		}
	}
	return "", nil
}

// unprefixed is the key that a source with this prefix gives a variable; false: it gives it by none.
func unprefixed(name, prefix string) (string, bool) {
	key, ok := strings.CutPrefix(name, prefix)
	return key, ok && key != ""
}
