"""How fast `oomrec fleet reextract` is: PYTHONPATH=tests:tools/python OOMREC_COMMAND=build/oomrec python tests/bench/reextract.py [COPIES]

Records deaths of docs/examples/train.py at three limits, ships COPIES (100) of each to a directory, and makes their rows
anew with one worker and with two. The peer is `oomrec show --json`, a bundle at a time. Prints, as JSON, bundles for each
second of wall clock and of processor time, that of all child processes included.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
from oomrec.fleet._reextract import BUNDLES_AT_ONCE, extract

PROGRAM = Path(__file__).resolve().parents[2] / "docs" / "examples" / "train.py"


def processor_seconds() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measured(count: int, work) -> dict[str, float]:
    wall, processor = time.perf_counter(), processor_seconds()
    work()
    wall, processor = time.perf_counter() - wall, processor_seconds() - processor
    return {
        "bundles_per_s": round(count / wall, 1),
        "bundles_per_processor_s": round(count / processor, 1),
    }


def recorded(command: str, folder: Path) -> list[Path]:
    for limit in ("64M", "96M", "128M"):
        words = [command, "run", "--limit", limit, "--dump-dir", folder, "--"]
        subprocess.run([*words, sys.executable, PROGRAM], capture_output=True)
    return sorted(folder.glob("oom_*"))


def ship(bundle: Path, target: Path) -> None:
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as archive:
        archive.add(bundle, bundle.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(pa.compress(text.getvalue(), codec="zstd", asbytes=True))


def main(copies: int) -> None:
    command = os.environ["OOMREC_COMMAND"] = str(Path(os.environ["OOMREC_COMMAND"]).resolve())
    with tempfile.TemporaryDirectory(prefix="oomrec-") as made:
        url = Path(made) / "fleet"
        bundles = recorded(command, Path(made) / "dumps")
        keys = [f"raw/day=2026-11-30/{n}-{b.name}.tar.zst" for n in range(copies) for b in bundles]
        for number, key in enumerate(keys):
            ship(bundles[number % len(bundles)], url / key)
        chunks = [keys[at : at + BUNDLES_AT_ONCE] for at in range(0, len(keys), BUNDLES_AT_ONCE)]
        results: dict[str, object] = {
            "bundles": len(keys),
            "bytes": round(sum((url / key).stat().st_size for key in keys) / len(keys)),
            "load": os.getloadavg()[0],
        }
        assert extract(str(url), keys[:1])["error"].null_count == 1
        for workers in (1, 2):
            with ProcessPoolExecutor(workers) as pool:
                list(pool.map(abs, range(workers)))  # they are there
                both = measured(
                    len(keys), lambda: list(pool.map(extract, [str(url)] * len(chunks), chunks))
                )
            # Processor time of the pool's processes counts once they have ended.
            results[f"workers: {workers}"] = both["bundles_per_s"]
        results["one process"] = measured(len(keys), lambda: [extract(str(url), c) for c in chunks])
        shown = [bundles[n % len(bundles)] for n in range(60)]

        def show() -> None:
            for bundle in shown:
                subprocess.run([command, "show", "--json", bundle], stdout=subprocess.DEVNULL)

        results["show --json, one at a time"] = measured(len(shown), show)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
