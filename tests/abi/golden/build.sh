#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/abi/golden/build.sh BUILD FOLDER: builds the plugins of examples/ against an installation of the release build in
# BUILD, and writes them, stripped, to FOLDER, with their hashes in SHA256SUMS. Run it once for a version of the plugin
# interface, when that version is released; what it wrote never changes afterwards.
set -euo pipefail
[ $# -eq 2 ] || { sed -n 4,6p "$0" >&2; exit 2; }
build=$(realpath "$1")
folder=$(realpath -m "$2")
examples=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../../examples")
[ ! -e "$folder" ] || { echo "$folder exists: plugins of a released version never change" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
mkdir -p "$folder"
for example in "$examples"/custom_*/; do
  name=$(basename "$example")
  cmake -S "$example" -B "$work/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" >>"$work/log"
  cmake --build "$work/$name" >>"$work/log"
  find "$work/$name" -name '*.so' -exec cp {} "$folder" \;
done
strip --strip-unneeded "$folder"/*.so
cd "$folder" && sha256sum -- *.so >SHA256SUMS && cat SHA256SUMS
