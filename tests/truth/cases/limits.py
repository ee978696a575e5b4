"""A limit refuses a request, and the verdict names which one."""

from __future__ import annotations

import resource
from typing import Any

from truth.case import CRASHED, Case, died, quiet

MIB, GIB = 1 << 20, 1 << 30
SOFT = {"OOMREC_LIMIT": "256M"}


def limited(name: str, story: str, words: list[str], *codes: str, **more: Any) -> Case:
    checked = {name: more.pop(name) for name in ("limit", "least_request") if name in more}
    truth = died(*codes, unsure=more.pop("unsure", ()), **checked)
    return Case(name, "limits", story, words, truth, **more)


PY = "held = []\nwhile True: held.append(bytearray(4 << 20))"
PY_CAUGHT = """
held = []
try:
    while True: held.append(bytearray(4 << 20))
except MemoryError:
    held.clear()
print("done")
"""

CASES = [
    limited("memlock_mlock", "mlock beyond RLIMIT_MEMLOCK", ["@locks", "mlock"],
            "memory_lock_failed", limits={resource.RLIMIT_MEMLOCK: 64 << 10}, limit="memlock",
            ends="exit 5", short=True),
    limited("memlock_mlockall", "mlockall beyond RLIMIT_MEMLOCK", ["@locks", "mlockall"],
            "memory_lock_failed", limits={resource.RLIMIT_MEMLOCK: 64 << 10}, limit="memlock",
            ends="exit 5"),
    limited("memlock_map_locked", "MAP_LOCKED beyond RLIMIT_MEMLOCK", ["@locks", "map_locked"],
            "mapping_failed", "memory_lock_failed", limits={resource.RLIMIT_MEMLOCK: 64 << 10},
            limit="memlock", ends="exit 5"),
    limited("hugetlb", "MAP_HUGETLB without a pool", ["@locks", "hugetlb"], "mapping_failed",
            limit="hugetlb", ends="exit 5", short=True),
    Case("hugetlb_fallback", "limits", "MAP_HUGETLB fails, ordinary pages are taken, exit 0",
         ["@locks", "hugetlb_fallback"], quiet("mapping_failed"), ends="exit 0"),
    Case("mlock_within", "limits", "mlock within its limit", ["@locks", "within"], quiet(),
         ends="exit 0"),
    limited("address_space", "RLIMIT_AS refuses Perl", ["perl", "-e", "my $x = 'x' x (900 << 20)"],
            "address_space_limit", limits={resource.RLIMIT_AS: 600 * MIB}, limit="rlimit_as",
            needs=["perl"], short=True),
    limited("address_space_python", "RLIMIT_AS refuses Python", ["@python3.12", "-c", PY],
            "address_space_limit", limits={resource.RLIMIT_AS: 400 * MIB}, limit="rlimit_as",
            ends="exit 1"),
    limited("data_lua", "RLIMIT_DATA refuses Lua",
            ["lua5.4", "-e", "local t = string.rep('x', 500 * 1024 * 1024)"], "data_limit",
            limits={resource.RLIMIT_DATA: 200 * MIB}, limit="rlimit_data", needs=["lua5.4"],
            ends="exit 1"),
    limited("soft_ruby", "--limit refuses Ruby", ["ruby", "-e", "a = 'x' * (400 << 20)"],
            "soft_limit", env=SOFT, limit="soft", needs=["ruby"], ends="exit 1"),
    limited("soft_python", "--limit refuses Python 3.13", ["@python3.13", "-c", PY], "soft_limit",
            env=SOFT, limit="soft", ends="exit 1", short=True, least_request=4 * MIB),
    limited("soft_python3.8", "--limit refuses Python 3.8", ["@python3.8", "-c", PY], "soft_limit",
            env=SOFT, limit="soft", ends="exit 1"),
    limited("soft_python_caught", "--limit refuses Python, which handles it",
            ["@python3.11", "-c", PY_CAUGHT], "soft_limit", env=SOFT, ends="exit 0"),
    limited("soft_perl", "--limit refuses Perl: \"Out of memory!\"",
            ["perl", "-e", "my @a; push @a, 'x' x 1000000 while 1"], "soft_limit", env=SOFT,
            limit="soft", needs=["perl"]),
    limited("soft_gawk", "--limit refuses gawk", ["gawk", "BEGIN { while (1) a[n++] = sprintf(\"%9999d\", n) }"],
            "soft_limit", "crash_after_refusal", env=SOFT, needs=["gawk"], ends="exit 2"),
    limited("soft_sort", "--limit refuses sort its buffer; it takes a smaller one", ["bash", "-c",
            "yes abcdefgh | head -c 900K | exec sort -S 500M > /dev/null"], "soft_limit", env=SOFT,
            needs=["sort"], limit="soft", ends="exit 0"),
    limited("soft_sqlite", "--limit refuses sqlite: \"out of memory\"", ["sqlite3", ":memory:",
            "select length(hex(zeroblob(400000000)))"], "soft_limit", env=SOFT, needs=["sqlite3"]),
    limited("commit_mprotect", "an arena commits by mprotect, refused", ["@commits", "mprotect"],
            "soft_limit", "mapping_failed", env=SOFT, ends="exit 5", short=True),
    limited("commit_fixed", "an arena commits by MAP_FIXED, refused", ["@commits", "fixed"],
            "soft_limit", "mapping_failed", env=SOFT, ends="exit 5"),
    limited("commit_fixed_crash", "a refused commit is used anyway", ["@commits", "fixed_crash"],
            "soft_limit", "mapping_failed", "null_dereference", "crash_after_refusal", env=SOFT,
            ends=CRASHED),
    Case("commit_probe", "limits", "addresses are probed by hints, some refused; exit 0",
         ["@commits", "probe"], quiet(), ends="exit 0", limits={resource.RLIMIT_AS: 900 * MIB}),
    Case("commit_smaller", "limits", "a reservation is refused, a smaller one succeeds; exit 0",
         ["@commits", "smaller"], quiet("mapping_failed", "address_space_limit",
                                        "request_too_large"), ends="exit 0",
         limits={resource.RLIMIT_AS: 900 * MIB}),
    limited("java_soft", "a JVM's heap commit is refused by --limit", ["java", "-Xms600m",
            "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "@Hello.java"], "soft_limit",
            "mapping_failed", env=SOFT, needs=["java"], ends="exit 1"),
    limited("java_address_space", "RLIMIT_AS refuses a JVM", ["java", "-Xmx8g",
            "-XX:+UseSerialGC", "@Hello.java"], "address_space_limit", "mapping_failed",
            "thread_creation_failed", limits={resource.RLIMIT_AS: 3 * GIB}, needs=["java"],
            ends="exit 1"),
    limited("soft_xz", "--limit refuses xz its dictionary", ["sh", "-c",
            "head -c 1M /dev/zero | exec xz -9 -T1 > /dev/null"], "soft_limit", env=SOFT,
            limit="soft", needs=["xz"], ends="exit 1"),
    limited("address_space_git", "ulimit -v refuses git: fatal: Out of memory", ["sh", "-c",
            "ulimit -v 300000; head -c 400M /dev/zero | exec git hash-object --stdin"],
            "address_space_limit", limit="rlimit_as", needs=["git"], ends="exit 128"),
    limited("thread_stack", "RLIMIT_AS refuses a thread its stack", ["@python3.11", "-c",
            "import threading as t\nt.stack_size(512 << 20)\n"
            "for _ in range(4): t.Thread(target=__import__('time').sleep, args=(9,), daemon=True).start()"],
            "thread_creation_failed", limits={resource.RLIMIT_AS: 900 * MIB}, ends="exit 1"),
    limited("fork_refused", "a shell's fork fails: the limit of address space cannot; --fail does",
            ["@python3.10", "-c", "import os; os.fork()"], "fork_failed", "injected",
            env={"OOMREC_FAIL": "fork:nth=1"}, ends="exit 1"),
]  # fmt: skip
