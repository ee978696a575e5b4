"""The driver, called from Python by ctypes: the recording equals what the program holds.

A check takes the lab and the driver ("cuda", "hip"), and returns a remark.
"""

from __future__ import annotations

import json
import subprocess

from .outcome import Skipped, expect, expect_equal, size
from .recorded import PROGRAMS, Lab, Run, names_line

CALLS = "driver_calls.py"
ALLOCATE = {"cuda": "cuMemAlloc", "hip": "hipMalloc"}
# The word in a mark → the driver's space.
SPACES = {"device": "{}", "host": "{}_host", "address": "{}_va"}


def check_marks(run: Run, driver: str) -> str:
    """At each mark the recording's spaces match the program's own figures."""
    marks = run.marks()
    for mark, held in marks.items():
        spaces = run.marked(mark)["spaces"]
        for word, held_bytes in held.items():
            space = SPACES[word].format(driver)
            expect_equal(f"{space} at {mark!r}", spaces[space]["live_bytes"], held_bytes)
    return f"{len(marks)} times compared"


def counting(what: str):
    """A check that runs one of the program's functions and compares its marks."""

    def check(lab: Lab, driver: str) -> str:
        return check_marks(lab.must(CALLS, driver, what), driver)

    return check


def same_results(lab: Lab, driver: str) -> str:
    """The driver returns the same results as without the recorder."""
    plain = lab.must(CALLS, driver, "contents", recorded=False).facts()
    expect_equal("with the recorder", lab.must(CALLS, driver, "contents").facts(), plain)
    expect(plain["same"], "even without the recorder another content comes out")
    return "contents, and the code of a failure"


def kernels(lab: Lab, driver: str) -> str:
    expect(lab.must(CALLS, driver, "kernels").facts()["same"], "another result")
    return "a kernel of PTX"


def forked(lab: Lab, driver: str) -> str:
    run = lab.must(CALLS, driver, "forked")
    expect_equal("the child's status", run.facts()["child_status"], 0)
    return check_marks(run, driver)


def fill(lab: Lab, driver: str) -> str:
    """The device is filled: the bundle names the request, the holders and the device's memory."""
    run = filled(lab, driver)
    said, shown = run.facts(), run.failure(ALLOCATE[driver])
    expect_equal("verdict", shown["verdict"]["code"], "device_out_of_memory")
    expect_equal("size of the request", shown["request"]["size"], said["step"])
    expect_equal("space of the request", shown["request"]["space"], driver)
    expect(names_line(shown["request"]["stack"], CALLS, "take"), "the line that asked is not named")
    top = next(holder for holder in shown["holders"] if holder["space"] == driver)
    expect(names_line(top["stack"], CALLS, "fill"), "the line that holds the most is not named")
    device = run.device(shown, driver)
    expect_equal("bytes of the device", device["total_bytes"], said["total"])
    expect(device["free_bytes"] < said["step"], f"{size(device['free_bytes'])} free, but refused")
    check_marks(run, driver)
    return f"{size(run.marks()['full']['device'])}; {shown['verdict']['summary']}"


def recover(lab: Lab, driver: str) -> str:
    """A program that frees memory and retries has recovered."""
    run = filled(lab, driver)
    expect_equal("asked again", run.facts()["again"], 0)
    expect_equal("outcome", run.failure(ALLOCATE[driver])["outcome"], "recovered")
    return "refused, freed, served"


def filled(lab: Lab, driver: str) -> Run:
    if driver not in lab.fills:
        lab.fills[driver] = lab.must(CALLS, driver, "fill")
    run = lab.fills[driver]
    expect(run.facts()["refused"], f"never refused: {run.facts()}")
    return run


def refused_context(lab: Lab, driver: str) -> str:
    """A context that does not fit is an after-shock of the full device."""
    if driver != "cuda":
        raise Skipped("this driver makes no contexts by name")
    run = lab.must(CALLS, driver, "context_on_full")
    result = run.facts()["context_result"]
    if result != 2:
        raise Skipped(f"a new context on the full device gave {result}, not out of memory")
    aftershocks = run.failure(ALLOCATE[driver])["request"]["aftershocks"]["count"]
    expect(aftershocks > 0, "the refused context was not recorded")
    return f"{aftershocks} after the first refusal"


def exceed(lab: Lab, driver: str) -> str:
    """A single block larger than the device, which ends the program."""
    run = lab.must(CALLS, driver, "exceed", exit_code=3)
    expect_equal("result", run.facts()["result"], 2)
    shown = run.failure(ALLOCATE[driver])
    expect_equal("verdict", shown["verdict"]["code"], "device_out_of_memory")
    expect_equal("outcome", shown["outcome"], "exited 3")
    return shown["verdict"]["summary"]


def limit(lab: Lab, driver: str) -> str:
    """--limit-gpu fails a call before the driver does, with the driver's code."""
    step = filled(lab, driver).facts()["step"]
    run = lab.must(CALLS, driver, "fill", 8 * step, OOMREC_LIMIT_GPU=str(5 * step // 2))
    expect(run.facts()["refused"], f"not refused: {run.facts()}")
    expect_equal("held when it was refused", run.marks()["full"]["device"], 2 * step)
    shown = run.failure(ALLOCATE[driver])
    expect_equal("verdict", shown["verdict"]["code"], "device_limit")
    check_marks(run, driver)
    return shown["verdict"]["summary"]


def other_processes(lab: Lab, driver: str) -> str:
    """The device's other processes, according to NVML, are named in a bundle of `oomrec run`."""
    if driver != "cuda":
        raise Skipped("NVML knows NVIDIA's devices only")
    with subprocess.Popen(
        [lab.python, str(PROGRAMS / CALLS), driver, "hold"],
        env=lab.environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        try:
            other.stdout.readline()  # it has allocated
            processes = lab.must("other_processes.py", recorded=False).facts()["processes"]
            if not processes:
                raise Skipped("NVML lists no process here, as in many containers")
            program = [lab.python, str(PROGRAMS / CALLS), driver, "exceed"]
            run = lab.must(
                lab.build / "oomrec", "run", "--", *program,
                recorded=False, exit_code=3, **lab.command_environment(),
            )  # fmt: skip
            shown = json.dumps(run.failure())
            missing = [pid for pid in processes if f'"pid": {pid}' not in shown]
            expect(not missing, f"not shown: processes {missing}")
        finally:
            other.stdin.close()
    return f"processes {processes} are named"


def cost(lab: Lab, driver: str) -> str:
    with_us = lab.must(CALLS, driver, "cost").facts()["pair_ns"]
    without = lab.must(CALLS, driver, "cost", recorded=False).facts()["pair_ns"]
    return f"{with_us / 1000:.1f} µs an allocation and its release, {without / 1000:.1f} without us"


# The checks by name.
CHECKS = {
    "same results as without the recorder": same_results,
    "blocks: plain, managed, pitched, host": counting("blocks"),
    "every second of many blocks freed": counting("fragments"),
    "stream-ordered memory and pools": counting("pools"),
    "virtual memory, mapped twice": counting("virtual_memory"),
    "a captured graph with memory": counting("graphs"),
    "a context that ends": counting("contexts"),
    "two devices": counting("devices"),
    "eight threads": counting("threads"),
    "a forked child": forked,
    "a kernel": kernels,
    "fill the device": fill,
    "recover from it": recover,
    "a refused context": refused_context,
    "exceed it in one piece": exceed,
    "--limit-gpu": limit,
    "other processes on the device": other_processes,
    "cost": cost,
}
