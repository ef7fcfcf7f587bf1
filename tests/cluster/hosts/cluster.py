# SPDX-License-Identifier: Apache-2.0
"""Finds the clusters of test hosts that are up, runs commands in them and takes them down (hosts.py)."""
import ctypes, os, re, signal, subprocess, sys, time
from pathlib import Path

MARK = "regatta-hosts"  # the name of each init is MARK:CLUSTER:HOST
SWITCH = "switch"
SKIPPED = 77  # the exit code of a test that cannot run here
NAMESPACES = {"pid": 0x20000000, "time": 0x80, "ipc": 0x08000000, "uts": 0x04000000, "net": 0x40000000, "mnt": 0x20000}
libc = ctypes.CDLL(None, use_errno=True)


def end(code, message):
    sys.stderr.write(f"hosts.py: {message}\n")
    sys.exit(code)


def run(*command, inside=None, namespaces=(), standard_input=""):
    """Runs a command, in the namespaces of the process `inside` if one is given. Ends the program if it fails."""
    enter = (lambda: enter_namespaces(inside, namespaces)) if inside else None
    done = subprocess.run(command, preexec_fn=enter, input=standard_input, capture_output=True, text=True)
    if done.returncode != 0:
        end(1, f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def enter_namespaces(pid, names):
    files = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), NAMESPACES[name]) for name in names]
    for file, kind in files:  # opened before the first is entered: /proc may be another after that
        if libc.setns(file, kind) != 0:
            raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


def marked_processes():
    """Yields (pid, cluster, host, ready) for the inits, and for the processes that are about to become one."""
    for entry in os.listdir("/proc"):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # not a process, or it has ended
        for word in words:
            mark, _, rest = word.partition(":")
            if mark == MARK and ":" in rest:
                cluster, host = rest.split(":", 1)
                yield int(entry), cluster, host, words[0] == word
                break


def clusters():
    """Returns {cluster: {host: pid of its init}}; the switch is one of the hosts."""
    found = {}
    for pid, cluster, host, ready in marked_processes():
        hosts = found.setdefault(cluster, {})
        if ready:
            hosts[host] = pid
    return found


class Cluster:
    """A running cluster: that of the given name, or the only one."""

    def __init__(self, name):
        all_clusters = clusters()
        if not name and len(all_clusters) != 1:
            end(2, f"expected --prefix or REGATTA_HOSTS: there are {len(all_clusters)} clusters "
                   f"({', '.join(sorted(all_clusters)) or 'start one with: hosts.py up 4'})")
        self.name = name or next(iter(all_clusters))
        self.inits = all_clusters.get(self.name, {})
        if SWITCH not in self.inits:
            end(2, f"no cluster \"{self.name}\" is up; there are: {', '.join(sorted(all_clusters)) or 'none'}")

    def init(self, host):
        if host not in self.inits:
            end(2, f"cluster {self.name} has no host \"{host}\"; it has {', '.join(self.hosts())}")
        return self.inits[host]

    def hosts(self):
        return sorted((name for name in self.inits if re.fullmatch(r"n\d+", name)), key=lambda host: int(host[1:]))

    def ports(self, link):
        """Returns the switch's ends of all links of a host (n2), or of one (n2.1, the one of its eth1)."""
        host, _, network = link.partition(".")
        self.init(host)
        names = os.listdir(f"/proc/{self.inits[SWITCH]}/root/sys/class/net")
        ports = [name for name in sorted(names) if re.fullmatch(re.escape(host) + r"\.\d+", name)]
        found = [name for name in ports if not network or name == link]
        return found or end(2, f"cluster {self.name} has no link \"{link}\"; {host} has {', '.join(ports)}")

    def on_host(self, host, *command, standard_input=""):
        return run(*command, inside=self.init(host), namespaces=("net", "uts", "ipc", "mnt"),
                   standard_input=standard_input)

    def on_switch(self, *command):
        return run(*command, inside=self.inits[SWITCH], namespaces=("net", "mnt"))


def cpu_controller():
    """Returns the folder of the cgroup controller `cpu` and whether it is of version 2, or (None, None)."""
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        controllers = Path(folder, "cgroup.subtree_control")
        if controllers.exists() and "cpu" in controllers.read_text().split():
            return Path(folder), True
    if Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() or Path("/sys/fs/cgroup/cpu/cpu.shares").exists():
        return Path("/sys/fs/cgroup/cpu"), False
    return None, None


def cpu_group(cluster, host):
    folder, _ = cpu_controller()
    return folder and folder / f"{MARK}-{cluster}-{host}"


def take_down(cluster, only=None):
    """Kills the cluster, or only one host. Returns after the last process has ended."""
    limit = time.monotonic() + 20
    while True:
        left = [(pid, host) for pid, name, host, _ in marked_processes() if name == cluster and host == (only or host)]
        if not left:
            break
        for pid, host in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > limit:
            end(1, f"processes of cluster {cluster} do not end: {left}")
        time.sleep(0.01)
    groups = cpu_group(cluster, only or "*")
    for group in groups.parent.glob(groups.name) if groups else []:
        while group.exists():
            try:
                group.rmdir()
            except OSError:  # its last process is not yet reaped
                time.sleep(0.01)
                if time.monotonic() > limit:
                    end(1, f"{group} cannot be removed")
