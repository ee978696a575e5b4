#!/bin/bash
# jemalloc's operator new with an alignment calls aligned_alloc through the PLT; its plain operator new calls nothing that can be
# interposed.
#
# Seen with libjemalloc2 5.3.0-1 (Debian 12, x86-64). A tool that is preloaded before jemalloc and counts both operator new and
# aligned_alloc sees such a block twice; one that takes a call of malloc's family inside operator new for the sign that an earlier
# operator new threw reports a failure that never happened.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q libjemalloc2=5.3.0-1 > problems 2>&1 || { cat problems; exit 1; }
dpkg -x libjemalloc2_*.deb .
library=$(echo usr/lib/*/libjemalloc.so.2)
calls() {  # FUNCTION: what it calls by the PLT
  address=$(nm -D --defined-only "$library" | awk -v name="$1" '$3 == name {print $1}')
  objdump -d --start-address="0x$address" --stop-address="$((0x$address + 24))" "$library" | grep -o '[a-z_]*@plt' || echo nothing
}
{ echo "operator new(size_t, align_val_t): $(calls _ZnwmSt11align_val_t)"; echo "operator new(size_t): $(calls _Znwm)"; } | tee seen
diff seen - <<'O'
operator new(size_t, align_val_t): aligned_alloc@plt
operator new(size_t): nothing
O
echo "as described"
