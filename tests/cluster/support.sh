# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the tests of this folder. Sets root and hosts (the tool), and gives the functions below. A cluster has the
# name of the test and the number of its process; it is taken down at the end, or by the next run if this is killed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
hosts=$root/tests/cluster/hosts/hosts.py
test_name=$(basename "$0" .sh)
export REGATTA_HOSTS=$test_name-$$
failures=0
checks=0

skip() { # REASON
  echo "$test_name: skipped: $*"
  exit 77
}

check() { # TEXT COMMAND...: the command succeeds
  local text=$1
  shift
  checks=$((checks + 1))
  if "$@"; then
    echo "  $text"
  else
    failures=$((failures + 1))
    echo "FAILED: $text: $*"
  fi
}

check_fails() { # TEXT COMMAND...
  local text=$1
  shift
  check "$text" not "$@"
}

not() { ! "$@"; }

is() { # "N OPERATOR N ...": a comparison of numbers, also fractions
  awk "BEGIN { exit !($1) }"
}

logged() { # COMMAND...: with its output in the file `log`
  "$@" >log 2>&1
}

eventually() { # COMMAND...: succeeds within 20 s
  local limit=$((SECONDS + 20))
  until "$@"; do
    [ $SECONDS -lt $limit ] || return 1
    sleep 0.05
  done
}

need() { # COMMAND...: skips the test where one is missing
  local command
  for command in "$@"; do
    [ -n "$(command -v "$command")" ] || skip "$command is missing; ./dev cluster-test installs it"
  done
}

on() { # HOST COMMAND...
  "$hosts" exec "$@"
}

start_hosts() { # ARGUMENT OF up...
  "$hosts" down --stale "$test_name"
  trap finish EXIT
  trap 'exit 130' INT TERM HUP
  local status=0
  "$hosts" up "$@" >/dev/null || status=$?
  [ $status -ne 77 ] || { trap - EXIT; skip "no test hosts on this machine"; }
  [ $status -eq 0 ] || exit 1
}

build_pmix_hello() { # makes /srv/pmix_hello on the hosts, or says why not
  local flags
  flags=$(pkg-config --cflags --libs pmix 2>/dev/null) ||
    { echo "  PMIx: not checked, libpmix-dev or pkg-config is missing"; return 1; }
  # shellcheck disable=SC2086
  on n0 cc -o /srv/pmix_hello "$root/tests/cluster/launchers/pmix_hello.c" $flags
}

# --- Regatta on the hosts

regatta=${REGATTA:-$root/build/release/bin/regatta}
folder= # of files of this test; all hosts see it

make_folder() { # after start_hosts
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"; finish' EXIT
}

experiment() { # writes FOLDER/x.toml: a small model, then the lines of standard input
  {
    printf '%s\n' '[model]' 'plugin = "mlp"' 'input = [16]' 'hidden = [24]' '[train]' 'batch = 8'
    cat
  } >"$folder/x.toml"
}

long_experiment() { # of 8 cases of half a second with four workers, over transport $1
  experiment <<TOML
[cluster]
workers = 4
pin = false
[transport]
plugin = "$1"
[strategy]
plugin = "allreduce"
[sweep]
"experiment.seed" = [1, 2, 3, 4, 5, 6, 7, 8]
[measure]
warmup = 1
seconds = 0.5
repeats = 1
baseline = false
TOML
}

finished() { # FOLDER: prints the number of finished cases
  cat "$1/records.jsonl" 2>/dev/null | grep -c '"kind":"run"'
}
some_finished() { [ "$(finished "$1")" -ge 2 ]; }

start_processes() { # HOSTS EACH ARGUMENT...: EACH processes of `regatta ARGUMENT...` on each of HOSTS hosts
  # With Regatta's own variables. Process K writes FOLDER/process-K; wait_for_processes returns whether all succeeded.
  local many=$1 each=$2 k
  shift 2
  [ -e "$folder/secret" ] || (umask 077 && head -c 32 /dev/urandom >"$folder/secret")
  processes=()
  for ((k = 0; k < many * each; k++)); do
    on n$((k / each)) env REGATTA_RANK=$k REGATTA_RANKS=$((many * each)) REGATTA_COORDINATOR=n0:7117 \
      REGATTA_SECRET_FILE="$folder/secret" "$regatta" "$@" >"$folder/process-$k" 2>&1 &
    processes+=($!)
  done
}

wait_for_processes() {
  local process status=0
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  [ $status -eq 0 ] || tail -n 20 "$folder"/process-* >&2
  return $status
}

nothing_left() { # no process of Regatta is on any host
  local host left=0
  for host in $("$hosts" names); do
    on "$host" pgrep -af "$regatta|^/proc/self/exe" && left=1
  done
  return $left
}

of_result() { # FILE PYTHON: the condition holds for the result r of the file
  python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$@"
}

finish() {
  local status=$?
  trap - EXIT
  "$hosts" down || status=1
  [ $status -eq 0 ] && [ $failures -eq 0 ] || status=1
  echo "$test_name: $((checks - failures)) passed, $failures failed"
  exit $status
}
