#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Test hosts: network namespaces on one machine that look like the hosts of a cluster.

  hosts.py up 4 --rate 1gbit --prefix demo    # hosts n0 to n3 with 10.77.0.1 to 10.77.0.4
  hosts.py exec n2 hostname                 # n2
  hosts.py down

Each host is a process, its init, with namespaces of its own: network, host name, processes, IPC, mounts and, with
--clock, time. All inits are children of one more such process, the switch, whose network namespace holds the bridge.
Nothing is written to a disk and nothing is added to the network of this machine, so that the end of the switch ends
everything: `down` kills it. The processes are found by their names in /proc: there is no file with the state.

A host has: /etc/hosts with all names, /dev/shm, /run, /proc, /sys, /etc/machine-id and boot_id of its own; the rest of
the file system is this machine's. /srv is empty at first and shared by all hosts of a cluster and by nobody else.
"""
import argparse, os, re, signal, subprocess, sys, time

sys.dont_write_bytecode = True  # nothing is left in the source tree
from cluster import MARK, NAMESPACES, SKIPPED, SWITCH, Cluster, clusters, cpu_group, end, enter_namespaces, libc
from cluster import run, take_down
from faults import QUEUE, impair, limit_cpu, link_state, power_off, rate, set_rate, start_forwarder

# --- up

# The init of a host ignores SIGCHLD, so that the kernel itself reaps the orphans that it inherits.
INIT = 'trap "" CHLD; cd /; exec -a "$0" sleep infinity'

NEW_SYS = """
mount() { command mount -n "$@"; }  # -n: makes no /run/mount, which would stay on this machine
umount() { command umount -n "$@"; }
mount -t sysfs sysfs /mnt       # shows the interfaces of this network namespace
if mountpoint -q /sys/fs/cgroup; then mount --rbind /sys/fs/cgroup /mnt/fs/cgroup; fi
mount --move /mnt /sys
"""

SWITCH_SETUP = NEW_SYS + """
mount -t tmpfs -o mode=1777 tmpfs /srv
mount -t tmpfs tmpfs /dev/shm   # the controls of the forwarders
"""

# A private file: written on a tmpfs, bound over the one it replaces; the tmpfs lives as long as the binding.
HOST_SETUP = NEW_SYS + """
hostname "$1"
mount -t proc proc /proc
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /mnt
printf '%s' "$2" >/mnt/hosts
mount --bind /mnt/hosts /etc/hosts
cat /proc/sys/kernel/random/uuid >/mnt/boot_id
mount --bind /mnt/boot_id /proc/sys/kernel/random/boot_id
if [ -e /etc/machine-id ]; then
  tr -d - </mnt/boot_id >/mnt/machine-id
  mount --bind /mnt/machine-id /etc/machine-id
fi
umount /mnt
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 1777 /run/lock
if [ "$3" = private-tmp ]; then mount -t tmpfs -o mode=1777 tmpfs /tmp; fi
ip link set lo up
"""


def start_init(cluster, host, clock, switch):
    command = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child"]
    if clock is not None:
        command += ["--time", f"--monotonic={clock}", f"--boottime={clock}"]
    if switch:
        command = ["nsenter", f"--target={switch}", "--mount", "--pid", "--"] + command
    subprocess.Popen(command + ["bash", "-c", INIT, f"{MARK}:{cluster}:{host}"], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_inits(cluster, hosts):
    limit = time.monotonic() + 20
    while not set(hosts) <= clusters().get(cluster, {}).keys():
        if time.monotonic() > limit:
            end(1, f"hosts {', '.join(hosts)} did not start within 20 s")
        time.sleep(0.01)


def port(host, network):
    """The switch's end of the host's link eth<network>."""
    return f"{host}.{network}"


def up(options):
    check_machine()
    name = options.prefix or f"h{os.getppid()}"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        end(2, f"expected a name of letters, digits, _ and -, got \"{name}\"")
    if name in clusters():
        end(2, f"cluster {name} is up; take it down first: hosts.py --prefix {name} down")
    hosts = [f"n{i}" for i in range(options.hosts)]
    clocks = dict(pair.partition("=")[::2] for pair in options.clock)
    if not 1 <= len(hosts) <= 200:
        end(2, f"expected 1 to 200 hosts, got {len(hosts)}")
    for host in [*clocks, *options.forwarder]:
        if host not in hosts:
            end(2, f"--clock, --forwarder: expected one of n0 to {hosts[-1]}, got \"{host}\"")
    for host, seconds in clocks.items():
        if not re.fullmatch(r"-?\d+", seconds):
            end(2, f"--clock: expected {host}=SECONDS, got \"{seconds}\"")
    try:
        make(name, hosts, clocks, options)
    except BaseException:  # also an interrupt
        take_down(name)
        raise
    print(name)


def make(name, hosts, clocks, options):
    start_init(name, SWITCH, None, None)
    wait_for_inits(name, [SWITCH])
    run("bash", "-ec", SWITCH_SETUP, inside=clusters()[name][SWITCH], namespaces=("net", "mnt"))
    for host in hosts:
        start_init(name, host, clocks.get(host), clusters()[name][SWITCH])
    wait_for_inits(name, hosts)

    cluster = Cluster(name)
    table = "127.0.0.1 localhost\n::1 localhost\n"
    table += "".join(f"10.77.0.{1 + i} {host}\n" for i, host in enumerate(hosts))
    for host in hosts:
        run("bash", "-ec", HOST_SETUP, host, host, table, "private-tmp" if options.private_tmp else "",
            inside=cluster.init(host), namespaces=NAMESPACES)
    for network in range(options.networks):
        cluster.on_switch("ip", "link", "add", f"br{network}", "type", "bridge")
        cluster.on_switch("ip", "link", "set", f"br{network}", "up")
        for host in hosts:
            connect(cluster, host, network, options)
        if len(hosts) * (len(hosts) - 1) > MOST_NEIGHBOURS:
            introduce(cluster, hosts, f"eth{network}", f"10.{77 + network}.0")


def connect(cluster, host, network, options):
    """Gives the host its interface eth<network>, 10.<77 + network>.0.<1 + number of the host>."""
    end_of_host = f"eth{network}"
    # ip(8) resolves the number of a process in its own process namespace, which must be this one.
    init = str(cluster.init(host))
    if host in options.forwarder:
        start_forwarder(cluster, port(host, network))
        cluster.on_switch("ip", "link", "set", port(host, network) + "h", "netns", init, "name", end_of_host)
    else:
        cluster.on_switch("ip", "link", "add", port(host, network), "type", "veth",
                          "peer", "name", end_of_host, "netns", init)
    cluster.on_switch("ip", "link", "set", port(host, network), "master", f"br{network}", "up")
    cluster.on_host(host, "ip", "address", "add", f"10.{77 + network}.0.{1 + int(host[1:])}/24", "broadcast", "+",
                    "dev", end_of_host)
    cluster.on_host(host, "ip", "link", "set", end_of_host, "up")
    if options.rate:
        set_rate(cluster, port(host, network), options.rate, QUEUE)


# The kernel has one table of neighbours for all network namespaces, and drops entries above gc_thresh2 (512).
MOST_NEIGHBOURS = 400


def introduce(cluster, hosts, device, subnet):
    """Gives every host the hardware addresses of all others: permanent entries do not count towards the limits of the
    neighbour table, and no host asks for an address."""
    def address(host):
        return cluster.on_host(host, "cat", f"/sys/class/net/{device}/address").strip()

    of_host = {host: address(host) for host in hosts}
    for host in hosts:
        lines = "".join(f"neigh replace {subnet}.{1 + int(other[1:])} lladdr {mac} dev {device} nud permanent\n"
                        for other, mac in of_host.items() if other != host)
        cluster.on_host(host, "ip", "-batch", "-", standard_input=lines)


def check_machine():
    if os.geteuid() != 0:
        end(SKIPPED, "namespaces need root")
    for tool in ("ip", "tc", "unshare", "nsenter", "bash", "mountpoint"):
        if not any(os.access(os.path.join(folder, tool), os.X_OK) for folder in os.environ["PATH"].split(":")):
            end(SKIPPED, f"{tool} is missing: apt-get install iproute2 util-linux")
    tried = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "true"],
                           capture_output=True, text=True)
    if tried.returncode != 0:
        end(SKIPPED, f"this machine makes no namespaces: {tried.stderr.strip()}")


# --- down


def down(options):
    if options.stale:  # NAME-PID: those of users that have ended
        for name in clusters():
            match = re.fullmatch(re.escape(options.stale) + r"-(\d+)", name)
            if match and not os.path.exists(f"/proc/{match[1]}"):
                take_down(name)
        return
    names = [options.prefix] if options.prefix else list(clusters())
    if len(names) > 1:
        end(2, f"expected --prefix NAME: there are {', '.join(sorted(names))}")
    for name in names:
        take_down(name)


# --- exec


def execute(options):
    """Becomes the parent of the command and passes signals on. If it is killed, the command is, too."""
    cluster = Cluster(options.prefix)
    init = cluster.init(options.host)
    folder = os.getcwd()
    group = cpu_group(cluster.name, options.host)
    if group and group.exists():
        (group / "cgroup.procs").write_text("0")
    passed_on = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on | {signal.SIGCHLD})
    enter_namespaces(init, NAMESPACES)
    child = os.fork()
    if child == 0:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on | {signal.SIGCHLD})
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/")
        try:
            os.execvp(options.command[0], options.command)
        except OSError as error:
            sys.stderr.write(f"hosts.py: {options.command[0]}: {error.strerror}\n")
            os._exit(127)
    while True:
        event = signal.sigwaitinfo(passed_on | {signal.SIGCHLD})
        if event.si_signo != signal.SIGCHLD:
            if event.si_code <= 0:  # sent by a process; the terminal's reaches the child without help
                os.kill(child, event.si_signo)
            continue
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code >= 0 else 128 - code)


# --- Command line


def show(_):
    for name, inits in clusters().items():
        print(name, *(f"{host}={pid}" for host, pid in sorted(inits.items())))


def names(options):
    print(*Cluster(options.prefix).hosts(), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default=os.environ.get("REGATTA_HOSTS"),
                        help="which cluster; default: REGATTA_HOSTS, or the only one")
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name, function, help_text, *arguments):
        made = verbs.add_parser(name, help=help_text)
        made.set_defaults(function=function)
        for names, settings in arguments:
            made.add_argument(*names, **settings)
        return made

    verb("up", up, "make hosts; prints the cluster's name",
         (["hosts"], {"type": int}),
         (["--prefix"], {"default": argparse.SUPPRESS, "help": "default: h and the number of the calling process"}),
         (["--rate"], {"help": "of every link, each way: 1gbit"}),
         (["--networks"], {"type": int, "default": 1, "help": "2: also eth1 with 10.78.0.x"}),
         (["--clock"], {"action": "append", "default": [], "metavar": "HOST=SECONDS",
                        "help": "offset of CLOCK_MONOTONIC and CLOCK_BOOTTIME"}),
         (["--private-tmp"], {"action": "store_true"}),
         (["--forwarder"], {"action": "append", "default": [], "metavar": "HOST", "help": "its links can be impaired"}))
    verb("exec", execute, "run a command on a host", (["host"], {}), (["command"], {"nargs": argparse.REMAINDER}))
    verb("down", down, "take a cluster down",
         (["--stale"], {"metavar": "NAME", "help": "clusters NAME-PID whose process PID has ended"}))
    verb("impair", impair, "change what passes: delay=200ms loss=1%% rate=1mbit, cut=in, clear, show (forwarder.cpp)",
         (["link"], {"metavar": "HOST[.NETWORK]"}), (["words"], {"nargs": "+"}))
    verb("rate", rate, "limit a link, each way", (["link"], {"metavar": "HOST[.NETWORK]"}), (["rate"], {}),
         (["--queue"], {"default": QUEUE, "help": "what would wait longer is dropped; default: " + QUEUE}))
    verb("link", link_state, "pull or plug the cable",
         (["link"], {"metavar": "HOST[.NETWORK]"}), (["state"], {"choices": ["up", "down"]}))
    verb("poweroff", power_off, "pull the cables, then kill all processes of a host", (["host"], {}))
    verb("cpu", limit_cpu, "limit the processor time of a host, in percent of one core",
         (["host"], {}), (["percent"], {"type": float}))
    verb("names", names, "show the names of a cluster's hosts")
    verb("list", show, "show clusters and the inits of their hosts")
    options = parser.parse_args()
    if os.geteuid() != 0:
        end(SKIPPED, "namespaces need root")
    if options.verb == "exec" and not options.command:
        end(2, "expected exec HOST COMMAND...")
    options.function(options)


main()
