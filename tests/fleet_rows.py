"""Plausible rows of a fleet's table of deaths, as `oomrec export --format row` prints them."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any, Iterable, Iterator

GIB = 1 << 30
MIB = 1 << 20
START = dt.datetime(2026, 11, 1, tzinfo=dt.timezone.utc)
NAMES = "read parse load merge fetch build index cache decode batch split score join train pack plan".split()
CAUSES = ("leak", "limit_too_low", "limit_too_low", None, None, None, "giant_request")


def frame(function: str, file: str, line: int, own: bool = True) -> dict[str, Any]:
    return {
        "kind": "python",
        "function": function,
        "file": f"job/{file}",
        "line": line,
        "module": None,
        "build_id": None,
        "offset": None,
        "own": own,
    }


def native_frame(rng: random.Random) -> dict[str, Any]:
    return {
        "kind": "native",
        "function": f"arrow::{rng.choice(NAMES)}_{rng.randrange(100)}",
        "file": None,
        "line": None,
        "module": "libarrow.so.2600",
        "build_id": f"{rng.getrandbits(160):040x}",
        "offset": rng.randrange(1 << 24),
        "own": False,
    }


class Cause:
    """One way in which programs of the fleet die: what its rows have in common."""

    def __init__(self, number: int, services: int) -> None:
        rng = random.Random(number)
        inner, outer = (f"{rng.choice(NAMES)}_{number}" for _ in range(2))
        file, script = f"{rng.choice(NAMES)}{number % 40}.py", f"serve{number % services}.py"
        self.signature = f"{file}:{inner} < {script}:{outer}"
        self.coarse = f"{file}:{inner}"
        self.title = f"{file}:{inner} ← {script}:{outer}"
        self.script = script
        self.service = f"service-{number % services}"
        self.cause = CAUSES[number % len(CAUSES)]
        own = [frame(inner, file, rng.randrange(900)), frame(outer, script, rng.randrange(900))]
        self.holders = [
            {
                "space": "heap",
                "device": None,
                "bytes": 2 * GIB // (n + 1),
                "resident_bytes": 2 * GIB // (n + 1),
                "count": rng.randrange(1, 5000),
                "estimated": True,
                "sig": self.signature if n == 0 else None,
                "frames": [native_frame(rng) for _ in range(1 + n % 2)] + own,
            }
            for n in range(3)
        ]


def row(
    number: int = 0, way: Cause | None = None, days: int = 30, **changed: Any
) -> dict[str, Any]:
    """A death of this way in the first `days` of the month; `changed` replaces columns."""
    cause = way or Cause(number % 40, 8)
    rng = random.Random(number)
    time = START + dt.timedelta(
        seconds=rng.randrange(days * 86400), milliseconds=rng.randrange(1000)
    )
    if "time" in changed:
        time = dt.datetime.fromisoformat(changed.pop("time").replace("Z", "+00:00"))
    peak = int((1.5 + rng.random()) * GIB)
    seconds = rng.randrange(60, 90_000)
    death = {
        "schema_version": 1,
        "oomrec_version": "0.1.0",
        "death_id": f"{number:016x}",
        "revision": 0,
        "kind": "death",
        "time": f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z",
        "day": f"{time:%Y-%m-%d}",
        "episode_id": None,
        "episode_role": None,
        "host": f"node-{rng.randrange(400):03d}",
        "service": cause.service,
        "release": f"v1.{time.day // 8}",
        **dict.fromkeys(["namespace", "pod", "container", "image", "job", "task"]),
        **dict.fromkeys(["rank", "world_size", "attempt"]),
        "labels": {"team": f"team-{number % 5}"},
        "program": "python3.11",
        "script": cause.script,
        "verdict": "cgroup_oom_kill",
        "certainty": "proven",
        "trigger": "killed",
        "outcome": "oom_killed",
        "summary": "python3.11 was killed by the kernel: its cgroup reached the limit of 2.0 GiB",
        "ended_by": "kernel",
        "limit_kind": "cgroup",
        "limit_bytes": 2 * GIB,
        "used_bytes": 2 * GIB,
        "peak_bytes": peak,
        "rss_bytes": peak,
        "cgroup_limit_bytes": 2 * GIB,
        "node_bytes": 64 * GIB,
        "need_bytes": max(peak, 2 * GIB),
        "need_is_bound": True,
        "started": f"{time - dt.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}",
        "run_seconds": seconds,
        "lost_gib_hours": round(peak / GIB * seconds / 3600, 3),
        "growth_bytes_per_s": peak / seconds,
        "timeline_ms": [1000 * seconds * n // 20 for n in range(20)],
        "timeline_rss": [peak * n // 20 for n in range(20)],
        "timeline_live": [peak * n // 21 for n in range(20)],
        "signature": cause.signature,
        "signature_version": 2,
        "signature_coarse": cause.coarse,
        "signature_also": [],
        "signature_alias": None,
        "title": cause.title,
        "top_share": 0.5 + rng.random() / 2,
        "cause": cause.cause,
        "thread_group": None,
        "label": None,
        "request": None,
        "holders": cause.holders,
        "gpu": [],
        "life_weight": None,
        "raw_key": None,
        "raw_bytes": None,
    }
    return {**death, **changed}


def life(number: int, need_bytes: int, weight: float = 10.0, **changed: Any) -> dict[str, Any]:
    """A process that ended well, with its exact need."""
    nothing = "verdict certainty trigger limit_kind limit_bytes ended_by signature_coarse signature title top_share cause"
    return row(
        number,
        **{
            "kind": "life",
            "outcome": "exited 0",
            **dict.fromkeys(nothing.split()),
            "holders": [],
            "timeline_ms": [],
            "timeline_rss": [],
            "timeline_live": [],
            "need_bytes": need_bytes,
            "peak_bytes": need_bytes,
            "rss_bytes": need_bytes,
            "need_is_bound": False,
            "lost_gib_hours": None,
            "life_weight": weight,
            **changed,
        },
    )


def fleet(
    count: int, seed: int = 1, causes: int = 300, services: int = 40, days: int = 30
) -> Iterator[dict[str, Any]]:
    """`count` rows: causes of very different frequency, and one life among ten rows."""
    rng = random.Random(seed)
    pool = [Cause(n, services) for n in range(causes)]
    for number in range(count):
        one = seed * 1_000_000_000 + number
        cause = pool[min(int(rng.expovariate(12 / causes)), causes - 1)]
        if number % 10 == 0:
            need = int(rng.lognormvariate(21, 0.3))
            yield life(one, need, days=days, service=cause.service, script=cause.script)
        else:
            yield row(one, cause, days)


def line(of: dict[str, Any]) -> str:
    return json.dumps(of, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_rows(directory: Path, rows: Iterable[dict[str, Any]]) -> None:
    """As `oomrec watch --ship file://…` does: one file a row."""
    for each in rows:
        day = directory / "rows" / f"day={each['day']}"
        day.mkdir(parents=True, exist_ok=True)
        (day / f"{each['host']}-{each['death_id']}-{each['revision']}.json").write_text(line(each))
