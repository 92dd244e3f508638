# shellcheck shell=bash
# Sourced by the tests of a deployment: a Debian machine in new namespaces, because nothing on this
# machine may be changed, all processes have to be killed, and the usual ports have to be free.
# Needs root, debootstrap, npm, git and openssl. Remove the cache when a version changes.

missing=()
[ "$(id --user)" = 0 ] || missing+=('root rights')
for program in debootstrap git npm openssl; do command -v "$program" > /dev/null || missing+=("$program"); done
[ ${#missing[@]} = 0 ] || { printf 'missing: %s\n' "${missing[@]}" >&2; exit 1; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${MACHINE_CACHE:-$root/node_modules/.cache/latchkey/machine}
work=$(mktemp -d /var/tmp/latchkey-machine.XXXXXX)
trap 'remove_machine; kill $(jobs -p) 2> /dev/null' EXIT
servers='postgres redis s3'
services='apps identity files avatar-worker gateway realtime'
# The address in the machine of 127.0.0.1 on the host.
outside=172.31.250.1
failures=0
# This checkout, with its changes to tracked files.
current=$(git -C "$root" stash create | grep . || echo HEAD)
node_image=$(sed -n 's/^ARG NODE_IMAGE=//p' "$root/deploy/Dockerfile")
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian$')

# A Debian of the given suite in $cache/$1, with Node.js and npm where their official image has them.
install_root() { # name, suite, packages
  local folder=$cache/$1
  [ -e "$folder.done" ] && return
  mkdir -p "$cache/debs"
  # The script `sid` suits each suite, also those that an older debootstrap does not know.
  within 300 sh -c 'rm -rf "$1" && debootstrap --variant=minbase --cache-dir="$2/debs" --include="ca-certificates,$3" \
    "$4" "$1" "$5" sid' sh "$folder" "$cache" "$3" "$2" "$mirror"
  npm install --global --prefix "$folder/usr/local" --no-audit --no-fund npm@11 \
    "node@$(sed -n 's/^  node: //p' "$root/pnpm-workspace.yaml")"
  cp --remove-destination "$(readlink --canonicalize "$folder/usr/local/bin/node")" "$folder/usr/local/bin/node"
  # A network may have a private authority.
  cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"
  echo 'cafile=/etc/ssl/certs/ca-certificates.crt' > "$folder/root/.npmrc"
  touch "$folder.done"
}

# Debian trixie for base images, and forky, with what the tests need, for the machine.
start_machine() {
  install_root base trixie curl
  install_root machine forky docker.io,docker-cli,docker-compose,docker-buildx,iptables,iproute2,passt,curl,git,jq,procps,\
awscli,golang-go,containerd,containernetworking-plugins,conntrack,docker-registry,ipset
  boot
  install_go grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
}

boot() {
  boot_alone
  # The way out, by sockets of this machine.
  nsenter --target "$(< "$work/init")" --mount --pid --root pasta --config-net --netns-only --netns /run/net --runas 0 \
    --tcp-ports none --udp-ports none --tcp-ns none --udp-ns none --map-host-loopback "$outside" --quiet
}

# The machine writes to $work, as to a disk.
boot_alone() {
  mkdir -p "$work"/{upper,overlay,root,docker,containerd,kubelet}
  unshare --mount --uts --ipc --net --pid --fork --kill-child bash -euc '
    cd "$1"
    mount -t overlay overlay -o "lowerdir=$2/machine,upperdir=upper,workdir=overlay" root
    mount -t sysfs sysfs root/sys
    mount --rbind /sys/fs/cgroup root/sys/fs/cgroup
    mount --bind /dev root/dev
    mount -t devpts -o newinstance,ptmxmode=0666 devpts root/dev/pts
    for name in dev/shm run tmp; do mount -t tmpfs tmpfs "root/$name"; done
    mount -t proc proc root/proc
    for name in docker containerd kubelet; do
      mount --mkdir --bind "$name" "root/var/lib/$name"
      mount --make-shared "root/var/lib/$name"
    done
    cp /etc/resolv.conf root/etc/
    touch root/run/net
    mount --bind /proc/self/ns/net root/run/net
    hostname machine
    cd root
    mkdir -p src host
    # Not just chroot: programs that enter the namespace of a container would see our files.
    pivot_root . host
    exec chroot . sh -c "umount --lazy host && cd src && exec tini-static -- sleep infinity"
  ' bash "$work" "$cache" &> "$work/machine.log" &
  within 30 pgrep --parent $! --exact tini-static > "$work/init" || { cat "$work/machine.log"; return 1; }
}

# Runs a command in the machine, in the folder /src.
on() {
  nsenter --target "$(< "$work/init")" --mount --uts --ipc --net --pid --root \
    env --ignore-environment --chdir=/src HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

kill_machine() {
  kill -KILL "$(< "$work/init")"
  while kill -0 "$(< "$work/init")" 2> /dev/null; do sleep 0.1; done
}

remove_machine() {
  # Each step, whatever the others do.
  set +e
  for work in "$work/second" "$work"; do [ -s "$work/init" ] && kill_machine; done
  find /sys/fs/cgroup -depth -type d -path "*/${work##*/}*" -exec rmdir {} +
  rm -rf "$work"
} 2> /dev/null

# Puts a Go program where the machine finds it, built once. Its version pins those of its modules.
install_go() { # name, package@version, options of `go mod edit` that require it otherwise
  if [ ! -e "$cache/go/$1" ]; then
    # The proxy has this fork, the database of checksums does not.
    on env GONOSUMDB=github.com/k3s-io/kube-router GOFLAGS="-modcacherw '-ldflags=${ldflags:-}'" bash -euc '
      mkdir --parents /root/build && cd /root/build && rm -f go.*
      go mod init build
      if [ $# = 1 ]; then go get "$1"; else go mod edit "${@:2}"; fi
      go build -mod=mod -o built "${1%@*}"' bash "${@:2}"
    mkdir -p "$cache/go"
    on cat /root/build/built | install /dev/stdin "$cache/go/$1"
  fi
  on install /dev/stdin "/usr/local/bin/$1" < "$cache/go/$1"
}

# Puts a commit into a folder of the machine.
check_out() { # commit, folder
  on mkdir -p "$2"
  git -C "$root" archive "$1" | on tar --extract --directory "$2"
}

start_docker() {
  on dockerd --cgroup-parent="/${work##*/}" &>> "$work/dockerd.log" &
  within 60 on docker info > /dev/null
}

# Images under the names that deploy/ uses, as there may be no registry.
build_images() {
  install_go versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0
  if [ ! "$cache/images.tar" -nt "$root/deploy/test/machine/Dockerfile" ]; then
    mapfile -t images < <(sed -n 's/^    image: //p' "$root/docker-compose.yml")
    tar -C "$cache/base" --create . | on docker import - debian-base
    on docker tag debian-base "$node_image"
    tar -C "$root/deploy/test/machine" --create Dockerfile -C "$cache/go" versitygw | on docker build --tag servers -
    for image in "${images[@]}"; do on docker tag servers "$image"; done
    on docker save debian-base "$node_image" "${images[@]}" > "$cache/images.tar.new"
    mv "$cache/images.tar.new" "$cache/images.tar"
  fi
  on docker load --quiet < "$cache/images.tar"
}

# Runs a command of the documents, and fails unless one of them has it.
documented() { # command, what precedes it
  cat "$root"/docs/{deployment,backup}.md | tr -s '\\\n ' ' ' | grep --quiet --fixed-strings "$1" ||
    { echo "no document has: $1"; return 1; }
  on bash -euo pipefail -c "${2:-}$1"
}

# Waits until a command succeeds.
within() { # seconds, command
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    [ $SECONDS -lt $end ] || { echo "not within $1 s: ${*:2}"; return 1; }
    sleep 0.5
  done
}

is_uploading() { query "select 1 from files.upload_intent" | grep 1; }
# Runs a command during an upload, which has to succeed. Needs the functions client and query.
upload_outlasts() { # name, seconds, command
  on bash -c 'head -c 20M /dev/urandom > /root/slow'
  client bob upload /root/slow "$1" --limit-rate $((20480 / $2))K > "$work/upload.log" &
  local upload=$!
  within 20 is_uploading
  "${@:3}"
  wait $upload
  grep '"success":true' "$work/upload.log"
}

fails() { if "$@"; then echo "did not fail: $*"; return 1; fi; }

# Runs a command, and prints whether it succeeded, with its time and its last line.
check() { # what it shows, command
  local start=$SECONDS result=ok
  rm -f "$work/check.log"
  # Not in a condition: functions stop at their first failing command.
  set +e
  (set -e; "${@:2}") &>> "$work/check.log"
  [ $? -eq 0 ] || { result=FAILED; failures=$((failures + 1)); }
  set -e
  printf '%-6s %5d s  %s  (%s)\n' $result $((SECONDS - start)) "$1" \
    "$(tail -n 1 "$work/check.log" | tr -d '\0' | cut -c 1-130)"
  [ $result = ok ] || tail -n 40 "$work/check.log" | sed 's/^/    | /'
}

# Runs the functions test_…, in the order of their file. A server on the host is the outside.
run_tests() {
  node -e "require('node:net').createServer((socket) => socket.end()).listen(9999, '127.0.0.1')" &
  for folder in /src /clients; do check_out "$current" $folder; done
  for name in $(sed -n 's/^test_\(.*\)() {.*/\1/p' "$0"); do check "${name//_/ }" "test_$name"; done
  printf '\n%s failed, %s min\n' $failures $((SECONDS / 60))
  [ $failures = 0 ]
}
