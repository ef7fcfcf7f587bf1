#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# openmpi.sh up | down: an SSH server with keys of its own on each test host (hosts/hosts.py, REGATTA_HOSTS), so that
# `ssh n1` and Open MPI's mpirun work between them:
#
#   hosts.py exec n0 mpirun --hostfile /srv/openmpi/hostfile -np 4 hostname
#
# Keys and configuration are in /srv/ssh of the hosts. SLOTS=2 is the number of slots of each host.
source "$(dirname "$0")/launcher.sh"

case ${1:-} in
up)
  on_host n0 bash -ec '
    mkdir -p /srv/openmpi && mkdir -m 700 /srv/ssh && cd /srv/ssh
    ssh-keygen -q -t ed25519 -N "" -f key
    ssh-keygen -q -t ed25519 -N "" -f host_key
    cp key.pub authorized_keys
    echo "* $(cat host_key.pub)" >known_hosts
    printf "%s\n" "Port 22" "HostKey /srv/ssh/host_key" "AuthorizedKeysFile /srv/ssh/authorized_keys" "UsePAM no" \
      "StrictModes no" "PermitRootLogin prohibit-password" "PasswordAuthentication no" "PidFile /run/sshd.pid" \
      "MaxStartups 100" >sshd_config
    printf "%s\n" "IdentityFile /srv/ssh/key" "IdentitiesOnly yes" "UserKnownHostsFile /srv/ssh/known_hosts" \
      "StrictHostKeyChecking yes" "LogLevel ERROR" >ssh_config'
  for host in $(all_hosts); do
    on_host n0 sh -c "echo $host slots=${SLOTS:-2} >>/srv/openmpi/hostfile"
    # ssh reads all files in ssh_config.d. A killed mpirun leaves its folders: not in /tmp, which is this machine's.
    on_host "$host" bash -ec '
      mount -t tmpfs tmpfs /etc/ssh/ssh_config.d && cp /srv/ssh/ssh_config /etc/ssh/ssh_config.d/hosts.conf
      mkdir -p -m 1777 /run/tmp
      { cat /etc/openmpi/openmpi-mca-params.conf; echo "orte_tmpdir_base = /run/tmp"; } >/run/openmpi.conf
      mount --bind /run/openmpi.conf /etc/openmpi/openmpi-mca-params.conf
      mkdir -p /run/sshd && /usr/sbin/sshd -f /srv/ssh/sshd_config -E /srv/ssh/$(hostname).log'
  done
  for host in $(all_hosts); do
    wait_for "the SSH server of $host" on_host n0 ssh "$host" true
  done
  ;;
down)
  for host in $(all_hosts); do
    on_host "$host" bash -c 'pkill -KILL -x sshd; pkill -KILL -x ssh-agent; umount /etc/ssh/ssh_config.d /etc/openmpi/openmpi-mca-params.conf'
  done
  on_host n0 rm -rf /srv/ssh /srv/openmpi
  ;;
*) usage ;;
esac
