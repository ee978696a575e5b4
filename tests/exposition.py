"""Prometheus' text format 0.0.4, read strictly, and a running `oomrec watch --metrics`."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import dataclass, field

from watching import Watch

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.e+-]+)")
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass
class Family:
    type: str
    help: str
    samples: dict[frozenset, float] = field(default_factory=dict)


class Exposition:
    """Families by name. Violations of the format fail an assertion."""

    def __init__(self, text: str):
        assert text.endswith("\n") and "\r" not in text
        self.text = text
        self.families: dict[str, Family] = {}
        helped = current = None
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                helped, _, words = line[7:].partition(" ")
                assert re.fullmatch(NAME, helped) and words, line
                assert helped not in self.families, f"{helped} comes twice"
            elif line.startswith("# TYPE "):
                current, _, kind = line[7:].partition(" ")
                assert current == helped and kind in ("counter", "gauge"), line
                self.families[current] = Family(kind, words)
            else:
                self._sample(line, current)

    def _sample(self, line: str, current: str | None) -> None:
        match = SAMPLE.fullmatch(line)
        assert match, f"no sample: {line!r}"
        assert match[1] == current, f"outside of its family: {line}"
        labels = frozenset(self._labels(match[2] or "", line))
        family = self.families[current]
        assert labels not in family.samples, f"twice: {line}"
        assert family.type != "counter" or current.endswith("_total")
        family.samples[labels] = float(match[3])

    @staticmethod
    def _labels(text: str, line: str):
        position = 0
        names = set()
        while position < len(text):
            match = LABEL.match(text, position)
            assert match and match[1] not in names, f"labels: {line!r}"
            names.add(match[1])
            value = re.sub(r"\\[\\\"n]", lambda found: ESCAPES[found[0]], match[2])
            yield match[1], value
            position = match.end()
            if position < len(text):
                assert text[position] == ",", line
                position += 1

    def rows(self, name: str, **labels) -> list[tuple[dict, float]]:
        """Samples of `oomrec_NAME` with these labels. A label with the value None must be absent."""
        found = []
        for each, value in self.families[f"oomrec_{name}"].samples.items():
            row = dict(each)
            if all(
                row.get(key) == (None if wanted is None else str(wanted))
                for key, wanted in labels.items()
            ):
                found.append((row, value))
        return found

    def value(self, name: str, **labels) -> float | None:
        """The value of the only sample with these labels; None without one."""
        found = self.rows(name, **labels)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def counters(self, **labels) -> dict[tuple, float]:
        return {
            (name, each): value
            for name, family in self.families.items()
            if family.type == "counter"
            for each, value in family.samples.items()
            if labels.items() <= dict(each).items()
        }


class MetricsWatch(Watch):
    """A running `oomrec watch --metrics`, on a port that the kernel chooses."""

    def __init__(self, oomrec, *words, at=":0", **env):
        super().__init__(oomrec, "--metrics", at, *words, **env)
        line = self.process.stdout.readline().decode()
        self.url = re.fullmatch(r"metrics: (http://\S+/metrics)\n", line)[1]
        self.address = re.fullmatch(r"http://\[?([^]]*?)\]?:(\d+)/metrics", self.url).groups()

    def text(self, headers: dict | None = None) -> str:
        request = urllib.request.Request(self.url, headers=headers or {})
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            return answer.read().decode("utf-8")

    def scrape(self, headers: dict | None = None) -> Exposition:
        return Exposition(self.text(headers))
