"""Keeps more and more small objects until it is killed."""


def grow(kept):
    while True:
        kept.append([len(kept)] * 3)  # the line that grows


grow([])
