# SPDX-License-Identifier: Apache-2.0
"""The cells of `./dev bench simulation` and the experiment of each: what is measured and what is simulated alike."""
import json
from dataclasses import dataclass

MB = 1_000_000
STRATEGIES = {  # name in the table: plugin and parameters
    "ring": ("allreduce", {"algorithm": "ring"}),
    "halving-doubling": ("allreduce", {"algorithm": "halving_doubling"}),
    "hierarchical": ("allreduce", {"algorithm": "hierarchical"}),
    "sharded": ("allreduce", {"algorithm": "sharded"}),
    "sync_ps": ("sync_ps", {}),
    "async_ps": ("async_ps", {}),
    "geo_ps": ("geo_ps", {"k": 4}),
    "local_sgd": ("local_sgd", {"k": 4}),
    "dgc": ("dgc", {"sparsity": [0.99]}),
}
RANKS = (2, 4, 8, 16, 32)
RATES = {"100mbit": 100e6, "1gbit": 1e9}
NETWORKS = ("tbf", "shaped")  # the kernel limits the links of test hosts; a transport limits its own
TENSORS = 8


@dataclass(frozen=True)
class Size:
    bytes: int    # of all gradients
    compute: int  # ms of a step, about as long as an exchange of these bytes takes
    bucket: int
    steps: int    # a multiple of the longest period of a strategy


SIZES = {
    "100mbit": (Size(1 * MB, 160, MB // 2, 8), Size(4 * MB, 640, MB, 4)),
    "1gbit": (Size(4 * MB, 64, 2 * MB, 16), Size(16 * MB, 256, 4 * MB, 8)),
}


@dataclass(frozen=True)
class Cell:
    network: str
    rate: str
    strategy: str
    ranks: int
    size: Size

    def key(self):
        return f"{self.network} {self.rate} {self.strategy} {self.ranks} {self.size.bytes // MB}MB"

    def ranks_on_host(self):
        """A hierarchy needs several ranks on a host, and two hosts."""
        return 2 if self.strategy == "hierarchical" and self.ranks > 2 else 1

    def hosts(self):
        return self.ranks // self.ranks_on_host()


def cells(words):
    """Returns the cells that match all words, each the name of a network, rate, strategy, or a number of ranks."""
    chosen = []
    for network in NETWORKS:
        for rate in RATES:
            for ranks in RANKS:
                for strategy in STRATEGIES:
                    # The transport `shaped` limits ranks, not hosts. One size of it is enough to compare it.
                    if network == "shaped" and strategy == "hierarchical":
                        continue
                    for size in SIZES[rate][:1 if network == "shaped" else None]:
                        chosen.append(Cell(network, rate, strategy, ranks, size))

    def matches(cell):
        names = {"network": NETWORKS, "rate": tuple(RATES), "strategy": tuple(STRATEGIES),
                 "ranks": tuple(map(str, RANKS))}
        asked = {kind: [w for w in words if w in known] for kind, known in names.items()}
        return all(not some or str(getattr(cell, kind)) in some for kind, some in asked.items())

    return [cell for cell in chosen if matches(cell)]


def experiment(cell):
    plugin, parameters = STRATEGIES[cell.strategy]
    size = cell.size
    if plugin != "dgc":
        parameters = {**parameters, "bucket": f"{size.bucket}B"}
    has_servers = plugin.endswith("_ps")
    transport = {"plugin": "tcp"}
    if cell.network == "shaped":
        transport = {"plugin": "shaped", "over": "tcp", "bandwidth": RATES[cell.rate]}
    sections = {
        "model": {"plugin": "null", "tensors": TENSORS, "bytes": f"{size.bytes // TENSORS}B",
                  "compute": f"{size.compute}ms", "busy": False},
        "train": {"batch": 1},
        "optimizer": {"plugin": "sgd"},
        "data": {"content": "zeros"},
        "transport": transport,
        "strategy": {"plugin": plugin, **parameters},
        # Each worker's process also serves a part of the weights. Pinned ranks would all be on the first core: the
        # hosts do not know of each other.
        "cluster": {"workers": cell.ranks, "pin": False, **({"servers": cell.ranks, "colocate": True} if has_servers
                                                            else {})},
        "measure": {"warmup": 4 if "k" in parameters else 2, "steps": max(size.steps, 8 if "k" in parameters else 0),
                    "repeats": 1, "baseline": False},
    }
    return "".join(f"[{s}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in of.items()) + "\n"
                   for s, of in sections.items())
