"""Ends while daemon threads walk their frames without the GIL: their thread states are freed under
them. python frames_at_exit.py PROBE_LIBRARY SESSION_DIRECTORY"""

import ctypes
import sys
import threading
import time

probe = ctypes.CDLL(sys.argv[1])
if probe.probe_start(sys.argv[2].encode()) != 0:
    sys.exit("no probe")


class Churn:
    """Overwrites freed memory while the interpreter finalizes."""

    def __del__(self):
        kept = [bytearray(b"\x55" * n) for n in range(16, 1024, 8) for _ in range(50)]
        time.sleep(0.001)
        del kept


for _ in range(3):
    threading.Thread(target=probe.probe_forever, daemon=True).start()
sys.modules["churn"] = [Churn() for _ in range(20)]
time.sleep(0.02)
print("ended")
