# SPDX-License-Identifier: Apache-2.0
"""What the tests in Python share: checks, test hosts, and processes on them that are started as a launcher does it.

A test ends with `finish()`. The cluster has the name of the test and the number of its process, so that the next run
takes it down if this one is killed.
"""
import atexit, json, os, re, signal, subprocess, sys, tempfile, time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is left in the source tree
ROOT = Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests/cluster/hosts/hosts.py"
sys.path.insert(0, str(HOSTS.parent))
import cluster as of_hosts

REGATTA = os.environ.get("REGATTA", str(ROOT / "build/release/bin/regatta"))
NAME = Path(sys.argv[0]).stem
SKIPPED = 77
_passed, _failed = 0, 0
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # atexit takes the hosts down

folder = Path(tempfile.mkdtemp(prefix=NAME + "-"))
atexit.register(lambda: subprocess.run(["rm", "-rf", str(folder)]))


def check(text, good, shown=""):
    """Counts and prints one check; `shown` tells what came if it failed."""
    global _passed, _failed
    if good:
        _passed += 1
        print(f"  {text}", flush=True)
    else:
        _failed += 1
        print(f"FAILED: {text}: {shown}", flush=True)


def finish():
    print(f"{NAME}: {_passed} passed, {_failed} failed")
    sys.exit(1 if _failed else 0)


def skip(why):
    print(f"{NAME}: skipped: {why}")
    sys.exit(SKIPPED)


def write(name, text, mode=0o600):
    """Writes a file of this test and returns its path."""
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def wait_until(condition, limit=20.0):
    """Returns how many seconds it took until condition() was true, None if it was not within `limit` seconds."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.02)
    return None


class Cluster:
    """Test hosts n0, n1, ... (hosts/hosts.py), until the end of this test or down()."""

    def __init__(self, hosts, *options):
        if os.geteuid() != 0:
            skip("namespaces need root")
        self.name = f"{NAME}-{os.getpid()}"
        self.tool("down", "--stale", NAME)
        made = self.tool("up", str(hosts), *options, fails=True)
        if made.returncode == SKIPPED:
            skip(made.stderr.strip())
        if made.returncode:
            sys.exit(f"{NAME}: {made.stderr}")
        atexit.register(self.down)
        self.inits = of_hosts.Cluster(self.name).inits

    def tool(self, *arguments, fails=False):
        done = subprocess.run([str(HOSTS), "--prefix", self.name, *arguments], text=True, capture_output=True)
        if done.returncode and not fails:
            sys.exit(f"{NAME}: hosts.py {' '.join(arguments)}: {done.stderr}")
        return done

    def down(self):
        atexit.unregister(self.down)
        self.tool("down", fails=True)

    def enter(self, host):
        """Returns the words before a command that runs it on a host, in its root folder and with its limit of CPU."""
        words = ["nsenter", "-t", str(self.inits[host]), "-a", "--"]
        group = of_hosts.cpu_group(self.name, host)
        if group and group.exists():
            words = ["sh", "-c", f'echo 0 >{group}/cgroup.procs; exec "$@"', "sh", *words]
        return words

    def on(self, host, *command):
        return subprocess.run([*self.enter(host), *command], text=True, capture_output=True)

    def processes(self, host):
        """Returns {pid: command line} of all that runs on a host beside its init; the pids are this machine's."""
        found = {}
        try:
            inside = os.readlink(f"/proc/{self.inits[host]}/ns/pid")
        except FileNotFoundError:
            return {}  # powered off
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(entry) != self.inits[host] and os.readlink(f"/proc/{entry}/ns/pid") == inside:
                    words = Path("/proc", entry, "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found[int(entry)] = " ".join(words).strip()
            except OSError:
                pass  # it has ended
        return {pid: line for pid, line in found.items() if line}  # the others are dead and not reaped yet

    def left(self):
        """Returns {host: command lines} of all processes on all hosts."""
        return {h: list(p.values()) for h in self.inits if h[0] == "n" and "." not in h and (p := self.processes(h))}


def children(pid):
    """Returns the child processes of a process, in the order of their start."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Launch:
    """Processes that are started together as a launcher would: process i on host places[i]."""

    SECRET = "0123456789abcdef0123456789abcdef"

    def __init__(self, cluster, places, *arguments, program=REGATTA, environment=None, of_rank=None, slots=1,
                 order=None):
        """`environment` and of_rank[i] change variables of all or of one: None unsets one. `slots` > 1: each process
        stands for so many, as Kubeflow's trainer has it. `order`: in which the processes are started."""
        self.cluster, self.places = cluster, places
        self.secret = write("secret", self.SECRET)
        self.processes, self.outputs = {}, {}
        self.how = (arguments, program, slots, environment or {}, of_rank or {})
        self.begin = time.monotonic()
        for rank in order or range(len(places)):
            self.add(rank)

    def add(self, rank):
        """Starts one process that `order` has left out."""
        arguments, program, slots, environment, of_rank = self.how
        changes = {**environment, **of_rank.get(rank, {})}
        variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"),
                     "REGATTA_SECRET_FILE": self.secret}
        for marked in ("REGATTA_CLUSTER_TEST", "REGATTA_PLUGIN_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"):
            if marked in os.environ:
                variables[marked] = os.environ[marked]
        if slots == 1:
            variables |= {"REGATTA_RANK": str(rank), "REGATTA_RANKS": str(len(self.places)),
                          "REGATTA_COORDINATOR": f"{self.places[0]}:7117"}
        else:
            variables |= {"PET_NODE_RANK": str(rank), "PET_NNODES": str(len(self.places)),
                          "PET_NPROC_PER_NODE": str(slots), "PET_MASTER_ADDR": self.places[0],
                          "PET_MASTER_PORT": "7117"}
        variables |= changes
        if callable(program):
            program = program(rank)
        output = open(folder / f"output-{rank}", "w+")
        self.outputs[rank] = output
        self.processes[rank] = subprocess.Popen(
            [*self.cluster.enter(self.places[rank]), program, *arguments],
            env={k: v for k, v in variables.items() if v is not None}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT)

    def pid(self, rank):
        """Returns the pid, on this machine, of a launched process (nsenter is its parent)."""
        return (children(self.processes[rank].pid) or [0])[0]

    def forks(self, process):
        """Returns the pids of a launched process's children that run no other command line than itself: of process 0
        the campaign and maybe an agent, of the first process on another host the agent."""
        pid = self.pid(process)
        return [child for child in children(pid) if command_line(child) == command_line(pid)]

    def campaign(self):
        return self.forks(0)[0]

    def agent(self, host):
        agents = [pid for process, place in enumerate(self.places) if place == host
                  for pid in self.forks(process)[process == 0:]]
        return agents[0]

    def rank_process(self, process):
        """Returns the pid of the rank that a launched process has started, None if there is none now."""
        forks = self.forks(process)
        return next((child for child in children(self.pid(process)) if child not in forks), None)

    def signal(self, number):
        """Sends a signal to all launched processes, as a launcher does."""
        for rank in self.processes:
            if pid := self.pid(rank):
                os.kill(pid, number)

    def wait(self, limit=60.0):
        """Waits for the end of all, kills those that are left after `limit` seconds; returns the seconds it took."""
        until = time.monotonic() + limit
        for process in self.processes.values():
            try:
                process.wait(max(until - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                pass
        late = [rank for rank, process in self.processes.items() if process.poll() is None]
        if late:
            check(f"all processes end within {limit} s", False, f"processes {late} run; {self.text()}")
            for host in set(self.places):
                for pid in self.cluster.processes(host):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            for process in self.processes.values():
                process.wait()
        return time.monotonic() - self.begin

    def codes(self):
        return [self.processes[rank].returncode for rank in sorted(self.processes)]

    def output(self, rank):
        return (folder / f"output-{rank}").read_text(errors="replace")

    def text(self):
        return "".join(f"[{rank}] {line}\n" for rank in sorted(self.processes) for line in
                       self.output(rank).splitlines())

    def says(self, pattern):
        """Returns whether a process has printed a line that matches the regular expression."""
        return re.search(pattern, self.text()) is not None


def experiment(name, **keys):
    """Writes an experiment of few steps; keys such as cluster_workers=4 (cluster.workers). Returns its path."""
    defaults = {"model_plugin": "mlp", "model_hidden": [32], "cluster_workers": 4, "cluster_interface": "auto",
                "transport_plugin": "tcp", "strategy_plugin": "allreduce", "measure_steps": 5, "measure_warmup": 1,
                "measure_repeats": 1, "measure_baseline": False, "train_kernels": "fixed"}
    sections = {}
    for key, value in {**defaults, **keys}.items():
        section, _, rest = key.partition("_")
        if value is not None:
            sections.setdefault(section, {})[rest] = value
    text = "".join(f"[{s}]\n" + "".join(f'"{k}" = {json.dumps(v)}\n' if "." in k else f"{k} = {json.dumps(v)}\n"
                                        for k, v in values.items()) for s, values in sections.items())
    return write(name + ".toml", text)


def result(out):
    return json.loads(Path(out, "result.json").read_text())


def records(out):
    return [json.loads(line)["record"] for line in Path(out, "records.jsonl").read_text().splitlines()]
