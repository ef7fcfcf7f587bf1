#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transport nccl on two hosts, on an emulated GPU each, with a stand-in for libnccl that records its calls: rank 0's id
reaches the other host through the agents, and both join by the interface of cluster.interface, or the user's own.
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from support import Cluster, Launch, REGATTA, check, experiment, finish, folder, skip

BUILD = Path(REGATTA).parents[1]
EMULATED, RECORDED = BUILD / "tests/emulated", BUILD / "tests/recorded_nccl"
for needed in (EMULATED / "cudnn.so", EMULATED / "nccl.so", RECORDED):
    if not needed.exists():
        skip(f"{needed} is not built: CUDA's and NCCL's headers are missing")


def calls_of(name, cluster, interface, of_rank=None):
    """Runs two workers, which end in any way once they have joined, as no bytes move. Returns what was recorded."""
    calls = folder / f"calls-{name}"
    file = experiment(name, cluster_workers=2, cluster_interface=interface, transport_plugin="nccl",
                      train_device="cuda", measure_steps=2)
    launch = Launch(cluster, ["n0", "n1"], "run", file, "--out", folder / f"out-{name}", "--plugin-path", EMULATED,
                    environment={"LD_LIBRARY_PATH": str(RECORDED), "RECORDED_NCCL": str(calls)}, of_rank=of_rank)
    launch.wait()
    return (calls.read_text().splitlines() if calls.exists() else []), launch.text()


cluster = Cluster(2, "--networks", "2")
lines, text = calls_of("subnet", cluster, "10.78.0.0/16")
check("rank 0 makes the id with the interface of cluster.interface", lines[:1] == ["made at =eth1"], f"{lines} {text}")
check("both ranks join with that id, each by that interface",
      sorted(line for line in lines if "joins" in line)
      == [f"{rank} of 2 joins at =eth1 with the id made at =eth1" for rank in (0, 1)], f"{lines} {text}")
lines, text = calls_of("users", cluster, "eth0", {1: {"NCCL_SOCKET_IFNAME": "eth1"}})
check("a host's own NCCL_SOCKET_IFNAME stays",
      sorted(line for line in lines if "joins" in line)
      == ["0 of 2 joins at =eth0 with the id made at =eth0", "1 of 2 joins at eth1 with the id made at =eth0"],
      f"{lines} {text}")
check("no process is left", not cluster.left(), cluster.left())
finish()
