#!/bin/bash
# The peak of resident memory that getrusage() and wait4() give of a program that Python's subprocess started is that of Python, if that is larger:
# /bin/true "needs" 500 MiB, and a program that reads its own ru_maxrss believes so, too.
#
# Seen on Linux 6.18.44 with Python 3.11.2 (Debian 12). Until the child executes its program it runs in its parent's memory (vfork) or in a copy of
# it (fork), and the kernel keeps the larger peak across execve(). VmHWM in /proc/PID/status begins anew. Whoever checks "has the peak risen?" by
# ru_maxrss sees nothing until the program is larger than its parent was.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat > "$work/parent.py" <<'P'
import resource, subprocess, sys

OWN = """import resource
high = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 500 << 10, int(high) > 500 << 10)"""
held = b"x" * (500 << 20)
subprocess.run(["/bin/true"], check=True)
print("ru_maxrss of /bin/true is above 500 MiB:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 500 << 10)
own = subprocess.run([sys.executable, "-c", OWN], check=True, capture_output=True, text=True).stdout.split()
print("a new Python's own ru_maxrss is above 500 MiB:", own[0])
print("its VmHWM is:", own[1])
P
/usr/bin/python3 "$work/parent.py" | tee "$work/seen"
diff "$work/seen" - <<'O'
ru_maxrss of /bin/true is above 500 MiB: True
a new Python's own ru_maxrss is above 500 MiB: True
its VmHWM is: False
O
echo "as described"
