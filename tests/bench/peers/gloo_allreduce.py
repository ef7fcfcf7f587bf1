# SPDX-License-Identifier: Apache-2.0
#
# All-reduce over gloo, as PyTorch's data-parallel training does it: two processes on two CPUs, fp32, in place. Prints the
# seconds of each size, as JSON.
#
#   gloo_allreduce.py RANKS PORT BYTES...                    starts all ranks on this host; medians
#   gloo_allreduce.py --rank R --master ADDRESS PORT BYTES...  is one of two ranks; rank 0 prints means
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

CPUS = sorted(os.sched_getaffinity(0))


def rank_main(rank, ranks, sizes, port, results, master="127.0.0.1", figure=statistics.median):
    os.sched_setaffinity(0, {CPUS[rank % len(CPUS)]})
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=master, MASTER_PORT=str(port))
    if master == "127.0.0.1":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for size in sizes:
        tensor = torch.zeros(size // 4)
        dist.all_reduce(tensor)
        rounds = max(5, min(500, (256 << 20) // size))
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            dist.all_reduce(tensor)
            times.append(time.perf_counter() - begin)
        if rank == 0:
            results[size] = figure(times)
    dist.destroy_process_group()


def print_json(results):
    print(json.dumps({str(k): v for k, v in results.items()}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        rank, master, port, sizes = int(sys.argv[2]), sys.argv[4], int(sys.argv[5]), [int(s) for s in sys.argv[6:]]
        seconds = {}
        rank_main(rank, 2, sizes, port, seconds, master, statistics.mean)
        if rank == 0:
            print_json(seconds)
        sys.exit()
    ranks, port, sizes = int(sys.argv[1]), int(sys.argv[2]), [int(s) for s in sys.argv[3:]]
    results = mp.Manager().dict()
    mp.spawn(rank_main, args=(ranks, sizes, port, results), nprocs=ranks)
    print_json(results)
