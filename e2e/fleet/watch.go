package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Watch follows the cluster Secrets, argocd-cm and the application-controller's pods until the context ends. It returns
// once it has seen all that is there. After each change it calls changed, which may be nil.
func (e *Exporter) Watch(ctx context.Context, client kubernetes.Interface, changed func()) error {
	selecting := func(selector string) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(e.fleet.Namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	}
	secrets := selecting(SecretTypeLabel + "=cluster")
	pods := selecting(nameLabel + "=" + Workload)
	maps := selecting(partOfLabel + "=argocd")
	w := &watcher{
		exporter: e, changed: changed,
		secrets: secrets.Core().V1().Secrets().Lister(), pods: pods.Core().V1().Pods().Lister(),
		configMaps: maps.Core().V1().ConfigMaps().Lister(),
	}
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{
		secrets.Core().V1().Secrets().Informer(), pods.Core().V1().Pods().Informer(),
		maps.Core().V1().ConfigMaps().Informer(),
	} {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.look() }, UpdateFunc: func(_, _ any) { w.look() }, DeleteFunc: func(any) { w.look() },
		})
		if err != nil {
			return fmt.Errorf("watching namespace %q: %w", e.fleet.Namespace, err)
		}
		synced = append(synced, handler.HasSynced)
	}
	for _, factory := range []informers.SharedInformerFactory{secrets, pods, maps} {
		factory.Start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watching namespace %q: %w", e.fleet.Namespace, errors.Join(ctx.Err(), errNotSynced))
	}
	return nil
}

var errNotSynced = errors.New("the context ended before everything was seen")

type watcher struct {
	mu sync.Mutex // three informers call; a look must not overtake a later one

	exporter   *Exporter
	secrets    listers.SecretLister
	pods       listers.PodLister
	configMaps listers.ConfigMapLister
	changed    func()
}

// look shows the exporter the present state. Its caches are few and small: a whole look costs less than a diff.
func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	secrets, _ := w.secrets.List(labels.Everything()) // a lister over a cache has no errors
	pods, _ := w.pods.List(labels.Everything())
	w.exporter.observe(w.clusters(secrets), podsOf(pods))
	if w.changed != nil {
		w.changed()
	}
}

func (w *watcher) clusters(objects []*corev1.Secret) []Secret {
	var secrets []Secret
	inCluster := false
	for _, s := range objects {
		skip, _ := strconv.ParseBool(s.Annotations["argocd.argoproj.io/skip-reconcile"])
		secrets = append(secrets, Secret{
			UID: string(s.UID), Name: s.Name, Server: string(s.Data["server"]), Shard: string(s.Data["shard"]),
			Skip: skip,
		})
		inCluster = inCluster || trim(string(s.Data["server"])) == InClusterServer
	}
	if !inCluster && w.inClusterEnabled() {
		secrets = append(secrets, Secret{Name: w.exporter.fleet.InCluster.Name, Server: InClusterServer})
	}
	slices.SortFunc(secrets, func(a, b Secret) int { return cmp.Compare(a.Name, b.Name) })
	return secrets
}

func (w *watcher) inClusterEnabled() bool {
	cm, err := w.configMaps.ConfigMaps(w.exporter.fleet.Namespace).Get(configMap)
	return err != nil || cm.Data["cluster.inClusterEnabled"] != "false"
}

func podsOf(objects []*corev1.Pod) []pod {
	pods := make([]pod, 0, len(objects))
	for _, o := range objects {
		p := pod{name: o.Name, uid: string(o.UID), ip: o.Status.PodIP, replicas: replicasEnv(o)}
		for _, c := range o.Status.ContainerStatuses {
			p.restarts += c.RestartCount
			p.running = p.running || c.State.Running != nil
		}
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b pod) int { return cmp.Compare(a.name, b.name) })
	return pods
}

// replicasEnv reads what the controller reads; what is not a number counts as 1, which is everything.
func replicasEnv(o *corev1.Pod) int {
	for _, c := range o.Spec.Containers {
		for _, env := range c.Env {
			if env.Name == ReplicasEnv {
				n, _ := strconv.Atoi(env.Value)
				return max(n, 1)
			}
		}
	}
	return 1
}
