#!/bin/bash
# Starts the processes of one host by hand, with the environment variables that torchrun sets (docs/cluster.md). Four
# processes on two hosts:
#
#     openssl rand -hex 32 >secret && chmod 600 secret      # once; copy it to the other host: scp -p secret node2:
#     ./torchrun-style.sh 0 2 4 node1 cluster.toml          # on node1: processes 0 and 1 of 4
#     ./torchrun-style.sh 2 2 4 node1 cluster.toml          # on node2: processes 2 and 3 of 4
#
# The arguments: number of the first process here, processes here, processes in all, host of process 0, experiment.
set -euo pipefail

first=${1:?usage: torchrun-style.sh FIRST COUNT ALL HOST [FILE.toml] [OPTION...]} count=$2 all=$3 host=$4
file=${5:-cluster.toml}
shift $(($# > 4 ? 5 : 4))

# The proof that the processes belong together. It is a file that only you can read, never an argument or a variable.
export REGATTA_SECRET_FILE=${REGATTA_SECRET_FILE:-$PWD/secret}
export WORLD_SIZE=$all MASTER_ADDR=$host MASTER_PORT=${MASTER_PORT:-29500}

pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
for ((k = 0; k < count; k++)); do
  RANK=$((first + k)) LOCAL_RANK=$k LOCAL_WORLD_SIZE=$count regatta run "$file" "$@" &
  pids+=($!)
done

# Process 0 prints the result. The first process that fails ends those beside it.
status=0
for ((k = 0; k < count; k++)); do
  wait -n || { status=$?; break; }
done
exit $status
