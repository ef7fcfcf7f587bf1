#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The environments of eight launchers, each complete, half set and contradicting: within 10 s, four processes on two
hosts run together, or all are refused, by the variables' names.

  launcher_environments_test.py [LAUNCHER...]

Without arguments: the launchers whose variables are all that is needed; with REGATTA_CLUSTER_ALL also Open MPI and
Slurm, which are started on the hosts.
"""
import os, re, shutil, subprocess, sys, time
from pathlib import Path

sys.dont_write_bytecode = True
from support import Cluster, Launch, REGATTA, ROOT, check, experiment, finish, folder, result

LIMIT = 10.0  # seconds
PLACES = ["n0", "n0", "n1", "n1"]
WITHOUT_REGATTA = {"REGATTA_RANK": None, "REGATTA_RANKS": None, "REGATTA_COORDINATOR": None}

# The variables of a process; what else is set (None: unset) in half an environment, and what is said then; the same of
# one that contradicts itself.
VARIABLES = {
    "torchrun": (lambda rank: WITHOUT_REGATTA | {
                     "RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2",
                     "MASTER_ADDR": "n0", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "job"},
                 {"WORLD_SIZE": None}, "WORLD_SIZE is not set",
                 {"RANK": "9"}, "RANK=9.*WORLD_SIZE=4"),
    "kubernetes": (lambda rank: {"REGATTA_RANK": None, "JOB_COMPLETION_INDEX": str(rank)},
                   {"REGATTA_RANKS": None}, "JOB_COMPLETION_INDEX=.*REGATTA_RANKS",
                   {"JOB_COMPLETION_INDEX": "9"}, "JOB_COMPLETION_INDEX=9.*REGATTA_RANKS=4"),
    "kubeflow": (lambda rank: WITHOUT_REGATTA | {
                     "PET_NODE_RANK": str(rank), "PET_NNODES": "4", "PET_NPROC_PER_NODE": "1",
                     "PET_MASTER_ADDR": "n0", "PET_MASTER_PORT": "29500"},
                 {"PET_NODE_RANK": None}, "PET_NODE_RANK is not set",
                 {"JOB_COMPLETION_INDEX": "9"}, "PET_NODE_RANK=.*JOB_COMPLETION_INDEX=9"),
    "regatta": (lambda rank: {},
                {"REGATTA_RANKS": None}, "REGATTA_RANKS is not set",
                {"REGATTA_RANK": "9"}, "REGATTA_RANK=9.*REGATTA_RANKS=4"),
}

# The command before `regatta`, whether its four processes run together or what is said; words of env(1) that make half
# an environment, and what is said then; the same of one that contradicts itself.
NO_WAY_TO_MEET = "have no way to meet.*srun --mpi=pmix"
COMMANDS = {
    "mpirun": (["mpirun", "--allow-run-as-root", "--hostfile", "/srv/openmpi/hostfile", "--bind-to", "none", "-np",
                "4"], None,
               ["-u", "OMPI_COMM_WORLD_SIZE"], "OMPI_COMM_WORLD_SIZE is not set",
               ["PMIX_RANK=9"], "PMIX_RANK=9.*OMPI_COMM_WORLD_RANK="),
    "srun_pmix": (["srun", "--mpi=pmix", "-N2", "-n4"], None,
                  ["-u", "PMIX_NAMESPACE"], "PMIX_NAMESPACE is not set",
                  ["SLURM_PROCID=9", "SLURM_STEP_NUM_TASKS=10"], "PMIX_RANK=.*SLURM_PROCID=9"),
    "srun_pmi2": (["srun", "--mpi=pmi2", "-N2", "-n4"], NO_WAY_TO_MEET,
                  ["-u", "PMI_SIZE"], "PMI_SIZE is not set",
                  ["SLURM_PROCID=9", "SLURM_STEP_NUM_TASKS=10"], "PMI_RANK=.*SLURM_PROCID=9"),
    "srun": (["srun", "-N2", "-n4"], NO_WAY_TO_MEET,
             ["-u", "SLURM_PROCID"], "SLURM_PROCID is not set",
             ["RANK=1", "WORLD_SIZE=8"], "SLURM_(PROCID|STEP_NUM_TASKS)=.*(RANK=1|WORLD_SIZE=8)"),
}
LAUNCHER_OF = {"mpirun": "openmpi", "srun_pmix": "slurm", "srun_pmi2": "slurm", "srun": "slurm"}
NEEDED = {"openmpi": ["mpirun", "ssh", "sshd"], "slurm": ["srun", "slurmctld", "slurmd", "munged"]}


def expect_run(name, codes, seconds, out, text):
    r = result(out) if Path(out, "result.json").exists() else {"results": [], "context": {"hosts": []}}
    hosts = [h["name"] for h in r["context"]["hosts"]]
    check(f"{name}, complete: four processes run together, in {seconds:.1f} s",
          not any(codes) and seconds < LIMIT and hosts == ["n0", "n1"] and r["results"][0]["replicas_identical"],
          f"exit codes {codes}, hosts {hosts}, {text}")


def expect_refusal(name, how, codes, seconds, out, text, pattern):
    said = len(re.findall(pattern, text))
    # mpirun ends the others when the first process has ended with an error.
    check(f"{name}, {how}: refused in {seconds:.1f} s",
          set(codes) == {2} and seconds < LIMIT and not Path(out).exists() and (said == 4 or name == "mpirun" and said),
          f"exit codes {codes}, {said} processes say \"{pattern}\", {text}")


def by_variables(cluster, file, name):
    variables, half, half_text, contradicting, contradicting_text = VARIABLES[name]
    for how, changes, pattern in [("complete", {}, None), ("half set", half, half_text),
                                  ("contradicting", contradicting, contradicting_text)]:
        out = str(folder / f"{name}-{how}")
        launch = Launch(cluster, PLACES, "run", file, "--out", out,
                        of_rank={rank: variables(rank) | changes for rank in range(4)})
        seconds = launch.wait(LIMIT + 20)
        if pattern:
            expect_refusal(name, how, launch.codes(), seconds, out, launch.text(), pattern)
        else:
            expect_run(name, launch.codes(), seconds, out, launch.text())


def by_command(cluster, file, name):
    command, refused, half, half_text, contradicting, contradicting_text = COMMANDS[name]
    for how, words, pattern in [("complete", [], refused), ("half set", half, half_text),
                                ("contradicting", contradicting, contradicting_text)]:
        out = str(folder / f"{name}-{how}")
        begin = time.monotonic()
        done = cluster.on("n0", "timeout", "-k", "5", "60", *command, "env", *words, REGATTA, "run", file, "--out",
                          out)
        seconds, text = time.monotonic() - begin, done.stdout + done.stderr
        if pattern:
            expect_refusal(name, how, [done.returncode], seconds, out, text, pattern)
        else:
            expect_run(name, [done.returncode], seconds, out, text)


def start_launcher(cluster, launcher):
    """Starts a launcher on the hosts. Returns whether this machine has it."""
    missing = [c for c in NEEDED[launcher] if not shutil.which(c, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        print(f"  {launcher}: not run, {missing[0]} is missing; ./dev cluster-test installs it")
        return False
    run_script(cluster, launcher, "up")
    return True


def run_script(cluster, launcher, verb):
    done = subprocess.run([ROOT / f"tests/cluster/launchers/{launcher}.sh", verb], capture_output=True, text=True,
                          env=os.environ | {"REGATTA_HOSTS": cluster.name, "SLOTS": "2"})
    check(f"{launcher}.sh {verb}", done.returncode == 0, done.stderr)


def main():
    every = {**VARIABLES, **COMMANDS}
    names = sys.argv[1:] or list(every if "REGATTA_CLUSTER_ALL" in os.environ else VARIABLES)
    if unknown := [n for n in names if n not in every]:
        sys.exit(f"launcher_environments_test: expected some of {' '.join(every)}, got {unknown[0]}")
    cluster = Cluster(2)
    file = experiment("x", measure_steps=2)
    for name in names:
        if name in VARIABLES:
            by_variables(cluster, file, name)
    for launcher in NEEDED:
        of_it = [name for name in names if LAUNCHER_OF.get(name) == launcher]
        if of_it and start_launcher(cluster, launcher):
            for name in of_it:
                by_command(cluster, file, name)
            run_script(cluster, launcher, "down")
    check("no process is left", not cluster.left(), cluster.left())
    finish()


main()
