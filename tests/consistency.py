"""Whether the sentences of one bundle contradict each other: contradictions(shown) lists where.

`shown` is the output of `oomrec show --json`. The checks know the words of the verdicts, not how
they are computed.
"""

from __future__ import annotations

import re
import signal

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SIZE = r"(\d+(?:\.\d)?) (bytes|KiB|MiB|GiB|TiB)"
MIB = 1 << 20

KILLED_BY_KERNEL = {"cgroup_oom_kill", "system_oom_kill"}
OF_SIGNALS = {
    "killed_near_limit",
    "killed_externally",
    "terminated_under_pressure",
    "user_space_oom_kill",
    "terminated_by_parent",
}


def size_of(number: str, unit: str) -> float:
    return float(number) * UNITS[unit]


def sentences_of(shown: dict) -> list[str]:
    return [shown["verdict"]["summary"], *shown["verdict"]["evidence"]]


def contradictions(shown: dict) -> list[str]:
    return [problem for check in CHECKS for problem in check(shown)]


def of_percentages(shown):
    """A level is a part of its limit: the percentage fits its bytes, and is not above 100."""
    for sentence in sentences_of(shown):
        for percent in re.findall(r"(\d+) % of", sentence):
            if int(percent) > 100 and "asked" not in sentence:
                yield f"more than all: {sentence}"
        level = re.search(rf"working set {SIZE}.*?, (\d+) % of {SIZE}", sentence)
        if level is None:
            continue
        used, limit = size_of(*level.group(1, 2)), size_of(*level.group(4, 5))
        if abs(100 * used / limit - int(level[3])) > 2:
            yield f"the percentage is not that of its bytes: {sentence}"


def of_the_limit(shown):
    """The process is said to be at a limit only with a usage near it, or with the reason why not."""
    summary, limit = shown["verdict"]["summary"], shown["limit"]
    if limit is None or limit["kind"] != "cgroup" or not limit["bytes"]:
        return
    if "had reached its limit" in summary and limit["used"] < 0.9 * limit["bytes"]:
        yield f"at its limit with {limit['used']} of {limit['bytes']} bytes: {summary}"
    said = re.search(r"at (\d+) % of (?:its|the) cgroup's limit", summary)
    if said and abs(100 * limit["used"] / limit["bytes"] - int(said[1])) > 2:
        yield f"the percentage is not that of limit.used, {limit['used']}: {summary}"
    for sentence in shown["verdict"]["evidence"]:
        level = re.search(r"cgroup: working set .*?, (\d+) % of", sentence)
        explained = "the rest came after that" in sentence
        if "had reached its limit" in summary and level and int(level[1]) < 85 and not explained:
            yield f"at its limit, and far below it: {sentence}"


def of_failures(shown):
    """ "no refused request is on record" only if there is none."""
    claimed = any("no refused request is on record" in each for each in sentences_of(shown))
    if claimed and shown.get("request") is not None:
        yield "a refused request is on record, and none is"


def of_what_it_held(shown):
    """A living process has resident memory; what it holds is not far above without an explanation."""
    summary = shown["verdict"]["summary"]
    held = re.search(rf"; it held {SIZE}", summary)
    if held is None:
        return
    bytes_held = size_of(*held.groups())
    resident = re.search(rf"; it held {SIZE}(?:, | ?; ){SIZE}", summary)
    killed_with = re.findall(r"(?:anon|file|shmem)-rss:(\d+)kB", " ".join(sentences_of(shown)))
    by_kernel = sum(int(part) << 10 for part in killed_with)
    most = max(bytes_held, size_of(*resident.group(3, 4)) if resident else 0)
    if by_kernel > 64 * MIB and most < by_kernel / 4 and "account" not in shown:
        yield f"the kernel saw {by_kernel} bytes resident: {summary}"
    of_holders = sum(row["resident_bytes"] or 0 for row in shown["holders"])
    if shown["holders_at"] == "end" and bytes_held < of_holders / 2 - 16 * MIB:
        yield f"its holders have {of_holders} bytes in memory: {summary}"


MOST_TEXT = 319  # bytes of a line of evidence (common/facts/verdict.h)


def of_whole_sentences(shown):
    for sentence in shown["verdict"]["evidence"]:
        if len(sentence.encode()) >= MOST_TEXT:
            yield f"cut: {sentence}"


def of_the_end(shown):
    """The outcome is the one that the code names, and the sentence names the same signal."""
    code, outcome = shown["verdict"]["code"], shown["outcome"]
    summary = shown["verdict"]["summary"]
    if (outcome == "oom_killed") and code in OF_SIGNALS | {"exited", "crashed", "unknown"}:
        yield f"{code} with outcome {outcome}"
    if code in KILLED_BY_KERNEL and outcome not in ("oom_killed", "unknown"):
        yield f"{code} with outcome {outcome}"
    said = re.search(r"(?:was killed by|crashed with|died of) (SIG\w+)", summary)
    is_signal = code in OF_SIGNALS | {"crashed"} and outcome.startswith("signal")
    if said and is_signal and signal.Signals[said[1]] != int(outcome.split()[1]):
        yield f"{said[1]} with outcome {outcome}"


def of_certainty(shown):
    """The words follow the certainty, and memory is denied only where nothing was short."""
    certainty, summary = shown["verdict"]["certainty"], shown["verdict"]["summary"]
    if certainty == "proven" and re.search(r"\b(probably|possibly)\b", summary):
        yield f"proven, but {summary}"
    of_kill = shown["verdict"]["code"] in OF_SIGNALS | KILLED_BY_KERNEL
    if certainty == "possible" and of_kill and not re.search(r"possibl|nothing excludes", summary):
        yield f"only possible, but {summary}"
    if "not for lack of memory" in summary:
        for sentence in shown["verdict"]["evidence"]:
            level = re.search(r"cgroup: working set .*?, (\d+) % of", sentence)
            if (level and int(level[1]) >= 80) or sentence.startswith("it had "):
                yield f"memory is denied, but {sentence}"


CHECKS = [
    of_percentages,
    of_the_limit,
    of_failures,
    of_what_it_held,
    of_whole_sentences,
    of_the_end,
    of_certainty,
]
