"""Options, ini values and marks; beside pytest-memray those that it has, too, have other names."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(f"a number from 0 on, not {number}")
    return number


# name: (type, default, help). On the command line with dashes, in the ini file as here.
_VALUES = {
    "most_allocations": (_count, 5, "how many tests the report shows; 0: all"),
    "stacks": (_count, 1, "how many frames of a stack are shown"),
}
_FLAGS = {
    "native": "show native frames, too",
    "fail_on_increase": "fail a test with limit_memory that needs more than at its last success",
    "hide_oomrec_summary": "no report at the end",
    "trace_python_allocators": "see each small Python object, not the arenas that they are in",
}
_MARKS = (
    'limit_memory(limit, current_thread_only=False): fails the test where its high-water mark reaches LIMIT, such as "24 MB"',
    'limit_leaks(location_limit, filter_fn=None, current_thread_only=False): fails the test where a stack still holds LOCATION_LIMIT, such as "1 MB", of what it allocated',
)


def _flag_name(name: str) -> str:
    memray = find_spec("pytest_memray") is not None and not name.endswith("oomrec_summary")
    return ("--oomrec-" if memray else "--") + name.replace("_", "-")


def add_to(parser: pytest.Parser) -> None:
    group = parser.getgroup("oomrec", "who allocates memory, and limits of it")
    group.addoption(
        "--oomrec",
        action="store_true",
        default=None,
        help="record every test, and report at the end",
    )
    parser.addini("oomrec", "record every test, and report at the end", type="bool", default=False)
    beside_memray = find_spec("pytest_memray") is not None
    for name, (kind, default, text) in _VALUES.items():
        group.addoption(
            _flag_name(name),
            dest=f"oomrec_{name}",
            type=kind,
            metavar="N",
            default=None,
            help=f"{text} ({default})",
        )
        if not beside_memray:
            parser.addini(name, text, default=str(default))
    for name, text in _FLAGS.items():
        group.addoption(
            _flag_name(name), dest=f"oomrec_{name}", action="store_true", default=None, help=text
        )
        if not beside_memray or name.endswith("oomrec_summary"):
            parser.addini(name, text, type="bool", default=False)


def value(config: pytest.Config, name: str) -> Any:
    """Of the command line, else of the ini file (which pytest-memray reads, too, where it is there)."""
    given = config.getoption("oomrec" if name == "oomrec" else f"oomrec_{name}")
    if given is not None:
        return given
    found = config.getini(name)
    if name in _VALUES:
        kind, default, _ = _VALUES[name]
        try:
            return kind(found) if found not in (None, "", []) else default
        except ValueError as error:
            raise pytest.UsageError(f"ini option {name}: {error}") from error
    return bool(found)


def register_marks(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def memray_is_there(config: pytest.Config) -> bool:
    return bool(config.pluginmanager.has_plugin("memray")) or config.pluginmanager.has_plugin(
        "memray_manager"
    )


def owns_marks(config: pytest.Config) -> bool:
    return bool(value(config, "oomrec")) or not memray_is_there(config)
