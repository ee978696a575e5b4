"""Grades an answer: right, unsure or wrong, by its JSON, never by its prose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truth.case import DENIALS, MEMORY_DEATHS, NOTHING, Truth

HOLDERS_READ = 3


@dataclass(frozen=True)
class Grade:
    grade: str  # right, unsure, wrong
    why: str = ""


def grade(truth: Truth, shown: dict[str, Any] | None) -> Grade:
    code, certainty = answer(shown)
    if shown and truth.program not in words_of(shown):
        return Grade("wrong", f"culprit {words_of(shown)!r}, not {truth.program}")
    if code in truth.right:
        return graded_right(truth, shown, certainty)
    if code in truth.unsure or (code == "unknown" and NOTHING not in truth.right):
        return Grade("unsure", code)
    if code == NOTHING:
        return Grade("wrong", "nothing left")
    if NOTHING in truth.right:
        return Grade("wrong", "false alarm")
    if certainty == "possible":
        return Grade("unsure", f"{code}, possible")
    return Grade("wrong", accusation(truth, code))


def answer(shown: dict[str, Any] | None) -> tuple[str, str | None]:
    if shown is None:
        return NOTHING, None
    return shown["verdict"]["code"], shown["verdict"].get("certainty")


def graded_right(truth: Truth, shown: dict[str, Any] | None, certainty: str | None) -> Grade:
    if shown is None:
        return Grade("right")
    mismatch = next((text for text in mismatches(truth, shown) if text), "")
    if mismatch:
        return Grade("wrong", mismatch)
    if certainty == "possible" and truth.decided:
        return Grade("unsure", "possible")
    if truth.limit and is_of_unknown_limit(shown):
        return Grade("unsure", "the limit is not known")
    return Grade("right")


def is_of_unknown_limit(shown: dict[str, Any]) -> bool:
    """The kernel killed it at the limit of a cgroup, but its log and its counters do not say of which."""
    return shown["verdict"]["code"] == "cgroup_oom_kill" and shown["limit"]["kind"] == "none"


def mismatches(truth: Truth, shown: dict[str, Any]) -> list[str]:
    """What contradicts the truth although the code is right."""
    request = shown["request"] or {}
    is_unknown = is_of_unknown_limit(shown)
    limit_mib = str((shown["limit"].get("bytes") or 0) >> 20)
    return [
        "" if is_unknown else _unequal("limit", truth.limit, shown["limit"]["kind"]),
        "" if is_unknown else _unequal("MiB", str(truth.limit_mib or ""), limit_mib),
        _unequal("api", truth.api, request.get("api") or ""),
        _unequal("outcome", truth.outcome, shown["outcome"]),
        (
            f"request of {request.get('size')} bytes"
            if (request.get("size") or 0) < truth.least_request
            else ""
        ),
        ""
        if truth.holder in frames(shown) or not truth.holder
        else f"{truth.holder} holds nothing",
    ]


def words_of(shown: dict[str, Any]) -> str:
    """The bundle's program and its command line."""
    process = shown["process"]
    return " ".join([process["executable"] or "", *(process["argv"] or [])])


def _unequal(what: str, expected: str, actual: str) -> str:
    return f"{what} {actual}, not {expected}" if expected and actual != expected else ""


def frames(shown: dict[str, Any]) -> set[str]:
    """Functions and files' names on the stacks of the largest holders."""
    found: set[str] = set()
    for holder in shown["holders"][:HOLDERS_READ]:
        for frame in holder["stack"]:
            found.add(frame["function"] or "")
            found.add((frame["file"] or "").rpartition("/")[2])
    return found


def accusation(truth: Truth, code: str) -> str:
    is_memory = bool(truth.right & MEMORY_DEATHS)
    if code in DENIALS and is_memory:
        return "denied falsely"
    if code in MEMORY_DEATHS and not is_memory:
        return "blamed falsely"
    return "wrong cause"
