# Stands in for all images of a control plane, and for the one that holds the namespaces of a pod.
FROM debian-base
RUN apt-get update && apt-get install --yes --no-install-recommends iptables conntrack
COPY kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns /usr/local/bin/
ENTRYPOINT ["sh", "-c", "[ $# = 0 ] && exec sleep infinity; exec coredns \"$@\"", "-"]
