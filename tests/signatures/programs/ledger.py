"""A database in memory: ledger.py entries|audit."""

import sqlite3
import sys
import time


class Ledger:
    def __init__(self):
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE entries (number INTEGER, note TEXT)")

    def post(self, number):
        rows = [(number + n, "note %d " % n * 40) for n in range(400)]
        self.database.executemany("INSERT INTO entries VALUES (?, ?)", rows)


def book():
    ledger = Ledger()
    for day in range(10**9):
        ledger.post(day * 400)
        if day % 4 == 0:
            balance(day)
        time.sleep(0.012)


def balance(day):
    """The bystander."""
    return len(bytes(2_000_000 + day))


def audit():
    ledger = Ledger()
    for day in range(20):
        ledger.post(day * 400)
        time.sleep(0.1)
    seen = []
    for _ in range(1000):
        seen += compare(ledger)
    return seen


def compare(ledger):
    return ledger.database.execute("SELECT number, note FROM entries").fetchall()


book() if sys.argv[1] == "entries" else audit()
