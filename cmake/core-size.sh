#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the lines of core/: of the engine, which is linked into the processes of a training run (its ranks and its
# coordinator), and of all folders. Code is what remains without empty lines and lines of comment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../core"

# The modules that core/CMakeLists.txt lists above "Beside the engine", without `data`.
mapfile -t engine < <(sed '/^# Beside the engine/,$d' CMakeLists.txt | sed -n 's/^regatta_core_module(\([a-z]*\).*/\1/p' | grep -vx data)

count() { # NAME FOLDER...
  local name=$1 lines code
  shift
  lines=$(find "$@" -name '*.[ch]pp' -o -name '*.c' | xargs cat | wc -l)
  code=$(find "$@" -name '*.[ch]pp' -o -name '*.c' | xargs cat | grep -vcE '^\s*(//.*)?$')
  printf '%s: %d lines, %d of them code\n' "$name" "$lines" "$code"
}

count "engine" "${engine[@]}"
count "core" .
