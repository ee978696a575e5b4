#!/bin/bash
# PHP: a string of 1 MiB takes a chunk of 2 MiB, as two do not fit into one; memory_limit counts the chunks, memory_get_usage() does not.
#
# Seen with PHP 8.2.36 (Debian 12) on Linux 6.18.44, x86-64: a chunk of Zend's allocator has 512 pages, one of them for itself, and a
# string of 1 MiB needs 257 with its header. So str_repeat("x", 1 << 20) maps 2 MiB, half of which is never touched, and with
# memory_limit=128M a script ends after 64 of them ("tried to allocate 2097152 bytes"), at half of the limit by memory_get_usage().
# Of strings that are two pages shorter, 127 fit.
# A recorder that takes mappings for memory in use says twice what the kernel counts.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat > "$work/fills.php" <<'P'
<?php
for ($kept = []; ; printf("%d\n", count($kept))) $kept[] = str_repeat("x", (int)$argv[1]);
P
cat > "$work/keeps.php" <<'P'
<?php
$used = memory_get_usage(); $real = memory_get_usage(true);
for ($kept = []; count($kept) < 40;) $kept[] = str_repeat("x", 1 << 20);
preg_match('/VmRSS:\s+(\d+)/', file_get_contents("/proc/self/status"), $resident);
printf("40 strings: used %d MiB, real above 75 MiB %d, resident below 70 MiB %d\n", (memory_get_usage() - $used) >> 20,
       ((memory_get_usage(true) - $real) >> 20) > 75, $resident[1] < 70 << 10);
P
{
  php "$work/keeps.php"
  for bytes in 1048576 1040384; do
    php -d memory_limit=128M "$work/fills.php" $bytes > "$work/out" 2> "$work/err" || true
    echo "of $bytes bytes: $(grep -c -E '^[0-9]+$' "$work/out"), refused $(cat "$work/out" "$work/err" | grep -o 'tried to allocate 2097152' | head -1)"
  done
} > "$work/seen"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
40 strings: used 40 MiB, real above 75 MiB 1, resident below 70 MiB 1
of 1048576 bytes: 64, refused tried to allocate 2097152
of 1040384 bytes: 127, refused tried to allocate 2097152
S
