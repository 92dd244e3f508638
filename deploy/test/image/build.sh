#!/bin/sh
# Builds the image without a container engine, as root on Debian, with `apt-get install buildah debootstrap`: the base image is made here, of
# Debian and the Node.js of node_modules, under the name that the Dockerfile asks for.
#
#   deploy/test/image/build.sh WORK_DIR     # prints the folder of the image's root file system
set -eu
cd "$(dirname "$0")/../../.."
work=$1
mkdir -p "$work"

run_buildah() {
  BUILDAH_ISOLATION=chroot buildah --root "$work/storage" --runroot "$work/run" "$@"
}

base=$(sed -n 's/^ARG NODE_IMAGE=//p' deploy/Dockerfile)
if ! run_buildah inspect --type image "$base" > /dev/null 2>&1; then
  rm -rf "$work/base"
  mkdir -p "$work/base"
  debootstrap --variant=minbase trixie "$work/base/debian" http://deb.debian.org/debian >&2
  rm -rf "$work/base/debian/var/lib/apt/lists" "$work/base/debian/var/cache/apt"
  cp -L node_modules/node/bin/node "$work/base/node"
  cp -r "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$work/base/npm"
  # A machine behind a proxy of its own has its certificate here.
  cp /etc/ssl/certs/ca-certificates.crt "$work/base/ca-certificates.crt"
  cat > "$work/base/Dockerfile" << 'EOF'
FROM scratch
COPY debian/ /
COPY node /usr/local/bin/node
COPY npm/ /usr/local/lib/node_modules/npm/
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
EOF
  run_buildah build --tag "$base" "$work/base" >&2
fi

# A copy, so that nothing changes while it is read.
rm -rf "$work/context"
mkdir "$work/context"
git ls-files --cached --others --exclude-standard | tar -c --ignore-failed-read -T - | tar -x -C "$work/context"
run_buildah build --layers --format docker --pull-never --build-arg REVISION="$(git rev-parse HEAD)" --file "$work/context/deploy/Dockerfile" \
  --tag latchkey:test "$work/context" >&2
run_buildah mount "$(run_buildah from --pull-never localhost/latchkey:test)"
