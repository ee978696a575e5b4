"""How fast `oomrec fleet` is: PYTHONPATH=tests:tools/python python tests/bench/fleet.py [ROWS]

Makes ROWS (1,000,000) rows of 30 days in a temporary directory, one file of lines a day, of which 10,000 also one file
a row. Prints, as JSON: compaction's rows for each second of wall clock and of processor time; each query's best and
median of five, in seconds, and its least processor time, which a busy machine changes less; the triage page; and pandas
for the same answer from a tenth of the same rows as lines of JSON.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fleet_rows import fleet, line, write_rows
from oomrec.fleet import Table, _queries, compact
from oomrec.fleet._page import write_page
from oomrec.fleet._queries import Window, ask
from oomrec.fleet._show import deaths_by_id

UNTIL = dt.datetime(2026, 12, 1)
WEEK, MONTH = (Window(UNTIL - dt.timedelta(days=days), UNTIL) for days in (7, 28))
PANDAS = """
import sys, time
import pandas
start = time.perf_counter()
rows = pandas.concat(chunk for path in sys.argv[2:] for chunk in pandas.read_json(path, lines=True, chunksize=10_000))
rows = rows[rows.kind.isin(["death", "failure"]) & (pandas.to_datetime(rows.time) >= pandas.Timestamp(sys.argv[1], tz="UTC"))]
top = rows.groupby("signature").agg(deaths=("death_id", "count"), lost=("lost_gib_hours", "sum")).nlargest(20, "lost")
print(time.perf_counter() - start)
"""


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured_compaction(url: Path) -> dict[str, float]:
    wall, processor = time.perf_counter(), processor_seconds()
    rows = compact(str(url))["rows"]
    wall, processor = time.perf_counter() - wall, processor_seconds() - processor
    return {
        "rows": rows,
        "rows_per_s": round(rows / wall),
        "rows_per_processor_s": round(rows / processor),
    }


def measured(work) -> dict[str, float]:
    seconds, processor = [], []
    for _ in range(5):
        start, used = time.perf_counter(), processor_seconds()
        work()
        seconds.append(time.perf_counter() - start)
        processor.append(processor_seconds() - used)
    return {
        "best_s": round(min(seconds), 4),
        "median_s": round(statistics.median(seconds), 4),
        "processor_s": round(min(processor), 4),
    }


def main(count: int) -> None:
    results: dict[str, object] = {
        "rows": count,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory(prefix="oomrec-") as made:
        folder = Path(made)
        write_rows(folder / "single", fleet(10_000, seed=2, days=3))
        days: dict[str, list[str]] = {}
        for row in fleet(count):
            target = folder / "many" / "rows" / f"day={row['day']}"
            days.setdefault(str(target), []).append(line(row))
            if len(days[str(target)]) == 1000:
                append(target, days.pop(str(target)))
        for name, lines in days.items():
            append(Path(name), lines)
        texts = sorted((folder / "many").glob("rows/*/rows.json"))
        results["row_bytes"] = round(sum(path.stat().st_size for path in texts) / count)
        tenth = folder / "tenth.jsonl"  # every tenth row
        with open(tenth, "w") as target:
            for path in texts:
                with open(path) as source:
                    target.writelines(
                        text for number, text in enumerate(source) if number % 10 == 0
                    )
        results["compaction_one_file_a_row"] = measured_compaction(folder / "single")
        results["compaction"] = measured_compaction(folder / "many")
        parts = list((folder / "many").glob("deaths/*/*.parquet"))
        results["parquet_bytes_per_row"] = round(sum(path.stat().st_size for path in parts) / count)
        results["compaction_peak_rss_mib"] = (
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        )

        table = Table(str(folder / "many"))
        first = _queries.signatures(table, WEEK)[0]["signature"]
        death = ask(table, "recent", WEEK, signature=first, most=1)[0]
        key = [(death["death_id"], death["time"].date().isoformat())]
        key_alone = [(death["death_id"], None)]
        queries = {
            "open": lambda: Table(str(folder / "many")),
            "totals": lambda: _queries.totals(table, WEEK),
            "top": lambda: _queries.signatures(table, WEEK),
            "new": lambda: _queries.signatures(table, WEEK, "new"),
            "regressed": lambda: _queries.signatures(table, WEEK, "regressed"),
            "sizes": lambda: _queries.sizes(table, MONTH),
            "facets of one": lambda: _queries.facets(table, WEEK, [first]),
            "newest deaths of one": lambda: ask(table, "recent", WEEK, signature=first, most=10),
            "typical death of one": lambda: ask(table, "typical", WEEK, signatures=[first]),
            "one death, whole": lambda: deaths_by_id(table, key),
            "one death, day not known": lambda: deaths_by_id(table, key_alone),
        }
        results["queries"] = {name: measured(work) for name, work in queries.items()}
        page = str(folder / "triage.html")
        results["page"] = {
            **measured(lambda: write_page(table, WEEK, page)),
            "bytes": os.path.getsize(page),
        }
        results["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        since = WEEK.since.isoformat(" ")
        done = subprocess.run(
            [sys.executable, "-c", PANDAS, since, tenth], capture_output=True, text=True
        )
        if done.returncode == 0:
            results["pandas_top_from_a_tenth_s"] = round(float(done.stdout), 2)
    print(json.dumps(results, indent=2))


def append(folder: Path, lines: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "rows.json", "a") as target:
        target.writelines(lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
