#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the lines of core/: of the engine, which is linked into the processes of a training run (its ranks and its
# coordinator), and of all folders. Code is what remains without empty lines and lines of comment. Fails if the engine
# has more lines of code than `most`.
set -euo pipefail
most=15000
cd "$(dirname "${BASH_SOURCE[0]}")/../core"

# The modules that core/CMakeLists.txt lists above "Beside the engine", without `data`.
mapfile -t engine < <(sed '/^# Beside the engine/,$d' CMakeLists.txt | sed -n 's/^regatta_core_module(\([a-z]*\).*/\1/p' | grep -vx data)

code=0
count() { # NAME FOLDER...
  local name=$1 lines
  shift
  lines=$(find "$@" -name '*.[ch]pp' -o -name '*.c' | xargs cat | wc -l)
  code=$(find "$@" -name '*.[ch]pp' -o -name '*.c' | xargs cat | grep -vcE '^\s*(//.*)?$')
  printf '%s: %d lines, %d of them code\n' "$name" "$lines" "$code"
}

count "engine" "${engine[@]}"
of_engine=$code
count "core" .
if [ "$of_engine" -gt "$most" ]; then
  echo "the engine has $((of_engine - most)) lines of code too many: at most $most; move what a run on one host does" \
       "not need to a folder beside the engine (docs/architecture.md)" >&2
  exit 1
fi
