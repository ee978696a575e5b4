"""Gives rows that earlier releases wrote the signatures of today's rules.

The command computes them: it has the rules. A row keeps the signature that it had as `signature_alias`. Without this,
each change of the rules would make every cause look new.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from typing import Any

from ._errors import FleetError

VERSION = 2  # of the rules: kSignatureVersion in tools/bundles/signature/signature.h
WRITTEN = re.compile(rb'"signature_version": ?(\d{1,9})')


def is_old(line: bytes) -> bool:
    """Whether a row has a signature of earlier rules."""
    found = WRITTEN.search(line)
    return found is not None and int(found[1]) < VERSION and b'"kind":"life"' not in line


def renewed(lines: list[bytes]) -> list[bytes]:
    """The same lines with today's signatures.

    Raises:
        FleetError: the command oomrec is not found, or fails
    """
    from .._impl.command import unrecorded_environment
    from ._table import find_command

    with tempfile.TemporaryFile() as rows:
        rows.writelines(line.rstrip(b"\n") + b"\n" for line in lines)
        rows.seek(0)
        done = subprocess.run(
            [find_command(), "export", "--format", "row", "-"],
            stdin=rows,
            env=unrecorded_environment(),
            capture_output=True,
        )
    made = done.stdout.splitlines()
    if done.returncode != 0 or len(made) != len(lines):
        raise FleetError(
            "oomrec export cannot renew the signatures of older rows",
            "Is it of the same release? " + done.stderr.decode(errors="replace")[:200],
        )
    return made


def with_today(batch: list[tuple[str, bytes, str]]) -> list[tuple[str, bytes, str]]:
    """(file, line, day) of each, old ones renewed. Without the command they stay as they are."""
    places = [n for n, (_, line, _) in enumerate(batch) if is_old(line)]
    if not places:
        return batch
    try:
        lines = renewed([batch[n][1] for n in places])
    except (FleetError, OSError) as error:
        _report_once(str(error))
        return batch
    made = list(batch)
    for n, line in zip(places, lines):
        made[n] = (batch[n][0], line, batch[n][2])
    return made


@functools.lru_cache(maxsize=None)
def _report_once(why: str) -> None:
    print(f"oomrec fleet: rows of earlier rules keep their signatures: {why}", file=sys.stderr)


OLD = f"kind <> 'life' AND signature_version < {VERSION}"


def count_old(connection: Any, view: str) -> int:
    """How many rows of a view have signatures of earlier rules."""
    return int(connection.execute(f"SELECT count(*) FROM {view} WHERE {OLD}").fetchall()[0][0])


def old_lines(connection: Any, view: str) -> list[bytes]:
    """Those rows, each as a line of JSON."""
    found = connection.execute(f"SELECT to_json(r) FROM {view} AS r WHERE {OLD}").fetchall()
    return [line.encode() for (line,) in found]
