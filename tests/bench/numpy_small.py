"""numpy_small.py STEPS: arithmetic on small arrays, most of which live for one line."""

import sys

import numpy as np


def step(position, velocity):
    force = -position / np.sqrt((position * position).sum() + 1e-9)
    velocity = velocity + 0.01 * force
    position = position + 0.01 * velocity
    return position, velocity, np.concatenate([position, velocity])


def main(steps):
    position, velocity = np.ones(32), np.zeros(32)
    history = []
    for number in range(steps):
        position, velocity, state = step(position, velocity)
        history.append(state)
        if number % 1000 == 999:
            history = history[-10:]


main(int(sys.argv[1]))
