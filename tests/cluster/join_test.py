#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Processes on several test hosts find each other, prove that they belong together, and are refused by name if not.

Arguments: names of sections, such as `runs differences`; none: all of them.
"""
import json, os, re, shutil, signal, subprocess, sys, time
from pathlib import Path

from support import REGATTA, Cluster, Launch, check, experiment, finish, folder, records, result, wait_until, write

cluster = Cluster(4, "--networks", "2")
two, pair = ["n0", "n0", "n1", "n1"], ["n0", "n3"]


def losses(out):
    return [case["loss"]["curve"] for case in result(out)["results"]]


def hosts_of_ranks(out):
    runs = [r for r in records(out) if r["kind"] == "run" and r["role"] == "case"]
    return [rank["host"] for rank in runs[0]["ranks"]]


def ends_well(text, launch, out=None):
    launch.wait()
    check(text, launch.codes() == [0] * len(launch.places), launch.text())
    return out and Path(out, "result.json").exists()


def refused(text, launch, *patterns, limit=10, code=2):
    """All processes end, the first with `code`, and each pattern is on some line."""
    took = launch.wait()
    good = launch.processes[0].returncode == code and took < limit and all(launch.says(p) for p in patterns)
    check(text, good, f"{took:.1f} s, codes {launch.codes()}\n{launch.text()}")


def same_as_on_one_host(text, places, **keys):
    """Compares with a run on one host whose ranks are told of as many hosts."""
    file = experiment("same", **keys)
    hosts = len(set(places))
    alone, out = str(folder / f"alone-{text}"), str(folder / f"out-{text}")
    one = cluster.on("n0", REGATTA, "run", file, "--out", alone, "--set", f"cluster.hosts={hosts}")
    check(f"{text}: runs on one host", one.returncode == 0, one.stdout + one.stderr)
    launch = Launch(cluster, places, "run", file, "--out", out)
    if ends_well(f"{text}: runs on {hosts} hosts", launch, out) and one.returncode == 0:
        check(f"{text}: the losses are the same", losses(out) == losses(alone), f"{losses(out)}, {losses(alone)}")
        check(f"{text}: replicas are identical", all(c["replicas_identical"] is not False
                                                     for c in result(out)["results"]), "")
    return out


def runs():
    out = same_as_on_one_host("allreduce", two)
    check("ranks fill one host after the other", hosts_of_ranks(out) == two, hosts_of_ranks(out))
    check("the result has an entry for each host", [h["name"] for h in result(out)["context"]["hosts"]] == ["n0", "n1"],
          result(out)["context"]["hosts"])
    same_as_on_one_host("sync_ps", ["n0", "n1", "n2", "n3"], strategy_plugin="sync_ps", transport_plugin="auto",
                        cluster_colocate=True)


def placement():
    out = str(folder / "placed")
    file = experiment("placed", cluster_place="round_robin")
    ends_well("round_robin runs", Launch(cluster, two, "run", file, "--out", out))
    check("round_robin: each host takes one rank in turn", hosts_of_ranks(out) == ["n0", "n1", "n0", "n1"],
          hosts_of_ranks(out))
    out = str(folder / "servers")
    file = experiment("servers", cluster_workers=2, cluster_servers=2, cluster_server_hosts=2,
                      strategy_plugin="sync_ps")
    ends_well("server_hosts = 2 runs", Launch(cluster, ["n0", "n1", "n2", "n3"], "run", file, "--out", out))
    check("server_hosts = 2: the last two hosts have the servers", hosts_of_ranks(out) == ["n0", "n1", "n2", "n3"],
          hosts_of_ranks(out))
    launch = Launch(cluster, ["n0", "n1"], "run", experiment("more", cluster_workers=3))
    refused("too few processes for the ranks", launch,
            r"needs 3 ranks, and REGATTA_RANK has started 2 processes on 2 hosts", code=77)


def interfaces():
    expected = {"eth1": [("eth1", "10.78.0.{}")], "10.78.0.0/16": [("eth1", "10.78.0.{}")],
                "eth0,eth1": [("eth0", "10.77.0.{}"), ("eth1", "10.78.0.{}")], "auto": [("eth0", "10.77.0.{}")]}
    for interface, rails in expected.items():
        out = str(folder / interface.replace("/", "_"))
        file = experiment("interface", cluster_workers=2, cluster_interface=interface)
        ends_well(f"cluster.interface = {interface}", Launch(cluster, pair, "run", file, "--out", out), out)
        links = [[(li["key"], li["name"], li["address"], li["mtu"], li["bits_per_second"]) for li in host["links"]]
                 for host in result(out)["context"]["hosts"]]
        speed = {(h, name): int(said) * 10**6 if (said := cluster.on(h, "cat", f"/sys/class/net/{name}/speed").stdout)
                 and int(said) > 0 else None for h in pair for name in ("eth0", "eth1")}
        check(f"cluster.interface = {interface}: the result has the links of each host",
              links == [[(interface, name, address.format(number), 1500, speed[host, name])
                         for name, address in rails] for host, number in zip(pair, (1, 4))], links)
    # Several cases, because each of them asks for the addresses: the hosts are probed once.
    file = experiment("interface", cluster_workers=2, cluster_interface="eth1",
                      **{"measure_steps": None, "sweep_measure.steps": [5, 6, 7, 8]})
    cluster.tool("link", "n3.1", "down")
    refused("an address that others cannot reach is named, with the pair", Launch(cluster, pair, "run", file),
            r"n0 \(10\.78\.0\.1\) cannot connect to n3 \(10\.78\.0\.4\): ", r"n3 \(10\.78\.0\.4\) cannot connect to n0")
    cluster.on("n3", "ip", "link", "del", "eth1")
    refused("a host without the interface is named", Launch(cluster, pair, "run", file), r"host n3: .*eth1")


def differences():
    file = experiment("pair", cluster_workers=2)
    other = str(folder / "bin/regatta")
    Path(other).parent.mkdir()
    shutil.copy(REGATTA, other)
    (folder / "lib").symlink_to(Path(REGATTA).parents[1] / "lib")
    with open(other, "ab") as program:
        program.write(b"\0")
    different = {"program": lambda rank: other if rank else REGATTA}
    refused("another program on one host", Launch(cluster, pair, "run", file, **different),
            r"the hosts run different programs:", r"n0 +n3", r"program SHA-256 +[0-9a-f]{64} +[0-9a-f]{64}")
    out = str(folder / "allowed")
    ends_well("--allow-different-binaries runs it",
              Launch(cluster, pair, "run", file, "--out", out, "--allow-different-binaries", **different))
    check("--allow-different-binaries: the result has a warning",
          "different programs" in str(result(out)["context"]["warnings"]), result(out)["context"]["warnings"])

    second = {"program": lambda rank: other if rank == 2 else REGATTA}  # the other one of n3's has the agent, or itself
    refused("another program of one process on a host", Launch(cluster, ["n0", "n3", "n3"], "run", file, **second),
            r"the processes run different programs:", r" n0 .*n3 \(process [12]\) +n3 \(process [12]\)",
            r"program SHA-256( +[0-9a-f]{64}){3}")
    out = str(folder / "second-allowed")
    ends_well("--allow-different-binaries runs it, too",
              Launch(cluster, ["n0", "n3", "n3"], "run", file, "--out", out, "--allow-different-binaries", **second))
    check("--allow-different-binaries: the result names the processes",
          re.search(r"n3 \(process 1\)", str(result(out)["context"]["warnings"])), result(out)["context"]["warnings"])

    plugins = Path(REGATTA).parents[1] / "lib/regatta"
    for host in pair:  # /dev/shm is the host's own
        cluster.on(host, "mkdir", "/dev/shm/plugins")
    cluster.on("n0", "cp", str(plugins / "allreduce.so"), "/dev/shm/plugins/")
    with_plugin = ["run", file, "--plugin-path", "/dev/shm/plugins"]
    refused("a plugin that is missing on one host", Launch(cluster, pair, *with_plugin),
            r"/dev/shm/plugins/allreduce.so is missing on host n3")
    cluster.on("n3", "sh", "-c", f"cd /dev/shm/plugins && cp {plugins}/allreduce.so . && printf x >>allreduce.so")
    table = (r"the hosts have different plugins, by SHA-256:", r"  +n0 +n3\n",
             r"/dev/shm/plugins/allreduce\.so +[0-9a-f]{64} +[0-9a-f]{64}")
    refused("a plugin that differs on one host", Launch(cluster, pair, *with_plugin), *table,
            r"or allow the difference with --allow-different-binaries")
    out = str(folder / "other-plugin")
    ends_well("--allow-different-binaries runs it with another plugin",
              Launch(cluster, pair, *with_plugin, "--out", out, "--allow-different-binaries"), out)
    warnings = "".join(result(out)["context"]["warnings"])
    check("--allow-different-binaries: the result names plugin and hosts", all(re.search(p, warnings) for p in table),
          warnings)
    cluster.on("n0", "cp", f"{plugins}/tcp.so", "/dev/shm/plugins/")
    cluster.on("n3", "sh", "-c", f"cd /dev/shm/plugins && cp {plugins}/tcp.so . && printf x >>tcp.so")
    refused("regatta comm with a plugin that differs", Launch(cluster, pair, "comm", "--transport", "tcp", "--ranks", "2",
                                                              "--plugin-path", "/dev/shm/plugins"), *table[:2],
            r"/dev/shm/plugins/tcp\.so +[0-9a-f]{64}")
    cluster.on("n3", "sh", "-c", "mkdir /dev/shm/lib && cd /dev/shm/lib && path=$(ldconfig -p | awk '/libdnnl.so.[0-9]/ "
               "{print $NF; exit}') && cp $path libdnnl.so.99.9 && ln -s libdnnl.so.99.9 $(basename $path)")
    out = str(folder / "other-library")
    ends_well("another version of oneDNN on one host", Launch(cluster, pair, "run", file, "--out", out,
                                                              of_rank={1: {"LD_LIBRARY_PATH": "/dev/shm/lib"}}), out)
    warnings = "".join(result(out)["context"]["warnings"])
    check("another version of oneDNN on one host is a warning", re.search(
        r"plugins load libdnnl\.so\.[0-9.]+ on n0, and libdnnl\.so\.99\.9 on n3", warnings), warnings)
    data()


def instruction_sets():
    """Host n3 pretends to have no more than the baseline."""
    if json.loads(cluster.on("n0", REGATTA, "doctor", "--json").stdout)["machine"]["isa"] == "baseline":
        print("  skipped: this CPU has nothing beyond the baseline")
        return
    fewer = {"of_rank": {1: {"REGATTA_ISA": "baseline"}}}
    refused("instruction sets that differ", Launch(cluster, pair, "run", experiment("isa", cluster_workers=2), **fewer),
            r'train\.isa: expected the same instruction set on all hosts under "auto"; set train\.isa = "baseline", which all '
            r"hosts have; got\n", r"\[0\] +n0 +n3\n", r"\[0\] +isa +avx\w+ +baseline\n")
    out = str(folder / "isa")
    file = experiment("isa", cluster_workers=2, train_isa="baseline")
    ends_well("train.isa = baseline runs", Launch(cluster, pair, "run", file, "--out", out, **fewer), out)
    check("the result has the instruction sets of the ranks and of the hosts",
          [c["isa"] for c in result(out)["results"]] == ["baseline"] and
          [h["isa"] == "baseline" for h in result(out)["context"]["hosts"]] == [False, True], result(out)["context"])


def data():
    """64 images in CIFAR-10's format, each host's own file at one path."""
    make = "head -c $((64 * 3073)) /dev/zero >/dev/shm/train.bin"
    cluster.on("n0", "sh", "-c", make)
    out = str(folder / "data")
    file = experiment("data", cluster_workers=2, train_batch=8, data_source="dataset", data_format="cifar10",
                      data_path="/dev/shm/train.bin")
    refused("a data file that is missing on one host", Launch(cluster, pair, "run", file, "--out", out),
            r"/dev/shm/train\.bin is missing on host n3")
    check("a data file that is missing on one host: nothing has started", not Path(out).exists())
    cluster.on("n3", "sh", "-c", make)
    ends_well("a data file on each host", Launch(cluster, pair, "run", file, "--out", out))


def secrets():
    file = experiment("pair", cluster_workers=2)
    run = ["run", file, "--out", str(folder / "secret-run")]
    wrong = write("wrong", "f" * 40)
    launch = Launch(cluster, pair, *run, of_rank={1: {"REGATTA_SECRET_FILE": wrong}})
    said = wait_until(lambda: launch.says(r"refused a connection from .*10\.77\.0\.4"), 10)
    check("a wrong secret: process 0 names the address", said is not None, launch.text())
    ended = wait_until(lambda: launch.processes[1].poll() is not None, 10)
    check("a wrong secret: the process ends within 10 s with exit code 2",
          ended is not None and launch.processes[1].returncode == 2, launch.text())
    said = wait_until(lambda: launch.says(r"missing: 1; refused, because they did not prove the secret of this launch: "
                                          r"10\.77\.0\.4"), 12)
    check("a wrong secret: the list of missing processes names the address", said is not None, launch.text())
    launch.signal(signal.SIGTERM)
    refused("a wrong secret: the process says so", launch,
            r"\[1\] .*process 0 at n0 port 71[0-9]+ has another secret than this host", code=130)
    readable = write("readable", "f" * 40, 0o644)
    refused("a secret that others can read", Launch(cluster, pair, *run, environment={"REGATTA_SECRET_FILE": readable}),
            r"only its owner can read, got mode 0644")
    refused("no secret", Launch(cluster, pair, *run, environment={"REGATTA_SECRET_FILE": None}),
            r"REGATTA_SECRET_FILE is not set")


def meeting():
    file = experiment("pair", cluster_workers=2)
    run = ["run", file, "--out", str(folder / "meeting")]
    listener = cluster.enter("n0") + ["python3", "-c", "import socket, time\ns = socket.create_server(('', 7117))\n"
                                                       "print('ready', flush=True)\ntime.sleep(60)"]
    with subprocess.Popen(listener, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        launch = Launch(cluster, pair, "run", file, "--out", str(folder / "taken"))
        ends_well("a port that is taken: they meet at the next one", launch)
        check("it is named", launch.says("port 7117 is taken; the coordinator listens on port 7118"), launch.text())
        for pid in cluster.processes("n0"):
            os.kill(pid, signal.SIGKILL)

    launch = Launch(cluster, ["n0", "n1", "n2"], *run, of_rank={}, order=[1, 0])
    said = wait_until(lambda: launch.says(r"2 of 3 have joined \(n0: 0; n1: 1\); missing: 2"), 12)
    check("a process that does not come is named after 5 s", said is not None, launch.text())
    launch.signal(signal.SIGTERM)
    took = launch.wait(5)
    check("SIGTERM ends those that wait", not cluster.left(), f"{cluster.left()}")

    torch = [{"REGATTA_RANK": None, "REGATTA_RANKS": None, "REGATTA_COORDINATOR": None,
              "RANK": str(rank), "WORLD_SIZE": "4",
              "MASTER_ADDR": "n0", "MASTER_PORT": "29500"} for rank in range(4)]
    ends_well("the environment of torchrun on two hosts",
              Launch(cluster, two, "run", experiment("torch"), "--out", str(folder / "torch"),
                     of_rank=dict(enumerate(torch))))
    launch = Launch(cluster, pair, "run", file, "--out", str(folder / "late"),
                    environment={"REGATTA_COORDINATOR": "late:7117"})
    time.sleep(1)
    for host in pair:
        cluster.on(host, "sh", "-c", "echo 10.77.0.1 late >>/etc/hosts")
    ends_well("a name that is known later", launch)


sections = [runs, placement, interfaces, differences, instruction_sets, secrets, meeting]
chosen = sys.argv[1:] or [s.__name__ for s in sections]
for section in sections:
    if section.__name__ in chosen:
        print(section.__name__)
        section()
check("nothing is left", not cluster.left(), cluster.left())
finish()
