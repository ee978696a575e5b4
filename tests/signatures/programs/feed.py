"""Small objects: feed.py documents|index|strings."""

import json
import re
import sys
import time

WORD = re.compile(r"\w+")
TEXT = json.dumps(
    [{"id": n, "title": "title %d" % n, "tags": ["a%d" % n, "b%d" % n]} for n in range(700)]
)


class Reader:
    documents = []

    @classmethod
    def read(cls):
        cls.documents.extend(json.loads(TEXT))


class Index:
    __slots__ = ("places",)

    def __init__(self):
        self.places = {}

    def add(self, number, text):
        for match in WORD.finditer(text):
            self.places.setdefault("%s%d" % (match[0], number), []).append((number, match.start()))


def documents():
    while True:
        Reader.read()
        shrink()
        time.sleep(0.01)


def index():
    made, number = Index(), 0
    while True:
        number += 1
        made.add(number, TEXT[:9000])
        shrink()
        time.sleep(0.01)


def strings():
    lines = []
    while True:
        lines += [part + str(len(lines)) for part in TEXT.split(",")[:1500]]
        shrink()
        time.sleep(0.01)


def shrink():
    """The bystander."""
    return len(bytearray(1_500_000))


{"documents": documents, "index": index, "strings": strings}[sys.argv[1]]()
