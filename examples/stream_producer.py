#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds data.source = "stream" from another process: batches of random images whose class can be learned.

    stream_producer.py ENDPOINT BATCH [--batches N] [--shape 3,32,32] [--classes 10]

ENDPOINT is the value of data.endpoint, e.g. tcp://127.0.0.1:5599; BATCH is the size of a worker's micro-batch. Ends
after N batches (default: never). docs/data.md describes the messages. Needs pyzmq (Debian: python3-zmq).
"""
import argparse
import array
import json
import math
import random

import zmq


def make_batch(samples, shape, classes, rng):
    """Returns one message: the header, then each tensor's bytes, in the order of the header."""
    labels = array.array("i", (rng.randrange(classes) for _ in range(samples)))
    image = array.array("f")
    for label in labels:  # each class brightens a different part of the image
        size = math.prod(shape)
        first, end = label * size // classes, (label + 1) * size // classes
        image.extend(rng.gauss(1.0 if first <= i < end else 0.0, 0.5) for i in range(size))
    head = {
        "regatta": 1,
        "tensors": [
            {"name": "image", "type": "f32", "shape": [samples, *shape]},
            {"name": "label", "type": "i32", "shape": [samples]},
        ],
    }
    return [json.dumps(head).encode(), image.tobytes(), labels.tobytes()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("batch", type=int)
    parser.add_argument("--batches", type=int, default=0)
    parser.add_argument("--shape", default="3,32,32")
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args()
    shape = [int(n) for n in options.shape.split(",")]

    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.set_hwm(4)  # batches that may wait in the queue if training is slower
    socket.bind(options.endpoint)
    rng = random.Random(1)
    made = [make_batch(options.batch, shape, options.classes, rng) for _ in range(8)]
    sent = 0
    while not options.batches or sent < options.batches:
        socket.send_multipart(made[sent % len(made)])
        sent += 1


if __name__ == "__main__":
    main()
