#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""VGG16 for CIFAR-10 in PyTorch, as examples/vgg16-cifar.toml trains it: what `./dev bench` compares with.

The same network as plugins/models/vgg (batch norm, dropout, 15,254,602 parameters), momentum, cross-entropy, random
images that stay the same. Prints one JSON object: samples/s over the median step, by wall clock and by CPU time.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn


def vgg16(dropout: float) -> nn.Sequential:
    layers, channels = [], 3
    for block, (width, depth) in enumerate([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]):
        for i in range(depth):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            if i + 1 < depth:
                layers.append(nn.Dropout(dropout * (0.3 if block == 0 else 0.4)))
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Dropout(dropout * 0.5), nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(inplace=True),
               nn.Dropout(dropout * 0.5), nn.Linear(512, 512), nn.Linear(512, 10)]
    return nn.Sequential(*layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=1.0, help="factor on every dropout probability")
    parser.add_argument("--layout", choices=["channels_first", "channels_last"], default="channels_first")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    memory_format = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    model = vgg16(options.dropout).to(memory_format=memory_format)
    assert sum(p.numel() for p in model.parameters()) == 15254602
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    image = torch.randn(options.batch, 3, 32, 32).to(memory_format=memory_format)
    label = torch.arange(options.batch) % 10

    wall, cpu, losses = [], [], []
    for _ in range(options.warmup + options.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__,
        "layout": options.layout,
        "precision": options.precision,
        "mkldnn": torch.backends.mkldnn.is_available(),
        "samples_per_second": options.batch / statistics.median(wall[options.warmup:]),
        "samples_per_cpu_second": options.batch / statistics.median(cpu[options.warmup:]),
        "loss": {"first": losses[0], "last": losses[-1]},
    }))


if __name__ == "__main__":
    main()
