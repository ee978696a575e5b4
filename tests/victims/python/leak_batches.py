"""A training loop that leaks every batch. Prints how many bytes it holds at the end."""

import sys

import numpy as np

history = []


def make_batch(rows):
    """The leak: the batches of this line are never let go."""
    return np.random.rand(rows, 256)


def step(weights, batch):
    gradient = batch.T @ (batch @ weights)
    return weights - 1e-6 * gradient / len(batch)


def main():
    weights = np.zeros((256, 8))
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    try:
        while True:
            batch = make_batch(rows)
            history.append(batch)
            weights = step(weights, batch)
    except MemoryError as error:
        print(f"truth {sum(b.nbytes for b in history)} {len(history)}", flush=True)
        print(f"error {error}", flush=True)
        sys.exit(3)


main()
