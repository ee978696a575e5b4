"""Numbers with numpy: matrix.py history|wrong_shape|window."""

import sys
import time

import numpy as np


class Filter:
    def __init__(self):
        self.history = []
        self.state = np.zeros(1000)

    def step(self, signal):
        self.state = self.state * 0.9 + signal
        self.history.append(np.outer(self.state[:160], self.state[:160]))


def observe(number):
    return np.sin(np.arange(1000) * number)


def follow():
    tracker = Filter()
    for number in range(10**9):
        tracker.step(observe(number))
        smooth(number)
        time.sleep(0.01)


def smooth(number):
    """The bystander."""
    return np.convolve(np.ones(200_000), np.ones(3)).sum()


def distances(points):
    difference = points[:, None, :] - points[None, :, :]
    return np.sqrt((difference**2).sum(axis=2))


def compare():
    for count in (20, 40, 80, 100, 60, 5000):
        time.sleep(0.4)
        distances(np.random.rand(count, 3))


def slide():
    rng = np.random.RandomState(7)
    for number in range(10**9):
        width = 400_000 + int(abs(rng.standard_normal()) * 700_000) + 20_000_000 * (number == 180)
        window = take(width)
        time.sleep(0.012)
        del window


def take(width):
    parts = []
    while sum(map(len, parts)) < width:
        parts.append(np.ones(40_000))
        time.sleep(0.0001)
    return parts


{"history": follow, "wrong_shape": compare, "window": slide}[sys.argv[1]]()
