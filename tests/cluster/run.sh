#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [PATTERN]: runs the tests *_test.sh and *_test.py of this folder whose names match, one after the other, and checks after
# each that it has left no process, interface, mount, cgroup or file.
set -uo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
mark=REGATTA_CLUSTER_TEST=$$ # in the environment of the tests' processes
TMPDIR=$(mktemp -d)
export TMPDIR REGATTA_CLUSTER_ALL=1 # the tests that can be shorter run all of their cases
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM HUP

machine_state() {
  ip -o link | sed 's/^[0-9]*: \([^:]*\):.*/interface \1/'
  ip -o address | sed 's/^[0-9]*: \([^ ]* *[^ ]* *[^ ]*\).*/address \1/'
  cut -d' ' -f5- /proc/self/mountinfo | sed 's/^/mount /'
  ls -d /sys/fs/cgroup/regatta-hosts-* /sys/fs/cgroup/*/regatta-hosts-* 2>/dev/null
  ls -d /srv/* /etc/slurm/* /etc/ssh/* /etc/ssh/ssh_config.d/* /run/* /var/spool/slurm* ~/.ssh ~/.ssh/* /tmp/ompi.* \
    /tmp/*pmix* /tmp/slurm* 2>/dev/null | sed 's/^/file /'
  sha256sum /etc/hosts
  ls -A "$TMPDIR"
}
processes_left() { # those that have inherited the mark, whatever namespace they are in
  local file
  for file in $(grep -lzx "$mark" /proc/[0-9]*/environ 2>/dev/null); do
    echo "process $(tr '\0' ' ' <"${file%environ}cmdline" 2>/dev/null) ($file)"
  done
}

passed=0 failed=0 skipped=0 failures=()
before=$(machine_state)
for test in "$folder"/*_test.sh "$folder"/*_test.py; do
  name=$(basename "${test%.*}")
  [[ $name =~ ${1:-} ]] || continue
  echo "== $name"
  begin=$SECONDS status=0
  env "$mark" "$test" || status=$?
  echo "== $name: $((SECONDS - begin)) s"
  left=$(processes_left; diff <(echo "$before") <(machine_state) | grep '^[<>]')
  if [ -n "$left" ]; then
    echo "FAILED: $name has left (>) or removed (<):"
    echo "$left"
    before=$(machine_state) # not the fault of the tests after it
    status=1
  fi
  case $status in
  0) passed=$((passed + 1)) ;;
  77) skipped=$((skipped + 1)) ;;
  *) failed=$((failed + 1)) failures+=("$name") ;;
  esac
done
[ $failed -eq 0 ] || echo "failed: ${failures[*]}"
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test matches \"${1:-}\""; exit 1; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
