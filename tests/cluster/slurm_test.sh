#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Slurm on four test hosts: srun, PMIx, sbatch, scancel, and nothing left.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need srun slurmctld slurmd munged pgrep
start_hosts 4

check "slurm.sh up" "$root/tests/cluster/launchers/slurm.sh" up
check "srun runs on all hosts" [ "$(on n0 timeout 30 srun -N4 -n4 hostname | sort | xargs)" = "n0 n1 n2 n3" ]
check "plain srun starts processes without PMIx" \
  [ -z "$(on n0 timeout 30 srun -N2 -n2 sh -c 'echo $PMIX_RANK' | xargs)" ]
if build_pmix_hello; then
  last=$(on n0 timeout 30 srun --mpi=pmix -N4 --ntasks-per-node=2 /srv/pmix_hello | sort -V | tail -n 1)
  check "srun --mpi=pmix: ranks exchange names" [ "$last" = "rank 7 on n3, rank 0 on n0" ]
fi
on n0 sh -c 'printf "#!/bin/sh\nsrun hostname\n" >/srv/job.sh'
on n0 timeout 30 sbatch --wait -N3 --ntasks-per-node=1 -o /srv/job.out /srv/job.sh >/dev/null
check "sbatch runs a job" [ "$(on n0 sort /srv/job.out | xargs)" = "n0 n1 n2" ]
on n0 timeout 30 srun -N4 -n4 --job-name=long sleep 600 2>/dev/null &
eventually on n3 pgrep -x sleep >/dev/null
on n0 scancel --name=long
check "scancel ends the processes on all hosts" eventually on n3 bash -c '! pgrep -f "^sleep 600" >/dev/null'
wait
check "slurm.sh down" "$root/tests/cluster/launchers/slurm.sh" down
check "down leaves only the init on n2" [ "$(on n2 ps -e --no-headers -o comm | sort | xargs)" = "ps sleep" ]
check "down leaves nothing in /srv/slurm" on n2 test ! -e /srv/slurm
