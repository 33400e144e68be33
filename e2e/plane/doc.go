// Package plane brings up a Kubernetes control plane from Go modules alone:
// the released etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and kwok, without a container runtime, a network device or root. It exists
// so that the end-to-end tests and the demo run against the real thing.
//
// Everything listens on the loopback network. A plane owns one number N, and
// with it the pod network 10.N.0.0/16 and its image 127.N.0.0/16: the process
// behind pod IP 10.N.a.b listens on 127.N.a.b with the same port, and the API
// server reaches it through an egress proxy that maps the one to the other.
// Nothing in a manifest has to change for that.
//
// Linux only: it leans on all of 127/8 being local, and on Pdeathsig.
package plane
