"""Promised is not used, levels are of now, and the pressure of others is theirs."""

from __future__ import annotations

from typing import Any

from truth import events
from truth.case import KILLED, NOTHING, Case, died, innocent, quiet, signalled

OFF = {"OOMREC_WARN": "0"}
FAR = innocent("killed_externally")


def rests(name: str, story: str, sort: str, mib: int, event: events.Event, **more: Any) -> Case:
    return Case(
        name,
        "levels",
        story,
        ["@rests", sort, str(mib)],
        more.pop("truth", FAR),
        event=event,
        ends=more.pop("ends", KILLED),
        **more,
    )


THRASHING = (
    "some avg10=80.00 avg60=60.00 avg300=30.00 total=90000000\n"
    "full avg10=60.00 avg60=50.00 avg300=20.00 total=70000000\n"
)


CASES = [
    rests("promised_killed", "1 GiB is promised and untouched; kill -9 far from the limit",
          "promised", 1024, events.KILL, cgroup="400M", env=OFF, short=True),
    rests("promised_term", "4 GiB promised, SIGTERM far from the limit", "promised", 4096,
          events.TERM, cgroup="300M", env=OFF, ends=signalled(15)),
    rests("calloc_killed", "a calloc of 900 MiB, untouched; kill -9", "calloc", 900, events.KILL,
          cgroup="300M", env=OFF),
    rests("reserved_killed", "8 GiB PROT_NONE reserved; kill -9", "reserved", 8192, events.KILL,
          cgroup="300M", env=OFF),
    rests("freed_killed", "it was at 90 %, freed all, rested, and gets kill -9", "freed", 150,
          events.KILL, cgroup="190M", env=OFF, short=True),
    rests("freed_term", "it was at 90 %, freed all, rested, and gets SIGTERM", "freed", 150,
          events.TERM, cgroup="190M", env=OFF, ends=signalled(15)),
    rests("dropped_killed", "madvise gave its pages back; kill -9", "dropped", 150, events.KILL,
          cgroup="190M", env=OFF),
    rests("no_main_killed", "main has ended, a thread rests; kill -9 far from the limit", "no_main",
          40, events.KILL, cgroup="400M"),
    rests("no_main_at_limit", "main has ended, a thread rests at 95 % of the limit; kill -9",
          "no_main", 180, events.KILL, cgroup="212M", env=OFF,
          truth=died("killed_near_limit", unsure=["killed_externally"], decided=False),
          # Nobody reads its level once the memory is touched.
          bare=died("killed_near_limit", unsure=["killed_externally", NOTHING], decided=False)),
    *(
        Case(f"quiet_{sort}", "levels", f"{sort} {mib} MiB, little of it touched, exits with 0",
             ["@rests", sort, str(mib), "0"], quiet(), ends="exit 0", cgroup="300M",
             short=sort == "promised")
        for sort, mib in (("promised", 1024), ("calloc", 900), ("reserved", 8192), ("freed", 200))
    ),
    Case("quiet_sort", "levels", "sort -S 90% of a small file", ["sort", "-S", "90%", "/etc/passwd"],
         quiet(), ends="exit 0", cgroup="200M"),
    Case("quiet_java", "levels", "Java reserves a heap of 8 GiB and says hello",
         ["java", "-Xmx8g", "-Xms16m", "-XX:+UseSerialGC", "@Hello.java"], quiet(), ends="exit 0",
         cgroup="600M", needs=["java", "javac"]),
    rests("others_thrash_term", "others thrash; this process rests and gets SIGTERM", "touched", 40,
          events.TERM, pressure=THRASHING, ends=signalled(15), short=True),
    rests("others_thrash_kill", "others thrash; this process rests and gets SIGKILL", "touched", 40,
          events.KILL, pressure=THRASHING,
          truth=innocent("killed_externally", unsure=["user_space_oom_kill"])),
    Case("others_thrash_quiet", "levels", "others thrash; this process works and exits with 0",
         ["@rests", "touched", "40", "1"], quiet(), pressure=THRASHING, ends="exit 0"),
    Case("thrashes_killed", "levels",
         "it reads a file that is larger than its cgroup, page by page, and gets kill -9",
         ["@thrashes", "300"], died("killed_near_limit", "memory_pressure", decided=False,
                                    unsure=["killed_externally"]),
         event=events.sends(9, 2.5), cgroup="60M", pressure=THRASHING, ends=KILLED, disk=True),
    Case("thrashes_term", "levels",
         "it reads a file that is larger than its cgroup, page by page, and gets SIGTERM",
         ["@thrashes", "300"], died("terminated_under_pressure", "memory_pressure", decided=False,
                                    unsure=["killed_externally", "near_limit"]),
         event=events.sends(15, 2.5), cgroup="60M", pressure=THRASHING, ends=signalled(15),
         disk=True),
    Case("warned_but_fine", "levels", "it reaches 97 % of its limit, frees it and exits with 0",
         ["@rests", "freed", "165", "0"], quiet("near_limit"), cgroup="202M", ends="exit 0"),
]  # fmt: skip
