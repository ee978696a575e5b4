"""Algebra with sympy: algebra.py expand|table."""

import sys
import time

import sympy

KNOWN = {}


def expand(power):
    x = sympy.Symbol(f"x{power}")
    return [(x + n) * (x + power + n) for n in range(400)]


def keep():
    number = 0
    while True:
        number += 1
        KNOWN[number] = expand(number)
        check(number)


def check(number):
    """The bystander."""
    return len(bytearray(3_000_000 + number))


def tabulate():
    rows = []
    while True:
        rows.append(line(len(rows)))
        time.sleep(0.005)


def line(number):
    return [sympy.Integer(number) ** n for n in range(1, 300)]


keep() if sys.argv[1] == "expand" else tabulate()
