# SPDX-License-Identifier: Apache-2.0
"""BERT in pre-training in PyTorch, as plugins/models/bert has it: what `./dev bench` compares with.

The same network (masked words with a tied output, next sentence, dropout everywhere; 110,106,428 parameters for base),
Adam, random words that stay the same. Attention is written with matrix products, as the published implementations have
it: PyTorch 1.13 has nothing faster for training. Prints one JSON object: samples/s over the median step, by wall clock
and by CPU time.

Debian's PyTorch multiplies matrices with the system's BLAS, which is Netlib's slow reference unless a fast one is
installed (libopenblas0-pthread); the note says which one was there.
"""
import argparse
import json
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query, self.key, self.value, self.output = (nn.Linear(hidden, hidden) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-12), nn.LayerNorm(hidden, eps=1e-12)
        self.inner1, self.inner2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.size).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        p = self.dropout(torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.size) + mask, dim=-1))
        y = (p @ v).transpose(1, 2).reshape(x.shape)
        x = self.norm1(self.dropout(self.output(y)).float() + x)
        return self.norm2(self.dropout(self.inner2(F.gelu(self.inner1(x)))).float() + x)


class Bert(nn.Module):
    def __init__(self, layers: int, hidden: int, heads: int, vocabulary: int, dropout: float):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(512, hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm, self.dropout = nn.LayerNorm(hidden, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(hidden, heads, dropout) for _ in range(layers))
        self.transform, self.transform_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.pooler, self.next_sentence = nn.Linear(hidden, hidden), nn.Linear(hidden, 2)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, segments, masked, labels, follows):
        mask = ((tokens == 0).float() * -1e9)[:, None, None, :]
        x = self.words(tokens) + self.positions.weight[:tokens.shape[1]] + self.segments(segments)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, mask)
        taken = torch.gather(x, 1, masked[:, :, None].expand(-1, -1, x.shape[2]))
        y = self.transform_norm(F.gelu(self.transform(taken)).float())
        logits = F.linear(y, self.words.weight, self.bias)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=0)
        pooled = self.dropout(torch.tanh(self.pooler(x[:, 0])))
        return loss + F.cross_entropy(self.next_sentence(pooled).float(), follows)


def blas() -> str:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        fast = sorted({line.split("/")[-1].strip() for line in maps if "openblas" in line or "blis" in line or "mkl_" in line})
    return ", ".join(fast) or "Netlib's reference BLAS: install libopenblas0-pthread for a fair comparison"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=["base", "large"], default="base")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    size = {"base": (12, 768, 12), "large": (24, 1024, 16)}[options.size]
    model = Bert(*size, 30522, options.dropout)
    assert sum(p.numel() for p in model.parameters()) == {"base": 110106428, "large": 336226108}[options.size]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
    shape, places = (options.batch, options.sequence), (options.batch, options.predictions)
    batch = (torch.randint(1, 30522, shape), torch.randint(0, 2, shape), torch.randint(0, options.sequence, places),
             torch.randint(1, 30522, places), torch.randint(0, 2, (options.batch,)))

    wall, cpu, losses = [], [], []
    for _ in range(options.warmup + options.steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = model(*batch)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(json.dumps({
        "peer": "pytorch " + torch.__version__,
        "mkldnn": torch.backends.mkldnn.is_available(),
        "note": "with " + blas() + " as BLAS",
        "samples_per_second": options.batch / statistics.median(wall[options.warmup:]),
        "samples_per_cpu_second": options.batch / statistics.median(cpu[options.warmup:]),
        "loss": {"first": losses[0], "last": losses[-1]},
    }))


if __name__ == "__main__":
    main()
