#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Four processes on two hosts, started by hand with torchrun's variables (examples/cluster/torchrun-style.sh); also
# where the port is taken, without a secret, and with one that others can read.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
start_hosts 2
make_folder
export PATH=${regatta%/*}:$PATH
script=$root/examples/cluster/torchrun-style.sh

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
baseline = false
TOML
cd "$folder" || exit 1
(umask 077 && openssl rand -hex 32 >secret)

start() { # the script on both hosts
  on n0 "$script" 0 2 4 n0 x.toml --out results >out-0 2>&1 & first=$!
  on n1 "$script" 2 2 4 n0 x.toml >out-1 2>&1 & second=$!
}
both_end_well() {
  local status=0
  wait $first || status=$?
  wait $second || status=$?
  [ $status -eq 0 ] || cat out-0 out-1 >&2
  return $status
}

start
check "four processes on two hosts run" both_end_well
check "the result has both hosts, and ranks on each" of_result results/result.json \
  '[h["name"] for h in r["context"]["hosts"]] == ["n0", "n1"] and r["results"][0]["replicas_identical"]'
check "process 0 alone prints" [ ! -s out-1 ]

rm -r results
# The listener accepts and says nothing, as another service may.
on n0 python3 -c 'import socket, time
s = socket.create_server(("", 29500)); open("taken", "w").close(); time.sleep(600)' & listener=$!
check "a program listens on port 29500" eventually test -e taken
start
check "they run where MASTER_PORT is taken" both_end_well
check "and say which port they use" grep -q "port 29500 is taken; the coordinator listens on port 29501" out-0
kill $listener
wait $listener 2>/dev/null

refused() { # TEXT HOST COMMAND...: within 10 s, with exit code 2
  local text=$1 begin=$SECONDS status=0
  shift
  on "$@" >out-0 2>&1 || status=$?
  [ $status -eq 2 ] && [ $((SECONDS - begin)) -lt 10 ] && grep -q -- "$text" out-0 || { cat out-0; return 1; }
}
chmod 644 secret
check "a secret that others can read is refused" refused "chmod 600" n0 "$script" 0 1 2 n0 x.toml
rm secret
check "a secret that is missing is refused" refused "secret: .*No such file" n0 "$script" 0 1 2 n0 x.toml
check "no secret is refused" refused "REGATTA_SECRET_FILE is not set.*openssl rand" n0 \
  env RANK=1 WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 "$regatta" run x.toml
check "half of the variables are refused" refused "MASTER_ADDR is not set" n0 \
  env RANK=1 WORLD_SIZE=2 "$regatta" run x.toml
check "nothing is left" nothing_left
