#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SSH and Open MPI's mpirun over four test hosts, and nothing left.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need mpirun ssh sshd ssh-keygen pgrep
start_hosts 4

mpirun_on_hosts() { # ARGUMENT...
  on n0 timeout 60 mpirun --allow-run-as-root --hostfile /srv/openmpi/hostfile "$@" 2>/dev/null
}

check "openmpi.sh up" "$root/tests/cluster/launchers/openmpi.sh" up
check "n3 runs a command for n0 over ssh" [ "$(on n0 ssh n3 hostname)" = n3 ]
check "n3 sees n0's address" [ "$(on n0 ssh n3 'echo ${SSH_CONNECTION%% *}')" = 10.77.0.1 ]
check "mpirun starts a process for each slot" \
  [ "$(mpirun_on_hosts -np 8 hostname | sort | xargs)" = "n0 n0 n1 n1 n2 n2 n3 n3" ]
if build_pmix_hello; then
  check "mpirun: ranks exchange names with PMIx" \
    [ "$(mpirun_on_hosts -np 8 /srv/pmix_hello | sort -V | tail -n 1)" = "rank 7 on n3, rank 0 on n0" ]
fi
# A killed mpirun leaves folders in TMPDIR. The /run of a host is its own, and ends with it.
on n0 env TMPDIR=/run/tmp timeout -k 1 30 mpirun --allow-run-as-root --hostfile /srv/openmpi/hostfile -np 8 \
  sleep 600 2>/dev/null &
eventually on n3 pgrep -f '^sleep 600' >/dev/null
on n0 pkill -KILL -x mpirun
check "a killed mpirun leaves no process on n3" eventually on n3 bash -c '! pgrep -f "^sleep 600" >/dev/null'
check "its folders are not in this machine's /tmp" [ -z "$(compgen -G '/tmp/ompi.n[0-9]*')" ]
wait
check "openmpi.sh down" "$root/tests/cluster/launchers/openmpi.sh" down
check "down leaves only the init on n2" [ "$(on n2 ps -e --no-headers -o comm | sort | xargs)" = "ps sleep" ]
check "down leaves no keys" on n2 test ! -e /srv/ssh
