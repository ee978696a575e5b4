"""up_and_down.py MIB…: holds each amount in turn for 0.3 s."""

import sys
import time

for mib in map(int, sys.argv[1:]):
    held = bytearray(mib << 20)
    for _ in range(30):
        time.sleep(0.01)
        bytearray(1 << 17)  # the recorder looks when there is an event
    del held
print("done")
