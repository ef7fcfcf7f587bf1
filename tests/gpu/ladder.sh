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

# Runs each test case of a doctest program as a rung of its own, because an illegal access ends the CUDA context of its
# process.
case_rungs() { # NAME COMMAND...
  local name=$1 cases number
  shift
  mapfile -t cases < <("$@" --list-test-cases --no-version | grep -v '^\[doctest\]\|^===')
  [ ${#cases[@]} -gt 0 ] || rung "$name" "the program has test cases" false
  for number in "${!cases[@]}"; do
    rung "$name $((number + 1))" "${cases[number]}" "$@" --test-case="${cases[number]//,/*}" # a comma separates patterns
  done
}

# Runs a test of layers once for each layer (REGATTA_LAYER in tests/reference/layers_cases.hpp), each as a rung.
layer_rungs() { # NAME COMMAND...
  local name=$1 layers layer
  shift
  mapfile -t layers < <(REGATTA_LAYER='?' "$@" | sed -n 's/^layer: //p')
  [ ${#layers[@]} -gt 0 ] || rung "$name" "the program has layers" false
  for layer in "${layers[@]}"; do
    rung "$name: $layer" "it has the reference's values and gradients" env "REGATTA_LAYER=$layer" "$@"
  done
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
