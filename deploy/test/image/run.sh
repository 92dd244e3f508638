#!/bin/sh
# Runs a program of the image as docker-compose.yml has it run: process 1 of its own, the image's user, no right, a root that can't be written to,
# and /tmp in memory. Called in a mount and process namespace of its own: unshare --mount --pid --fork run.sh ROOT HOSTS USER ARGUMENTS...
set -eu
root=$1 hosts=$2 user=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$root/tmp"
mount --bind "$hosts" "$root/etc/hosts"
mount -o remount,bind,ro "$root"
exec chroot "$root" /usr/bin/setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  env --chdir=/app node "$@"
