# shellcheck shell=bash
# Sourced by compose-run: a Debian machine in new namespaces, because nothing on this
# machine may be changed, a power cut has to be repeatable, and the usual ports have to be free.
# Needs root, debootstrap, iproute2 and npm. Downloads stay in node_modules/.cache/latchkey/machine.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cache=${MACHINE_CACHE:-$root/node_modules/.cache/latchkey/machine}
work=$(mktemp -d /var/tmp/latchkey-machine.XXXXXX)
netns=${work##*/}
outside=172.31.250.1

node_version=$(sed -n 's/^  node: //p' "$root/pnpm-workspace.yaml")
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian$')
forwarding=$(cat /proc/sys/net/ipv4/ip_forward)

# A Debian of the given suite in $cache/$1, with Node.js and npm as in their official image.
install_root() { # name, suite, packages
  [ -e "$cache/$1.done" ] && return
  rm -rf "${cache:?}/$1"
  mkdir -p "$cache/debs"
  # The script `sid` suits each suite, also those that an older debootstrap does not know.
  debootstrap --variant=minbase --cache-dir="$cache/debs" --include="ca-certificates,$3" "$2" "$cache/$1" "$mirror" sid
  [ -d "$cache/node" ] || npm install --prefix "$cache/node" --no-audit --no-fund "node@$node_version" npm@11
  cp "$cache/node/node_modules/node/bin/node" "$cache/$1/usr/local/bin/"
  mkdir -p "$cache/$1/usr/local/lib/node_modules"
  cp -r "$cache/node/node_modules/npm" "$cache/$1/usr/local/lib/node_modules/"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$cache/$1/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$cache/$1/usr/local/bin/npx"
  # A network may have a private authority.
  cp /etc/ssl/certs/ca-certificates.crt "$cache/$1/etc/ssl/certs/"
  echo 'cafile=/etc/ssl/certs/ca-certificates.crt' > "$cache/$1/root/.npmrc"
  touch "$cache/$1.done"
}

# A network namespace with a way out through this machine.
create_network() {
  ip netns add "$netns"
  ip link add lkmachine type veth peer name eth0 netns "$netns"
  ip addr add "$outside/24" dev lkmachine
  ip link set lkmachine up
  ip -n "$netns" addr add 172.31.250.2/24 dev eth0
  ip -n "$netns" link set eth0 up
  ip -n "$netns" link set lo up
  ip -n "$netns" route add default via "$outside"
  echo 1 > /proc/sys/net/ipv4/ip_forward
  masquerade --append
}

masquerade() {
  chroot "$cache/machine" iptables -t nat "$1" POSTROUTING -s 172.31.250.0/24 ! -o lkmachine -j MASQUERADE
}

# Starts the machine. What it writes is in $work, as on a disk.
boot() {
  mkdir -p "$work"/{upper,overlay,root,docker,containerd,kubelet}
  # shellcheck disable=SC2016
  nsenter --net="/run/netns/$netns" unshare --mount --uts --ipc --pid --fork --kill-child bash -euc '
    cd "$1"
    mount -t overlay overlay -o "lowerdir=$2/machine,upperdir=upper,workdir=overlay" root
    mount -t sysfs sysfs root/sys
    mount --rbind /sys/fs/cgroup root/sys/fs/cgroup
    mount --bind /dev root/dev
    mount -t devpts -o newinstance,ptmxmode=0666 devpts root/dev/pts
    for name in dev/shm run tmp; do mount -t tmpfs tmpfs "root/$name"; done
    mount -t proc proc root/proc
    for name in docker containerd kubelet; do
      mkdir -p "root/var/lib/$name"
      mount --bind "$name" "root/var/lib/$name"
      mount --make-shared "root/var/lib/$name"
    done
    cp /etc/resolv.conf root/etc/
    hostname machine
    cd root
    mkdir -p src host
    # Not just chroot: programs that enter the namespace of a container would see our files.
    pivot_root . host
    exec chroot . sh -c "umount --lazy host && cd src && exec tini-static -- sleep infinity"
  ' bash "$work" "$cache" > "$work/machine.log" 2>&1 &
  until pgrep --parent $! > "$work/init" && [ "$(cat "/proc/$(< "$work/init")/comm")" = tini-static ]; do
    kill -0 $! || { cat "$work/machine.log"; return 1; }
    sleep 0.1
  done
}

# Runs a command in the machine, in the folder /src.
on() {
  nsenter --target "$(< "$work/init")" --mount --uts --ipc --net --pid --root \
    env --ignore-environment --chdir=/src HOME=/root PATH=/root/go/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# As a power cut: no process is asked.
cut_power() {
  local init
  init=$(< "$work/init")
  kill -KILL "$init"
  while kill -0 "$init" 2> /dev/null; do sleep 0.1; done
}

remove_machine() {
  # Each step, whatever the others do.
  set +e
  [ -s "$work/init" ] && cut_power
  ip netns del "$netns" 2> /dev/null
  ip link del lkmachine 2> /dev/null
  masquerade --delete 2> /dev/null
  echo "$forwarding" > /proc/sys/net/ipv4/ip_forward
  find /sys/fs/cgroup -depth -type d -path '*/latchkey-machine*' -exec rmdir {} + 2> /dev/null
  rm -rf "$work"
}

# Builds a Go program in the machine, once. Its version pins those of its modules.
install_go() { # name, package@version
  [ -e "$cache/go/$1" ] && return
  on env GOFLAGS=-modcacherw nice go install "$2"
  mkdir -p "$cache/go"
  on cat "/root/go/bin/$1" > "$cache/go/$1.new"
  chmod +x "$cache/go/$1.new"
  mv "$cache/go/$1.new" "$cache/go/$1"
}

# Puts a commit, or the files as they are, into a folder of the machine.
check_out() { # commit, folder
  on mkdir -p "$2"
  git -C "$root" archive "$1" | on tar --extract --directory "$2"
}

start_docker() {
  on dockerd --cgroup-parent=/latchkey-machine >> "$work/dockerd.log" 2>&1 &
  within 60 on docker info > /dev/null
}

stop_docker() {
  on pkill --exact dockerd
  while on pgrep --exact dockerd > /dev/null; do sleep 0.2; done
}

# Images under the names that deploy/ uses, as there may be no registry.
build_images() {
  if [ ! -e "$cache/images.tar" ]; then
    local image images
    mapfile -t images < <(sed -n 's/^    image: //p' "$root/docker-compose.yml")
    on mkdir -p /images
    tar -C "$cache/base" --create . | on docker import - debian-base
    tar -C "$root/deploy/test/machine" --create Dockerfile -C "$cache/go" versitygw | on tar -C /images --extract
    for image in "${images[@]}"; do
      on docker build --quiet --target "$(basename "${image%:*}")" --tag "$image" /images
    done
    image=$(sed -n 's/^ARG NODE_IMAGE=//p' "$root/deploy/Dockerfile")
    on docker tag debian-base "$image"
    on docker save "$image" "${images[@]}" > "$cache/images.tar.new"
    mv "$cache/images.tar.new" "$cache/images.tar"
  fi
  on docker load --quiet < "$cache/images.tar"
}

# Waits until a command succeeds.
within() { # seconds, command
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.5
  done
}

failures=0
report=

# Runs a command, and prints and records whether it succeeded, with its time and its last line.
check() { # what it shows, command
  local name=$1 start=$EPOCHREALTIME result=ok detail
  shift
  # Not in a condition: functions stop at their first failing command.
  set +e
  (set -e; "$@") > "$work/check.log" 2>&1
  [ $? -eq 0 ] || { result=FAILED; failures=$((failures + 1)); }
  set -e
  detail=$(tail -n 1 "$work/check.log" | tr -d '\0' | cut -c 1-130)
  report+=$(printf '%-6s %7.1f s  %s  (%s)' $result "$(bc <<< "$EPOCHREALTIME - $start")" "$name" "$detail")$'\n'
  printf '%s\n' "${report%$'\n'}" | tail -n 1
  [ $result = ok ] || tail -n 30 "$work/check.log" | sed 's/^/    | /'
}

finish() {
  printf '\n%s\n%s failed, %s min\n' "$report" $failures $((SECONDS / 60))
  [ $failures = 0 ]
}
