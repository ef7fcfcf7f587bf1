#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Regatta under Open MPI's mpirun over ssh, on two and four test hosts: transports tcp, auto and mpi, whose ranks are
# mpirun's processes; results that equal those of one host; and processes that are killed in the middle of a campaign.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need mpirun ssh sshd ssh-keygen pgrep
start_hosts 4
make_folder
check "openmpi.sh up" env SLOTS=4 "$root/tests/cluster/launchers/openmpi.sh" up
cd "$folder" || exit 1

mpirun_on_hosts() { # HOSTS ARGUMENT...: four processes on HOSTS hosts
  local many=$1 k
  shift
  rm -f hostfile
  for ((k = 0; k < many; k++)); do echo "n$k slots=$((4 / many))" >>hostfile; done
  on n0 timeout -k 5 100 mpirun --allow-run-as-root --hostfile hostfile --bind-to none "$@"
}

experiment <<TOML
kernels = "fixed"
[cluster]
workers = 4
colocate = true
pin = false
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps", "dgc", "local_sgd", "async_ps", "geo_ps", "none"]
[measure]
warmup = 1
steps = 5
repeats = 1
baseline = false
[strategy.allreduce]
algorithm = "ring" # the same sums on any number of hosts
[strategy.local_sgd]
k = 2
[strategy.geo_ps]
k = 2
TOML
curves() { # FOLDER: losses and weights of the cases; not where the order of arrivals decides
  python3 -c 'import json, sys
for c in json.load(open(sys.argv[1] + "/result.json"))["results"]:
    strategy = c["case"]["strategy.plugin"]
    sure = strategy not in ("async_ps", "geo_ps")
    print(strategy, c["status"], *([c["replicas_identical"], c["loss"]["curve"], c["weights_sha256"]] if sure else []))' "$1"
}
check "one host" logged "$regatta" run x.toml --set transport.plugin=tcp --out one
check "one host: all strategies" of_result one/result.json "[c['status'] for c in r['results']] == 7 * ['ok']"
for transport in tcp auto mpi; do
  for many in 2 4; do
    out=$transport-$many
    check "$transport on $many hosts" \
      logged mpirun_on_hosts $many "$regatta" run x.toml --set transport.plugin=$transport --out $out
    check "$transport on $many hosts: $many in the result" of_result $out/result.json \
      "[h['name'] for h in r['context']['hosts']] == ['n0', 'n1', 'n2', 'n3'][:$many]"
    check "$transport on $many hosts: losses and weights of one host" [ "$(curves $out)" = "$(curves one)" ]
  done
done
refuses_shm() {
  not logged mpirun_on_hosts 2 "$regatta" run x.toml --set transport.plugin=shm --sweep strategy.plugin=allreduce \
    --out shm &&
    grep -q "expected 1 over transport shm, which connects the ranks of one host, got 2" log
}
check "shm on two hosts is refused" refuses_shm

# PATTERN is that of the process to kill on n2: a rank, or mpirun's own.
kill_in_the_middle() { # TRANSPORT PATTERN
  local job
  long_experiment "$1"
  rm -rf long
  mpirun_on_hosts 4 "$regatta" run x.toml --out long >log 2>&1 & job=$!
  eventually some_finished long || return 1
  eventually on n2 pkill -KILL -o -f "$2" || return 1
  wait $job
}
statuses='[c["status"] for c in r["results"]]'
check "tcp: a rank is killed, and the campaign goes on" not kill_in_the_middle tcp "^/proc/self/exe rank"
check "one case has failed" of_result long/result.json "$statuses.count('ok') == 7 and $statuses.count('failed') == 1"
check "its rank, host and signal are named" grep -q "rank 2 (worker 2, host n2, pid .*SIGKILL" log
for transport in tcp mpi; do
  check "$transport: a process of mpirun is killed, and the job ends" not kill_in_the_middle $transport "^$regatta run"
  check "$transport: nothing is left" eventually nothing_left
  kept=$(finished long)
  check "$transport: $kept finished cases are kept" of_result long/result.json "$statuses.count('ok') == $kept > 0"
  check "$transport: --resume goes on" logged mpirun_on_hosts 4 "$regatta" run x.toml --out long --resume
  check "$transport: to the end" of_result long/result.json "$statuses == 8 * ['ok']"
done
check "openmpi.sh down" "$root/tests/cluster/launchers/openmpi.sh" down
