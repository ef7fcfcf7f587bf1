#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Regatta under Slurm on four test hosts: PMIx, launches without it, the batch script of examples/cluster, and the end
# of a job in the middle of a campaign.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need srun slurmctld slurmd munged pgrep
start_hosts 4
make_folder
export PATH=${regatta%/*}:$PATH
check "slurm.sh up" "$root/tests/cluster/launchers/slurm.sh" up
cd "$folder" || exit 1

srun_on_hosts() { on n0 timeout 60 srun "$@"; }

experiment <<TOML
[cluster]
workers = 4
pin = false
[transport]
plugin = "auto"
[strategy]
plugin = "allreduce"
[measure]
warmup = 1
steps = 5
repeats = 1
TOML
check "srun --mpi=pmix, one process a node" logged srun_on_hosts --mpi=pmix -N4 -n4 regatta run x.toml --out four
check "four hosts, replicas identical" of_result four/result.json \
  '[h["name"] for h in r["context"]["hosts"]] == ["n0", "n1", "n2", "n3"] and r["results"][0]["replicas_identical"]'
check "process 0 alone prints the table" [ "$(grep -c '^replicas identical' log)" -eq 1 ]
check "srun --mpi=pmix, two processes a node" \
  logged srun_on_hosts --mpi=pmix -N4 -n8 regatta run x.toml --set cluster.workers=8 --out eight
check "eight workers" of_result eight/result.json \
  'r["results"][0]["workers"] == 8 and r["results"][0]["status"] == "ok"'
check "plain srun on one node" logged srun_on_hosts -N1 -n4 regatta run x.toml --out one
srun_on_hosts --mpi=pmix -N4 -n4 regatta run x.toml --dry-run >log 2>&1
check "--dry-run names the launcher" grep -qx "launcher: srun, process 0 of 4, meets by PMIx" log

refused() { # TEXT SRUN'S ARGUMENT...: within 10 s, with exit code 2, by each of four processes
  local text=$1 begin=$SECONDS status=0
  shift
  srun_on_hosts "$@" regatta run x.toml --out refused >log 2>&1 || status=$?
  [ $status -eq 2 ] && [ $((SECONDS - begin)) -lt 10 ] && [ "$(grep -c -- "$text" log)" -eq 4 ] ||
    { cat log; return 1; }
}
check "plain srun on four nodes is refused, with advice" \
  refused "processes of srun on 4 nodes have no way to meet: start them with srun --mpi=pmix" -N4 -n4
check "srun --mpi=pmi2 is refused, with advice" refused "PMI_RANK is PMI's, without PMIx: .*srun --mpi=pmix" \
  --mpi=pmi2 -N4 -n4
check "a refused launch writes nothing" [ ! -e refused ]

cp "$root"/examples/cluster/{slurm.sh,cluster.toml} .
check "sbatch slurm.sh" logged on n0 timeout 120 sbatch --wait slurm.sh cluster.toml \
  --set measure.steps=3 --set measure.repeats=1 --set measure.baseline=false
job=$(sed -n 's/^Submitted batch job //p' log)
check "its result has both cases, on four hosts" of_result "regatta-$job/result.json" \
  'len(r["context"]["hosts"]) == 4 and [c["status"] for c in r["results"]] == ["ok", "ok"]'
check "its log has the table" grep -q "^replicas identical" "regatta-$job.log"

long_experiment auto
cp "$root/examples/cluster/slurm.sh" job.sh
on n0 sbatch --job-name=long --export=ALL,OUT=long job.sh x.toml >/dev/null
check "a job finishes some cases" eventually some_finished long
on n0 scancel --name=long
ended() { [ -z "$(on n0 squeue --noheader)" ] && nothing_left >/dev/null; }
check "scancel ends its processes on all nodes" eventually ended
kept=$(finished long)
check "and leaves a result with $kept finished cases" of_result long/result.json \
  "0 < sum(c['status'] == 'ok' for c in r['results']) <= $kept < 8"
check "--resume goes on" logged on n0 env OUT=long timeout 120 sbatch --wait job.sh x.toml --resume
check "to the end" of_result long/result.json '[c["status"] for c in r["results"]] == 8 * ["ok"]'
check "and runs each case once" [ "$(finished long)" -eq 8 ]
check "nothing is left" nothing_left
check "slurm.sh down" "$root/tests/cluster/launchers/slurm.sh" down
