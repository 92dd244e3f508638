# Stands in for all images of a control plane, for the one that holds the namespaces of a pod, and
# for Prometheus.
FROM debian-base
RUN apt-get update && apt-get install --yes --no-install-recommends iptables conntrack prometheus
COPY kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns prometheus-adapter /usr/local/bin/
ENTRYPOINT ["sh", "-c", "[ $# = 0 ] && exec sleep infinity; exec coredns \"$@\"", "-"]
