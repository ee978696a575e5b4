"""Puzzles: solver.py memo|tree|table|fill."""

import functools
import sys
import time


@functools.lru_cache(maxsize=None)
def ways(width, height):
    return [width * height] * 6000


def memo():
    for number in range(10**9):
        ways(number, number + 1)
        time.sleep(0.003)


class Node:
    def __init__(self, depth):
        self.children = []
        self.board = bytes(3000)
        if depth:
            self.grow(depth)

    def grow(self, depth):
        for _ in range(3):
            self.children.append(Node(depth - 1))


def tree():
    roots = []
    while True:
        roots.append(Node(3))
        time.sleep(0.01)


def table():
    rows = []
    while True:
        rows.append([[(x, y) for x in range(40)] for y in range(40)])
        time.sleep(0.01)


class Board:
    """A cache with a bound, which is above the limit."""

    def __init__(self):
        self.positions = {}

    def visit(self, number):
        self.positions[number % 100_000] = bytearray(40_000)


def fill():
    board = Board()
    for number in range(10**9):
        board.visit(number)
        time.sleep(0.002)


{"memo": memo, "tree": tree, "table": table, "fill": fill}[sys.argv[1]]()
