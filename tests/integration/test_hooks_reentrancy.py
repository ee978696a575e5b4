"""Failures in contexts where waiting would deadlock: each gives a bundle or a clean error.

The runner's timeout detects a deadlock.
"""

import signal

import pytest

# Contexts: the failing thread holds its own locks and stdio's, the loader's or the allocator's; is in a
# signal handler on an alternate stack, has 16 KiB of stack, or is ending, or its process is ending.
CONTEXTS = [
    "main", "locks", "loader", "allocator", "handler", "small_stack", "tls", "exit", "fork", "vfork",
]  # fmt: skip
SEGV, ABRT = 128 + signal.SIGSEGV, 128 + signal.SIGABRT


def codes_of(oomrec, run) -> list[str]:
    return [oomrec.json("show", bundle)["verdict"]["code"] for bundle in run.bundles()]


def assert_reported(oomrec, run, context: str, code: str) -> None:
    """A request by a handler that interrupted an allocation counts as part of it, and has no bundle."""
    codes = codes_of(oomrec, run)
    assert codes == [code] or (context == "allocator" and codes == []), str(run)


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_null_dereference_in_an_awkward_context(oomrec, plain, preload, victim, context):
    without = plain(victim("awkward"), context, "use_null")
    run = preload(victim("awkward"), context, "use_null")
    assert run.exit_code == without.exit_code == SEGV, str(run)
    assert_reported(
        oomrec, run, context, "request_too_large" if context == "vfork" else "null_dereference"
    )


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("action, exit_code", [("continue", 0), ("exit=7", 7), ("abort", ABRT)])
def test_the_on_oom_action_in_an_awkward_context(
    oomrec, preload, victim, tmp_path, context, action, exit_code
):
    log = tmp_path / "log"
    run = preload(
        victim("awkward"), context, "refuse",
        env={"OOMREC_ON_OOM": action, "OOMREC_ON_OOM_EXEC": f"echo %p >> {log}"},
    )  # fmt: skip
    assert run.exit_code == exit_code, str(run)
    assert len(log.read_text().splitlines()) == 1
    assert "request_too_large" in codes_of(oomrec, run), str(run)


@pytest.mark.parametrize("context", [context for context in CONTEXTS if context != "vfork"])
def test_nearing_the_limit_in_an_awkward_context(oomrec, preload, victim, context):
    run = preload(
        victim("awkward"), context, "grow", env={"OOMREC_LIMIT": "100M", "OOMREC_WARN": "90"}
    )
    assert run.exit_code == 0, str(run)
    assert_reported(oomrec, run, context, "near_limit")
