#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to a campaign on several test hosts when a host, a process or the network fails while a case runs.

Each case begins a campaign whose first case is short and whose second one runs until the fault. Then every process ends
within 5 s, on all hosts, nothing is left, and the finished case is in result.json. Arguments: names of cases, such as
`link poweroff`; none: all of them.
"""
import os, re, signal, sys, time
from pathlib import Path

from support import Cluster, Launch, check, experiment, finish, folder, records, result, wait_until

PLACES = ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"]
# Sanitizers would make an exit code of a SIGSEGV.
for sanitizer in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
    os.environ[sanitizer] = os.environ.get(sanitizer, "") + ":handle_segv=0"
# Seconds from the fault to the end of the last process, a lost host's included. The time begins before the tool that
# makes the fault starts, so that what it takes counts, too.
LIMIT = 5
cluster = None


def hosts_are_up(*options):
    """The hosts of the last case serve again if it has not broken one."""
    global cluster
    if cluster is None:
        cluster = Cluster(4, "--forwarder", "n3", *options)
    return cluster


def campaign(name, **keys):
    """Starts a campaign of a short and an endless case and waits until the second one runs."""
    hosts_are_up()
    out = str(folder / name)
    file = experiment(name, **{"cluster_workers": 8, "sweep_measure.steps": [5, 10000000], "measure_timeout": "10min",
                               **keys})
    launch = Launch(cluster, PLACES, "run", file, "--out", out,
                    of_rank={rank: {"CUDA_VISIBLE_DEVICES": str(rank)} for rank in range(len(PLACES))})
    launch.out, launch.arguments = out, ["run", file, "--out", out]
    began = wait_until(lambda: Path(out, "result.json").exists() and len(result(out)["results"]) and
                       any(r["kind"] == "run" for r in records(out)) and launch.rank_process(7), 30)
    check(f"{name}: the first case ends, the second one runs", began is not None, launch.text())
    time.sleep(0.5)  # into the second case
    return launch


def ends(name, launch, message=None, gone=(), codes=(1,), fault=None):
    """Checks the end after a fault at the time `fault`; `gone`: hosts whose processes cannot know of the end."""
    fault = fault or time.monotonic()
    alive = [rank for rank, host in enumerate(PLACES) if host not in gone]
    wait_until(lambda: all(launch.processes[rank].poll() is not None for rank in alive), 15)
    took = time.monotonic() - fault
    launch.ended = took
    left = {h: p for h, p in cluster.left().items() if h not in gone}
    check(f"{name}: all processes end within {LIMIT} s (took {took:.1f})", took < LIMIT and not left,
          f"{left}\n{launch.text()}")
    if message:
        check(f"{name}: the message names it", launch.says(message), launch.text())
    if "n0" not in gone:
        check(f"{name}: exit code", launch.processes[0].returncode in codes, f"{launch.codes()}\n{launch.text()}")
    finished = [r for r in result(launch.out)["results"] if r["status"] == "ok"]
    check(f"{name}: the finished case is kept", len(finished) == 1, f"{result(launch.out)['results']}\n{launch.text()}")


# Of the coordinator, about a host that vanishes without a word.
LOST = r"host n3 \(ranks 6, 7\): (no sign of life for [0-9.]+ s|its connection ended)"


def gone_by(name, pull, plug):
    """A host vanishes; its own processes end, too, if they live."""
    launch = campaign(name)
    began = time.monotonic()
    pull()
    noticed = wait_until(lambda: launch.says(LOST), 8)
    noticed = noticed and time.monotonic() - began
    check(f"{name}: noticed within {LIMIT} s ({noticed and round(noticed, 1)})", noticed and noticed < LIMIT,
          launch.text())
    wait_until(lambda: not cluster.left(), 10)
    took, left = time.monotonic() - began, cluster.left()
    check(f"{name}: the processes on all hosts, the lost one too, end within {LIMIT} s (took {took:.1f})",
          took < LIMIT and not left, f"{left}\n{launch.text()}")
    ends(name, launch, LOST, gone=("n3",), fault=began)
    plug()
    launch.wait(5)


def link():
    gone_by("link", lambda: cluster.tool("link", "n3", "down"), lambda: cluster.tool("link", "n3", "up"))


def cut():
    cut_off("cut", "both")


def cut_in():
    """Nothing reaches the host, but what it sends arrives."""
    cut_off("cut_in", "in")


def cut_out():
    """Nothing that the host sends arrives, but it receives."""
    cut_off("cut_out", "out")


def cut_off(name, direction):
    gone_by(name, lambda: cluster.tool("impair", "n3", f"cut={direction}"),
            lambda: cluster.tool("impair", "n3", "clear"))


def poweroff():
    global cluster
    gone_by("poweroff", lambda: cluster.tool("poweroff", "n3"), lambda: None)
    cluster.down()
    cluster = None


def coordinator_host():
    """The host of process 0 has no power any more: the others end by themselves."""
    global cluster
    launch = campaign("coordinator_host")
    began = time.monotonic()
    cluster.tool("poweroff", "n0")
    wait_until(lambda: not cluster.left(), 15)
    took = time.monotonic() - began
    check(f"coordinator_host: the others end within {LIMIT} s (took {took:.1f})", took < LIMIT,
          f"{cluster.left()}\n{launch.text()}")
    check("coordinator_host: each of them says why", all(
        re.search("the host of process 0 of this launch gave no sign of life for [0-9.]+ s",
                  "".join(launch.output(process) for process, place in enumerate(PLACES) if place == host))
        for host in ("n1", "n2", "n3")), launch.text())
    launch.wait(5)
    cluster.down()
    cluster = None


def rank():
    for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV")):
        launch = campaign("rank-" + name)
        check("a rank has the GPU that the launcher has given its process",
              b"\0CUDA_VISIBLE_DEVICES=5\0" in b"\0" + Path(f"/proc/{launch.rank_process(5)}/environ").read_bytes(),
              launch.text())
        began = time.monotonic()
        os.kill(launch.rank_process(5), number)
        ends("rank " + name, launch, rf"rank 5 \(worker 5, host n2, pid [0-9]+\): killed by {name}", fault=began)


def of_process(name, pid_of, message, codes=(1,), **keys):
    launch = campaign(name, **keys)
    began = time.monotonic()
    os.kill(pid_of(launch), signal.SIGKILL)
    ends(name, launch, message, fault=began, codes=codes)
    launch.wait(5)
    return launch


def agent():
    of_process("agent", lambda l: l.agent("n3"), r"host n3 \(ranks 6, 7\): its connection ended")


def keeper():
    """A launched process that is not the first on its host, where it would take the agent with it."""
    launch = of_process("keeper", lambda l: next(l.pid(p) for p in (4, 5) if not l.forks(p)),
                        r"rank [45] \(worker [45], host n2, pid [0-9]+\): "
                        r"(ended with the launcher's process|killed by SIGKILL)",
                        **{"sweep_measure.steps": [5, 10000000, 6, 7]})
    check("keeper: the process is named", launch.says(r"host n2 \(its launched process [45] has ended\) is lost"),
          launch.text())
    refuses_the_rest("keeper", launch, "n2")
    launch = of_process("first-keeper", lambda l: next(l.pid(p) for p in (4, 5) if l.forks(p)),
                        r"host n2 \(ranks 4, 5\): its connection ended", **{"sweep_measure.steps": [5, 10000000, 6, 7]})
    refuses_the_rest("first-keeper", launch, "n2")


def refuses_the_rest(name, launch, host):
    """After the loss of a host in the second of four cases, the last two do not run and have no record."""
    check(f"{name}: one message refuses the other cases",
          launch.says(rf"host {host} \(.*\) is lost, and no further case runs without it: 1 of 4 cases finished; "
                      r"go on with --out .* --resume") and
          len(re.findall(r"case [0-9]+ (failed|skipped)", launch.text())) == 1, launch.text())
    statuses = [r["status"] for r in result(launch.out)["results"]]
    check(f"{name}: the other cases have no record", statuses == ["ok", "failed"], statuses)


def lost():
    """--resume runs the case that failed with its host, and those that did not run."""
    launch = of_process("lost", lambda l: l.agent("n3"), r"host n3 \(ranks 6, 7\): its connection ended",
                        **{"sweep_measure.steps": [5, 300, 6, 7]})
    refuses_the_rest("lost", launch, "n3")
    again = Launch(cluster, PLACES, *launch.arguments, "--resume")
    again.wait()
    statuses = [r["status"] for r in result(launch.out)["results"]]
    check("lost: --resume completes the campaign", again.codes() == [0] * 8 and statuses == ["ok"] * 4,
          f"{statuses}\n{again.text()}")


def lost_and_skipped():
    """A case that cannot run is skipped: the campaign ends with the code of the lost host."""
    of_process("lost_and_skipped", lambda l: l.agent("n3"), r"host n3 \(ranks 6, 7\): its connection ended",
               **{"sweep_transport.plugin": ["tcp", "null"]})


def coordinator():
    """Also: --resume runs what the end of the campaign left."""
    launch = of_process("coordinator", lambda l: l.campaign(), r"process 0 of this launch has ended",
                        **{"sweep_measure.steps": [5, 300]})
    again = Launch(cluster, PLACES, *launch.arguments, "--resume")
    again.wait()
    statuses = [r["status"] for r in result(launch.out)["results"]]
    check("coordinator: --resume completes the campaign", again.codes() == [0] * 8 and statuses == ["ok", "ok"],
          f"{statuses}\n{again.text()}")


def process_0():
    of_process("process 0", lambda l: l.pid(0), None, codes=(-9, 137))


def terminated():
    """A launcher ends its job: SIGTERM to the launched processes, or to all processes."""
    for name, everyone in (("terminated", False), ("all terminated", True)):
        launch = campaign(name.replace(" ", "-"))
        began = time.monotonic()
        if everyone:
            for host in ("n3", "n2", "n1", "n0"):
                for pid in cluster.processes(host):
                    try:
                        os.kill(pid, signal.SIGTERM)
                    except ProcessLookupError:
                        pass
        else:
            launch.signal(signal.SIGTERM)
        ends(name, launch, codes=(130,), fault=began)
        statuses = [r["status"] for r in result(launch.out)["results"]]
        check(f"{name}: the interrupted case has not failed", "failed" not in statuses, f"{statuses}\n{launch.text()}")


def slow():
    """A bad network for some seconds is no death."""
    launch = campaign("slow")
    for words in (("delay=100ms",), ("delay=100ms", "loss=1%"), ("delay=100ms", "loss=1%", "rate=1mbit")):
        cluster.tool("impair", "n3", "clear", *words)
        time.sleep(6)
        check(f"slow: {' '.join(words)} for 6 s is no death",
              all(p.poll() is None for p in launch.processes.values()), launch.text())
    cluster.tool("impair", "n3", "clear")
    launch.signal(signal.SIGTERM)
    ends("slow", launch, codes=(130,))


CASES = [link, cut, cut_in, cut_out, rank, agent, keeper, lost, lost_and_skipped, coordinator, process_0, terminated,
         slow, poweroff, coordinator_host]
chosen = sys.argv[1:] or [c.__name__ for c in CASES]
for case in CASES:
    if case.__name__ in chosen:
        print(case.__name__.replace("_", " "))
        case()
finish()
