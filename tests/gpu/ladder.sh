# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# A ladder of tests, to be sourced: each rung relies only on the rungs before it. The first red rung ends
# the program with exit code 1, after a second run of that rung under compute-sanitizer, where that is installed.
# ladder_out is the folder for logs, which must exist.
ladder_rungs=()

# rung NAME PROVES COMMAND...: runs a command for at most 20 minutes. Exit code 0: it passed; 77: it was skipped.
rung() {
  local name=$1 proves=$2 log=$ladder_out/${1//[^A-Za-z0-9_.]/-}.log begin=$SECONDS code=0 result
  shift 2
  printf '%s ... ' "$name"
  timeout 1200 "$@" >"$log" 2>&1 || code=$?
  case $code in
  0) result=passed ;;
  77) result=skipped proves="nothing: $(tail -n 1 "$log")" ;;
  *) result="FAILED ($code)" proves="nothing; see $log" ;;
  esac
  printf '%s\n' "$result"
  ladder_rungs+=("$(printf '%-26s %-12s %5d s   %s' "$name" "$result" $((SECONDS - begin)) "$proves")")
  case $code in 0 | 77) return ;; esac
  tail -n 20 "$log"
  ladder_sanitize "$log" "$@"
  ladder_summary
  exit 1
}

# Runs the command of the red rung again under compute-sanitizer, which names the kernel and the line of a bad access.
ladder_sanitize() { # LOG COMMAND...
  local log=${1%.log}-sanitizer.log
  shift
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not installed: it comes with the CUDA toolkit"
    return
  fi
  echo "again under compute-sanitizer: $log"
  timeout 3600 compute-sanitizer --target-processes all --error-exitcode 1 "$@" >"$log" 2>&1 || true
  grep '^=========' "$log" | head -n 20 || true
}

# Prints every rung that was run, with what it proved, and keeps it in summary.txt.
ladder_summary() {
  printf '\n'
  printf '%s\n' "${ladder_rungs[@]}" | tee "$ladder_out/summary.txt"
}
