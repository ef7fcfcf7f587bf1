#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Hosts without a launcher: `regatta run --wait-for 3` on one, `regatta join` on the others, with right and wrong codes.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
regatta=${REGATTA:-$root/build/release/bin/regatta}
folder=$(mktemp -d)
start_hosts 4
trap 'rm -rf "$folder"; finish' EXIT

cat >"$folder/x.toml" <<TOML
[model]
plugin = "null"
[strategy]
plugin = "allreduce"
[transport]
plugin = "auto"
[cluster]
workers = 4
pin = false
[measure]
warmup = 2
steps = 5
repeats = 1
TOML

# n3 has Regatta in another folder than the others, and none where they have it.
prefix=$(cd "$(dirname "$regatta")/.." && pwd)
mkdir -p "$folder/elsewhere/bin" "$folder/elsewhere/lib"
cp "$regatta" "$folder/elsewhere/bin"
cp -r "$prefix/lib/regatta" "$folder/elsewhere/lib"
on n3 mount -t tmpfs none "$prefix/lib/regatta"

joins() { # HOST CODE [PROGRAM]: joins as this host; its output is in FOLDER/HOST
  on "$1" "${3:-$regatta}" join "$address" <<<"$2" >"$folder/$1" 2>&1
}
shown() { [ "$(grep -cE '^  [0-9A-Z]{4}(-[0-9A-Z]{4}){3}$' "$folder/n0")" -eq 3 ]; }

on n0 "$regatta" run "$folder/x.toml" --wait-for 3 --out "$folder/results" >"$folder/n0" 2>&1 &
run=$!
check "three codes are shown" eventually shown
address=$(sed -n 's/^ *regatta join //p' "$folder/n0")
mapfile -t codes < <(grep -E '^  [0-9A-Z]{4}-' "$folder/n0" | tr -d ' ')
check "the address is n0's" [ "${address%:*}" = 10.77.0.1 ]

check_fails "a wrong code is refused" joins n1 0000-0000-0000-0000
check "and the message says what to check" grep -q "check the address and the code" "$folder/n1"
check_fails "half a code is refused" joins n1 "${codes[0]:0:9}"
joins n1 "${codes[0]}" & first=$!
check "n1 has joined" eventually grep -q "joined as 2 of 4" "$folder/n1"
check_fails "a code that was used is refused" joins n2 "${codes[0]}"
check "n0 says so" grep -q "its code was used already" "$folder/n0"
joins n2 "${codes[1]}" & second=$!
joins n3 "${codes[2]}" "$folder/elsewhere/bin/regatta" & third=$!
for process in $run $first $second $third; do
  wait "$process"
  check "a computer's command ends with exit code 0" [ $? -eq 0 ]
done
check "the run was on four hosts" grep -q "4 hosts, each" "$folder/n0"
check_fails "no code stands in the results" grep -rqF -e "${codes[0]}" -e "${codes[1]}" "$folder/results"
for host in n0 n1 n2 n3; do
  check_fails "nothing is left on $host" on "$host" pgrep -f "bin/regatta (run|join)"
done
