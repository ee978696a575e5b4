"""Makes the rows of shipped bundles anew: new symbols, new rules of signatures, all holders.

One function, `extract(url, keys) -> arrow table`, is mapped over the bundles by the engine that the user has.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import tarfile
import tempfile
from typing import Any, Callable, Iterable, Iterator

from ._errors import FleetError
from ._progress import with_progress
from ._store import open_store
from ._table import export_rows, find_command, need_packages

BUNDLES_AT_ONCE = 32
MOST_BUNDLE_BYTES = 1 << 30
MOST_FILES = 1000
NAME = re.compile(r"[\w.-]{1,100}")
CODECS = {".tar.zst": "zstd", ".tar.gz": "gzip"}  # a machine without zstd ships the other


def extract(url: str, keys: list[str]) -> Any:
    """The rows of shipped bundles, in one run of `oomrec export --format row`.

    Args:
        url: the table's
        keys: names of bundles below it, raw/day=…/NAME.tar.zst or .tar.gz

    Returns:
        a pyarrow.Table of `key`, `row` (a line of JSON, None if it could not be made) and `error`
    """
    import pyarrow as pa

    rows: dict[str, list[str]] = {}
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="oomrec-") as folder:
        directories: dict[str, str] = {}
        for number, (key, stream) in enumerate(open_store(url).streams(keys)):
            directory = os.path.join(folder, f"oom_{number}")
            if stream is None:
                continue
            try:
                codec = next(CODECS[suffix] for suffix in CODECS if key.endswith(suffix))
                _unpack(stream, codec, directory)
                directories[key] = directory
            except (OSError, ValueError, tarfile.TarError) as error:
                errors[key] = str(error)[:200]
        lines = _export(list(directories.values()))
        if len(lines) == len(directories):
            rows = {key: [line] for key, line in zip(directories, lines)}
        else:  # one that cannot be read has none, and that of a whole job has one for each rank
            rows = {key: _export([directory]) for key, directory in directories.items()}
    found: list[tuple[str, str | None, str | None]]
    found = [(key, _with_key(line, key), None) for key in keys for line in rows.get(key, [])]
    found += [(key, None, errors.get(key, "cannot be read")) for key in keys if not rows.get(key)]
    columns = {
        name: pa.array([each[n] for each in found], pa.string())
        for n, name in enumerate(("key", "row", "error"))
    }
    return pa.table(columns)


def _export(directories: list[str]) -> list[str]:
    if not directories:
        return []
    try:
        lines = list(export_rows(find_command(), directories))
    except FleetError:
        return []
    return [line.decode(errors="replace").strip() for line in lines if line.strip()]


def _with_key(line: str, key: str) -> str:
    """The row, with the name of the bundle that it was made of."""
    row = {**json.loads(line), "raw_key": key}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _unpack(stream: Any, codec: str, directory: str) -> None:
    """The plain files of a tar archive, without any folders: other members of it are other people's ideas."""
    import pyarrow as pa

    os.mkdir(directory)
    left = MOST_BUNDLE_BYTES
    with pa.CompressedInputStream(stream, codec) as plain, tarfile.open(
        fileobj=plain, mode="r|"
    ) as archive:
        for number, member in enumerate(archive):
            name = os.path.basename(member.name)
            left -= member.size
            if number >= MOST_FILES or left < 0:
                raise ValueError("larger than a bundle can be")
            is_plain = member.isfile() and NAME.fullmatch(name)
            if is_plain and (source := archive.extractfile(member)) is not None:
                with open(os.path.join(directory, name), "wb") as target:
                    while block := source.read(1 << 20):
                        target.write(block)


def reextract(url: str, engine: str = "local") -> dict[str, Any]:
    """Makes new rows of all shipped bundles; the next `compact` puts them in the place of the old ones.

    Args:
        url: a directory or s3://BUCKET/PREFIX with raw/day=…/NAME.tar.zst, which the workers can reach, too
        engine: "local" (a process for each core), dask://HOST:PORT, ray://HOST:PORT or spark://HOST:PORT

    Returns:
        {"bundles", "rows", "errors": {key: reason}}

    Raises:
        FleetError: there are no bundles, the engine is unknown, or its package is not installed
    """
    need_packages()
    store = open_store(url)
    keys = [name for name in store.names("raw") if name.endswith(tuple(CODECS))]
    if not keys:
        raise FleetError(
            f"{url} has no bundles below raw/", "oomrec watch --ship-raw puts them there.", 1
        )
    chunks = [keys[at : at + BUNDLES_AT_ONCE] for at in range(0, len(keys), BUNDLES_AT_ONCE)]
    scheme = engine.partition("://")[0]
    if scheme not in ENGINES:
        raise FleetError(f"{engine}: this engine is unknown", f"There are: {', '.join(ENGINES)}.")
    rows, errors = 0, {}
    try:
        for table in with_progress("extracting", ENGINES[scheme](engine, url, chunks), len(chunks)):
            made: dict[str, list[str]] = {}
            for row in table.to_pylist():
                if row["row"] is None:
                    errors[row["key"]] = row["error"]
                else:
                    made.setdefault(json.loads(row["row"])["day"], []).append(row["row"])
                    rows += 1
            # The same in each run: it replaces the rows of an earlier one.
            name = re.sub(r"\W", "-", table["key"][0].as_py())[-150:]
            for day, lines in made.items():
                text = "".join(f"{line}\n" for line in lines)
                store.write(f"rows/day={day}/reextracted-{name}.json", text.encode())
    except ImportError as error:
        raise FleetError(
            f"{engine} needs the package {error.name}", f"To install it: pip install {error.name}"
        ) from error
    return {"bundles": len(keys), "rows": rows, "errors": errors}


def _on_local(engine: str, url: str, chunks: list[list[str]]) -> Iterator[Any]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Not forked: pyarrow has threads.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(extract, [url] * len(chunks), chunks)


def _on_dask(engine: str, url: str, chunks: list[list[str]]) -> Iterator[Any]:
    distributed: Any = importlib.import_module("distributed")  # partly typed
    with distributed.Client(engine.replace("dask://", "tcp://", 1)) as client:
        made = client.map(lambda chunk: extract(url, chunk), chunks, pure=False)
        yield from (future.result() for future in distributed.as_completed(made))


def _on_ray(engine: str, url: str, chunks: list[list[str]]) -> Iterator[Any]:
    import ray

    ray.init(engine if engine != "ray://" else None, ignore_reinit_error=True)
    waiting = [ray.remote(extract).remote(url, chunk) for chunk in chunks]
    while waiting:
        [done], waiting = ray.wait(waiting)
        yield ray.get(done)


def _on_spark(engine: str, url: str, chunks: list[list[str]]) -> Iterator[Any]:
    from ._spark import started_session

    chunked = started_session(engine).sparkContext.parallelize(chunks, len(chunks))
    yield from chunked.map(lambda chunk: extract(url, chunk)).toLocalIterator()


ENGINES: dict[str, Callable[[str, str, list[list[str]]], Iterable[Any]]] = {
    "local": _on_local,
    "dask": _on_dask,
    "ray": _on_ray,
    "spark": _on_spark,
}
