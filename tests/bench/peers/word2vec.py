#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Skip-gram with negative sampling in PyTorch: what `./dev bench models` compares plugins/models/word2vec with.

Two tables of 100,000 words, 100 elements a word and a bias for each output, 5 words of noise a pair, batches of 1024
pairs, plain SGD on sparse gradients. Words come by Zipf's law, noise by its power of 0.75; both are drawn before the
clock starts, the noise too, which Regatta draws within its step.
Prints one JSON object: pairs/s over the median step, by wall clock and by CPU time.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn


class SkipGram(nn.Module):
    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        self.input = nn.Embedding(vocabulary, dim, sparse=True)
        self.output = nn.Embedding(vocabulary, dim, sparse=True)
        self.bias = nn.Embedding(vocabulary, 1, sparse=True)
        nn.init.uniform_(self.input.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.bias.weight)

    def forward(self, words: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """words [batch], targets [batch, 1 + negatives]: the context, then noise."""
        scores = torch.bmm(self.output(targets), self.input(words).unsqueeze(2)) + self.bias(targets)
        scores = scores.squeeze(2)
        right = nn.functional.logsigmoid(scores[:, 0]).sum()
        wrong = nn.functional.logsigmoid(-scores[:, 1:]).sum()
        return -(right + wrong) / words.shape[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--negatives", type=int, default=5)
    parser.add_argument("--batches", type=int, default=1, help="how many take turns")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--warmup", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = SkipGram(options.vocabulary, options.dim)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    frequency = 1 / torch.arange(1, options.vocabulary + 1, dtype=torch.float64)

    def batch() -> tuple:
        pairs = torch.multinomial(frequency, 2 * options.batch, replacement=True).view(2, options.batch)
        noise = torch.multinomial(frequency ** 0.75, options.batch * options.negatives, replacement=True)
        return pairs[0], torch.cat([pairs[1].unsqueeze(1), noise.view(options.batch, options.negatives)], dim=1)

    batches = [batch() for _ in range(options.batches)]
    wall, cpu, losses = [], [], []
    for i in range(options.warmup + options.steps):
        words, targets = batches[i % len(batches)]
        start, cpu_start = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        loss = model(words, targets)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__,
        "samples_per_second": options.batch / statistics.median(wall[options.warmup:]),
        "samples_per_cpu_second": options.batch / statistics.median(cpu[options.warmup:]),
        "loss": {"first": losses[0], "last": losses[-1]},
    }))


if __name__ == "__main__":
    main()
