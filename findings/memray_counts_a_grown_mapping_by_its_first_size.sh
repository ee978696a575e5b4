#!/bin/bash
# Memray does not see mremap(): a mapping that grows to 200 MiB counts as the 1 MiB that it was made with, and its peak memory is below 2 MiB.
#
# Seen with memray 1.20.0 (PyPI), Python 3.11, Linux x86-64. Python's `mmap.mmap.resize()` grows a private mapping by mremap(), as C code does with arrays that grow in
# place. Resident memory, which memray samples beside, has the pages. So in a flame graph the line that grew the mapping is missing.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
python3.11 -m venv venv
venv/bin/pip install -q --only-binary :all: memray==1.20.0
cat > grows.py <<'P'
import mmap
mapping = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE)
mapping.resize(200 << 20)
for page in range(0, len(mapping), mmap.PAGESIZE):
    mapping[page] = 1
P
venv/bin/python -m memray run -q -o recorded.bin grows.py
venv/bin/python - <<'P' | tee seen
import memray
with memray.FileReader("recorded.bin") as reader:
    peak = reader.metadata.peak_memory
    mappings = [record.size for record in reader.get_high_watermark_allocation_records() if record.allocator == memray.AllocatorType.MMAP]
    resident = max(snapshot.rss for snapshot in reader.get_memory_snapshots())
print("mappings at the peak:", mappings)
print("peak below 2 MiB:", peak < 2 << 20, " resident above 200 MiB:", resident > 200 << 20)
P
diff seen - <<'O'
mappings at the peak: [1048576]
peak below 2 MiB: True  resident above 200 MiB: True
O
echo "as described"
