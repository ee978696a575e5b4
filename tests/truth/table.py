"""The results in words: a line for each that is not right, and the table by class and way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from truth.case import WAYS
from truth.sandbox import Result

GRADES = ("right", "unsure", "wrong")
BEGIN, END = "<!-- scripts/truth --doc -->\n", "<!-- end -->\n"


def report(result: Result) -> None:
    """One line for a case that is wrong, broken or skipped."""
    if result.grade.grade in ("right", "unsure"):
        return
    name = f"{result.case.group} {result.case.name} {result.way}"
    if result.grade.grade == "skipped":
        print(f"skipped  {name}: {result.grade.why}", flush=True)
        return
    print(
        f"{result.grade.grade:8} {name}: {result.grade.why}\n"
        f"         {result.case.story}\n"
        f"         expected {expected(result)}; got {got(result)}; files: {result.directory}",
        flush=True,
    )


def expected(result: Result) -> str:
    truth = result.case.truth_for(result.way)
    words = " or ".join(sorted(truth.right))
    return f"{words} (unsure: {', '.join(sorted(truth.unsure))})" if truth.unsure else words


def got(result: Result) -> str:
    words = f"{result.code or '?'} ({result.certainty or 'no certainty'})"
    return f"{words} of bundles [{'; '.join(result.bundles)}]" if result.bundles else words


def row(result: Result) -> dict[str, Any]:
    return {
        "class": result.case.group,
        "case": result.case.name,
        "way": result.way,
        "grade": result.grade.grade,
        "why": result.grade.why,
        "expected": expected(result),
        "code": result.code,
        "certainty": result.certainty,
        "bundles": result.bundles,
        "directory": result.directory,
        "seconds": round(result.seconds, 2),
    }


def counted(results: list[Result]) -> dict[str, dict[str, Counter[str]]]:
    """Class → way → grades; the class `all` sums them."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for result in results:
        for group in (result.case.group, "all"):
            ways = counts.setdefault(group, {way: Counter() for way in WAYS})
            ways[result.way][result.grade.grade] += 1
    return {**{name: counts[name] for name in counts if name != "all"}, "all": counts["all"]}


def cell(grades: Counter[str]) -> str:
    if not any(grades[grade] for grade in GRADES):
        return "–"
    return " / ".join(str(grades[grade]) for grade in GRADES)


def lines(results: list[Result]) -> list[list[str]]:
    return [
        [group, *(cell(ways[way]) for way in WAYS), cell(sum(ways.values(), Counter()))]
        for group, ways in counted(results).items()
    ]


def summarize(results: list[Result]) -> None:
    print(f"\n{'right / unsure / wrong':24}" + "".join(f"{way:>18}" for way in (*WAYS, "all")))
    for group, *cells in lines(results):
        print(f"{group:24}" + "".join(f"{text:>18}" for text in cells))
    grades = Counter(result.grade.grade for result in results)
    total = sum(grades[grade] for grade in GRADES) or 1
    shares = ", ".join(f"{grade} {100 * grades[grade] / total:.1f} %" for grade in GRADES)
    rest = "".join(f", {grades[name]} {name}" for name in ("broken", "skipped") if grades[name])
    print(f"{total} cases: {shares}{rest}")


def replace(page: Path, results: list[Result]) -> None:
    """Writes the table between the page's markers."""
    rows = [["class", *WAYS, "all"], ["---"] * 5, *lines(results)]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + BEGIN + text + END + rest.partition(END)[2])
