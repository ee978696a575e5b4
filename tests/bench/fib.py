"""fib.py N: the N-th Fibonacci number by recursion: calls, and almost no allocations.

Prints the CPU seconds of that alone: what starting costs is measured elsewhere.
"""

import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


began = time.process_time()
fib(int(sys.argv[1]))
print("figure:", time.process_time() - began)
