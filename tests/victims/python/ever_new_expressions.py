"""ever_new_expressions.py WAY REQUESTS: evaluates random expressions by recursive descent, so that its call paths are ever
new, and keeps the latest 500 results.

WAY: leak (40 MiB in late_leak(), then SIGKILL), forks (children that do the same), or threads. Prints a sum.
"""

import os
import random
import signal
import sys
import threading

NESTED = 9
SHAPES = ["(%s)", "1+(%s)", "2*(%s)", "-(%s)", "3*-(%s)", "1+2*(%s)", "1+-(%s)"]
KEPT = 500


class Request:
    def __init__(self, chance: random.Random, number: int):
        text = "x"
        for _ in range(NESTED):
            text = chance.choice(SHAPES) % text
        self.rest = list(reversed(text))
        self.number = number
        self.blocks = None

    def expression(self) -> int:
        value = self.term()
        while self.rest and self.rest[-1] == "+":
            self.rest.pop()
            value += self.term()
        return value

    def term(self) -> int:
        value = self.factor()
        while self.rest and self.rest[-1] == "*":
            self.rest.pop()
            value *= self.factor()
        return value

    def factor(self) -> int:
        sign = self.rest.pop()
        if sign == "-":
            return -self.factor()
        if sign == "(":
            value = self.expression()
            self.rest.pop()
            return value
        return int(sign) if sign != "x" else self.answer()

    def answer(self) -> int:
        """Six small objects, and one of the heap."""
        self.blocks = [b"%300d" % (self.number + i) for i in range(6)]
        self.blocks.append(bytearray(600 + self.number % 400))
        return self.number % 1000


def serve(seed: int, requests: int) -> int:
    chance, latest, total = random.Random(seed), [None] * KEPT, 0
    for number in range(requests):
        latest[number % KEPT] = request = Request(chance, number)
        total += request.expression()
        assert int(request.blocks[5]) == number + 5
    return total


leaked = []


def late_leak() -> None:
    """20 % in small objects."""
    for i in range(24_000):
        leaked.append(b"%300d" % i)
    for _ in range(340):
        leaked.append(bytearray(100_000))


def serve_in_child(seed: int, requests: int, expected: int) -> int:
    child = os.fork()
    if child == 0:
        os._exit(0 if serve(seed, requests) == expected else 1)
    return child


way, requests = sys.argv[1], int(sys.argv[2])
if way == "leak":
    print(serve(1, requests), flush=True)
    late_leak()
    os.kill(os.getpid(), signal.SIGKILL)
elif way == "forks":
    expected, wrong = serve(1, requests // 10), 0
    for _ in range(5):
        children = [serve_in_child(1, requests // 10, expected) for _ in range(2)]
        wrong += serve(1, requests // 10) != expected
        wrong += sum(os.waitpid(child, 0)[1] != 0 for child in children)
    print(expected)
    sys.exit(wrong)
elif way == "threads":
    sums = {}

    def serve_as(seed: int) -> None:
        sums[seed] = serve(seed, requests // 8)

    threads = [threading.Thread(target=serve_as, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(sums.values()))
