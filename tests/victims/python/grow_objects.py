"""Keeps ever more small objects, until somebody ends it."""


def grow(kept):
    while True:
        kept.append([len(kept)] * 3)  # the line that grows


grow([])
