#!/bin/bash
# /proc/PID/pagemap calls pages present that cost no memory: those of an array of zeros that was only read.
#
# Seen with NumPy 2.4.6 and psutil 7.2.2 on Linux 6.18.44 (transparent huge pages: madvise), CPython 3.11: after
# numpy.zeros(64 MiB).sum(), bit 63 (present) is set for all 63 MiB of whole pages looked at, while psutil's rss and uss have
# grown by less than 4 MiB, and bit 56 (exclusively mapped) is set for none of them. The kernel maps its one page of zeros for
# a read; smaps and the resident set do not count it, pagemap does not tell it from a page of data. A page that fork shares
# looks the same: present, not exclusive, but it does count.
# A tool that measures residency by counting present pages, as with mincore, says that such an array is resident.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 psutil==7.2.2
cat > "$work/zeros.py" <<'P'
import struct
import numpy as np
import psutil

MIB = 1 << 20
process = psutil.Process()
zeros = np.zeros(64 * MIB, dtype=np.uint8)
first = (zeros.ctypes.data + 4095) // 4096


def pages_with(bit):
    with open("/proc/self/pagemap", "rb") as pagemap:
        pagemap.seek(first * 8)
        words = struct.unpack(f"{63 * 256}Q", pagemap.read(63 * 256 * 8))
    return sum(word >> bit & 1 for word in words) // 256


before = process.memory_full_info()
print("present before:", pages_with(63), "MiB")
assert zeros.sum() == 0
after = process.memory_full_info()
print("present after reading:", pages_with(63), "MiB; exclusive:", pages_with(56), "MiB")
grown = max(after.rss - before.rss, after.uss - before.uss)
print("rss and uss grew by less than 4 MiB:", grown < 4 * MIB)
zeros += 1
print("present after writing:", pages_with(63), "MiB; exclusive:", pages_with(56), "MiB")
P
"$work/venv/bin/python" "$work/zeros.py" | tee "$work/out"
diff "$work/out" - <<'O'
present before: 0 MiB
present after reading: 63 MiB; exclusive: 0 MiB
rss and uss grew by less than 4 MiB: True
present after writing: 63 MiB; exclusive: 63 MiB
O
echo "as described"
