# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a test host: a bad link, no link, no power, little processor time (hosts.py)."""
import os, re, subprocess
from pathlib import Path

from cluster import MARK, SKIPPED, SWITCH, Cluster, cpu_controller, cpu_group, end, take_down


def bits_per_second(rate):
    match = re.fullmatch(r"([0-9.]+)([kmg]?)bit", rate.lower())
    if not match:
        end(2, f"expected a rate such as 100mbit or 1gbit, got \"{rate}\"")
    return float(match[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2]]


QUEUE = "20ms"  # as in a shallow switch


def limit_rate(on, device, rate, queue):
    """Limits what leaves through the device. The bucket holds 1 ms; what waits longer than `queue` is dropped."""
    burst = max(int(bits_per_second(rate) / 8 * 1e-3), 16384)
    on("tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", str(burst), "latency", queue)


def set_rate(cluster, link, rate, queue):
    host, network = link.split(".")
    limit_rate(cluster.on_switch, link, rate, queue)
    limit_rate(lambda *command: cluster.on_host(host, *command), f"eth{network}", rate, queue)


# The forwarder has its standard input and output in the switch's private /dev/shm. Opened with <>, a FIFO never blocks
# and never ends.
START_FORWARDER = """
cd /dev/shm && mkfifo "$2.commands" "$2.answers"
exec -a "$0" "$1" "$2" "$2h" <>"$2.commands" 1<>"$2.answers" 2>&1
"""
ASK_FORWARDER = """
cd /dev/shm
while [ ! -p "$1.answers" ]; do sleep 0.01; done
exec 9>"$1.lock" && flock 9
if [ -n "$2" ]; then printf '%s\\n' "$2" 1<>"$1.commands"; fi
read -r -t 5 answer <>"$1.answers" || answer="error: no answer within 5 s"
printf '%s' "$answer"
"""


def start_forwarder(cluster, link):
    built = Path(__file__).resolve().parents[3] / "build/release/tests/forwarder"
    program = os.environ.get("REGATTA_FORWARDER", str(built))
    if not os.access(program, os.X_OK):
        end(1, f"{program} is missing: ninja -C build/release forwarder, or set REGATTA_FORWARDER")
    on_switch = ["nsenter", f"--target={cluster.inits[SWITCH]}", "--net", "--mount", "--pid", "--"]
    command = ["bash", "-c", START_FORWARDER, f"{MARK}:{cluster.name}:{link}.forwarder", program, link]
    subprocess.Popen(on_switch + command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    answer = cluster.on_switch("bash", "-ec", ASK_FORWARDER, "ask", link, "")
    if answer != "ready":
        end(1, f"the forwarder of {link} did not start: {answer}")


def impair(options):
    cluster = Cluster(options.prefix)
    for link in cluster.ports(options.link):
        if f"{link}.forwarder" not in cluster.inits:
            end(2, f"{link} has no forwarder; expected: hosts.py up N --forwarder {link.split('.')[0]}")
        answer = cluster.on_switch("bash", "-ec", ASK_FORWARDER, "ask", link, " ".join(options.words))
        if answer.startswith("error"):
            end(1, f"{link}: {answer}")
        if answer != "ok":
            print(f"{link} {answer}")


def rate(options):
    cluster = Cluster(options.prefix)
    for link in cluster.ports(options.link):
        set_rate(cluster, link, options.rate, options.queue)


def link_state(options):
    """Pulls or plugs the cable, at the switch: the host keeps its addresses and routes, and sees no carrier."""
    cluster = Cluster(options.prefix)
    for link in cluster.ports(options.link):
        cluster.on_switch("ip", "link", "set", link, options.state)


def power_off(options):
    """Pulls the cables first: killed processes' connections end with a FIN, which a host without power never sends."""
    cluster = Cluster(options.prefix)
    for link in cluster.ports(options.host):
        cluster.on_switch("ip", "link", "set", link, "down")
    take_down(cluster.name, options.host)


def limit_cpu(options):
    cluster = Cluster(options.prefix)
    init = cluster.init(options.host)
    folder, version_2 = cpu_controller()
    if not folder:
        end(SKIPPED, "this machine has no cgroup controller `cpu` for us")
    group = cpu_group(cluster.name, options.host)
    group.mkdir(exist_ok=True)
    quota = int(options.percent * 1000)  # microseconds of each 100 ms
    if version_2:
        (group / "cpu.max").write_text(f"{quota} 100000")
    else:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    processes = os.readlink(f"/proc/{init}/ns/pid")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/ns/pid") == processes:
                (group / "cgroup.procs").write_text(entry)
        except OSError:
            pass  # it has ended, or is not one of ours
