#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The CTR network in PyTorch, as examples/ctr.toml trains it: what `./dev bench` compares with.

The same network as plugins/models/ctr: one table of 1,000,001 x 10 shared by 26 slots, 13 dense features, three hidden
layers of 400, two classes. Sparse gradients and SparseAdam for the table, Adam for the rest. Ids are drawn evenly or
by Zipf before the clock starts; --dense-table trains the table by Adam, too. Dense products are the BLAS's, which in
Debian is whatever `update-alternatives --display libblas.so.3-x86_64-linux-gnu` says: the reference is 15 times slower
than OpenBLAS (libopenblas0-pthread).
Prints one JSON object: samples/s over the median step, by wall clock and by CPU time.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn


class Ctr(nn.Module):
    def __init__(self, rows: int, dim: int, slots: int, features: int, hidden: list, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, dim, sparse=sparse)
        widths = [slots * dim + features, *hidden]
        layers = []
        for width, following in zip(widths, widths[1:]):
            layers += [nn.Linear(width, following), nn.ReLU(inplace=True)]
        self.tower = nn.Sequential(*layers, nn.Linear(widths[-1], 2))

    def forward(self, ids: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.tower(torch.cat([self.table(ids).flatten(1), features], dim=1))


def blas() -> str:
    """The library behind the dense products, by what is mapped into this process."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        mapped = maps.read()
    names = ["openblas", "mkl_core", "blis", "atlas"]
    return "mkl" if torch.backends.mkl.is_available() else next((n for n in names if n in mapped), "reference")


def draw_ids(options: argparse.Namespace, slots: int) -> torch.Tensor:
    shape = (options.batch, slots)
    if options.ids == "even":
        return torch.randint(options.rows, shape)
    # Zipf's law with exponent 1, by the inverse of its (continuous) distribution: rank = rows ^ uniform.
    return (options.rows ** torch.rand(shape, dtype=torch.float64)).long().clamp_(max=options.rows) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1_000_001)
    parser.add_argument("--ids", choices=["even", "zipf"], default="zipf")
    parser.add_argument("--batches", type=int, default=1, help="how many take turns")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dense-table", action="store_true", help="dense gradients and Adam for the table, too")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    slots, features = 26, 13
    model = Ctr(options.rows, 10, slots, features, [400, 400, 400], not options.dense_table)
    assert sum(p.numel() for p in model.tower.parameters()) == 431_202
    table = torch.optim.Adam if options.dense_table else torch.optim.SparseAdam
    optimisers = [table(model.table.parameters(), lr=1e-4), torch.optim.Adam(model.tower.parameters(), lr=1e-4)]
    batches = [(draw_ids(options, slots), torch.randn(options.batch, features), torch.randint(2, (options.batch,)))
               for _ in range(options.batches)]

    wall, cpu, losses = [], [], []
    for i in range(options.warmup + options.steps):
        ids, values, label = batches[i % len(batches)]
        start, cpu_start = time.perf_counter(), time.process_time()
        for o in optimisers:
            o.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            logits = model(ids, values)
        loss = nn.functional.cross_entropy(logits.float(), label)
        loss.backward()
        for o in optimisers:
            o.step()
        losses.append(loss.item())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__,
        "note": "with " + blas() + " as BLAS",
        "samples_per_second": options.batch / statistics.median(wall[options.warmup:]),
        "samples_per_cpu_second": options.batch / statistics.median(cpu[options.warmup:]),
        "loss": {"first": losses[0], "last": losses[-1]},
    }))


if __name__ == "__main__":
    main()
