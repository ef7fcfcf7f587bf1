#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The test hosts themselves: names, addresses, rates, impairments, faults, and that nothing is left of them.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need ip tc ping iperf3 ss python3

machine_state() { # what of this machine the hosts must not change
  ip -o link | sed 's/^[0-9]*: \([^:]*\):.*/\1/'
  ip -o address
  cut -d' ' -f5- /proc/self/mountinfo
  ls /run /dev/shm /srv /run/netns 2>/dev/null
  ls -d /sys/fs/cgroup/*/regatta-hosts-"$REGATTA_HOSTS"-* /sys/fs/cgroup/regatta-hosts-"$REGATTA_HOSTS"-* 2>/dev/null
}
lost_of_ping() { # HOST COUNT SECONDS_BETWEEN TO [OPTION...]: lost requests
  on "$1" ping -q -c "$2" -i "$3" -W 2 "${@:5}" "$4" | awk '/transmitted/ { print $1 - $4 }'
}
fastest_ping() { # HOST TO [OPTION...]: ms
  on "$1" ping -q -c 3 -i 0.02 "${@:3}" "$2" | awk -F'[=/ ]+' '/^rtt/ { print $6 }'
}
megabits() { # FROM TO MEGABYTES: of one TCP connection
  on "$1" iperf3 -c "$2" -n "$3M" -J | python3 -c 'import json, sys
print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e6)'
}
counter() { # DIRECTION NAME: of the forwarder of n2's eth0
  "$hosts" impair n2.0 show | grep -o "$1: [^;]*" | grep -o "$2=[0-9]*" | cut -d= -f2
}
runs() { on "$1" pgrep -f "$2" >/dev/null; } # HOST REGULAR_EXPRESSION
reaches() { on "$1" ping -q -c 1 -W 2 "$2" >/dev/null; }
misses() { ! on "$1" ping -q -c 2 -i 0.1 -W 0.3 "$2" >/dev/null; }

before=$(machine_state)
start_hosts 4 --rate 200mbit --forwarder n2 --clock n1=5000 --networks 2

echo "names and addresses"
check "n3 has its host name" [ "$(on n3 hostname)" = n3 ]
check "n0 finds n3 by name" [ "$(on n0 getent hosts n3 | awk '{ print $1 }')" = 10.77.0.4 ]
check "n0 reaches n1" reaches n0 n1
check "n0 reaches n2, through the forwarder" reaches n0 n2
check "n0 reaches n3 on the second network" reaches n0 10.78.0.4
check "this machine has no address of theirs" not grep -q 10.77. <(ip address)
check "n1 shows its interfaces in /sys" [ "$(on n1 ls /sys/class/net | xargs)" = "eth0 eth1 lo" ]
on n0 touch /dev/shm/of_n0 /srv/of_all
check_fails "n1 does not see the shared memory of n0" on n1 test -e /dev/shm/of_n0
check "n1 sees the cluster's /srv" on n1 test -e /srv/of_all
check "n0 sees few processes" [ "$(on n0 ps -e --no-headers | wc -l)" -le 3 ]
boot_id=/proc/sys/kernel/random/boot_id
check "boot_id differs" [ "$(on n0 cat $boot_id)" != "$(on n1 cat $boot_id)" ]
monotonic='import time; print(time.monotonic())'
ahead="$(on n1 python3 -c "$monotonic") - $(on n0 python3 -c "$monotonic")"
check "n1's monotonic clock is 5000 s ahead" is "$ahead > 4900"

echo "commands"
on n0 sh -c 'exit 5'
check "exec returns the exit code" [ $? -eq 5 ]
"$hosts" exec n0 sleep 600 &
eventually runs n0 '^sleep 600'
{ kill -KILL $! && wait $!; } 2>/dev/null
check "the command ends with a killed exec" eventually not runs n0 '^sleep 600'

echo "rates"
for host in n1 n2; do on "$host" iperf3 -s -D; done
eventually on n0 bash -c 'exec 3<>/dev/tcp/n1/5201 4<>/dev/tcp/n2/5201' 2>/dev/null
rate=$(megabits n0 n1 12)
check "200 Mbit/s: iperf3 receives 120 to 200 ($rate)" is "$rate > 120 && $rate < 200"
"$hosts" rate n1 50mbit
rate=$(megabits n0 n1 3)
check "50 Mbit/s: iperf3 receives 30 to 50 ($rate)" is "$rate > 30 && $rate < 50"

echo "forwarder"
before_delay=$(fastest_ping n0 n2)
"$hosts" impair n2 delay=20ms
delayed=$(fastest_ping n0 n2)
check "20 ms each way: ping shows 40 ms more ($before_delay, $delayed)" \
  is "$delayed >= 40 && $delayed < $before_delay + 60"
"$hosts" impair n2 clear in.delay=30ms
delayed=$(fastest_ping n0 n2)
check "30 ms one way: ping shows 30 ms more ($delayed)" is "$delayed >= 30 && $delayed < $before_delay + 50"
"$hosts" impair n2 clear in.loss=10% seed=1
before_loss=$(counter in lost)
lost=$(lost_of_ping n0 400 0.001 n2)
counted=$(($(counter in lost) - before_loss))
# 400 trials of 10 %: 40, standard deviation 6; the limits are five of them away.
check "10 % loss: 10 to 70 of 400 are lost ($lost)" is "$lost >= 10 && $lost <= 70"
check "the forwarder has counted them ($counted)" is "$counted >= $lost && $counted <= $lost + 3"
"$hosts" impair n2 clear rate=1mbit
slow=$(fastest_ping n0 n2 -s 1400)
check "1 Mbit/s: ping with 1400 bytes takes 23 ms ($slow)" is "$slow >= 23"
lost=$(lost_of_ping n0 200 0.001 n2 -s 1400)
check "its queue is bounded: of 200 such pings at once, $lost are dropped" [ "$(counter in dropped)" -gt 50 ]
for direction in in out; do
  "$hosts" impair n2 clear cut=$direction
  other=$([ $direction = in ] && echo out || echo in)
  cut_before=$(counter $direction cut) other_before=$(counter $other cut)
  check "cut=$direction: n0 does not reach n2" misses n0 n2
  check "cut=$direction: that direction is cut" [ "$(counter $direction cut)" -gt "$cut_before" ]
  check "cut=$direction: the other is not" [ "$(counter $other cut)" = "$other_before" ]
done
"$hosts" impair n2 clear
check "clear: n0 reaches n2" eventually reaches n0 n2
check_fails "a wrong word is refused" "$hosts" impair n2 delay=fast 2>/dev/null
check_fails "a host without forwarder is refused" "$hosts" impair n1 clear 2>/dev/null

echo "faults"
"$hosts" link n3 down
check "link down: n0 does not reach n3" misses n0 n3
check "n3 has no carrier" [ "$(on n3 cat /sys/class/net/eth0/carrier)" = 0 ]
"$hosts" link n3 up
check "link up: n0 reaches n3" eventually reaches n0 n3
on n0 bash -c 'exec 3<>/dev/tcp/n1/5201; touch /srv/connected; sleep 600' &
eventually on n0 test -e /srv/connected
"$hosts" poweroff n1
check "n1 has no process" not pgrep -f "regatta-hosts:$REGATTA_HOSTS:n1"
check "n0 has not been told that n1's connections ended" [ -n "$(on n0 ss -Htn state established dst 10.77.0.2)" ]
check "n0 does not reach n1" misses n0 n1
if "$hosts" cpu n0 50; then
  seconds=$(on n0 python3 -c 'import time
begin = time.monotonic()
while time.process_time() < 0.4: pass
print(time.monotonic() - begin)')
  check "cpu 50: 0.4 s of computing take more than 0.6 s ($seconds)" is "$seconds > 0.6"
else
  echo "  cpu: not checked, this machine has no cgroup controller for it"
fi

echo "leftovers"
"$hosts" down
wait 2>/dev/null
check "down leaves no process" not pgrep -f "regatta-hosts:$REGATTA_HOSTS:"
check "down leaves this machine as it was" [ "$(machine_state)" = "$before" ]
killed=${test_name}_killed
{ env -u REGATTA_HOSTS bash -c '"$0" up 2 --prefix "$1-$$" >/dev/null; kill -KILL $$' "$hosts" "$killed"; } 2>/dev/null
check "a killed user leaves its hosts" [ -n "$(pgrep -f "regatta-hosts:$killed-")" ]
"$hosts" down --stale "$killed"
check "down --stale removes them" not pgrep -f "regatta-hosts:$killed-"
{ timeout -s KILL 0.2 "$hosts" up 8; } >/dev/null 2>&1
"$hosts" down
check "down removes what a killed up has begun" not pgrep -f "regatta-hosts:$REGATTA_HOSTS:"
check "this machine is as it was" [ "$(machine_state)" = "$before" ]
