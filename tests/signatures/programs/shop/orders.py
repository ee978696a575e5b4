"""Orders, each with a copy of its articles."""

import copy

CATALOGUE = {
    f"article {n}": {"price": n, "tags": [f"tag {n} {m}" for m in range(20)]} for n in range(120)
}
JOURNAL = []


def place(number):
    order = {"number": number, "articles": snapshot()}
    JOURNAL.append(order)


def snapshot():
    return copy.deepcopy(CATALOGUE)
