package plane

type kubelet struct{}

func (k *kubelet) wait() {}
