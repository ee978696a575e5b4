"""Graphs with networkx: routes.py roads|distances."""

import sys
import time

import networkx


def add_district(graph, number):
    base = number * 100
    graph.add_edges_from((base + n, base + (n * 7) % 100, {"length": n}) for n in range(100))


def grow():
    graph, number = networkx.Graph(), 0
    while True:
        number += 1
        for part in range(3):
            add_district(graph, number * 3 + part)
        centre(number)
        time.sleep(0.01)


def centre(number):
    """The bystander."""
    return max([number] * 200_000)


class Planner:
    def __init__(self):
        self.grid = networkx.grid_2d_graph(12, 12)
        self.tables = []

    def plan(self, start):
        table = dict(networkx.single_source_shortest_path(self.grid, start))
        self.tables.append(table)


def plan_all():
    planner = Planner()
    while True:
        for start in list(planner.grid)[:20]:
            planner.plan(start)
        time.sleep(0.01)


{"roads": grow, "distances": plan_all}[sys.argv[1]]()
