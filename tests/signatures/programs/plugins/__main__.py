"""A host of plugins with functions of the same names: python -m plugins radio|camera|left|right."""

import importlib
import sys
import time

from plugins import shelf


class Host:
    def run(self, name):
        plugin = importlib.import_module(f"plugins.{name}")
        while True:
            plugin.collect()
            self.tidy()
            time.sleep(0.012)

    def tidy(self):
        """The bystander."""
        return len(bytearray(2_800_000))


def left():
    shelf.put("left", 200_000)


def right():
    shelf.put("right", 210_000)


def turn(side):
    while True:
        side()
        time.sleep(0.012)


if __name__ == "__main__":
    sides = {"left": left, "right": right}
    turn(sides[sys.argv[1]]) if sys.argv[1] in sides else Host().run(sys.argv[1])
