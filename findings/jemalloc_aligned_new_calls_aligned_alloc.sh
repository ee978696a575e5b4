#!/bin/bash
# jemalloc's operator new with an alignment calls aligned_alloc through the PLT; its other operators call nothing that can be interposed.
#
# Seen with libjemalloc2 5.3.0 (Debian 12) and 5.3.1 (unstable). A tool that preloads before jemalloc and counts both operator new and
# aligned_alloc sees such a block twice; one that takes any call of malloc's family inside operator new for the sign that an earlier operator new
# threw reports a failure that never happened. Aligned operators of tcmalloc (gperftools 2.18.1) and mimalloc 3.6.0 make no such call.
set -eu
library=$(ls /usr/lib/*/libjemalloc.so.2 | head -1)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
calls() {  # FUNCTION: what it calls by the PLT
  address=$(nm -D --defined-only "$library" | awk -v name="$1" '$3 == name {print $1}')
  objdump -d --start-address="0x$address" --stop-address="$((0x$address + 24))" "$library" | grep -o '[a-z_]*@plt' || echo nothing
}
{ echo "operator new(size_t, align_val_t): $(calls _ZnwmSt11align_val_t)"; echo "operator new(size_t): $(calls _Znwm)"; } | tee "$work/out"
diff "$work/out" - <<'O'
operator new(size_t, align_val_t): aligned_alloc@plt
operator new(size_t): nothing
O
echo "as described"
