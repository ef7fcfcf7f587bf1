#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# warnings.sh CC CXX [together]: compiles each public header as the first include of a file (with `together` those of C++
# in one file), and the sources of the examples and templates. Fails with each warning of the options below. The headers
# are found by -I, since compilers do not warn about headers that they find by -isystem. The C headers are compiled one
# by one in the oldest C and C++ standard and together in each later one; the examples instantiate templates.
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
c_headers=(regatta/abi.h regatta/abi/*.h regatta/ext/*.h)
all_c_headers=$(printf '#include <%s>\n' "${c_headers[@]}")
for header in "${c_headers[@]}"; do
  check "$header" "$cc" -std=c99 -pedantic -x c - <<<"#include <$header>"
  check "$header" "$cxx" -std=c++98 -x c++ - <<<"#include <$header>"
done
for standard in c11 c17; do
  check "all C headers as $standard" "$cc" -std=$standard -pedantic -x c - <<<"$all_c_headers"
done
for standard in c++11 c++14 c++17 c++20; do
  check "all C headers as $standard" "$cxx" -std=$standard -x c++ - <<<"$all_c_headers"
done
if [ "${3:-}" = together ]; then # that each header compiles alone is seen with the other compiler
  check "all headers" "$cxx" -std=c++20 -x c++ - <<<"$(printf '#include <%s>\n' regatta/*.hpp)"
else
  for header in regatta/*.hpp; do
    check "$header" "$cxx" -std=c++20 -x c++ - <<<"#include <$header>"
  done
fi
for source in "$root"/examples/*/*.cpp "$root"/sdk/templates/*/*.cpp; do
  check "$source" "$cxx" -std=c++20 "$source"
done
check "a strategy without parameters" "$cxx" -std=c++20 -x c++ - <<'END'
#include <regatta/strategy.hpp>
struct idle {
  struct parameters {};
  static constexpr auto fields = rg::fields();
  idle(rg::comm&, const parameters&) {}
  static void plan(const rg_cluster&, const parameters&, rg_plan&) {}
};
std::span<const rg_param> parameters_of_idle() { return rg::parameter_table<idle>(); }
END
for source in "$root"/examples/*/*.c; do
  check "$source" "$cc" -std=c99 -pedantic "$source"
done
exit $failed
