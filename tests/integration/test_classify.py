"""`classify_oom_exception`: out-of-memory exceptions of many libraries, and unrelated ones."""

from __future__ import annotations

import multiprocessing
import operator
import os
import re
import sys
from pathlib import Path

import exception_cases
import pytest
from conftest import SOURCE
from oomrec._impl import oom_children, oom_table
from oomrec.classify import OOMExceptionClassification, classify_oom_exception

PACKAGE = SOURCE / "tools" / "python"
NOT = OOMExceptionClassification(False, None)


def oom(reason: str) -> OOMExceptionClassification:
    return OOMExceptionClassification(True, reason)


def exception_like(
    package: str, name: str, text: str, base: type = Exception, **attributes
) -> BaseException:
    """An exception with a library's names: the classification reads nothing else."""
    made = type(
        name, (base,), {"__module__": f"{package}.inner" if package != "builtins" else package}
    )
    error = made(text)
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


KNOWN = [*exception_cases.TYPES, *exception_cases.CODES, *exception_cases.TEXTS]


@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_an_out_of_memory_exception(case):
    assert classify_oom_exception(case.exception()) == oom(case.reason)


@pytest.mark.parametrize("case", exception_cases.SOMETHING_ELSE, ids=str)
def test_an_unrelated_exception(case):
    assert classify_oom_exception(case.exception()) == NOT


@pytest.mark.parametrize("case", exception_cases.TEXTS, ids=str)
def test_a_message_matches_from_its_start_and_for_its_library(case):
    in_a_sentence = case._replace(text=f"it said {case.text}")
    assert classify_oom_exception(in_a_sentence.exception()) == NOT
    for error in (KeyError(case.text), AssertionError(case.text), Exception(case.text)):
        assert classify_oom_exception(error) == NOT, error


def test_each_row_of_the_table_has_a_case():
    """A row without a case would be untested."""
    rows = [*oom_table.TYPES, *oom_table.CODES, *oom_table.TEXTS]
    assert {row.reason for row in rows} == {case.reason for case in KNOWN}


def test_the_messages_on_the_page_match_their_rows():
    for row in oom_table.TEXTS:
        for name in row.types:
            known = exception_like("builtins", name, row.example)
            assert classify_oom_exception(known) == oom(row.reason), name


def raised(cause: BaseException, new: BaseException, how: str) -> BaseException:
    try:
        try:
            raise cause
        except type(cause):
            if how == "from":
                raise new from cause
            if how == "from None":
                raise new from None
            raise new  # noqa: B904
    except type(new) as error:
        return error


def test_causes_and_contexts():
    for how in ("from", "during"):
        assert classify_oom_exception(raised(MemoryError(), ValueError(), how)) == oom(
            "MemoryError"
        )
    assert classify_oom_exception(raised(MemoryError(), ValueError(), "from None")) == NOT
    deep = MemoryError()
    for _ in range(500):
        deep = raised(deep, ValueError(), "from")
    assert classify_oom_exception(deep) == oom("MemoryError")


def test_a_cycle_of_causes_terminates():
    first, second = ValueError(1), ValueError(2)
    first.__cause__, second.__cause__ = second, first
    assert classify_oom_exception(first) == NOT
    second.__context__, second.__suppress_context__ = MemoryError(), False
    assert classify_oom_exception(first) == oom("MemoryError")


def test_members_of_groups():
    """Python's own ExceptionGroup, or the one of the package exceptiongroup, recognized by its names."""
    base = type("BaseExceptionGroup", (BaseException,), {"__module__": "exceptiongroup"})
    backport = type("ExceptionGroup", (base,), {"__module__": "exceptiongroup"})

    def of_backport(text, members):
        group = backport(text)
        group.exceptions = tuple(members)
        return group

    kinds = [of_backport]
    if sys.version_info >= (3, 11):
        kinds.append(ExceptionGroup)  # noqa: F821
    for kind in kinds:
        assert classify_oom_exception(kind("one", [ValueError()])) == NOT
        group = kind("outer", [KeyError(), kind("inner", [ValueError(), MemoryError()])])
        assert classify_oom_exception(group) == oom("MemoryError")


def test_an_exception_that_cannot_be_printed():
    class Mute(RuntimeError):
        def __str__(self):
            raise MemoryError

    assert classify_oom_exception(Mute()) == NOT


def test_an_exception_from_another_process():
    """As multiprocessing re-raises it, and as PyTorch's workers do if they cannot rebuild the type."""
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(MemoryError) as caught:
        pool.apply_async(operator.mul, ([0], 2**61)).get(60)
    assert classify_oom_exception(caught.value) == oom("MemoryError")
    printed = (
        "Caught {} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "worker.py", line 309, in _worker_loop\n    data = fetcher.fetch(index)\n{}\n'
    )
    lines = {
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 2.00 EiB": "numpy.ArrayMemoryError",
        "MemoryError": "MemoryError",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB": "torch.cuda.OutOfMemoryError",
        "OSError: [Errno 12] Cannot allocate memory": "errno:ENOMEM",
        "RuntimeError: can't start new thread": "message_pattern:can't start new thread",
        "RuntimeError: seat allocation failed for user 7": None,
        "KeyError: 'out of memory'": None,
    }
    for line, reason in lines.items():
        error = RuntimeError(printed.format(line.split(":")[0], line))
        assert classify_oom_exception(error) == OOMExceptionClassification(
            reason is not None, reason
        )


@pytest.mark.needs_numpy
def test_real_numpy():
    import numpy

    with pytest.raises(MemoryError) as caught:
        numpy.empty(2**58)
    assert classify_oom_exception(caught.value) == oom("numpy.ArrayMemoryError")


@pytest.mark.full
@pytest.mark.needs_module("jax")
def test_real_jax():
    import jax.numpy

    with pytest.raises(RuntimeError) as caught:
        jax.numpy.ones(1 << 45).block_until_ready()
    assert classify_oom_exception(caught.value) == oom("message_pattern:RESOURCE_EXHAUSTED")


FAILURES = {
    "mmap": ("import mmap; mmap.mmap(-1, 1 << 40)", "errno:ENOMEM"),
    "thread": (
        "import threading; threading.stack_size(1 << 40); threading.Thread(target=print).start()",
        "message_pattern:can't start new thread",
    ),
}
TORCH_FAILURES = {
    "torch": ("import torch; torch.empty(1 << 40)", "message_pattern:DefaultCPUAllocator"),
    "torch, bad_alloc": (
        # Too large a C++ vector: std::bad_alloc, raised by torch.
        "import torch; torch.ones(1).expand(1 << 38).tolist()",
        "MemoryError",
    ),
}


FAIL_ONE_BY_ONE = """
import sys
from oomrec.classify import classify_oom_exception
for statement in sys.argv[1:]:
    try:
        exec(statement)
    except Exception as error:
        print(classify_oom_exception(error).reason)
"""


@pytest.mark.parametrize(
    "failures",
    [FAILURES, pytest.param(TORCH_FAILURES, marks=pytest.mark.needs_torch)],
    ids=["python", "torch"],
)
def test_real_failures(preload, failures):
    statements, reasons = zip(*failures.values())
    env = {"PYTHONPATH": PACKAGE, "OOMREC_LIMIT": "2G", "OOMREC_MAX_DUMPS": "2"}
    run = preload("python3", "-c", FAIL_ONE_BY_ONE, *statements, env=env)
    assert run.stdout.splitlines() == list(reasons), str(run)


def classified(preload, build_dir, victim, *words, **options) -> str:
    environment = {
        "PYTHONPATH": PACKAGE,
        "OOMREC_COMMAND": build_dir / "oomrec",
        "OOMREC_WARN": "0",
    }
    run = preload(
        "python3", victim("python/classifies_workers.py"), *words, env=environment, **options
    )
    assert run.exit_code == 0, str(run)
    return run.stdout.strip()


WORKERS = [
    ("pool", "BrokenProcessPool"),
    ("process", "CalledProcessError"),
]


@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize("how, name", WORKERS)
def test_a_worker_that_the_kernel_killed_for_memory(preload, build_dir, victim, cgroup, how, name):
    group = cgroup("160M")
    said = classified(preload, build_dir, victim, how, "grow", preexec_fn=group.enter_exempt)
    assert group.kills() == 1
    expected = re.escape(f"{name} OOMExceptionClassification(is_oom=True, reason='child_process:")
    assert re.match(expected + "(cgroup_oom_kill|killed_near_limit)'", said), said


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_torch
def test_a_data_loader_worker_that_the_kernel_killed(preload, build_dir, victim, cgroup):
    """PyTorch notices by SIGCHLD or at its next poll, with a different message each time."""
    group = cgroup("1G")
    said = classified(preload, build_dir, victim, "loader", "grow", preexec_fn=group.enter_exempt)
    assert group.kills() == 1
    reasons = "message_pattern:DataLoader worker is killed by signal|child_process:"
    expected = r"RuntimeError OOMExceptionClassification\(is_oom=True, reason='(%s)" % reasons
    assert re.match(expected, said), said


@pytest.mark.parametrize("how, name", WORKERS)
def test_a_worker_that_another_process_killed(preload, build_dir, victim, how, name):
    said = classified(preload, build_dir, victim, how, "kill")
    assert said == f"{name} {NOT}"


@pytest.mark.parametrize("how, name", WORKERS)
def test_without_the_command_a_death_proves_nothing(preload, victim, how, name):
    said = classified(preload, Path("/nowhere"), victim, how, "kill")
    assert said == f"{name} {NOT}"


def test_exceptions_caused_by_a_childs_death(monkeypatch):
    """Each row of the table, with a bundle whose verdict is the kernel's kill."""
    asked = []

    def verdicts(pids):
        asked.append(pids)
        return iter([("exited", None), ("cgroup_oom_kill", "killed")])

    monkeypatch.setattr(oom_children, "_verdicts", verdicts)

    class Failure:
        exitcode, pid = -9, 77

    exceptions = {
        "BrokenProcessPool": exception_like("concurrent", "BrokenProcessPool", "terminated abruptly"),
        "KilledWorker": exception_like("distributed", "KilledWorker", "Attempted to run task"),
        "CalledProcessError": exception_like("subprocess", "CalledProcessError", "", returncode=137),
        "ProcessExitedException": exception_like("torch", "ProcessExitedException", "", exit_code=-9, error_pid=76),
        "ChildFailedError": exception_like("torch", "ChildFailedError", "", failures={0: Failure()}),
        "RuntimeError": RuntimeError("DataLoader worker (pid(s) 5, 6) exited unexpectedly"),
    }  # fmt: skip
    assert set(exceptions) == {row.name for row in oom_children.CHILDREN}
    for error in exceptions.values():
        assert classify_oom_exception(error) == oom("child_process:cgroup_oom_kill")
    assert asked == [None, None, None, {76}, {77}, {5, 6}]
    del asked[:]
    for error in (
        exception_like("subprocess", "CalledProcessError", "", returncode=1),
        exception_like("torch", "ProcessExitedException", "", exit_code=1, error_pid=76),
        RuntimeError("DataLoader worker (pid(s) ) exited unexpectedly"),
    ):
        assert classify_oom_exception(error) == NOT
    assert not asked


def cell(text: str) -> str:
    """The text as one cell of a Markdown table."""
    text = text.replace("\n", " ").replace("|", "\\|")
    return f"`{text}`" if "`" not in text else f"``{text}``"


def rows_of_page() -> str:
    lines = ["| exception | reason | text |", "| --- | --- | --- |"]
    for row in oom_table.TYPES:
        of_python = row.package == "builtins"
        name = row.names[0] if of_python else f"{row.package}: {row.names[0]}"
        lines.append(
            f"| {name} | {cell(row.reason)} | {cell(row.example) if row.example else ''} |"
        )
    for row in oom_table.CODES:
        name = row.name if row.package == "builtins" else f"{row.package}: {row.name}"
        codes = ", ".join(map(str, row.codes))
        lines.append(
            f"| {name} with {row.attribute} {codes} | {cell(row.reason)} | {cell(row.example)} |"
        )
    for row in oom_table.TEXTS:
        lines.append(f"| {', '.join(row.types)} | {cell(row.reason)} | {cell(row.example)} |")
    return "\n".join(lines)


def children_of_page() -> str:
    lines = ["| exception | what it says |", "| --- | --- |"]
    for row in oom_children.CHILDREN:
        name = row.name if row.package == "builtins" else f"{row.package}: {row.name}"
        lines.append(f"| {name} | {row.meaning} |")
    return "\n".join(lines)


def test_the_page_has_the_table():
    page = SOURCE / "docs" / "oom-exceptions.md"
    text = page.read_text()
    for name, lines in (("rows", rows_of_page()), ("children", children_of_page())):
        begin = text.index("\n", text.index(f"<!-- {name}: "))
        end = text.index(f"<!-- end of {name} -->")
        text = f"{text[:begin]}\n\n{lines}\n\n{text[end:]}"
    if os.environ.get("OOMREC_WRITE_GOLDEN"):
        page.write_text(text)
    assert page.read_text() == text, "OOMREC_WRITE_GOLDEN=1 pytest -k has_the_table rewrites it"
