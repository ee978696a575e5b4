"""A service that runs out of memory in a way of choice: service.py CAUSE [killed].

What it refuses last is often its bystander's, who asks for more at once than anybody else.
"""

import os
import signal
import sys

import shelf

STEP = 256 << 10
ENOUGH = 40 << 20  # for a kill


class Cache:
    def __init__(self):
        self.kept = {}

    def remember(self, key):
        self.kept[key] = bytearray(STEP)


def handle(cache):
    cache.remember(len(cache.kept))


class Queue:
    messages = []

    def push(self):
        self.messages.append(bytearray(STEP))


def pump(queue):
    queue.push()


ROWS = []


def load_rows():
    ROWS.append([bytearray(STEP // 4) for _ in range(4)])


def train():
    batches = []

    def keep_batch():
        batches.append(bytearray(STEP))

    return keep_batch


def build(node, depth):
    if depth == 0:
        node.append(bytearray(STEP))
        return
    child = []
    node.append(child)
    build(child, depth - 1)


PICTURES, THUMBNAILS = [], []


def load_picture():
    PICTURES.append(shelf.copy(STEP))


def make_thumbnail():
    THUMBNAILS.append(shelf.copy(STEP))


def read_archive():
    return bytearray(1 << 33)


CACHE, QUEUE, KEEP_BATCH, TREE = Cache(), Queue(), train(), []
CAUSES = {
    "cache": lambda: handle(CACHE),
    "queue": lambda: pump(QUEUE),
    "rows": load_rows,
    "closure": KEEP_BATCH,
    "recursion": lambda: build(TREE, 5),
    "pictures": load_picture,
    "thumbnails": make_thumbnail,
    "giant": read_archive,
}


def sample():
    """The bystander."""
    return len(bytearray(6 * STEP))


def main():
    step, killed = CAUSES[sys.argv[1]], "killed" in sys.argv
    table = shelf.warm(30)
    held = 0
    while True:
        for _ in range(8):
            step()
            held += STEP
        if killed and held > ENOUGH:
            os.kill(os.getpid(), signal.SIGKILL)
        sample()
    return table


if __name__ == "__main__":
    main()
