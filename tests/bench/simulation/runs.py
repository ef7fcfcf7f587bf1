# SPDX-License-Identifier: Apache-2.0
"""Measures and simulates cells (cells.py) and what both need: the calibration, and what the machine carries."""
import atexit, csv, json, os, re, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/cluster"))
import support
from cells import RATES, SIZES, Cell, experiment

# The test hosts do without what the simulator does not model: loss (a deep queue), TCP's slow start at the beginning
# and after a pause, its delayed acknowledgements; and what TCP sends again because an acknowledgement was long in the
# deep queue (loss probes, timeouts), since nothing is lost.
QUEUE = "2s"
UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}  # of times in machine files, in ns
TUNING = {"tcp_congestion_control": "reno", "tcp_slow_start_after_idle": "0", "tcp_early_retrans": "0",
          "tcp_recovery": "0"}
MTU = "9000"  # the kernel cuts what it sends over a limited link into frames, each of which takes time of a core

ROUTE = "proto kernel scope link quickack 1 initcwnd 200 initrwnd 200 rto_min 5s".split()

BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
STATE = ROOT / "build/release/simulation-bench"
LIMIT = 180.0  # seconds of one run


def say(text):
    print(f"simulation: {text}", file=sys.stderr, flush=True)


def regatta(*arguments):
    done = subprocess.run([support.REGATTA, *map(str, arguments)], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"simulation: regatta {' '.join(map(str, arguments))}: {done.stderr or done.stdout}")
    return done.stdout


class Hosts:
    """Test hosts whose links have no limit at first; made when they are needed."""

    def __init__(self, most):
        self.most, self.cluster, self.limited = most, None, None

    def made(self):
        if not self.cluster:
            self.cluster = support.Cluster(self.most)
            # Packets of all hosts wait in one queue for each core of this machine: 1000 are few for 16 hosts.
            atexit.register(BACKLOG.write_text, BACKLOG.read_text())
            BACKLOG.write_text("100000")
            tools = support.of_hosts.Cluster(self.cluster.name)  # they end the program if a command fails
            for host in range(self.most):
                name = f"n{host}"
                for key, value in TUNING.items():
                    tools.on_host(name, "sh", "-c", f"echo {value} >/proc/sys/net/ipv4/{key}")
                tools.on_host(name, "ip", "link", "set", "eth0", "mtu", MTU)
                tools.on_host(name, "ip", "route", "change", "10.77.0.0/24", "dev", "eth0", "src",
                              f"10.77.0.{1 + host}", *ROUTE)
                tools.on_switch("ip", "link", "set", f"{name}.0", "mtu", MTU)
            tools.on_switch("ip", "link", "set", "br0", "mtu", MTU)
        return self.cluster

    def limit(self, rate):
        """Limits all links; a rate that is far above what they carry stands for no limit."""
        rate = rate or "100gbit"
        cluster = self.made()
        if self.limited != rate:
            for host in range(self.most):
                cluster.tool("rate", f"n{host}", rate, "--queue", QUEUE)
        self.limited = rate

    def cut_into_frames(self, cut):
        """Whether hosts send single frames, as over limited links, or up to 64 KiB at once."""
        self.made()
        tools = support.of_hosts.Cluster(self.cluster.name)
        for host in range(self.most):
            tools.on_host(f"n{host}", "ip", "link", "set", "eth0", "gso_max_segs", "1" if cut else "65535")

    def launch(self, hosts, on_host, *arguments):
        """Runs a verb in a process for each rank. Returns what process 0 printed."""
        places = [f"n{host}" for host in range(hosts) for _ in range(on_host)]
        launch = support.Launch(self.made(), places, *map(str, arguments))
        launch.wait(LIMIT)
        if any(launch.codes()):
            say(launch.text())
            raise RuntimeError(f"exit codes {launch.codes()}")
        return launch.output(0)


def comm(hosts, ranks, *arguments):
    text = hosts.launch(ranks, 1, "comm", "--transport", "tcp", "--no-pin", "--ranks", ranks, "--seconds", 1,
                        "--format", "csv", *arguments)
    rows = csv.DictReader(text[text.index("transport,"):].splitlines())
    return {(row["op"], int(row["bytes"])): row for row in rows}


def carried(hosts, ranks):
    """Returns the bytes per second that all links together carry in single frames, in a ring of this many hosts."""
    hosts.limit(None)
    hosts.cut_into_frames(True)
    size = 4 << 20
    row, = comm(hosts, ranks, "--op", "allreduce", "--algorithm", "ring", "--min", f"{size}B", "--max",
                f"{size}B").values()
    hosts.cut_into_frames(False)
    return ranks * float(row["bus_bandwidth"])


def links(hosts, rate):
    """Measures a limited link between two hosts, and writes what simulations need of it.

    [network]: the bandwidth of exchanges in both directions. o and O: half of the processor time of a message, which is
    far more than without a limit, as the link takes and gives the bytes in small parts.
    """
    hosts.limit(rate)
    # About 100 ms and 400 ms: the bucket of the kernel's limit, which is full after a pause, is left out.
    small = int(RATES[rate] / 8 * 0.1) // 64 * 64
    large = 4 * small
    rows = {**comm(hosts, 2, "--op", "send", "--min", "64B", "--max", "64B"),
            **comm(hosts, 2, "--op", "allreduce,send", "--algorithm", "ring", "--min", f"{small}B", "--max",
                   f"{large}B", "--factor", 4)}
    seconds = [float(rows["allreduce", size]["seconds.median"]) for size in (small, large)]
    bandwidth = (large - small) / (seconds[1] - seconds[0])
    network_of(rate).write_text(
        f'[network]\nbandwidth = "{bandwidth * 8 / 1e9:.6f}Gbit/s"\nlatency = "0us"\ncores = "shared"\n')
    busy = {size: 1e9 * float(rows["send", size]["cpu_seconds"]) for size in (64, small, large)}
    costs = {"overhead": busy[64] / 2, "overhead_per_byte": (busy[large] - busy[small]) / (large - small) / 2}
    costs_of(rate).write_text(json.dumps(costs))
    say(f"{rate}: {bandwidth * 8 / 1e6:.2f} Mbit/s of payload in both directions at once, "
        f"{1e6 * float(rows['send', large]['seconds.median']):.0f} us for {large} bytes one way, "
        f"o {costs['overhead'] / 1000:.1f} us, O {costs['overhead_per_byte']:.2f} ns/B")


def network_of(rate):
    return STATE / f"network-{rate}.toml"


def costs_of(rate):
    return STATE / f"costs-{rate}.json"


def calibration_of(rate, size):
    return STATE / f"machine-{rate}-{size.bytes}.toml"


def calibrate(rate, size):
    """Calibrates the model of these cells, with one rank and with two."""
    toml = support.write("calibrate.toml", experiment(Cell("tbf", rate, "ring", 1, size)))
    print(regatta("calibrate", toml, "-o", calibration_of(rate, size), "--transport", "tcp", "--progress", "never"),
          end="", file=sys.stderr)


def machine_of(cell):
    """Returns the machine file of a cell: the calibration, changed for a model that sleeps and for the cell's links.

    A model that sleeps takes no core, however many ranks share this machine. o and O are those over the limited link;
    over `shaped` those of ping-pong without a limit: two ranks would wake up for each of its chunks, but many ranks,
    which wait for a core, find several. Both leave out what the calibration fits to steps of two ranks (factors of o
    and O, `send_share`, `apply_in_training`): it stands for what these waited for, which here is waking up rather than
    work of a core.
    """
    text = calibration_of(cell.rate, cell.size).read_text()
    text = re.sub(r"(?m)^\[compute\]$", "[compute]\non_cores = false", text)
    if cell.network == "tbf":
        costs = json.loads(costs_of(cell.rate).read_text())
    else:
        tcp, = re.findall(r"(?m)^\[transport.tcp\]\n((?:[^\[].*\n)+)", text)
        calibrated = {key: float(number) * UNITS[unit]
                      for key, number, unit in re.findall(r'(?m)^(\w+) = "?([0-9.]+)([a-z]*)"?$', tcp) if unit in UNITS}
        costs = {key: calibrated[key] / calibrated.get(key + "_in_training", 1)
                 for key in ("overhead", "overhead_per_byte")}
    text = re.sub(r"(?m)^(send_share|apply_in_training) = .*\n", "", text)
    for key, ns in costs.items():
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {ns}", text)
        assert count == 1, f"{key} stands {count} times in the machine file"
    return support.write("machine.toml", text)


def samples_per_second(folder):
    entry, = json.loads((folder / "result.json").read_text())["results"]
    if entry["status"] != "ok":
        raise RuntimeError(entry.get("error", entry["status"]))
    return entry


TRACED = ["--set", "measure.trace=3"]


def keep_trace(out, cell):
    """Copies the trace of the run in the folder `out`, whose name tells what it is of."""
    to = STATE / "traces" / f"{cell.key().replace(' ', '-')}-{out.name}.pftrace.gz"
    to.parent.mkdir(exist_ok=True)
    to.write_bytes((out / "traces/case-1-repeat-1.pftrace.gz").read_bytes())


def busy(entry):
    """Returns which part of the machine's cores the ranks kept busy in the timed region."""
    run = entry["repeats"][0]["case"]
    return sum(run["cpu_seconds"]) / run["region_seconds"] / os.cpu_count()


def measure(hosts, cell, trace=False):
    out = support.folder / "measured"
    subprocess.run(["rm", "-rf", str(out)])
    toml = support.write("cell.toml", experiment(cell))
    arguments = ["run", toml, "--out", str(out), "--progress", "never", *(TRACED if trace else [])]
    if cell.network == "tbf":
        hosts.limit(cell.rate)
        hosts.launch(cell.hosts(), cell.ranks_on_host(), *arguments)
    else:
        regatta(*arguments)
    if trace:
        keep_trace(out, cell)
    return samples_per_second(out)


def simulate(cell, trace=False):
    out = support.folder / "simulated"
    subprocess.run(["rm", "-rf", str(out)])
    toml = support.write("cell.toml", experiment(cell))
    several = ["--network", network_of(cell.rate), "--set", f"cluster.hosts={cell.hosts()}"]
    regatta("simulate", toml, "--machine", machine_of(cell), *(several if cell.network == "tbf" else []), "--out", out,
            "--progress", "never", *(TRACED if trace else []))
    if trace:
        keep_trace(out, cell)
    return samples_per_second(out)
