#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# slurm.sh up | down: Slurm on the test hosts (hosts/hosts.py, REGATTA_HOSTS): munged and slurmd on each, slurmctld on
# n0.
#
#   hosts.py exec n0 srun -N4 -n4 hostname
#   hosts.py exec n0 srun -N4 -n8 --mpi=pmix COMMAND
#   hosts.py exec n0 sbatch SCRIPT
#
# Configuration, state and logs are in /srv/slurm of the hosts. CPUS=16 is the number of processors that a host claims.
source "$(dirname "$0")/launcher.sh"

case ${1:-} in
up)
  mapfile -t names < <(all_hosts)
  # TmpFS: the pmix plugin makes folders that have the same name on all hosts, and these share /tmp.
  # proctrack/linuxproc and task/none: the hosts have no cgroups of their own. Root is the only user on them.
  on_host n0 bash -ec '
    mkdir -m 700 /srv/slurm && cd /srv/slurm && mkdir etc state munge
    head -c 128 /dev/urandom >munge/key && chmod 600 munge/key
    cat >etc/slurm.conf' <<TEXT
ClusterName=hosts
SlurmctldHost=n0(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdTimeout=30
KillWait=3
SlurmdParameters=config_overrides
StateSaveLocation=/srv/slurm/state
SlurmdSpoolDir=/srv/slurm/spool.%n
TmpFS=/run/tmp
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/srv/slurm/slurmctld.log
SlurmdLogFile=/srv/slurm/slurmd.%n.log
$(for host in "${names[@]}"; do
    echo "NodeName=$host NodeAddr=10.77.0.$((${host#n} + 1)) CPUs=${CPUS:-16} State=UNKNOWN"
  done)
PartitionName=hosts Nodes=ALL Default=YES MaxTime=INFINITE State=UP
TEXT
  for host in "${names[@]}"; do
    on_host "$host" bash -ec '
      mkdir -p /run/munge && mkdir -p -m 1777 /run/tmp && mount --bind /srv/slurm/etc /etc/slurm
      munged --force --key-file=/srv/slurm/munge/key --log-file=/srv/slurm/munge/$(hostname).log \
        --pid-file=/run/munge/munged.pid --seed-file=/srv/slurm/munge/$(hostname).seed 2>/dev/null
      if [ $(hostname) = n0 ]; then slurmctld; fi
      mkdir /srv/slurm/spool.$(hostname) && slurmd -N $(hostname)' ||
      { on_host n0 sh -c 'tail -n 5 /srv/slurm/*.log /srv/slurm/munge/*.log' >&2; exit 1; }
  done
  all_idle() { [ "$(on_host n0 sinfo -h -N -o %T | grep -cx idle)" = ${#names[@]} ]; }
  wait_for "a Slurm cluster of ${#names[@]} idle nodes (/srv/slurm/*.log)" all_idle
  ;;
down)
  on_host n0 scancel --user=root || true
  for host in $(all_hosts); do
    # Open MPI, which links libmunge, tries a socket that nobody serves for two seconds.
    on_host "$host" bash -c \
      'pkill -KILL -x "slurmd|slurmctld|slurmstepd|munged"; umount /etc/slurm; rm -rf /run/munge'
  done
  on_host n0 rm -rf /srv/slurm
  ;;
*) usage ;;
esac
