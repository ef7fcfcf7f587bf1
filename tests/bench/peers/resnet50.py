#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet50 for 224x224 images in PyTorch, as examples/resnet50.toml trains it: what `./dev bench` compares with.

The same network as plugins/models/resnet (25,557,032 parameters), momentum, cross-entropy, random images that stay the
same. Prints one JSON object: samples/s over the median step, by wall clock and by CPU time.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * channels
        self.body = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Sequential:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, depth in enumerate([3, 4, 6, 3]):
        for i in range(depth):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage and i == 0 else 1))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layout", choices=["channels_first", "channels_last"], default="channels_first")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    memory_format = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    model = resnet50().to(memory_format=memory_format)
    assert sum(p.numel() for p in model.parameters()) == 25557032
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    image = torch.randn(options.batch, 3, 224, 224).to(memory_format=memory_format)
    label = torch.arange(options.batch) % 1000

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
