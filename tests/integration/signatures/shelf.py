"""What several causes have in common."""


def copy(size):
    return bytearray(size)


def warm(count):
    return [bytearray(256 << 10) for _ in range(count)]
