#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates examples/published and examples/what-if, and writes the tables of two pages of docs/ between their marks.

    ./dev bench published                simulates everything, and writes docs/results/published.md and docs/what-if.md
    ./dev bench published --fit          first chooses the values that are marked `# fitted` in the machine files
    ./dev bench published --only REGEX   the tables, or with --fit the experiments, whose names match
    ./dev bench published --check        only reports which tables differ from those of the pages; exit code 1 if any does

A mark is `<!-- table NAME -->`; the table ends with `<!-- end -->`. Published figures are those of the experiments'
[[report.context]], and are read from there.
"""
import argparse
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLISHED, WHAT_IF = ROOT / "examples/published", ROOT / "examples/what-if"
PAGES = [ROOT / "docs/results/published.md", ROOT / "docs/what-if.md"]
VGG16_NETWORK = "vgg16-network.toml"


def simulation(folder, name, machine, network=None):
    return {"folder": folder, "file": f"{name}.toml", "machine": machine, "network": network}


SIMULATIONS = {
    "vgg16-workers": simulation(PUBLISHED, "vgg16-workers", "vgg16-machine.toml", VGG16_NETWORK),
    "vgg16-workers-v2": simulation(PUBLISHED, "vgg16-workers", "vgg16-v2-machine.toml", VGG16_NETWORK),
    "vgg16-servers": simulation(PUBLISHED, "vgg16-servers", "vgg16-machine.toml", VGG16_NETWORK),
    "vgg16-batches": simulation(PUBLISHED, "vgg16-batches", "vgg16-machine.toml", VGG16_NETWORK),
    "collectives-resnet50": simulation(PUBLISHED, "collectives-resnet50", "v100-machine.toml"),
    "collectives-vgg16": simulation(PUBLISHED, "collectives-vgg16", "v100-machine.toml"),
    "collectives-bert": simulation(PUBLISHED, "collectives-bert", "v100-machine.toml"),
    "collectives-transformer": simulation(PUBLISHED, "collectives-transformer", "v100-machine.toml"),
    "word2vec": simulation(PUBLISHED, "word2vec", "word2vec-machine.toml"),
    "ctr": simulation(PUBLISHED, "ctr", "ctr-machine.toml"),
    "dgc-bandwidth": simulation(PUBLISHED, "dgc-bandwidth", "dgc-machine.toml"),
    "multi-gpu": simulation(PUBLISHED, "multi-gpu", "p100-machine.toml"),
    "servers": simulation(WHAT_IF, "servers", "../published/vgg16-machine.toml", f"../published/{VGG16_NETWORK}"),
    "compression": simulation(WHAT_IF, "compression", "machine.toml"),
    "slow-host": simulation(WHAT_IF, "slow-host", "machine.toml"),
    "slow-host-allreduce": simulation(WHAT_IF, "slow-host-allreduce", "machine.toml"),
    "faster-network": simulation(WHAT_IF, "faster-network", "machine.toml"),
}

# Rows of published figures: the simulation, the row of its [[report.context]], the values of the other swept keys, the
# key of the columns, and the column on which something was fitted.
COMPARED = {
    "beside-vgg16": [
        ("vgg16-workers", "Fluid, 20 servers", {"cluster.servers": 20}, "cluster.workers", "80"),
        ("vgg16-workers-v2", "v2, 20 servers", {"cluster.servers": 20}, "cluster.workers", None),
    ],
    "beside-collectives": [("collectives-resnet50", "published", {}, "cluster.workers", "8")],
    "beside-sparse": [
        ("word2vec", "GEO, published", {"strategy.plugin": "geo_ps"}, "cluster.workers", "4"),
        ("word2vec", "asynchronous, published", {"strategy.plugin": "async_ps"}, "cluster.workers", None),
        ("ctr", "asynchronous, published", {"strategy.plugin": "async_ps"}, "cluster.workers", "4"),
    ],
    "beside-dgc": [
        ("dgc-bandwidth", "dense, published", {"strategy.plugin": "allreduce"}, "transport.bandwidth", "1Gbit/s"),
        ("dgc-bandwidth", "DGC, published", {"strategy.plugin": "dgc"}, "transport.bandwidth", None),
    ],
    "beside-multi-gpu": [
        ("multi-gpu", "replicated, P100", {"strategy.plugin": "allreduce"}, "cluster.workers", "2"),
        ("multi-gpu", "parameter server, P100", {"strategy.plugin": "sync_ps"}, "cluster.workers", None),
    ],
}
GIVEN = {"multi-gpu": {"1"}}  # columns that the machine file contains: no prediction

# Values marked `# fitted`: the file, the range to search, the row of COMPARED, and the options of that one case.
FITS = [
    (VGG16_NETWORK, (20, 10_000), ("beside-vgg16", 0),
     "cluster.servers=20 cluster.workers=80 cluster.hosts=80"),
    ("v100-machine.toml", (1e12, 1.6e13), ("beside-collectives", 0),
     "cluster.workers=8 cluster.hosts=1 strategy.algorithm=ring"),
    ("p100-machine.toml", (2, 400), ("beside-multi-gpu", 0),
     "strategy.plugin=allreduce cluster.workers=2 cluster.servers=2"),
    ("word2vec-machine.toml", (500, 5000), ("beside-sparse", 0),
     "strategy.plugin=geo_ps measure.warmup=400 measure.steps=400 cluster.workers=4 cluster.servers=4 cluster.hosts=4"),
    ("ctr-machine.toml", (2000, 20_000), ("beside-sparse", 2),
     "strategy.plugin=async_ps measure.warmup=5 measure.steps=20 cluster.workers=4 cluster.servers=4 cluster.hosts=4"),
    ("dgc-machine.toml", (0.01, 1), ("beside-dgc", 0), "strategy.plugin=allreduce transport.bandwidth=1Gbit/s"),
]


class Runner:
    """Runs simulations; each one once, unless a file changed."""

    def __init__(self, program, scratch):
        self.program, self.scratch, self.kept, self.count = program, scratch, {}, 0

    def run(self, name, options=()):
        s = SIMULATIONS[name]
        self.count += 1
        out = self.scratch / str(self.count)
        command = [self.program, "simulate", str(s["folder"] / s["file"]), "--machine", str(s["folder"] / s["machine"])]
        if s["network"]:
            command += ["--network", str(s["folder"] / s["network"])]
        command += ["--out", str(out), "--progress", "never", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads((out / "result.json").read_text()), done.stdout

    def whole(self, name):
        if name not in self.kept:
            print(f"simulating {name}", flush=True)
            self.kept[name] = self.run(name)
        return self.kept[name]


def number(value):
    """The first number of a published cell: 263 of [263, 0.786], 1901 of "1901 (16.7x)"."""
    if isinstance(value, list):
        value = value[0]
    return float(value) if isinstance(value, (int, float)) else float(re.match(r"[\d.]+", value).group())


def published(name, row):
    s = SIMULATIONS[name]
    reports = tomllib.loads((s["folder"] / s["file"]).read_text())["report"]
    for report in reports:
        for context in report.get("context", []):
            if context["row"] == row:
                return {column: number(value) for column, value in context["values"].items()}
    raise SystemExit(f"{s['file']}: no [[report.context]] has the row {row}")


def simulated(document, where, column_key):
    """samples/s by column of the cases with these values."""
    return {str(r["case"][column_key]): r["samples_per_second"]["median"] for r in document["results"]
            if all(r["case"].get(key) == value for key, value in where.items())}


def comparison(runner, rows):
    text, errors = "", []
    columns = list(dict.fromkeys(c for name, row, *_ in rows for c in published(name, row)))
    text += "| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns) + "\n"
    for name, row, where, key, fitted in rows:
        theirs, ours = published(name, row), simulated(runner.whole(name)[0], where, key)
        cells = {"published": [], "simulated": [], "error": []}
        for c in columns:
            if c not in theirs or c not in ours:
                for all_cells in cells.values():
                    all_cells.append("")
                continue
            error = ours[c] / theirs[c] - 1
            used = c == fitted or c in GIVEN.get(name, ())
            if not used:
                errors.append(abs(error))
            cells["published"].append(f"{theirs[c]:.0f}")
            cells["simulated"].append(f"{ours[c]:.0f}")
            cells["error"].append("fitted" if c == fitted else "given" if used else f"{100 * error:+.1f} %")
        row = f"{name}, {re.sub(r',? ?published$', '', row)}".rstrip(", ")
        for kind, values in cells.items():
            text += f"| {row}: {kind} | " + " | ".join(values) + " |\n"
    return text + f"\nMedian error of the {len(errors)} columns that were not used: " \
                  f"{100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %.\n"


def report_tables(runner, name):
    """The tables of [[report]], as the terminal shows them, behind the command."""
    s = SIMULATIONS[name]
    command = f"regatta simulate {s['file']} --machine {s['machine']}"
    if s["network"]:
        command += f" --network {s['network']}"
    blocks = [f"$ cd {s['folder'].relative_to(ROOT)}; {command}"]
    output = runner.whole(name)[1].split("\n\n")
    for report in tomllib.loads((s["folder"] / s["file"]).read_text())["report"]:
        blocks += [b for b in output if b.startswith(f"SIMULATED: {report['title']}:")]
    lines = "\n\n".join(blocks).strip("\n").split("\n")
    return "".join(f"    {line.rstrip()}".rstrip() + "\n" for line in lines)


def fitted_line(file):
    text = file.read_text()
    found = re.search(r'^(\w+ = "?)([\d.e+]+)((?:[A-Za-z/]+")? +# fitted)', text, re.MULTILINE)
    if not found:
        sys.exit(f"{file}: no line is marked `# fitted`")
    return text, found


def write_fitted(file, value):
    text, found = fitted_line(file)
    file.write_text(text[:found.start(2)] + f"{value:.3g}".replace("e+", "e") + text[found.end(2):])


def fit(runner, only):
    for file, (low, high), (table, index), settings in FITS:
        if not only.search(COMPARED[table][index][0]):
            continue
        name, row, where, key, column = COMPARED[table][index]
        goal = published(name, row)[column]
        options = ["--set", "measure.baseline=false"]
        for setting in settings.split():
            options += ["--set", setting]
        for _ in range(12):  # the samples/s grow with each of these values
            middle = (low * high) ** 0.5
            write_fitted(PUBLISHED / file, middle)
            rate = runner.run(name, options)[0]["results"][0]["samples_per_second"]["median"]
            low, high = (middle, high) if rate < goal else (low, middle)
        print(f"{file}: {fitted_line(PUBLISHED / file)[1].group()}: {rate:.1f} of {goal:g}", flush=True)


def table(runner, name):
    if name == "date":
        document = runner.whole("multi-gpu")[0]["context"]
        return f"Simulated on {datetime.date.today().isoformat()} by `./dev bench published`, regatta " \
               f"{document['regatta']} ({document['git'] or 'no git'}).\n"
    return comparison(runner, COMPARED[name]) if name in COMPARED else report_tables(runner, name)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--fit", action="store_true")
    options.add_argument("--check", action="store_true")
    options.add_argument("--only", default="", metavar="REGEX")
    asked = options.parse_args()
    only = re.compile(asked.only)
    differ = False
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(asked.program, pathlib.Path(scratch))
        if asked.fit:
            fit(runner, only)
        for page in PAGES:
            old = page.read_text()
            new = re.sub(r"(<!-- table (\S+) -->\n)(.*?)(<!-- end -->)",
                         lambda m: f"{m[1]}\n{table(runner, m[2])}\n{m[4]}" if only.search(m[2]) else m[0], old,
                         flags=re.DOTALL)
            if asked.check:
                same = re.sub(r"Simulated on .*\n", "", old) == re.sub(r"Simulated on .*\n", "", new)
                print(f"{page.relative_to(ROOT)}: {'as simulated' if same else 'differs'}")
                differ = differ or not same
            else:
                page.write_text(new)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
