#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# warnings.sh CC CXX [together]: compiles each public header as the first include of a file (with `together` those of C++ in
# one file), and the sources of the examples. Fails with each warning of the options below. The headers are found by -I,
# since compilers do not warn about headers that they find by -isystem. The C headers are compiled as each C and C++
# standard; the examples instantiate templates.
set -uo pipefail
cc=$1 cxx=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
warnings=(-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wmissing-field-initializers -Werror)
failed=0

check() { # WHAT COMPILER OPTION...
  local what=$1
  shift
  "$@" -fsyntax-only "${warnings[@]}" -I"$root/sdk/include" && return
  echo "error: $what: expected no warning of: $*"
  failed=1
}

cd "$root/sdk/include" || exit 1
for header in regatta/abi.h regatta/abi/*.h regatta/ext/*.h; do
  for standard in c99 c11 c17; do
    check "$header" "$cc" -std=$standard -pedantic -x c - <<<"#include <$header>"
  done
  for standard in c++98 c++11 c++14 c++17 c++20; do
    check "$header" "$cxx" -std=$standard -x c++ - <<<"#include <$header>"
  done
done
if [ "${3:-}" = together ]; then # that each header compiles alone is seen with the other compiler
  check "all headers" "$cxx" -std=c++20 -x c++ - <<<"$(printf '#include <%s>\n' regatta/*.hpp)"
else
  for header in regatta/*.hpp; do
    check "$header" "$cxx" -std=c++20 -x c++ - <<<"#include <$header>"
  done
fi
for source in "$root"/examples/*/*.cpp; do
  check "$source" "$cxx" -std=c++20 "$source"
done
for source in "$root"/examples/*/*.c; do
  check "$source" "$cc" -std=c99 -pedantic "$source"
done
exit $failed
