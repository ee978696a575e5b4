"""How a check ends: it returns (PASS, with what it returned as a remark), or raises one of these."""

from __future__ import annotations


class Failed(Exception):
    """What should have been, and what was."""


class Skipped(Exception):
    """What this machine lacks."""


def expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise Failed(otherwise)


def expect_equal(what: str, is_: object, should_be: object) -> None:
    expect(is_ == should_be, f"{what}: {is_}, not {should_be}")


def size(bytes_: int) -> str:
    return f"{bytes_ / (1 << 30):.1f} GiB" if bytes_ >= 1 << 30 else f"{bytes_ / (1 << 20):.1f} MiB"
