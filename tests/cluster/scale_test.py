#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many ranks: 1,000 over 16 hosts, a ring of 128 over tcp, and how fast 64 processes on 4 hosts begin.

`scale_test.py [RANKS HOSTS]` runs one size only, without limits, and prints how long it took; `scale_test.py processes
N HOSTS` starts N processes, each with REGATTA_* of its own, instead of one process a host that stands for many.
"""
import sys, time

from support import Cluster, Launch, check, experiment, finish, folder, result, wait_until


def run(cluster, name, ranks, hosts, slots, **keys):
    """Starts `slots` ranks by each process, one process on each host, or with 1 a process for each rank; prints the
    seconds that it took, also since the last process was started, and returns them, the most connections to the
    coordinator, and the most open TCP sockets on another host."""
    out = str(folder / name)
    file = experiment(name, cluster_workers=ranks, cluster_pin=False, **keys)
    places = [f"n{h * hosts // ranks}" for h in range(ranks)] if slots == 1 else [f"n{h}" for h in range(hosts)]
    launch = Launch(cluster, places, "run", file, "--out", out, slots=slots)
    all_started, most, elsewhere = time.monotonic(), 0, 0
    while any(p.poll() is None for p in launch.processes.values()) and time.monotonic() < launch.begin + 170:
        seen = cluster.on("n0", "ss", "-Htn", "state", "established", "sport", "= :7117")
        most = max(most, len(seen.stdout.splitlines()))
        seen = cluster.on("n1", "ss", "-Htn", "state", "established")
        elsewhere = max(elsewhere, len(seen.stdout.splitlines()))
        time.sleep(1)
    launch.wait(1)
    took = time.monotonic() - launch.begin
    check(f"{name}: runs", launch.codes() == [0] * len(places) and result(out)["results"][0]["status"] == "ok",
          launch.output(0)[-3000:] + launch.text()[-500:])
    print(f"  {name}: {took:.1f} s, {time.monotonic() - all_started:.1f} s of it after the last start, "
          f"at most {most} connections at the coordinator, {elsewhere} TCP sockets on another host")
    return took, most, elsewhere


NULL = {"model_plugin": "null", "model_hidden": None, "strategy_plugin": "none", "transport_plugin": "null",
        "measure_steps": 10, "train_kernels": None}
if sys.argv[1:2] == ["processes"]:
    ranks, hosts = int(sys.argv[2]), int(sys.argv[3])
    run(Cluster(hosts), f"{ranks} processes", ranks, hosts, 1, **NULL)
    finish()
if len(sys.argv) > 2:
    ranks, hosts = int(sys.argv[1]), int(sys.argv[2])
    run(Cluster(hosts), f"{ranks} ranks", ranks, hosts, -(-ranks // hosts), **NULL)
    finish()

cluster = Cluster(16)
took, connections, _ = run(cluster, "1,000 ranks", 1000, 16, 63, **NULL)
check("1,000 ranks: start, run 10 steps and end in under 60 s", took < 60, took)
check("1,000 ranks: at most 40 connections at the coordinator", connections <= 40, connections)
took, _, sockets = run(cluster, "a ring of 128 over tcp", 128, 16, 8, strategy_algorithm="ring", measure_steps=3)
check("a ring of 128 over tcp: under 60 s", took < 60, took)
# 8 ranks with 2 neighbours and 5 lanes, and the connections of the run's control: each rank's to its agent has two ends
# on the host. If all ranks were connected, there would be more than 5,000.
check("a ring of 128 over tcp: only neighbours connect", sockets <= 8 * 2 * 5 + 8 * 2 + 8, sockets)

# Launched processes wait for each other: the last one is started when all others have joined.
file = experiment("64", cluster_workers=64, cluster_pin=False, **NULL)
places = [f"n{i // 16}" for i in range(64)]
launch = Launch(cluster, places, "run", file, "--out", str(folder / "64"), order=range(63))
check("64 processes: 63 have joined", wait_until(lambda: launch.says(r"63 of 64 have joined"), 30) is not None,
      launch.text())
begin = time.monotonic()
launch.add(63)
started = wait_until(lambda: sum("--rank" in line for host in ("n0", "n1", "n2", "n3")
                                 for line in cluster.processes(host).values()) >= 64, 20)
check(f"64 processes: all ranks are started within 3 s of the last one's arrival ({started})",
      started is not None and started < 3, launch.text())
launch.wait()
print(f"  64 processes: end {time.monotonic() - begin:.1f} s after the last one's arrival")
check("64 processes: run", launch.codes() == [0] * 64, launch.output(0)[-3000:] + launch.text()[-500:])
finish()
