#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ./dev try-on RELEASE [COMMAND...]: runs COMMAND in a checkout of the last commit on a bare Debian of that release, in a
# folder that is removed afterwards. Without COMMAND it runs the first commands of the README. Needs root, and debootstrap,
# which ./dev installs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
release=${1:?usage: ./dev try-on RELEASE [COMMAND...]}
shift
[ "$(id -u)" -eq 0 ] || { echo "dev: try-on needs root: it makes a root folder with debootstrap" >&2; exit 1; }

# Runs in a new mount namespace, so that the mounts below disappear with this process, however it ends.
if [ -z "${REGATTA_TRY_ON:-}" ]; then
  folder=$(mktemp -d "${TMPDIR:-/var/tmp}/regatta-$release.XXXXXX")
  trap 'rm -rf --one-file-system "$folder"' EXIT
  trap 'exit 130' INT TERM HUP
  REGATTA_TRY_ON=$folder unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$release" "$@"
  exit
fi

target=$REGATTA_TRY_ON
echo "dev: making a bare Debian $release in $target" >&2
debootstrap --variant=minbase --include=ca-certificates,git "$release" "$target" >"$target.log" 2>&1 ||
  { tail -n 20 "$target.log" >&2; exit 1; }
rm -f "$target.log"
# Copy the settings with which apt reaches its archive from here, such as proxies.
cp /etc/resolv.conf "$target/etc/resolv.conf"
for f in /etc/apt/apt.conf /etc/apt/apt.conf.d/*proxy*; do
  [ ! -f "$f" ] || cp "$f" "$target/etc/apt/apt.conf.d/"
done
mount --bind "$target" "$target" # pivot_root needs a mount point
mount -t proc proc "$target/proc"
mount -t sysfs sysfs "$target/sys"
mount --rbind /dev "$target/dev"
mount -t tmpfs tmpfs "$target/dev/shm"
git clone -q "$root" "$target/root/regatta"
echo "dev: $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$target/etc/os-release"), $(git -C "$root" rev-parse --short HEAD)" >&2

# After pivot_root, unlike chroot, mount namespaces that a test makes have this root, too.
run() { # COMMAND: runs it in the checkout, without this machine's environment variables
  echo "dev: $release: $1" >&2
  unshare --mount --propagation private bash -ec '
    cd "$0" && mkdir -p .machine && pivot_root . .machine && umount -l /.machine && cd /root/regatta
    exec /usr/bin/env -i HOME=/root TERM="$1" LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$2"' \
    "$target" "${TERM:-dumb}" "$1" </dev/null
}
if [ $# -gt 0 ]; then
  run "$*"
else
  run "./dev run examples/quickstart.toml"
  run "./dev run examples/vgg16-cifar.toml"
  run "./dev test"
fi
