#!/bin/bash
# Scalene's footprint lacks what native code takes by realloc(), reallocarray(), aligned_alloc(), or C++'s aligned operator new: a block of
# 300 MiB of theirs is in no figure, while those of malloc(), calloc(), posix_memalign(), memalign() and the plain operator new are 300 MB.
# Nor does it have mappings, such as those of Python's mmap.
#
# Seen with Scalene 2.4.0 (x86-64, Python 3.11, glibc 2.36). A C library whose arrays grow by realloc() looks as if it held nothing.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv && venv/bin/pip install -q scalene==2.4.0 > problems 2>&1 || { cat problems; exit 1; }
cat > block.py <<'P'
import ctypes, mmap, sys, time
size, name = 300 << 20, sys.argv[1]
words = {
    "malloc": (size,), "calloc": (1, size), "realloc": (0, size), "reallocarray": (0, 1, size),
    "aligned_alloc": (4096, size), "memalign": (4096, size), "_Znwm": (size,), "_ZnwmSt11align_val_t": (size, 4096),
}
if name == "mmap":
    held = mmap.mmap(-1, size)
    for at in range(0, size, 4096): held[at] = 1
elif name == "posix_memalign":
    held = ctypes.c_void_p()
    ctypes.CDLL(None).posix_memalign(ctypes.byref(held), ctypes.c_size_t(4096), ctypes.c_size_t(size))
    ctypes.memset(held, 1, size)
else:
    function = getattr(ctypes.CDLL("libstdc++.so.6" if name.startswith("_Z") else None), name)
    function.restype = ctypes.c_void_p
    ctypes.memset(ctypes.c_void_p(function(*map(ctypes.c_size_t, words[name]))), 1, size)
until = time.time() + 1
while time.time() < until: sum(range(10000))
P
for name in malloc calloc posix_memalign memalign _Znwm realloc reallocarray aligned_alloc _ZnwmSt11align_val_t mmap; do
  venv/bin/scalene run -o profile.json block.py --- "$name" > log 2>&1 || { cat log; exit 1; }
  venv/bin/python -c 'import json, sys; print(sys.argv[1], round(json.load(open("profile.json"))["max_footprint_mb"]))' "$name"
done | tee seen
diff seen - <<'O'
malloc 300
calloc 300
posix_memalign 300
memalign 300
_Znwm 300
realloc 0
reallocarray 0
aligned_alloc 0
_ZnwmSt11align_val_t 0
mmap 0
O
echo "as described"
