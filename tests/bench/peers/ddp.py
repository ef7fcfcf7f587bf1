#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One worker of data-parallel training in PyTorch over gloo: what tests/bench/peers/ddp_order.py compares with.

DistributedDataParallel with its defaults (buckets of 25 MiB), plain, with the hook that sends fp16, or with PowerSGD of
rank 2 in one bucket; SGD with momentum, random images that stay the same. Start one process for each rank.

A machine's speed changes within minutes, so each round measures three trainings one after the other: `alone`, rank 0
without DistributedDataParallel while the others wait; `apart`, each rank with DistributedDataParallel and its hook for
itself, which only begin and end together; and `together`. Rank 0 prints one JSON object with a list for each of them,
the samples/s of all workers in each round. `variation` is the standard deviation of the steps' time over their mean in
each round of `apart`; `lost` is how many ns longer its steps take for each byte of all-reduces that all ranks do at the
same time, on another thread, in the type in which the hook sends.
"""
import argparse
import json
import os
import statistics
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vgg16_cifar import vgg16


class Basic(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18(width: int) -> nn.Sequential:
    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    inputs = width
    for stage in range(4):
        for i in range(2):
            layers.append(Basic(inputs, width << stage, 2 if stage and i == 0 else 1))
            inputs = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(inplace=True), nn.Linear(512, 512),
                         nn.ReLU(inplace=True), nn.Linear(512, 10))


# By Regatta's name; the parameters that Regatta's model has with the options of ddp_order.py.
MODELS = {
    "mlp": (mlp, 1841162),
    "vgg16": (lambda: vgg16(1.0), 15254602),
    "resnet18": (lambda: resnet18(32), 2797610),
}


def parallel(model: nn.Module, hook: str, group: dist.ProcessGroup) -> nn.Module:
    # The hook of PowerSGD begins its later collectives in callbacks. With several buckets gloo's threads begin them in
    # another order on each rank, and the run aborts ("preamble.length <= op.nbytes"): all in one bucket.
    buckets = {"bucket_cap_mb": 1024} if hook == "powersgd" else {}
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30 if hook == "powersgd" else 1 << 20
    model = DistributedDataParallel(model, process_group=group, **buckets)
    if hook == "fp16":
        model.register_comm_hook(group, default_hooks.fp16_compress_hook)
    if hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return model


class AllReduces(threading.Thread):
    """All-reduces a buffer again and again, until rank 0 calls end()."""

    def __init__(self, size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.buffer = torch.zeros(size // dtype.itemsize, dtype=dtype)
        self.ends, self.bytes = 0, 0

    def run(self) -> None:
        while not self.buffer[0]:
            self.buffer[0] = self.ends
            dist.all_reduce(self.buffer)
            self.bytes += self.buffer.nbytes

    def end(self) -> None:
        self.ends = 1


class Training:
    """Of `ranks` workers with `batch` images each; this process is one of them, or none and only waits."""

    def __init__(self, model: nn.Module, batch: int, ranks: int, takes_part: bool) -> None:
        self.model, self.batch, self.ranks, self.takes_part = model, batch, ranks, takes_part
        self.optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
        self.image = torch.randn(batch, 3, 32, 32)
        self.label = torch.arange(batch) % 10

    def step(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self.model(self.image), self.label).backward()
        self.optimiser.step()

    def measure(self, steps: int, beside: AllReduces | None = None) -> tuple[float, list[float]]:
        """Returns samples/s of all workers, and the seconds of this process's steps; all processes call it."""
        if self.takes_part:
            self.step()
        dist.barrier()
        if beside:
            beside.start()
        begin, seconds = time.perf_counter(), []
        for _ in range(steps if self.takes_part else 0):
            before = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - before)
        if beside:
            if dist.get_rank() == 0:
                beside.end()
            beside.join()
        dist.barrier()
        return self.ranks * self.batch * steps / (time.perf_counter() - begin), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--hook", choices=["plain", "fp16", "powersgd"], default="plain")
    parser.add_argument("--batch", type=int, default=32, help="of each worker")
    parser.add_argument("--steps", type=int, default=10, help="of `together` in a round")
    parser.add_argument("--computing", type=int, default=10, help="steps of `alone` and `apart` in a round")
    parser.add_argument("--beside", type=int, default=4 << 20, help="bytes of each all-reduce for `lost`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=4, help="steps of each; with PowerSGD the first two are plain")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--master", required=True, help="HOST:PORT of rank 0")
    options = parser.parse_args()

    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[options.rank % len(cpus)]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    make, parameters = MODELS[options.model]
    models = [make() for _ in range(3)]
    assert sum(p.numel() for p in models[0].parameters()) == parameters
    dist.init_process_group("gloo", init_method="tcp://" + options.master, rank=options.rank, world_size=options.ranks)
    own = [dist.new_group([r]) for r in range(options.ranks)][options.rank]
    trainings = {
        "alone": (Training(models[0], options.batch, 1, options.rank == 0), options.computing),
        "apart": (Training(parallel(models[1], options.hook, own), options.batch, options.ranks, True),
                  options.computing),
        "together": (Training(parallel(models[2], options.hook, dist.group.WORLD), options.batch, options.ranks, True),
                     options.steps),
    }
    dtype = torch.float16 if options.hook == "fp16" else torch.float32
    printed = {name: [] for name in (*trainings, "variation", "lost")}
    for training, _ in trainings.values():
        training.measure(options.warmup)
    for _ in range(options.rounds):
        for name, (training, steps) in trainings.items():
            rate, seconds = training.measure(steps)
            printed[name].append(rate)
            if name == "apart":
                printed["variation"].append(statistics.stdev(seconds) / statistics.mean(seconds))
                all_reduces = AllReduces(options.beside, dtype)
                _, slower = training.measure(steps, all_reduces)
                printed["lost"].append(1e9 * (sum(slower) - sum(seconds)) / all_reduces.bytes)
    if options.rank == 0:
        print(json.dumps({"peer": "pytorch " + torch.__version__, **printed}))
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # threads of the process group may still run, and PyTorch 2.15 aborts in destroy_process_group()


if __name__ == "__main__":
    main()
