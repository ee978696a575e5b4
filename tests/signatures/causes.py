"""The causes of the set: which program, how to start it, and what kind of cause it is.

Several causes of one program, and programs with functions of the same names, are there on purpose. A kind is known by
construction: `leak` never ends; `limit_too_low` would have ended with a larger limit; `giant_request` is one allocation.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAK, LIMIT, GIANT = "leak", "limit_too_low", "giant_request"


@dataclass(frozen=True)
class Program:
    """A program of programs/: a Python file or package, or sources to compile."""

    name: str
    kinds: tuple[tuple[str, str], ...]  # cause → kind
    language: str = "python"  # or c, c++
    module: str = ""  # a package that it needs
    library: str = ""  # a source that becomes a library, named on its command line
    library_first: bool = False
    is_package: bool = False
    uses_gpu: bool = False
    limit_mib: int = 64


def kinds(**named: str) -> tuple[tuple[str, str], ...]:
    return tuple(named.items())


PROGRAMS = (
    Program("shop", kinds(sessions=LEAK, pages=LEAK, orders=LEAK, year=LIMIT), is_package=True),
    Program("chat", kinds(backlog=LEAK, tasks=LEAK, history=LEAK)),
    Program("jobs", kinds(outbox=LEAK, results=LEAK, locals=LEAK)),
    Program("farm", kinds(worker=LEAK, collector=LEAK, spawned=LEAK)),
    Program(
        "matrix",
        kinds(history=LEAK, wrong_shape=GIANT, window=LIMIT),
        module="numpy",
        limit_mib=160,
    ),
    Program("algebra", kinds(expand=LEAK, table=LEAK), module="sympy", limit_mib=128),
    Program("routes", kinds(roads=LEAK, distances=LEAK), module="networkx", limit_mib=128),
    Program("gallery", kinds(thumbnails=LEAK, panorama=LIMIT), module="PIL"),
    Program("ledger", kinds(entries=LEAK, audit=LIMIT)),
    Program("feed", kinds(documents=LEAK, index=LEAK, strings=LEAK)),
    Program("solver", kinds(memo=LEAK, tree=LEAK, table=LEAK, fill=LIMIT)),
    Program("plugins", kinds(radio=LEAK, camera=LEAK, left=LEAK, right=LEAK), is_package=True),
    Program("watchdog", kinds(buffer=LEAK, mappings=LEAK, replay=LIMIT)),
    Program(
        "train",
        kinds(activations=LEAK, optimizer=LEAK, graph=LEAK, batch=GIANT, evaluate=LIMIT),
        uses_gpu=True,
    ),
    Program("codec", kinds(decode=LEAK, tables=LEAK), library="codec.c", is_package=True),
    Program("server", kinds(connections=LEAK, cache=LEAK, journal=LEAK, subscribers=LEAK), "c++"),
    Program("words", kinds(table=LEAK, chain=LEAK, lines=LEAK, sort=GIANT), "c"),
    Program(
        "host", kinds(scan=LEAK, match=LEAK), "c++", library="engine.cpp", library_first=True
    ),
)  # fmt: skip
