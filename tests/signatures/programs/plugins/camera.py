FRAMES = {}


def collect():
    FRAMES[len(FRAMES)] = bytes(200_000)
