"""Outcomes of a check: it returns a remark (PASS), or raises one of these."""

from __future__ import annotations


class Failed(Exception):
    """FAIL, with the expected and the actual value."""


class Skipped(Exception):
    """SKIP, with what this machine lacks."""


def expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise Failed(otherwise)


def expect_equal(what: str, is_: object, should_be: object) -> None:
    expect(is_ == should_be, f"{what}: {is_}, not {should_be}")


def size(bytes_: int) -> str:
    return f"{bytes_ / (1 << 30):.1f} GiB" if bytes_ >= 1 << 30 else f"{bytes_ / (1 << 20):.1f} MiB"
