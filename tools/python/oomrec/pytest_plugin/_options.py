"""Options, ini values and marks.

Beside pytest-memray, options of the same name get the prefix --oomrec-, and of its ini values those that it
has serve both: they depend on its version.
"""

from __future__ import annotations

import contextlib
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
    "most_allocations": (_count, 5, "tests in the report; 0: all"),
    "stacks": (_count, 1, "frames shown of each stack"),
}
_FLAGS = {
    "native": "show native frames, too",
    "fail_on_increase": "fail a test with limit_memory that needs more than at its last success",
    "hide_oomrec_summary": "omit the report at the end",
    "trace_python_allocators": "record each small Python object instead of Python's arenas",
}
_MARKS = (
    'limit_memory(limit, current_thread_only=False): fails the test if its high-water mark reaches LIMIT, such as "24 MB"',
    'limit_leaks(location_limit, filter_fn=None, current_thread_only=False): fails the test if a stack still holds LOCATION_LIMIT, such as "1 MB", of what it allocated',
)


_OF_MEMRAY = {*_VALUES, *_FLAGS} - {"hide_oomrec_summary"}
_INI_OF_MEMRAY = _OF_MEMRAY - {"fail_on_increase"} | {"fail-on-increase"}


def _ini_names(name: str) -> list[str]:
    """pytest-memray has dashes in one of its names."""
    return [name, "fail-on-increase"] if name == "fail_on_increase" else [name]


def add_to(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    beside_memray = find_spec("pytest_memray") is not None and not pluginmanager.is_blocked(
        "memray"
    )

    def flag_name(name: str) -> str:
        prefix = "--oomrec-" if beside_memray and name in _OF_MEMRAY else "--"
        return prefix + name.replace("_", "-")

    def add_ini(name: str, text: str, **how: Any) -> None:
        for ini_name in _ini_names(name):
            if not beside_memray or ini_name not in _INI_OF_MEMRAY:
                parser.addini(ini_name, text, **how)

    group = parser.getgroup("oomrec", "who allocates memory, and memory limits for tests")
    group.addoption(
        "--oomrec",
        action="store_true",
        default=None,
        help="record every test, and report at the end",
    )
    parser.addini("oomrec", "record every test, and report at the end", type="bool", default=False)
    for name, (kind, default, text) in _VALUES.items():
        group.addoption(
            flag_name(name),
            dest=f"oomrec_{name}",
            type=kind,
            metavar="N",
            default=None,
            help=f"{text} ({default})",
        )
        add_ini(name, text, default=str(default))
    for name, text in _FLAGS.items():
        group.addoption(
            flag_name(name), dest=f"oomrec_{name}", action="store_true", default=None, help=text
        )
        add_ini(name, text, type="bool", default=False)


def _of_ini(config: pytest.Config, name: str) -> Any:
    """None: not there, or not in the ini files of the installed pytest-memray."""
    for ini_name in _ini_names(name):
        with contextlib.suppress(KeyError, ValueError):
            if found := config.getini(ini_name):
                return found
    return None


def value(config: pytest.Config, name: str) -> Any:
    """The option's value on the command line, else in the ini file, which pytest-memray may share."""
    given = config.getoption("oomrec" if name == "oomrec" else f"oomrec_{name}")
    if given is not None:
        return given
    found = _of_ini(config, name)
    if name in _VALUES:
        kind, default, _ = _VALUES[name]
        try:
            return kind(found) if found else default
        except ValueError as error:
            raise pytest.UsageError(f"ini option {name}: {error}") from error
    return bool(found)


def register_marks(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def has_memray(config: pytest.Config) -> bool:
    return bool(config.pluginmanager.has_plugin("memray")) or config.pluginmanager.has_plugin(
        "memray_manager"
    )


def owns_marks(config: pytest.Config) -> bool:
    return bool(value(config, "oomrec")) or not has_memray(config)
