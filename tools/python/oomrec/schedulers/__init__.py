"""Records the workers of Dask, Ray and Spark, and explains those that the scheduler ended for memory.

A scheduler that ends a worker at a limit of its own leaves nothing behind that says so: not in the kernel's
log, and no limit that can be read was near. Only the scheduler knows. The modules `dask` and `ray` pass on
what it says, so that the verdict is proven. Each imports its scheduler, and nothing else of this package does.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .._impl.command import run_json
from .._impl.library import LIBRARY, preload

_MAX_DUMPS = "100"  # many workers may end at a time


def environment(dump_dir: str | None = None) -> dict[str, str]:
    """The variables with which a worker is recorded: LD_PRELOAD, OOMREC_DUMP_DIR, and this process' other OOMREC_*.

    Workers on other nodes need oomrec at the same path. Their bundles go to `dump_dir`; if it is None, to
    OOMREC_DUMP_DIR, or to oom_dumps in this process' directory. It keeps 100 bundles, unless OOMREC_MAX_DUMPS
    says otherwise. Raises ValueError if the library's path has a blank or a colon: it cannot be preloaded.
    """
    preloaded = preload()
    if preloaded is None:
        raise ValueError(f"LD_PRELOAD cannot hold the path {LIBRARY!r}: preload a link to it")
    given = {name: value for name, value in os.environ.items() if name.startswith("OOMREC_")}
    directory = dump_dir or given.get("OOMREC_DUMP_DIR") or "oom_dumps"
    return {
        "OOMREC_MAX_DUMPS": _MAX_DUMPS,
        **given,
        "OOMREC_DUMP_DIR": os.path.abspath(directory),
        "LD_PRELOAD": preloaded,
    }


class Verdict(NamedTuple):
    """Of a dead process."""

    pid: int
    code: str  # user_space_oom_kill, cgroup_oom_kill, …
    certainty: str | None  # proven, likely, possible; None if it claims no cause
    summary: str  # one sentence
    bundle: str  # the path


def recover(timeout_s: float = 60.0) -> list[Verdict]:
    """Makes bundles of this user's recordings of dead processes on this machine, and returns their verdicts.

    Blocks for some 50 ms, and some 100 ms for each bundle. Never raises: the list is empty if the command
    oomrec is not found.
    """
    variables = {"OOMREC_MAX_DUMPS": os.environ.get("OOMREC_MAX_DUMPS", _MAX_DUMPS)}
    made = run_json("recover", "--json", timeout_s=timeout_s, variables=variables)
    shown = [(path, run_json("show", "--json", path)) for path in (made or {}).get("bundles", ())]
    return [
        Verdict(
            pid=report["process"]["pid"],
            code=report["verdict"]["code"],
            certainty=report["verdict"]["certainty"],
            summary=report["verdict"]["summary"],
            bundle=path,
        )
        for path, report in shown
        if report is not None
    ]
