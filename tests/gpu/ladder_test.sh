#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ladder.sh with fake rungs and a fake compute-sanitizer: the ladder stops at the first red rung, runs that one again
# under compute-sanitizer, and says what each rung proved.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "ladder_test: $*"; cat "$work/said"; exit 1; }
expect() { grep -q -- "$1" "$work/said" || fail "expected: $1"; }
reject() { ! grep -q -- "$1" "$work/said" || fail "not expected: $1"; }
# Runs a ladder whose rungs are the text; sets `code`.
climb() {
  rm -rf "$work/out"
  mkdir "$work/out"
  code=0
  PATH=$1 bash -c "set -uo pipefail; ladder_out=$work/out; source $here/ladder.sh; $2" >"$work/said" 2>&1 || code=$?
}

mkdir "$work/bin" "$work/none"
printf '#!/bin/sh\necho "========= Invalid write by kernel k"\nshift 4\necho "$@" >%s/sanitized\nexit 1\n' "$work" >"$work/bin/compute-sanitizer"
chmod +x "$work/bin/compute-sanitizer"
for tool in bash timeout tail tee grep head; do ln -s "$(command -v $tool)" "$work/none/$tool"; done
with=$work/bin:$PATH without=$work/none

rungs='rung one "the first thing" true; rung "rung two" "the second thing" bash -c "echo no GPU; exit 77"; '
climb "$with" "$rungs ladder_summary"
[ $code -eq 0 ] || fail "a green ladder ends with $code"
expect 'one  *passed .* the first thing'
expect 'rung two  *skipped .* nothing: no GPU'
[ -e "$work/out/rung-two.log" ] || fail "there is no log of rung two"
grep -q 'the first thing' "$work/out/summary.txt" || fail "summary.txt lacks rung one"
[ ! -e "$work/sanitized" ] || fail "a green rung ran under compute-sanitizer"

climb "$with" "$rungs rung three 'the third thing' bash -c 'echo wrong; exit 3'; rung four 'the fourth thing' true; ladder_summary"
[ $code -eq 1 ] || fail "a red ladder ends with $code"
expect 'three ... FAILED (3)'
expect '^wrong'
expect 'Invalid write by kernel k'
expect 'one  *passed .* the first thing'
reject 'four'
reject 'the third thing'
[ "$(cat "$work/sanitized")" = "bash -c echo wrong; exit 3" ] || fail "compute-sanitizer ran $(cat "$work/sanitized")"

# A program with two test cases, the second of which fails, and two layers.
cat >"$work/bin/cases" <<'PROGRAM'
#!/bin/bash
case "${REGATTA_LAYER:-} $*" in
"? "*) printf 'layer: dense\nlayer: conv, 3x3\n' ;;
"dense "* | "conv, 3x3 "*) echo "layer $REGATTA_LAYER" ;;
*--list-test-cases*) printf '[doctest] listing all test case names\n====\nadds, twice\nmultiplies\n====\n[doctest] 2\n' ;;
*"--test-case=adds* twice"*) exit 0 ;;
*"--test-case=multiplies"*) exit 4 ;;
*) exit 5 ;;
esac
PROGRAM
chmod +x "$work/bin/cases"
climb "$with" "layer_rungs layer cases; case_rungs kernels cases; ladder_summary"
[ $code -eq 1 ] || fail "a program with a red test case ends with $code"
expect 'layer: dense  *passed'
expect 'layer: conv, 3x3  *passed'
grep -q 'layer conv, 3x3' "$work/out/layer--conv--3x3.log" || fail "the second layer was not the one that ran"
expect 'kernels 1  *passed .* adds, twice'
expect 'kernels 2 ... FAILED (4)'
climb "$with" "case_rungs kernels true"
[ $code -eq 1 ] || fail "a program without test cases ends with $code"
climb "$with" "layer_rungs layer true"
[ $code -eq 1 ] || fail "a program without layers ends with $code"

climb "$without" "rung three 'the third thing' bash -c 'exit 3'"
[ $code -eq 1 ] || fail "without compute-sanitizer the ladder ends with $code"
expect 'compute-sanitizer is not installed'
expect 'three  *FAILED (3)'
echo passed
