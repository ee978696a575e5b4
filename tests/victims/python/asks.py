"""Makes the same large request five times, and prints which ones failed."""


def make(size):
    return bytearray(size)


def make_other(size):
    return bytearray(size)


for i in range(1, 6):
    for function in (make, make_other):
        try:
            function(1_000_000 + i)
        except MemoryError:
            print(function.__name__, i)
print("survived")
