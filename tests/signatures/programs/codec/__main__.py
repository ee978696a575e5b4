"""Python over a library of its own in C: python -m codec decode|tables LIBRARY."""

import ctypes
import sys
import time


class Codec:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.codec_decode.restype = ctypes.c_void_p
        self.blocks = []

    def decode(self, number):
        self.blocks.append(self.library.codec_decode(number))

    def tables(self, number):
        self.library.codec_add_table(number)


def scratch():
    """The bystander."""
    return len(bytearray(2_600_000))


def run(action):
    for number in range(10**9):
        action(number)
        scratch()
        time.sleep(0.01)


if __name__ == "__main__":
    codec = Codec(sys.argv[2])
    run(codec.decode if sys.argv[1] == "decode" else codec.tables)
