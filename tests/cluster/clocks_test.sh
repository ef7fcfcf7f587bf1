#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A run on two hosts of which one has another monotonic clock: its offset is found, wait and communication are told
# apart as on one clock, the straggler is named with its host, and the trace has one clock. Over a slow network wait and
# communication are null, and the result says why.
# REGATTA: the program; by default that of build/release.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
need python3 openssl
regatta=${REGATTA:-$root/build/release/bin/regatta}
[ -x "$regatta" ] || skip "$regatta is missing"
forwarder=${REGATTA_FORWARDER:-$root/build/release/tests/forwarder}
[ -x "$forwarder" ] || skip "$forwarder is missing"
export REGATTA_FORWARDER=$forwarder
work=$(mktemp -d)
start_hosts 2 --clock n1=5000 --forwarder n1
trap 'status=$?; rm -rf "$work"; (exit $status); finish' EXIT
(umask 077 && openssl rand -hex 32 >"$work/secret")
cat >"$work/slow.toml" <<'TOML'
[model]
plugin = "mlp"
hidden = [512]
[cluster]
workers = 2
straggler = { rank = 1, factor = 4.0 }
[transport]
plugin = "tcp"
[measure]
steps = 30
repeats = 1
baseline = false
trace = 2
TOML

run() { # NAME ARGUMENTS: one process a host
  local name=$1 rank process status=0
  shift
  local processes=()
  for rank in 1 0; do
    REGATTA_RANK=$rank REGATTA_RANKS=2 REGATTA_COORDINATOR=n0:7117 REGATTA_SECRET_FILE=$work/secret \
      on n$rank "$regatta" run "$work/slow.toml" --out "$work/$name" "$@" >"$work/$name-$rank.out" 2>&1 &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  [ $status -eq 0 ] || cat "$work/$name"-*.out
  return $status
}

holds() { # NAME EXPRESSION: of the entry e of the only case
  python3 - "$work/$1/result.json" "$2" <<'PYTHON'
import json, sys
e = json.load(open(sys.argv[1]))["results"][0]
clocks, time, slow = e["clocks"], e["time"], e["stragglers"]
offsets = {h["host"]: h for h in clocks["hosts"]}
sys.exit(0 if eval(sys.argv[2]) else f"not so: {sys.argv[2]}: {clocks} {time} {slow}")
PYTHON
}

known='all(abs(offsets[h]["ahead_seconds"][t] - s) <= offsets[h]["uncertainty_seconds"][t]
  for h, s in (("n0", 0), ("n1", 5000)) for t in ("begin", "end"))'
check "a run on two hosts with different clocks ends" run shifted
check "the offset of each clock lies within its uncertainty" holds shifted "$known"
check "wait and communication are told apart" holds shifted 'clocks["reason"] is None and "blocked" not in time'
check "the fast worker waits for the slow one" holds shifted 'time["wait"] > 0'
check "the straggler is named with its host" \
  holds shifted 'slow["ranks"][slow["held_back_by"]]["host"] == "n1" and slow["ranks"][1]["last"] > 0.6'
check "the console shows it" grep -q "Stragglers: the slowest rank" "$work/shifted-0.out"
check "each rank has its host" holds shifted '[h["host"] for h in e["hosts"]] == ["n0", "n1"]'
"$regatta" trace "$work/shifted/traces/case-1-repeat-1.pftrace.gz" >"$work/trace.out"
check "a trace is written" grep -q "2 ranks" "$work/trace.out"
"$regatta" report "$work/shifted" -o "$work/page.html"
check "it names the hosts" grep -q "rank 1: worker 1, host n1" "$work/page.html"
cp "$work/shifted/result.json" "$work/before.json"
check "a resumed campaign computes the figures from its records" run shifted --resume
check "they are the same" python3 -c '
import json, sys
a, b = (json.load(open(f))["results"] for f in sys.argv[1:])
sys.exit(a != b)' "$work/before.json" "$work/shifted/result.json"

"$hosts" impair n1 delay=30ms
check "a run over a slow network ends" run far --set "model.hidden=[4]"
check "the offset of each clock still lies within its uncertainty" holds far "$known"
check "wait and communication are null, and the result says why" \
  holds far 'time["wait"] is None and time["exposed_communication"] is None and time["blocked"] > 0 and clocks["reason"]'
