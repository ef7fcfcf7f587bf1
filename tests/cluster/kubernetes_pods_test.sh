#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The objects of `regatta kubernetes`, run as pods on four test hosts: their command line, variables, secret, file and
# names. Also with a name of pod 0 that is known only after the others have started.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
start_hosts 4
make_folder
export REGATTA_BIN=${regatta%/*}

experiment <<TOML
[cluster]
workers = 4
pin = false
[strategy]
plugin = "allreduce"
[transport]
plugin = "auto"
[measure]
warmup = 1
steps = 5
repeats = 1
TOML
"$regatta" kubernetes "$folder/x.toml" --image regatta:test --name try --format json >"$folder/objects.json"
check "regatta kubernetes prints the objects" of_result "$folder/objects.json" 'len(r["items"]) == 4'

make_name_known() { # POD HOST...: to the hosts, as the headless service does
  local pod=$1 host
  shift
  for host; do on "$host" sh -c "echo 10.77.0.$((pod + 1)) try-$pod.try >>/etc/hosts"; done
}

start_pods() {
  local k
  pods=()
  for k in 0 1 2 3; do
    on n$k "$root/tests/cluster/launchers/pod.py" "$folder/objects.json" $k >"$folder/out-$k" 2>"$folder/log-$k" &
    pods+=($!)
  done
}

check_result() { # TEXT: the pods end in order, and the log of pod 0 has one JSON document
  local k all=0
  for k in 0 1 2 3; do wait "${pods[k]}" || all=1; done
  check "$1: all pods end with exit code 0" [ $all -eq 0 ]
  [ $all -eq 0 ] || tail -n 5 "$folder"/log-*
  cat "$folder/log-0" "$folder/out-0" | sed -n '/^{$/,/^}$/p' >"$folder/result.json" # as in docs/cluster.md
  check "$1: pod 0 prints a complete result of four hosts" of_result "$folder/result.json" \
    '([h["name"] for h in r["context"]["hosts"]] == ["try-0", "try-1", "try-2", "try-3"] and
     r["results"][0]["status"] == "ok" and r["results"][0]["replicas_identical"])'
  check "$1: regatta report reads it" "$regatta" report "$folder/result.json" >/dev/null
  check "$1: the other pods print no result" [ "$(cat "$folder"/out-[123] | wc -c)" -eq 0 ]
  check "$1: nothing is left" nothing_left
}

start_pods
sleep 5 # pod 0 is being scheduled: no name server knows its name
make_name_known 0 n0 n1 n2 n3
check_result "a late name"
check "pods have waited for it" is "$SECONDS >= 5"
if [ -n "${REGATTA_CLUSTER_ALL:-}" ]; then
  start_pods
  check_result "a known name"
fi
secret=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["items"][0]["stringData"]["secret"])' \
  "$folder/objects.json")
check_fails "the secret stands in no log and no result" grep -qF "$secret" "$folder"/log-* "$folder"/out-*
