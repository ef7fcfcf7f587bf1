#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real models on this machine beside their simulation: a table with the error of each strategy (docs/simulation.md).

  tests/bench/simulation/real_models.py [MODEL...]    mlp takes 15 minutes, resnet18 and vgg16 as long; other programs must not run

Each round calibrates a model, runs two workers under each strategy and transport, and simulates them with that machine
file; the table has the medians over the rounds. The errors of E are those of samples/s without what the machine's speed
changes between the calibration and the run, because a run measures one worker alone beside two. Build `product` before.
"""
import itertools, json, os, statistics, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
REGATTA = os.environ.get("REGATTA", str(ROOT / "build/release/bin/regatta"))
WORKERS = 2
MODELS = {  # [model], the batch of a worker, timed steps, rounds
    "mlp": ('plugin = "mlp"\nhidden = [512, 512]', 64, 200, 4),
    "resnet18": ('plugin = "resnet50"\ninput = "cifar10"\ndepth = 18\nwidth = 32', 32, 12, 3),
    "vgg16": ('plugin = "vgg16"\ninput = "cifar10"', 16, 12, 2),
}
STRATEGIES = {
    "allreduce (ring)": 'plugin = "allreduce"\nalgorithm = "ring"',
    "allreduce (sharded)": 'plugin = "allreduce"\nalgorithm = "sharded"',
    "sync_ps": 'plugin = "sync_ps"',
    "local_sgd": 'plugin = "local_sgd"\nk = 4',
}
TRANSPORTS = ("shm", "tcp")


def experiment(model, strategy, transport):
    parameters, batch, steps, _ = MODELS[model]
    servers = "servers = 1\ncolocate = true\n" if strategy.endswith("_ps") else ""
    return (f"[model]\n{parameters}\n[train]\nbatch = {batch}\n[optimizer]\nplugin = \"sgd\"\nlr = 0.001\n"
            f"[cluster]\nworkers = {WORKERS}\n{servers}[strategy]\n{STRATEGIES[strategy]}\n"
            f"[transport]\nplugin = \"{transport}\"\n[measure]\nwarmup = 4\nsteps = {steps}\nrepeats = 4\n")


def regatta(*arguments):
    done = subprocess.run([REGATTA, *map(str, arguments), "--progress", "never"], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"real_models: regatta {' '.join(map(str, arguments))}: {done.stderr or done.stdout}")


def figures(folder):
    entry, = json.loads((folder / "result.json").read_text())["results"]
    return entry["samples_per_second"]["median"], (entry["efficiency"] or {}).get("median")


def measure(model, folder):
    """Returns [measured, simulated, measured E, simulated E] by strategy and transport, the medians of all rounds."""
    rounds = {}
    for turn in range(MODELS[model][-1]):
        file, machine = folder / "x.toml", folder / f"machine-{turn}.toml"
        file.write_text(experiment(model, "allreduce (ring)", "tcp"))
        regatta("calibrate", file, "-o", machine)
        for number, (strategy, transport) in enumerate(itertools.product(STRATEGIES, TRANSPORTS)):
            file.write_text(experiment(model, strategy, transport))
            run, simulation = folder / f"run-{turn}-{number}", folder / f"simulation-{turn}-{number}"
            regatta("run", file, "--out", run)
            regatta("simulate", file, "--machine", machine, "--out", simulation)
            measured, simulated = figures(run), figures(simulation)
            rounds.setdefault((strategy, transport), []).append((measured[0], simulated[0], measured[1], simulated[1]))
            print(f"{model}, {strategy}, {transport}: {measured[0]:.4g} measured, {simulated[0]:.4g} simulated, "
                  f"E {measured[1]:.3f} and {simulated[1]:.3f}", file=sys.stderr, flush=True)
    return {key: [statistics.median(column) for column in zip(*all)] for key, all in rounds.items()}


def main():
    names = sys.argv[1:] or list(MODELS)
    if unknown := [n for n in names if n not in MODELS]:
        sys.exit(f"real_models: expected some of {', '.join(MODELS)}, got {unknown[0]}")
    errors = {"samples/s": [], "E": []}
    print("| model | strategy | transport | measured samples/s | simulated | error | measured E | simulated | error |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for model in names:
        with tempfile.TemporaryDirectory() as folder:
            for (strategy, transport), (measured, simulated, e, of_simulation) in measure(model, Path(folder)).items():
                error, of_e = 100 * (simulated / measured - 1), 100 * (of_simulation / e - 1)
                errors["samples/s"].append(abs(error))
                errors["E"].append(abs(of_e))
                print(f"| {model} | {strategy} | {transport} | {measured:.4g} | {simulated:.4g} | {error:+.1f} % | {e:.3f} | "
                      f"{of_simulation:.3f} | {of_e:+.1f} % |", flush=True)
    for what, all in errors.items():
        print(f"\n{what}: median error {statistics.median(all):.1f} %, worst {max(all):.1f} %")


if __name__ == "__main__":
    main()
