"""fib.py N: the N-th Fibonacci number the slow way: calls, and next to no allocations."""

import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


fib(int(sys.argv[1]))
