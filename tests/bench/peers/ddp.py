#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One worker of data-parallel training in PyTorch over gloo: what tests/bench/peers/ddp_order.py compares with.

DistributedDataParallel with its defaults (buckets of 25 MiB), plain, with the hook that sends fp16, or with PowerSGD of
rank 2 in one bucket; SGD with momentum, random images that stay the same. Start one process for each rank. Rank 0 prints
one JSON object: samples/s of all workers over the timed steps, and the standard deviation of its steps' time over their
mean. With one rank there is no DistributedDataParallel.
With --apart each rank has DistributedDataParallel and its hook for itself, and they only begin and end together.
"""
import argparse
import json
import os
import statistics
import sys
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--hook", choices=["plain", "fp16", "powersgd"], default="plain")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=4, help="at least 4 with PowerSGD, whose first steps are plain")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--apart", action="store_true", help="each rank is a process group of its own")
    parser.add_argument("--master", default="127.0.0.1:29400", help="HOST:PORT of rank 0")
    options = parser.parse_args()

    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[options.rank % len(cpus)]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    make, parameters = MODELS[options.model]
    model = make()
    assert sum(p.numel() for p in model.parameters()) == parameters
    distributed = options.ranks > 1
    if distributed:
        dist.init_process_group("gloo", init_method="tcp://" + options.master, rank=options.rank,
                                world_size=options.ranks)
        group = dist.group.WORLD
        if options.apart:
            group = [dist.new_group([r]) for r in range(options.ranks)][options.rank]
        # The hook begins its later collectives in callbacks. With several buckets gloo's threads begin them in another
        # order on each rank, and the run aborts ("preamble.length <= op.nbytes"): all in one bucket.
        buckets = {}
        if options.hook == "powersgd":
            dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30
            buckets = {"bucket_cap_mb": 1024}
        model = DistributedDataParallel(model, process_group=group, **buckets)
        if options.hook == "fp16":
            model.register_comm_hook(group, default_hooks.fp16_compress_hook)
        if options.hook == "powersgd":
            state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=2)
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    image = torch.randn(options.batch, 3, 32, 32)
    label = torch.arange(options.batch) % 10

    begin, ends = 0.0, []
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            if distributed:
                dist.barrier()
            begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(image), label).backward()
        optimiser.step()
        ends.append(time.perf_counter())
    if distributed:
        dist.barrier()
    seconds = time.perf_counter() - begin
    steps = [b - a for a, b in zip(ends[options.warmup:], ends[options.warmup + 1:])]
    if options.rank == 0:
        print(json.dumps({"peer": "pytorch " + torch.__version__,
                          "samples_per_second": options.ranks * options.batch * options.steps / seconds,
                          "variation": statistics.stdev(steps) / statistics.mean(steps)}))
    if distributed:
        dist.barrier()
        sys.stdout.flush()
        os._exit(0)  # threads of the process group may still run, and PyTorch 2.15 aborts in destroy_process_group()


if __name__ == "__main__":
    main()
