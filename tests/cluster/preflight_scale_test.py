#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""regatta preflight on many hosts: healthy ones, and one planted fault at a time.

`preflight_scale_test.py` runs 64 hosts. `preflight_scale_test.py HOSTS FAULT...` runs the named faults, each on a host
of its own choice, and counts which are named and which healthy hosts are accused: `8 none link loss cpu mtu interface
binary`. A fault may be followed by `xN`: so many runs.
"""
import json, os, random, re, shutil, sys

from support import REGATTA, Cluster, Launch, check, finish, folder

RATE = 200  # Mbit/s of every link: two cores then carry several pairs at once
CHECKS = {"link": {"bandwidth", "loss"}, "path": {"bandwidth", "loss"}, "loss": {"loss", "bandwidth"},
          "cpu": {"quota", "compute", "memory"}, "mtu": {"mtu"}, "interface": {"interface"}, "binary": {"program"}}


def other_program():
    """Returns a copy of the program with another SHA-256."""
    program = folder / "bin/regatta"
    if not program.exists():
        program.parent.mkdir()
        (folder / "lib").symlink_to(os.path.join(os.path.dirname(os.path.dirname(REGATTA)), "lib"))
        shutil.copy(REGATTA, program)
        with open(program, "ab") as file:
            file.write(b"x")
    return str(program)


def slow_path(cluster, sender, receiver):
    """Halves the rate of what one host sends to another one."""
    address = f"10.77.0.{1 + int(receiver[1:])}"
    for words in ("qdisc replace dev eth0 root handle 1: htb default 1",
                  f"class add dev eth0 parent 1: classid 1:1 htb rate {RATE}mbit quantum 20000",
                  f"class add dev eth0 parent 1: classid 1:2 htb rate {RATE // 2}mbit quantum 20000",
                  f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {address} flowid 1:2"):
        done = cluster.on(sender, "tc", *words.split())
        check(f"tc {words}", done.returncode == 0, done.stderr)


def plant(cluster, fault, host, other):
    """Plants a fault and returns how to start the launch."""
    how = {}
    if fault == "link":
        cluster.tool("rate", f"{host}.0", f"{RATE // 2}mbit")
    elif fault == "path":
        slow_path(cluster, host, other)
    elif fault == "loss":
        cluster.tool("impair", f"{host}.0", "out.loss=4%")
    elif fault == "cpu":
        cluster.tool("cpu", host, "70")
    elif fault == "mtu":
        cluster.on(host, "ip", "link", "set", "eth0", "mtu", "1300")
    elif fault == "interface":  # the coordinator's name leads to the other network
        cluster.on(host, "sh", "-c", 'sed "s/^10.77.0.1 n0/10.78.0.1 n0/" /etc/hosts >/run/hosts; '
                                     'cat /run/hosts >/etc/hosts')
    elif fault == "binary":
        how["program"] = lambda rank: other_program() if f"n{rank}" == host else REGATTA
    return how


def run(hosts, fault):
    """Runs preflight once, with this fault or none; returns whether it named the fault, and nobody else."""
    host, other = (f"n{r}" for r in random.sample(range(1, hosts), 2))
    options = ["--rate", f"{RATE}mbit", "--networks", "2" if fault == "interface" else "1"]
    cluster = Cluster(hosts, *options, *(["--forwarder", host] if fault == "loss" else []))
    how = plant(cluster, fault, host, other)
    launch = Launch(cluster, [f"n{r}" for r in range(hosts)], "preflight", "--format", "json", **how)
    took = launch.wait(400)
    code = launch.processes[0].returncode
    text = launch.output(0)
    try:
        document = json.loads(text[text.index('{\n'):])
    except ValueError:
        check(f"{fault} on {host}: a document", False, launch.text()[-3000:])
        document = {"suspects": []}
    found = [(",".join(s["hosts"]), s["check"], s["evidence"]) for s in document["suspects"]]
    wanted = f"{host},{other}" if fault == "path" else host  # of a link: the sender first
    named = any(who == wanted and what in CHECKS[fault] for who, what, _ in found) if fault != "none" else code == 0
    accused = [who for who, _, _ in found if fault == "none" or not {wanted, host} & {who}]
    shown = "; ".join(": ".join(f) for f in found) or "no suspects"
    where = "" if fault == "none" else f" on {wanted}"
    print(f"    {fault}{where}: {took:.1f} s, exit code {code}: {shown}", flush=True)
    for key in ("measured", "bisection"):
        if key in document:
            print(f"      {key}: {json.dumps(document[key])}")
    if os.environ.get("PREFLIGHT_KEEP"):
        with open(f"{os.environ['PREFLIGHT_KEEP']}-{fault}.json", "w") as file:
            json.dump(document, file)
    cluster.down()
    return named and not accused and code == (0 if fault == "none" else 5)


def count(hosts, faults):
    for word in faults:
        fault, _, runs = word.partition("x") if re.search(r"x\d+$", word) else (word, "", "1")
        good = [run(hosts, fault) for _ in range(int(runs))]
        check(f"{hosts} hosts, {fault}: {sum(good)} of {len(good)} right", all(good))


count(int(sys.argv[1]), sys.argv[2:]) if len(sys.argv) > 2 else count(64, ["none", "link"])
finish()
