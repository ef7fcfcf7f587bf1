#!/bin/bash
# Runs an experiment on four nodes under Slurm (docs/cluster.md):
#
#     sbatch slurm.sh                          # cluster.toml of the folder in which sbatch was called
#     sbatch slurm.sh other.toml --set train.batch=128
#
#SBATCH --job-name=regatta
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --output=regatta-%j.log
set -euo pipefail

file=${1:-cluster.toml}
[ $# -eq 0 ] || shift

# --mpi=pmix: the processes get the coordinator's address and the secret through PMIx, so nothing else has to be set.
# Without it, Slurm tells them only their numbers, and Regatta refuses to run. `srun --mpi=list` shows whether this
# Slurm has the plugin.
# --cpu-bind=none: Regatta binds the ranks to CPUs by itself, within what Slurm gives to the task.
# The results are in regatta-JOBID, written by process 0: a folder that its node sees, such as one in your home.
# After a job that reached its time limit, this goes on with its campaign:
#
#     OUT=regatta-17 sbatch slurm.sh cluster.toml --resume
srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 \
  regatta run "$file" --out "${OUT:-regatta-$SLURM_JOB_ID}" --progress never "$@"
