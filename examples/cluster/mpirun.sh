#!/bin/bash
# Runs an experiment under Open MPI, one process for each slot of a hostfile (docs/cluster.md):
#
#     ./mpirun.sh hosts                        # cluster.toml
#     ./mpirun.sh hosts other.toml --set train.batch=128
#
# `hosts` has a line for each host, "node1 slots=2". mpirun starts its daemons there by ssh, without password, and finds
# the program under the same path on each host.
set -euo pipefail

hosts=${1:?usage: mpirun.sh HOSTFILE [FILE.toml] [OPTION...]}
file=${2:-cluster.toml}
shift $(($# > 1 ? 2 : 1))

# --bind-to none: Regatta binds the ranks to CPUs by itself.
# mpirun's own PMIx carries the address and the secret; its daemons find each other on the network of your ssh.
exec mpirun --hostfile "$hosts" --bind-to none "$(command -v regatta)" run "$file" "$@"
