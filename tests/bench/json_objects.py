"""json_objects.py ROUNDS: reads and writes JSON and builds objects, like a web service."""

import json
import sys


class Order:
    def __init__(self, record):
        self.number = record["number"]
        self.lines = [(line["name"], line["price"] * line["count"]) for line in record["lines"]]
        self.tags = {tag: len(tag) for tag in record["tags"]}

    def total(self):
        return sum(price for _, price in self.lines)


def record(number):
    lines = [{"name": f"thing {number} {i}", "price": i + 0.5, "count": i} for i in range(8)]
    return {"number": number, "lines": lines, "tags": [f"tag-{number}-{i}" for i in range(5)]}


def main(rounds):
    total = 0.0
    kept = []  # the orders of the last rounds, like a cache
    for _ in range(rounds):
        text = json.dumps([record(number) for number in range(400)])
        orders = [Order(read) for read in json.loads(text)]
        total += sum(order.total() for order in orders)
        kept = [*kept[-39:], orders]
    assert total > 0


main(int(sys.argv[1]))
