# SPDX-License-Identifier: Apache-2.0
#
# All-reduce over gloo, as PyTorch's data-parallel training does it: two processes on two CPUs, in place. Prints the
# seconds of each size, as JSON.
#
#   gloo_allreduce.py RANKS PORT BYTES...            starts all ranks on this host; fp32, medians
#   gloo_allreduce.py --rank R --master ADDRESS PORT TYPE BYTES...
#                                                    is one of two ranks, which compute before each all-reduce, as in a
#                                                    training step; TYPE is fp32 or fp16; rank 0 prints means
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

CPUS = sorted(os.sched_getaffinity(0))


def begin(rank, ranks, port, master="127.0.0.1"):
    os.sched_setaffinity(0, {CPUS[rank % len(CPUS)]})
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=master, MASTER_PORT=str(port))
    if master == "127.0.0.1":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", rank=rank, world_size=ranks)


def seconds_of(size, rounds, before=lambda: None, dtype=torch.float32):
    """The seconds of each of `rounds` all-reduces of `size` bytes; calls `before` before each of them."""
    tensor = torch.zeros(size // dtype.itemsize, dtype=dtype)
    dist.all_reduce(tensor)
    times = []
    for _ in range(rounds):
        before()
        begins = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - begins)
    return times


def rank_main(rank, ranks, sizes, port, results):
    begin(rank, ranks, port)
    for size in sizes:
        times = seconds_of(size, max(5, min(500, (256 << 20) // size)))
        if rank == 0:
            results[size] = statistics.median(times)
    dist.destroy_process_group()


def means_after_computing(rank, dtype, sizes, port, master):
    """Of the rank that comes last to an all-reduce, which waits for nobody: the shorter one of both ranks' times."""
    begin(rank, 2, port, master)
    matrix = torch.rand(768, 768)
    means = {}
    for size in sizes:
        rounds = max(16, min(200, (256 << 20) // size))
        times = torch.tensor(seconds_of(size, rounds, lambda: matrix @ matrix, dtype), dtype=torch.float64)
        dist.all_reduce(times, op=dist.ReduceOp.MIN)
        means[size] = times.mean().item()
    dist.destroy_process_group()
    return means


def print_json(results):
    print(json.dumps({str(k): v for k, v in results.items()}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        rank, master, port, sizes = int(sys.argv[2]), sys.argv[4], int(sys.argv[5]), [int(s) for s in sys.argv[7:]]
        dtype = {"fp32": torch.float32, "fp16": torch.float16}[sys.argv[6]]
        means = means_after_computing(rank, dtype, sizes, port, master)
        if rank == 0:
            print_json(means)
        sys.exit()
    ranks, port, sizes = int(sys.argv[1]), int(sys.argv[2]), [int(s) for s in sys.argv[3:]]
    results = mp.Manager().dict()
    mp.spawn(rank_main, args=(ranks, sizes, port, results), nprocs=ranks)
    print_json(results)
