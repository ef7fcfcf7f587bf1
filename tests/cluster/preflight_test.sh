#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# regatta preflight and regatta comm --matrix on four hosts, healthy and with one fault at a time on n2.
# $REGATTA: the program, default build/release/bin/regatta.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need ip tc python3 openssl
regatta=${REGATTA:-$root/build/release/bin/regatta}
[ -x "$regatta" ] || skip "$regatta is missing"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
( umask 077; openssl rand -hex 32 >"$folder/secret" )
program_of_n2=$regatta
devices_of_n2=late # tests/e2e/device/streams.hpp

launch() { # ARGUMENT...: on all hosts; the output of process 0 in $folder/out.json; returns its exit code
  local host pids=() code=0 program devices
  for host in 3 2 1 0; do
    program=$regatta devices=late
    [ $host -ne 2 ] || program=$program_of_n2 devices=$devices_of_n2
    REGATTA_RANK=$host REGATTA_RANKS=4 REGATTA_COORDINATOR=n0:7117 REGATTA_SECRET_FILE=$folder/secret \
      REGATTA_FAKE_DEVICE=$devices \
      "$hosts" exec n$host "$program" "$@" >"$folder/out-$host" 2>"$folder/err-$host" &
    pids[$host]=$!
  done
  wait "${pids[0]}"
  code=$?
  wait "${pids[@]:1}" 2>/dev/null
  cp "$folder/out-0" "$folder/out.json"
  [ $code -eq 0 ] || [ $code -eq 5 ] || cat "$folder"/err-*
  return $code
}
suspects() { # "HOST,HOST:CHECK" of all, sorted, each once
  python3 -c 'import json, sys
print(*sorted({",".join(s["hosts"]) + ":" + s["check"] for s in json.load(open(sys.argv[1]))["suspects"]}))' "$folder/out.json"
}
accuses() { # CHECK: preflight exits with 5, and n2 alone is a suspect, for this at least
  launch preflight --format json
  local code=$? found
  found=$(suspects)
  echo "    $found"
  [ $code -eq 5 ] && [[ " $found " == *" n2:$1 "* ]] && ! grep -qv '^n2:' <<<"${found// /$'\n'}"
}
marked() { # "FROM-TO" of the marked bandwidths between ranks alone
  python3 -c 'import json, sys
print(*sorted("{from}-{to}".format(**m) for m in json.load(open(sys.argv[1]))["matrix"][0]["alone"]["marks"]
              if m["figure"] == "bandwidth"))' "$folder/out.json"
}

start_hosts 4 --rate 100mbit --networks 2
trap 'rm -rf "$folder"; finish' EXIT

echo "healthy"
launch preflight --format json
check "four equal hosts: exit code 0" [ $? -eq 0 ]
check "no suspects" [ -z "$(suspects)" ]

echo "one fault"
"$hosts" rate n2.0 50mbit
check "a link at half rate (its queue may also lose packets)" accuses bandwidth
launch comm --matrix hosts --format json --seconds 0.02
check "the matrix marks all links of n2, and no other" [ "$(marked)" = "0-2 1-2 2-0 2-1 2-3 3-2" ]
"$hosts" rate n2.0 100mbit
on n2 ip link set eth0 mtu 1300
check "a small MTU" accuses mtu
on n2 ip link set eth0 mtu 1500
on n2 sh -c 'sed "s/^10.77.0.1 n0/10.78.0.1 n0/" /etc/hosts >/run/hosts && cat /run/hosts >/etc/hosts'
check "the wrong interface" accuses interface
on n2 sh -c 'sed "s/^10.78.0.1 n0/10.77.0.1 n0/" /etc/hosts >/run/hosts && cat /run/hosts >/etc/hosts'
mkdir "$folder/bin"
ln -s "$(dirname "$(dirname "$regatta")")/lib" "$folder/lib"
cp "$regatta" "$folder/bin/regatta"
printf x >>"$folder/bin/regatta" # another SHA-256, the same program
program_of_n2=$folder/bin/regatta
check "another program" accuses program
program_of_n2=$regatta
toy=$(dirname "$(dirname "$regatta")")/tests/device/toy_device.so # two devices without hardware
if [ -e "$toy" ]; then
  mkdir "$folder/toys"
  ln -s "$toy" "$folder/toys/toy.so"
  devices_of_n2=broken
  launch preflight --format json --plugin-path "$folder/toys"
  check "GPUs that cannot be opened: exit code 5" [ $? -eq 5 ]
  check "GPUs that cannot be opened: n2 alone is named" [ "$(suspects | tr ' ' '\n' | grep ':gpu$')" = n2:gpu ]
  devices_of_n2=late
else
  echo "  skipped: $toy is missing"
fi
if "$hosts" cpu n2 70 >/dev/null 2>&1; then
  launch preflight --format json
  check "a CPU quota: exit code 5" [ $? -eq 5 ]
  check "a CPU quota: n2 is named" grep -q n2:quota <<<"$(suspects)"
else
  echo "  skipped: this machine has no cgroup controller \`cpu\`"
fi
