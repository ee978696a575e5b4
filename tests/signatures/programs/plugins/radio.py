SAMPLES = []


def collect():
    SAMPLES.append(bytearray(190_000))
