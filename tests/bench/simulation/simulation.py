#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real runs beside simulated ones: a table with the error of each cell (docs/results/simulation.md).

  ./dev bench simulation                          all cells: about 20 minutes; as root, for test hosts
  ./dev bench simulation ring 100mbit 8 tbf       these cells again; the table has all that are known
  ./dev bench simulation --simulate [WORD...]     simulates again and keeps what was measured
  ./dev bench simulation --table [WORD...]        prints the table
  ./dev bench simulation --trace [WORD...]        measures again, and keeps traces of both in `traces`

A model that sleeps instead of computing loads only the network, so that 2 to 32 ranks fit on two cores. Links are those
of test hosts, limited by the kernel (tbf), or the transport `shaped`. What is known lies in
build/release/simulation-bench: remove it to begin again.
"""
import argparse, json, statistics, sys, time

sys.dont_write_bytecode = True
from cells import MB, NETWORKS, RANKS, RATES, SIZES, STRATEGIES, cells
import runs


class Known:
    """A file of results by key, written after each one, so that a run can be interrupted."""

    def __init__(self, name):
        self.path = runs.STATE / name
        self.all = json.loads(self.path.read_text()) if self.path.exists() else {}

    def set(self, key, value):
        self.all[key] = value
        self.path.write_text(json.dumps(self.all, indent=1))


def rate_of(entry):
    return entry["samples_per_second"]["median"]


def counted(cell, carried):
    """Whether the rate of all links is at most half of what this machine carries; links of `shaped` cost the same."""
    return cell.ranks * RATES[cell.rate] / 8 <= carried.get(str(cell.ranks), 0) / 2


def row_of(cell, known):
    result = known.all.get(cell.key())
    if not result or "simulated" not in result or "measured" not in result:
        return None
    return result["measured"], result["simulated"], result["simulated"] / result["measured"] - 1


def print_tables(chosen, known, carried):
    errors = []
    for network in NETWORKS:
        for rate in RATES:
            for size in SIZES[rate]:
                errors += print_table([c for c in chosen if (c.network, c.rate, c.size) == (network, rate, size)],
                                      known, carried)
    if errors:
        worst = max(errors)
        print(f"{len(errors)} cells are counted: median error {100 * statistics.median(errors):.1f} %, worst "
              f"{100 * worst:.1f} %, {sum(e > 0.05 for e in errors)} above 5 %, {sum(e > 0.1 for e in errors)} "
              "above 10 %")


def print_table(some, known, carried):
    some = [c for c in some if row_of(c, known)]
    if not some:
        return []
    first, ranks = some[0], sorted({c.ranks for c in some})
    print(f"\n### {first.network}, {first.rate}, {first.size.bytes // MB} MB, computing {first.size.compute} ms\n")
    print("| steps/s, measured / simulated |" + "".join(f" {n} ranks |" for n in ranks))
    print("|---|" + "--:|" * len(ranks))
    errors = []
    for strategy in STRATEGIES:
        of_ranks = {c.ranks: c for c in some if c.strategy == strategy}
        if not of_ranks:
            continue
        line = f"| {strategy} |"
        for n in ranks:
            if n not in of_ranks:
                line += " |"
                continue
            measured, simulated, error = row_of(of_ranks[n], known)
            good = counted(of_ranks[n], carried)
            errors += [abs(error)] if good else []
            line += (f" {measured / n:.3g} / {simulated / n:.3g} " +
                     (f"**{100 * error:+.1f} %** |" if good else f"({100 * error:+.1f} %) |"))
        print(line)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="tbf, shaped, 100mbit, 1gbit, strategies, numbers of ranks")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    names = {*NETWORKS, *RATES, *STRATEGIES, *map(str, RANKS)}
    if unknown := [w for w in options.words if w not in names]:
        parser.error(f"expected {', '.join(names)}, got {unknown[0]}")
    runs.STATE.mkdir(parents=True, exist_ok=True)
    chosen = cells(options.words)
    known, carried = Known("cells.json"), Known("carried.json")
    begin = time.monotonic()
    if not options.table:
        prepare(chosen, carried, options.simulate)
        for cell in chosen:
            run_cell(cell, known, options.simulate, options.trace)
    print_tables(chosen if options.words else cells([]), known, carried.all)
    for n, bytes_per_second in sorted(carried.all.items(), key=lambda pair: int(pair[0])):
        print(f"{n} hosts carry {8e-9 * bytes_per_second:.1f} Gbit/s together in frames of {runs.MTU} bytes")
    runs.say(f"{time.monotonic() - begin:.0f} s")


hosts = runs.Hosts(max(RANKS))


def prepare(chosen, carried, only_simulate):
    """Measures what is not known yet: what links carry, the links, the model."""
    for n in sorted({c.ranks for c in chosen}):
        if str(n) not in carried.all and not only_simulate:
            carried.set(str(n), runs.carried(hosts, n))
    for rate in sorted({c.rate for c in chosen}):
        if not runs.costs_of(rate).exists() and any(c.network == "tbf" for c in chosen):
            runs.links(hosts, rate)
        for size in {c.size for c in chosen if c.rate == rate}:
            if not runs.calibration_of(rate, size).exists():
                runs.calibrate(rate, size)


def run_cell(cell, known, only_simulate, trace):
    result = dict(known.all.get(cell.key(), {}))
    try:
        if not only_simulate:
            entry = runs.measure(hosts, cell, trace)
            if "measured" in result:
                result["before"] = result["measured"]
            result["measured"] = rate_of(entry)
            result["busy"] = runs.busy(entry)
        result["simulated"] = rate_of(runs.simulate(cell, trace))
    except RuntimeError as why:
        runs.say(f"{cell.key()}: {why}")
        return
    known.set(cell.key(), result)
    shown = row_of(cell, known)
    if shown:
        runs.say(f"{cell.key()}: {shown[0]:.4g} measured, {shown[1]:.4g} simulated, {100 * shown[2]:+.1f} %" +
                 (f", before {result['before']:.4g}" if "before" in result else ""))


main()
