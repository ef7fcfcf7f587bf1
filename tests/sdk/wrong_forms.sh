#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wrong_forms.sh CXX: compiles wrong_forms.cpp, and expects the compiler's message for each mistake, and none without them.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
compile=("$1" -std=c++20 -fsyntax-only -I"$root/sdk/include" "$root/tests/sdk/wrong_forms.cpp")
if "$1" --version | grep -q clang; then compile+=(-ferror-limit=0); fi # as g++: all errors
"${compile[@]}" -DALL_RIGHT || { echo "error: expected no message about right forms"; exit 1; }
said=$("${compile[@]}" -w 2>&1)
failed=0
while IFS='|' read -r number message; do
  [[ $said == *"$message"* ]] || { echo "error: mistake $number: expected the message: $message"; failed=1; }
  [[ $said == *"wrong_$number::"* ]] || { echo "error: mistake $number: no message is about it"; failed=1; }
done <<'EOF'
1|on_gradient must be public and of this form: void on_gradient
2|there is no function on_gradients: the engine calls on_gradient
3|begin_step must be public and of this form: void or rg::task<> begin_step
4|talks must be public and of this form: static bool talks
5|finish must be public and of this form: rg::task<> finish
6|serve must be public and of this form: rg::task<> serve
7|now must be public and of this form: std::uint64_t now
8|remove must be public and of this form: void remove
9|rows must be public and of this form: void rows
10|compression::contraction needs: double delta
11|add must be public and of this form: void add
12|data_parallel needs, in public: rg::task<> exchange
13|update must be public and of this form: rg::task<> update
14|expose must be public and of this form: void expose
15|put and get need all of: static constexpr std::uint32_t key_bytes
16|a plugin's class must not be final
17|parameters need, in public: static constexpr auto fields
18|a strategy needs, in public: rg::comm& comm
19|sensors must be public and of this form: rg_sensors sensors
20|mark must be public and of this form: rg_fence mark(std::uint32_t stream), beside elapsed
21|a compressor with devices needs: void compress(const rg_run& on
22|a compressor with functions for devices needs the kinds
EOF
exit $failed
