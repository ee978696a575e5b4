"""Several processes: which of them ran out, and what it did to the others."""

from __future__ import annotations

from typing import Any

from truth.case import Case, died, innocent, quiet

OFF = {"OOMREC_WARN": "0"}
KILLED_CHILD = died("cgroup_oom_kill", "child_killed")


def pool(name: str, story: str, *words: str, truth, version: str = "3.11", **more: Any) -> Case:
    return Case(name, "workers", story, [f"@python{version}", "@pools.py", *words], truth, **more)


GROWS = (
    "import time\nh = []\nwhile True:\n  h.append(bytearray(b'x') * (1 << 20))\n  time.sleep(.01)"
)
HANGS = "import time\nh = bytearray(b'x') * (60 << 20)\ntime.sleep(60)"


def supervised(name: str, why: str, *words: str, truth, **more: Any) -> Case:
    worker = ["@python3.11", "-c", GROWS if why == "limit" else HANGS]
    return Case(f"supervised_{name}", "workers",
                f"a supervisor in {name} kills its worker twice: {why}", [*words, why, *worker],
                truth, ends="exit 0", **more)  # fmt: skip


# Only what the supervisor reads says why: a limit of its own shows in what repeats.
OWN_LIMIT = died("terminated_by_parent", unsure=["killed_externally"], decided=False)

CASES = [
    supervised("sh", "limit", "sh", "@supervisor.sh", truth=OWN_LIMIT, short=True),
    supervised("ruby", "limit", "ruby", "@supervisor.rb", truth=OWN_LIMIT, needs=["ruby"]),
    supervised("sh_time", "time", "sh", "@supervisor.sh", truth=innocent("killed_externally"),
               short=True),
    supervised("ruby_time", "time", "ruby", "@supervisor.rb", needs=["ruby"],
               truth=innocent("killed_externally")),
    pool("pool_worker_killed", "a Pool's worker is killed at the limit; the parent exits with 1",
         "executor_grow", truth=KILLED_CHILD, cgroup="150M", ends="exit 1", short=True),
    pool("process_killed", "a Process is killed at the limit; the parent exits with 3",
         "process_grow", truth=KILLED_CHILD, cgroup="150M", ends="exit 3", version="3.13"),
    pool("process_killed_handled", "a Process is killed; the parent handles it and exits with 0",
         "process_grow_handled", truth=died("cgroup_oom_kill"), cgroup="150M", ends="exit 0"),
    pool("worker_memory_error", "a worker's MemoryError reaches the parent, which exits with 1",
         "pool_refused", truth=died("request_too_large", "child_killed"), ends="exit 1",
         short=True),
    pool("pool_closed", "a Pool works, is terminated, and the parent exits with 0", "pool_fine",
         truth=quiet(), ends="exit 0", short=True),
    pool("pool_left", "idle workers are ended at the interpreter's exit", "pool_left",
         truth=quiet(), ends="exit 0", version="3.9"),
    pool("worker_bug", "a worker fails by a ValueError; the parent exits with 1", "pool_bug",
         truth=quiet("exited", "crashed"), ends="exit 1"),
    pool("worker_kill_9", "a worker gets kill -9 by its parent, which then exits with 4",
         "process_shot", truth=innocent("killed_externally", "exited"), ends="exit 4"),
    pool("threads_refused", "a thread's MemoryError is lost; the program exits with 0",
         "thread_refused", truth=died("request_too_large"), ends="exit 0"),
    Case("fork_child", "workers", "a forked child is killed at the limit; its parent exits with 1",
         ["@grow", "child"], KILLED_CHILD, cgroup="80M", ends="exit 1"),
    Case("orphan", "workers", "a daemonized child is killed at the limit after its parent ended",
         ["sh", "-c", "\"$0\" orphan; sleep 1.5", "@grow"], died("cgroup_oom_kill"),
         cgroup="80M", ends="exit 0"),
    Case("make_job", "workers", "a shell's job is killed at the limit; the shell goes on: exit 3",
         ["sh", "-c", "\"$0\" heap; exit 3", "@grow"], died("cgroup_oom_kill"), cgroup="80M",
         ends="exit 3", short=True),
    Case("sigpipe", "workers", "a pipeline's writer gets SIGPIPE: ordinary",
         ["bash", "-c", "yes | head -1"], quiet(), ends="exit 0"),
    Case("sigpipe_python", "workers", "a writer of 30 MiB gets SIGPIPE: ordinary",
         ["bash", "-c", "\"$0\" -c 'import signal; signal.signal(13, 0); "
          "h = bytearray(b\"x\") * (30 << 20)\nwhile 1: print(\"y\" * 99)' | head -1",
          "@python3.11"], quiet(), ends="exit 0", short=True),
    Case("xargs", "workers", "xargs runs four jobs, one of which is refused memory: exit 123",
         ["sh", "-c", "printf '1\\n2\\n3\\n70\\n' | xargs -P 2 -n 1 \"$0\" -c "
          "'import sys; x = bytearray(1 << (int(sys.argv[1]) - 20 if int(sys.argv[1]) > 50 else 20))'",
          "@python3.11"], died("request_too_large"), ends="exit 123"),
    Case("background", "workers", "a shell leaves a sleeping child, which it ends: exit 0",
         ["sh", "-c", "sleep 30 & p=$!; sleep 0.2; kill $p; exit 0"], quiet(), ends="exit 0"),
    pool("ten_killed", "ten Processes are killed one after another; the parent exits with 3",
         "ten_grow", truth=KILLED_CHILD, cgroup="100M", ends="exit 3"),
    pool("server_stopped", "a prefork server ends its idle workers by SIGTERM and exits with 0",
         "server", truth=quiet(), ends="exit 0"),
    pool("worker_refused_handled", "a worker handles its MemoryError; the job exits with 0",
         "pool_handled", truth=died("request_too_large"), ends="exit 0"),
]  # fmt: skip
