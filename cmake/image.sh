#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ./dev image: writes build/image/root.tar, the root folder of a container image (Containerfile): Debian of this
# machine's release with the essential packages, the libraries that the program of build/release and its plugins need,
# and their installation in /usr. Takes mmdebstrap, which ./dev installs; without root it uses user namespaces. As root,
# it then runs the program in that root.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
product=$root/build/release
out=$root/build/image

# Runs what the image is for, in a new mount namespace, so that the mounts disappear with this process.
if [ "${1:-}" = try ]; then
  target=$2
  mount -t proc proc "$target/proc"
  mount -t tmpfs tmpfs "$target/tmp"
  mount -t tmpfs tmpfs "$target/dev"
  for device in null zero full random urandom; do
    touch "$target/dev/$device"
    mount --bind "/dev/$device" "$target/dev/$device"
  done
  mkdir "$target/dev/shm"
  mount -t tmpfs tmpfs "$target/dev/shm"
  run() { chroot "$target" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"; }
  run regatta list >"$target/tmp/list" || { cat "$target/tmp/list"; exit 1; }
  run regatta run /usr/share/doc/regatta/examples/quickstart.toml --out /tmp/r --progress never --log error \
    --set measure.steps=5 --set measure.repeats=1 --sweep transport.plugin=shm,tcp
  exit
fi

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
command -v dpkg >/dev/null && [ -n "$codename" ] ||
  { echo "dev: image needs a Debian: the root has the libraries that the program was built with" >&2; exit 1; }

libraries_of() { # FILE: the files of all libraries that it needs, directly or not
  ldd "$1" 2>/dev/null | awk '/=> \//{ print $3 }' | xargs -r readlink -f
}
package_of() { # FILE; dpkg may know it without /usr, from before /lib became a link
  { dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}" 2>/dev/null; } | cut -d: -f1
}
# Plugins whose libraries are not Debian's (CUDA) are left out: they could not be loaded.
needed=() left_out=()
for file in "$product/bin/regatta" "$product"/lib/regatta/*.so; do
  packages=()
  for library in $(libraries_of "$file"); do
    package=$(package_of "$library") || package=
    packages+=("$package")
    [ -n "$package" ] || { left_out+=("$(basename "$file")"); packages=(); break; }
  done
  needed+=("${packages[@]}")
done
[ "${left_out[0]:-}" != regatta ] ||
  { echo "dev: the program needs libraries that are not Debian's: ldd build/release/bin/regatta" >&2; exit 1; }
[ ${#left_out[@]} -eq 0 ] || echo "dev: without ${left_out[*]}, whose libraries are not Debian's (docs/gpu.md)" >&2
include=$(printf '%s\n' "${needed[@]}" | sort -u | paste -sd,)

# Settings with which apt reaches its archive from here, such as proxies.
options=()
for f in /etc/apt/apt.conf /etc/apt/apt.conf.d/*proxy*; do
  [ ! -f "$f" ] || options+=(--aptopt="$f")
done
mkdir -p "$out"
log=$out/image.log
echo "dev: making build/image/root.tar of Debian $codename" >&2
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct) \
  mmdebstrap --variant=essential --include="$include" "${options[@]}" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook="DESTDIR=\"\$1\" cmake --install '$product' --prefix /usr --strip" \
  "${left_out[@]/#/--customize-hook=rm \"\$1\"/usr/lib/regatta/}" \
  "$codename" "$out/new.tar" >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; echo "dev: the root could not be made; the whole log is build/image/image.log" >&2; exit 1; }
mv "$out/new.tar" "$out/root.tar"
echo "dev: $(du -h "$out/root.tar" | cut -f1); next: podman build -t regatta -f Containerfile build/image" >&2

[ "$(id -u)" -eq 0 ] || { echo "dev: not tried: that needs root" >&2; exit 0; }
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/regatta-image.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
trap 'exit 130' INT TERM HUP
tar -C "$folder" --exclude='./dev/*' -xf "$out/root.tar"
echo "dev: running regatta in it" >&2
unshare --mount --propagation private --pid --fork --kill-child bash "${BASH_SOURCE[0]}" try "$folder"
