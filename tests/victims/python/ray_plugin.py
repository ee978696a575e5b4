"""A local Ray with oomrec's plugin, of whose workers the arguments say how they end: "grows" 3, "crashes", "cancelled".

Prints the pids of the recorded workers that Ray says it has ended for memory, and the verdicts, as JSON.
"""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import oomrec.schedulers.ray as plugin
import ray

MIB = 1 << 20
GROWTH = 2000 * MIB  # more than others on the machine may begin to use meanwhile


def wait_until(happens, seconds=60):
    until = time.monotonic() + seconds
    while not happens() and time.monotonic() < until:
        time.sleep(0.1)


def memory():
    """Total and used bytes of the machine."""
    words = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(words[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    return total, total - available


@ray.remote(max_retries=0)
def grow():
    held = []
    for _ in range(500):
        held.append(bytearray(b"x") * (10 * MIB))  # grows here
        time.sleep(0.01)
    time.sleep(60)


@ray.remote(max_retries=0)
def hold(path, number):
    held = bytearray(b"x") * (40 * MIB)
    Path(path).write_text(str(os.getpid()))
    if number:
        os.kill(os.getpid(), number)
    time.sleep(60)
    return len(held)


def killed():
    context = ray.get_runtime_context()
    log = Path(context.get_temp_dir()) / context.get_session_name() / "logs" / "raylet.out"
    selected = re.findall(r"Selected to kill: .*task name=grow, .*pid=(\d+)", log.read_text())
    return [int(pid) for pid in selected]


def main(way, count=1):
    total, used = memory()
    path = Path(way).resolve()
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * MIB,
        runtime_env=plugin.runtime_env(),
        _system_config={
            "memory_monitor_refresh_ms": 100 if way == "grows" else 0,
            "memory_usage_threshold": (used + GROWTH) / total,
        },
        _temp_dir=sys.argv[-1],
    )
    plugin.watch_nodes()
    if way == "grows":
        for _ in range(count):
            try:
                ray.get(grow.remote())
            except ray.exceptions.OutOfMemoryError:
                print("caught OutOfMemoryError", file=sys.stderr)
        wait_until(lambda: set(killed()) <= {verdict["pid"] for verdict in plugin.verdicts()})
    else:
        task = hold.remote(str(path), signal.SIGKILL if way == "crashes" else 0)
        wait_until(path.exists)
        wait_until(path.read_text)
        if way == "cancelled":
            ray.cancel(task, force=True)
        wait_until(lambda: not os.path.exists(f"/proc/{path.read_text()}"))
    print(json.dumps({"killed": killed(), "verdicts": plugin.verdicts()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
