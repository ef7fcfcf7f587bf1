#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Orders of strategies and efficiencies, in Regatta, in Regatta's simulation, and in PyTorch over gloo.

  ddp_order.py measure FOLDER CELL...    CELL: MODEL,WORKERS,RATE, such as vgg16,2,1gbit; RATE may be none
  ddp_order.py table FOLDER              from all cells that the folder has

Each worker is a test host of its own (tests/cluster/README.md; needs root) on core `rank % cores`; RATE limits the
links of hosts. Strategies are all-reduce in fp32, in fp16 on the wire, and PowerSGD of rank 2, in turn with DDP. Rates
are medians of the turns, and so is E, of the rates in a turn of the workers together and of one alone.
`measure` calibrates a model first, once. Build `product`, `custom_strategy_powersgd` and `ddp_buckets` before.
"""
import itertools
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOSTS = ROOT / "tests/cluster/hosts/hosts.py"
BUILD = ROOT / "build/release"
REGATTA = BUILD / "bin/regatta"
GLOO = pathlib.Path(__file__).with_name("gloo_allreduce.py")
GLOO_SIZES = [64 << 10, 1 << 20, 16 << 20]
PEER = pathlib.Path(__file__).with_name("ddp.py")
ALL_REDUCED = {"plain": 4 << 20, "fp16": 4 << 20, "powersgd": 64 << 10}  # bytes, about those of a message
CORES = len(os.sched_getaffinity(0))
TURNS = 3
STRATEGIES = {
    "plain": '[strategy]\nplugin = "allreduce"\nalgorithm = "ring"\n',
    "fp16": '[strategy]\nplugin = "allreduce"\nalgorithm = "ring"\nwire = "fp16"\n',
    "powersgd": '[strategy]\nplugin = "powersgd"\nrank = 2\n',
}
MODELS = {  # Regatta's parameters, the batch of a worker, steps of a short and of a long one
    "mlp": ('plugin = "mlp"', 64, {"none": 100, "1gbit": 60, "100mbit": 10}),
    "resnet18": ('plugin = "resnet50"\ninput = "cifar10"\ndepth = 18\nwidth = 32', 32,
                 {"none": 12, "1gbit": 12, "100mbit": 6}),
    "vgg16": ('plugin = "vgg16"', 16, {"none": 8, "1gbit": 8, "200mbit": 4}),
}
DDP = {  # as DistributedDataParallel exchanges gradients: ddp_buckets.cpp; that of PowerSGD has one bucket for all
    "plain": '[strategy]\nplugin = "ddp"\nbucket = "25MiB"\n',
    "fp16": '[strategy]\nplugin = "ddp"\nbucket = "25MiB"\nwire = "fp16"\n',
    "powersgd": STRATEGIES["powersgd"],
}
WARMUP = 3  # the first two steps of DDP's PowerSGD are plain


def experiment(model, workers, strategy, steps, strategies=None):
    parameters, batch, _ = MODELS[model]
    alone = workers == 1
    return (f'[experiment]\nplugin_path = ["{BUILD}/examples/custom_strategy_powersgd.so", '
            f'"{BUILD}/tests/ddp_buckets.so"]\n[model]\n{parameters}\n'
            f'[train]\nbatch = {batch}\n[optimizer]\nplugin = "momentum"\nlr = 0.001\n'
            f'[cluster]\nworkers = {workers}\npin = false\nthreads = 1\n'
            + ('[strategy]\nplugin = "none"\n' if alone else (strategies or STRATEGIES)[strategy])
            + f'[transport]\nplugin = "{"null" if alone else "tcp"}"\n'
            f'[measure]\nwarmup = {WARMUP}\nsteps = {steps}\nrepeats = 1\nbaseline = false\n')


def checked(process, what):
    out, err = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"{what}: exit code {process.returncode}\n{out}\n{err}")
    return out


def start(host, rank, environment, command):
    prefix = [HOSTS, "exec", host] if host else []
    return subprocess.Popen([*prefix, "env", *environment, "taskset", "-c", str(rank % CORES), *map(str, command)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def all_of(workers, environment, command):
    """Runs command(rank) on every host, or without a host if there is one worker; returns what rank 0 prints."""
    processes = [start(f"n{r}" if workers > 1 else None, r, environment(r) if workers > 1 else [], command(r))
                 for r in range(workers)]
    return [checked(p, f"rank {r}") for r, p in enumerate(processes)][0]


def rate_of(document):
    return document["results"][0]["samples_per_second"]["median"]


ONE_THREAD = ["OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"]


def torch_rounds(model, workers, strategy, rate):
    """Returns what ddp.py prints."""
    steps = MODELS[model][2]
    return json.loads(all_of(
        workers, lambda r: ["GLOO_SOCKET_IFNAME=eth0", *ONE_THREAD],
        lambda r: ["/usr/bin/python3", PEER, "--model", model, "--hook", strategy, "--batch", MODELS[model][1],
                   "--steps", steps[rate], "--computing", steps["none"], "--warmup", WARMUP, "--beside",
                   ALL_REDUCED[strategy], "--rank", r, "--ranks", workers, "--master", "10.77.0.1:29400"]))


def gloo_seconds(workers, dtype):
    """Mean seconds of gloo's all-reduce by its bytes, between two hosts, after computing. Now and then a thread waits
    some ms for its core: the median of 64 KiB is a sixth of the mean."""
    return json.loads(all_of(
        workers, lambda r: ["GLOO_SOCKET_IFNAME=eth0", *ONE_THREAD],
        lambda r: ["/usr/bin/python3", GLOO, "--rank", r, "--master", "10.77.0.1", 29401, dtype, *GLOO_SIZES]))


def regatta_ranks(folder, workers, *arguments):
    """Runs a verb with a rank on every host; returns what rank 0 prints."""
    secret = folder / "secret"
    if not secret.exists():
        secret.touch(0o600)
        secret.write_bytes(os.urandom(32))
    return all_of(workers, lambda r: [f"REGATTA_RANK={r}", f"REGATTA_RANKS={workers}", "REGATTA_COORDINATOR=n0:7117",
                                      f"REGATTA_SECRET_FILE={secret}"],
                  lambda r: [REGATTA, *arguments])


def ring_bytes_per_second(folder, workers):
    """What a rank of a ring sends, and receives at the same time, over the links as they are now: without headers, and
    without the acknowledgements of what it receives."""
    out = regatta_ranks(folder, workers, "comm", "--transport", "tcp", "--op", "allreduce", "--algorithm", "ring",
                        "--ranks", workers, "--min", "16MiB", "--max", "16MiB", "--seconds", 2, "--no-pin",
                        "--format", "json")
    return json.loads(out)["results"][0]["bus_bandwidth"]


def regatta_rate(folder, model, workers, strategy, steps):
    file = folder / "x.toml"
    file.write_text(experiment(model, workers, strategy, steps))
    subprocess.run(["rm", "-rf", folder / "out"], check=True)
    regatta_ranks(folder, workers, "run", file, "--progress", "never", "--out", folder / "out")
    return rate_of(json.loads((folder / "out/result.json").read_text()))


def machine_of(folder, model, workers, speed):
    """The calibrated machine file, where more workers than cores slow each other down; `speed` (samples/s of one
    worker) replaces its computing. A test host has one core; it computes and works as fast as beside the others, which
    are on this machine, too."""
    text = (folder / f"{model}.toml").read_text()
    if workers > 1:
        text = re.sub(r"(?m)^cores = .*$", "cores = 1", text)
        text = re.sub(r"(?m)^(slowdown|operations) = \[1, (.*)\]$", r"\1 = [\2, \2]", text)
    slower = max(1, workers / CORES)
    if speed:
        text = (text[:text.index("[model]")] + f'[compute]\nbatch = {MODELS[model][1]}\n'
                f'samples_per_second = {speed / slower}\n' + text[text.index("[work]"):])
    text = re.sub(r'(forward|backward) = "(\d+)ns"', lambda m: f'{m[1]} = "{round(int(m[2]) * slower)}ns"', text)
    file = folder / "machine.toml"
    file.write_text(text)
    return file


ALL_REDUCES = {"powersgd": 3 / 2}  # the hook has three in a step, the example two; all but the first send few bytes


def torch_machine(folder, model, workers, strategy, cell, turn):
    """PyTorch as a machine, from what was measured in a turn. It has the speed of a worker with the hook beside others
    with which it exchanges nothing, so the hook's arithmetic takes no further time; the variation of its steps;
    messages that make an all-reduce of two ranks as long as gloo's, in the type in which the hook sends, on the line
    through the two sizes next to the strategy's messages; and what computing loses to all-reduces over the same link.
    In a ring of two a rank sends half of the bytes twice and receives them twice, one after the other."""
    torch = cell["torch"][strategy]
    few, many = GLOO_SIZES[:2] if strategy == "powersgd" else GLOO_SIZES[1:]
    turns = cell["gloo"]["fp16" if strategy == "fp16" else "fp32"]
    seconds = {size: statistics.median(t[str(size)] for t in turns) for size in (few, many)}
    per_byte = (seconds[many] - seconds[few]) / (many - few)
    fixed = seconds[few] - few * per_byte
    overhead = fixed / 4 * ALL_REDUCES.get(strategy, 1)
    lost = 1e-9 * max(0.0, statistics.median(torch["lost"]))
    size = ALL_REDUCED[strategy]
    file = folder / "machine.toml"
    file.write_text(f'[machine]\ncores = 1\n[compute]\nbatch = {MODELS[model][1]}\nsamples_per_second = '
                    f'{torch["apart"][turn] / workers}\nvariation = {torch["variation"][turn]}\n[work]\ndefault = 0\n'
                    f'[transport.tcp]\nlatency = "0us"\noverhead = "{1e9 * overhead:.0f}ns"\n'
                    f'overhead_per_byte = {1e9 * per_byte / 2}\nadd_per_byte = 0\n'
                    f'computing_loss = {lost * size / (fixed + size * per_byte)}\n')
    return file


def simulated_rate(folder, model, workers, strategy, steps, link, machine, *options, strategies=None):
    """`link`: bytes/s of the links of hosts; None: without a limit."""
    file, network = folder / "s.toml", folder / "n.toml"
    file.write_text(experiment(model, workers, strategy, steps, strategies))
    network.write_text(f'[network]\nbandwidth = "{8e-9 * link if link else 20}Gbit/s"\nlatency = "20us"\n')
    out = subprocess.run([REGATTA, "simulate", file, "--machine", machine, "--network", network,
                          "--set", f"cluster.hosts={workers}", *options,
                          "--format", "json", "--progress", "never", "--out", folder / "simulated"],
                         capture_output=True, text=True, check=False)
    subprocess.run(["rm", "-rf", folder / "simulated"], check=True)
    if out.returncode:
        raise RuntimeError(out.stderr)
    return rate_of(json.loads(out.stdout))


def calibrate(folder, model):
    """Between two hosts without a limit, which must be up."""
    if (folder / f"{model}.toml").exists():
        return
    file, comm = folder / "c.toml", folder / "comm.json"
    file.write_text(experiment(model, 1, "", 10))
    comm.write_text(regatta_ranks(folder, 2, "comm", "--transport", "tcp", "--op", "send", "--ranks", 2, "--no-pin",
                                  "--format", "json"))
    out = subprocess.run([REGATTA, "calibrate", file, "-o", folder / f"{model}.toml", "--transport", "tcp", "--comm",
                          comm, "--progress", "never"], capture_output=True, text=True, check=False)
    print(out.stdout, out.stderr, sep="", flush=True)
    if out.returncode:
        raise RuntimeError("no calibration")


def in_cluster(name, function, *arguments):
    os.environ["REGATTA_HOSTS"] = f"ddp-order-{name}-{os.getpid()}"
    return function(*arguments)


def hosts(*arguments):
    subprocess.run([HOSTS, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def up(workers, rate):
    hosts("up", workers)
    for host in range(workers if rate != "none" else 0):
        hosts("rate", f"n{host}", rate)


def measure(folder, cell):
    """Everything in turn: a machine's speed changes within minutes."""
    model, workers, rate = cell.split(",")
    workers = int(workers)
    torch = {name: {"alone": [], "apart": [], "together": [], "variation": [], "lost": []} for name in STRATEGIES}
    regatta = {name: {"alone": [], "together": []} for name in STRATEGIES}
    known = {"cell": cell, "torch": torch, "regatta": regatta, "gloo": {"fp32": [], "fp16": []}, "link": []}
    try:
        in_cluster("free", up, workers, "none")
        in_cluster("limited", up, workers, rate)
        in_cluster("free", calibrate, folder, model)
        for _ in range(TURNS):
            for dtype, turns in known["gloo"].items():
                turns.append(in_cluster("free", gloo_seconds, workers, dtype))
            if rate != "none":
                known["link"].append(in_cluster("limited", ring_bytes_per_second, folder, workers))
            for name in STRATEGIES:
                rounds = in_cluster("limited", torch_rounds, model, workers, name, rate)
                for what, values in torch[name].items():
                    values.append(statistics.median(rounds[what]))
                regatta[name]["alone"].append(
                    regatta_rate(folder, model, 1, "", MODELS[model][2]["none"]))
                regatta[name]["together"].append(
                    in_cluster("limited", regatta_rate, folder, model, workers, name, MODELS[model][2][rate]))
            (folder / f"cell-{cell}.json").write_text(json.dumps(known))
            print(json.dumps(known), f"load {os.getloadavg()[0]:.1f}", flush=True)
    finally:
        for name in ("free", "limited"):
            in_cluster(name, hosts, "down")


def efficiency_of(measured, workers):
    return statistics.median(t / workers / a for t, a in zip(measured["together"], measured["alone"]))


def order_of(a, b):
    """1 if `a` is faster than `b` by more than 3 % in each turn, -1 if it is slower; 0: within noise."""
    signs = {(x > 1.03 * y) - (y > 1.03 * x) for x, y in zip(a, b)}
    return signs.pop() if len(signs) == 1 else 0


def table(folder):
    """The last three columns: with the calibration, with PyTorch's speed of one worker in place of its computing, and
    with a machine that computes as a worker of PyTorch with DDP and its hook, over gloo."""
    print("| model | workers | link | strategy | PyTorch | E | Regatta | E | simulated | E | at PyTorch's speed | E | "
          "as PyTorch | E |\n|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    simulations = ("simulated", "at PyTorch's speed", "as PyTorch")
    sides = ("regatta", *simulations)
    pairs, apart = {side: [] for side in sides}, {side: [] for side in sides}
    simulation_apart = []
    for path in sorted(folder.glob("cell-*.json")):
        c = json.loads(path.read_text())
        model, workers, rate = c["cell"].split(",")
        n, steps = int(workers), MODELS[model][2][rate]
        link = statistics.median(c["link"]) if c["link"] else None
        rates = {side: {s: c[side][s]["together"] for s in STRATEGIES} for side in ("torch", "regatta")}
        rates |= {side: {} for side in simulations}
        efficiency = {side: {s: efficiency_of(c[side][s], n) for s in STRATEGIES} for side in ("torch", "regatta")}
        efficiency |= {side: {} for side in simulations}
        for s in STRATEGIES:
            speeds = c["torch"][s]["alone"]
            given = {"simulated": None, "at PyTorch's speed": statistics.median(speeds)}
            for side, speed in given.items():
                alone, rate_of_all = (simulated_rate(folder, model, k, s if k > 1 else "", steps, link,
                                                     machine_of(folder, model, k, speed)) for k in (1, n))
                rates[side][s], efficiency[side][s] = [rate_of_all], rate_of_all / n / alone
            as_torch = [simulated_rate(folder, model, n, s, steps, link, torch_machine(folder, model, n, s, c, turn),
                                       "--set", "measure.steps=200", strategies=DDP) for turn in range(len(speeds))]
            rates["as PyTorch"][s] = as_torch
            efficiency["as PyTorch"][s] = efficiency_of({"together": as_torch, "alone": speeds}, n)
            cells = [f"{statistics.median(rates[side][s]):.0f} | {efficiency[side][s]:.3f}" for side in rates]
            print(f"| {model} | {n} | {rate} | {s} | " + " | ".join(cells) + " |")
            for side in sides:
                apart[side].append(100 * abs(efficiency[side][s] - efficiency["torch"][s]))
            simulation_apart.append(100 * abs(efficiency["simulated"][s] - efficiency["regatta"][s]))
        for a, b in itertools.combinations(STRATEGIES, 2):
            order = order_of(rates["torch"][a], rates["torch"][b])
            for side in sides:
                other = order_of(rates[side][a], rates[side][b])
                pairs[side].append(order == other if order and other else None)
                if pairs[side][-1] is False:
                    print(f"  ({side} {model},{n},{rate}: {a} and {b} are in another order)", file=sys.stderr)
    print()
    for side in sides:
        decided = [p for p in pairs[side] if p is not None]
        print(f"* {side}: {sum(decided)} of {len(decided)} pairs in PyTorch's order, {len(pairs[side]) - len(decided)} "
              f"within noise; E is {statistics.median(apart[side]):.1f} points off in the median, "
              f"{max(apart[side]):.1f} at most, {sum(x <= 5 for x in apart[side])} of {len(apart[side])} within 5")
    print(f"* simulated beside Regatta: E is {statistics.median(simulation_apart):.1f} points off in the median, "
          f"{max(simulation_apart):.1f} at most")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # takes the hosts down
    where = pathlib.Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "table":
        table(where)
    else:
        for one in sys.argv[3:]:
            measure(where, one)
