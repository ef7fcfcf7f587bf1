#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cluster_scripts_test.sh FOLDER: what the scripts in examples/cluster start, with which arguments and environment.
set -euo pipefail
scripts=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
cd "$folder"
export PATH=$folder/bin:$PATH

program() { # NAME: a program that runs the script on standard input
  { echo '#!/usr/bin/env bash'; cat; } >"bin/$1"
  chmod +x "bin/$1"
}
expect() { # WHAT EXPECTED GOT
  [ "$2" = "$3" ] || { printf '%s: expected:\n%s\ngot:\n%s\n' "$1" "$2" "$3"; exit 1; }
}

program regatta <<'END'
echo "regatta $* | ${RANK:-} of ${WORLD_SIZE:-}, ${LOCAL_RANK:-} of ${LOCAL_WORLD_SIZE:-} here, ${MASTER_ADDR:-} ${MASTER_PORT:-} ${REGATTA_SECRET_FILE##*/}"
[ "${RANK:-}" != "${FAILS:-none}" ] || exit 7
END
expect "processes of one host" \
  "regatta run x.toml --resume | 2 of 4, 0 of 2 here, node1 29500 secret
regatta run x.toml --resume | 3 of 4, 1 of 2 here, node1 29500 secret" \
  "$("$scripts/torchrun-style.sh" 2 2 4 node1 x.toml --resume | sort)"
status=0
FAILS=3 "$scripts/torchrun-style.sh" 2 2 4 node1 >/dev/null || status=$?
expect "a process that fails" 7 $status

program srun <<'END'
echo "srun $*"
END
expect "a job of Slurm" "srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 regatta run cluster.toml --out regatta-17 \
--progress never" "$(SLURM_JOB_ID=17 "$scripts/slurm.sh")"
expect "one that goes on" "srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 regatta run x.toml --out old \
--progress never --resume" "$(SLURM_JOB_ID=18 OUT=old "$scripts/slurm.sh" x.toml --resume)"

program mpirun <<'END'
echo "mpirun $*"
END
expect "mpirun" "mpirun --hostfile hosts --bind-to none $folder/bin/regatta run x.toml -a" \
  "$("$scripts/mpirun.sh" hosts x.toml -a)"

# A job's log has messages before and after the result.
program regatta <<'END'
case $1 in
kubernetes) echo "objects of $*" ;;
report) cat "$2" ;;
esac
END
program kubectl <<'END'
echo "kubectl $1" >>calls
case "$*" in
create*) cat >created ;;
get*) echo "$CONDITION" ;;
*--prefix*) ;;
logs*) printf '%s' "$LOG" ;;
esac
END
export CONDITION=Complete LOG=$'warning: {\n{\n  "a": {\n  }\n}\nend\n'
expect "the result of a job" $'{\n  "a": {\n  }\n}' "$("$scripts/kubernetes.sh" image x.toml --cpu 2)"
expect "its objects" "objects of kubernetes x.toml --image image --name regatta-N --cpu 2" \
  "$(sed 's/regatta-[0-9]*-[0-9]*/regatta-N/' created)"
expect "the calls" $'kubectl create\nkubectl get\nkubectl logs\nkubectl logs\nkubectl delete' "$(cat calls)"
status=0
CONDITION=Failed LOG=$'error: x\n' "$scripts/kubernetes.sh" image 2>/dev/null || status=$?
expect "a job that fails" 1 $status
