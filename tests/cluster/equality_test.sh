#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every strategy over one, two and four hosts, and over each transport: identical replicas, and where the strategy is
# deterministic the same losses and weights to the bit. Without REGATTA_CLUSTER_ALL (run.sh sets it), a few cases.
source "$(dirname "$0")/support.sh"
[ "$(id -u)" -eq 0 ] || skip "namespaces need root"
start_hosts 4
make_folder

experiment <<TOML
kernels = "fixed" # the fastest could be other ones in each run
[cluster]
workers = 4
servers = 2
colocate = true
pin = false
[measure]
warmup = 1
steps = 6
repeats = 1
baseline = false
[strategy.local_sgd]
k = 2
[strategy.geo_ps]
k = 2
TOML
if [ -n "${REGATTA_CLUSTER_ALL:-}" ]; then
  transports=tcp,auto,shaped
  numbers="2 4"
  cat >>"$folder/x.toml" <<TOML
[[sweep.zip]]
"strategy.plugin" = ["allreduce", "allreduce", "allreduce", "allreduce", "allreduce", "allreduce", "allreduce", "dgc",
                     "dgc", "sync_ps", "local_sgd", "async_ps", "geo_ps", "none"]
"strategy.allreduce.algorithm" = ["ring", "halving_doubling", "recursive_doubling", "circulant", "sharded",
                                  "hierarchical", "auto", "auto", "auto", "auto", "auto", "auto", "auto", "auto"]
"strategy.dgc.exchange" = ["all_gather", "all_gather", "all_gather", "all_gather", "all_gather", "all_gather", "all_gather",
                           "all_gather", "servers", "all_gather", "all_gather", "all_gather", "all_gather", "all_gather"]
TOML
else
  transports=auto
  numbers=2
  cat >>"$folder/x.toml" <<TOML
[[sweep.zip]]
"strategy.plugin" = ["allreduce", "allreduce", "sync_ps"]
"strategy.allreduce.algorithm" = ["ring", "hierarchical", "auto"]
TOML
fi

equal() { # RESULT ONE_HOST IMITATED: cases of hosts against those of one host, or of one that imitates several
  python3 - "$@" <<'PY'
import json, sys
result, one, imitated = ([json.load(open(f"{p}/result.json"))["results"] for p in sys.argv[1:]])
free = {"async_ps", "geo_ps"}  # the order of arrivals decides; geo_ps's replicas differ
apart = free - {"async_ps"} | {"none"}
wrong = seen = 0
for r in result:
    keys = {k: v for k, v in r["case"].items() if k != "transport.plugin"}
    strategy = keys["strategy.plugin"]
    by_hosts = keys.get("strategy.allreduce.algorithm") in ("hierarchical", "auto")  # follow the hosts
    reference, = [o for o in (imitated if by_hosts else one) if o["case"] == keys]
    seen += 1
    if r["status"] != "ok" or reference["status"] != "ok":
        problem = f"{r['status']}, reference {reference['status']}: {r.get('error') or reference.get('error')}"
    elif strategy not in apart and not r["replicas_identical"]:
        problem = "replicas differ"
    elif strategy not in free and r["loss"]["curve"] != reference["loss"]["curve"]:
        problem = f"losses {r['loss']['curve']} instead of {reference['loss']['curve']}"
    elif strategy not in free and r["weights_sha256"] != reference["weights_sha256"]:
        problem = "weights differ"
    elif strategy not in free and r["given_bytes"] != reference["given_bytes"]:
        problem = f"{r['given_bytes']} bytes were sent instead of {reference['given_bytes']}"
    else:
        continue
    print(f"{r['case']}: {problem}")
    wrong += 1
sys.exit(wrong > 0 or seen == 0)
PY
}

# The table of hosts has a row for each case over each transport, with a rate, and the losses that the table of one host
# has, where the sums do not depend on the hosts or on the order of arrivals.
same_table() { # FOLDER ONE_HOST TRANSPORTS
  python3 - "$regatta" "$@" <<'PY'
import subprocess, sys
regatta, ours, one, transports = sys.argv[1:]

def table(folder):
    text = subprocess.run([regatta, "report", folder, "--format", "markdown"], capture_output=True, text=True,
                          check=True).stdout.split("\n\n")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]]
             for line in next(part for part in text if part.startswith("|")).splitlines()]
    return [dict(zip(cells[0], row)) for row in cells[2:]]

def case(row):
    return tuple(row.get(name) for name in ("strategy", "allreduce.algorithm", "dgc.exchange"))

losses = {case(row): row.get("loss") for row in table(one)}  # None: a narrow table leaves that column out
rows = table(ours)
wrong = [row for row in rows if not row["samples/s"].replace(",", "")[0].isdigit()
         or (row["strategy"] not in ("async_ps", "geo_ps") and row.get("allreduce.algorithm") not in
             ("hierarchical", "auto") and row.get("loss") and losses[case(row)] and row["loss"] != losses[case(row)])]
expected = len(losses) * len(transports.split(","))
for row in wrong or ([] if len(rows) == expected else rows):
    print(row)
sys.exit(bool(wrong) or len(rows) != expected)
PY
}

run_here() { # FOLDER OPTION...: on one host
  local out=$1
  shift
  on n0 "$regatta" run "$folder/x.toml" --out "$folder/$out" --set transport.plugin=tcp "$@" >"$folder/$out.log" 2>&1 ||
    { tail -n 20 "$folder/$out.log"; return 1; }
}

check "one host" run_here one
for many in $numbers; do
  check "one host that imitates $many" run_here imitated-$many --set cluster.hosts=$many
  start_processes $many $((4 / many)) run "$folder/x.toml" --out "$folder/on-$many" --sweep transport.plugin=$transports
  check "$many hosts" wait_for_processes
  check "$many hosts: results equal those of one host" equal "$folder/on-$many" "$folder/one" "$folder/imitated-$many"
  check "$many hosts: the table is that of one host" same_table "$folder/on-$many" "$folder/one" "$transports"
done

# Servers on hosts of their own, one each.
apart=(--set cluster.colocate=false --sweep strategy.plugin=sync_ps)
sed -i '/^\[\[sweep.zip\]\]/,$d' "$folder/x.toml"
check "one host, servers apart" run_here apart-one "${apart[@]}"
start_processes 4 2 run "$folder/x.toml" --out "$folder/apart" "${apart[@]}" --set cluster.server_hosts=2 \
  --sweep transport.plugin=$transports
check "two hosts of workers, two of servers" wait_for_processes
check "their results equal those of one host" equal "$folder/apart" "$folder/apart-one" "$folder/apart-one"
check "nothing is left" nothing_left
