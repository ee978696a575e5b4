"""Many threads that start together, many stacks that take turns: the recorder's cost stays in bounds.

The bounds are on processor time of the program, and far above what is usual: without the mechanisms that they
protect, each of these programs takes from ten seconds to minutes.
"""

from __future__ import annotations

import resource

import pytest

MODES = ["sampled", "exact"]


def processor_s(run) -> tuple:
    """run(): its result, and the processor time of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1000, 5000])
def test_threads_that_start_together(plain, preload, victim, threads, mode):
    """They wait for the same locks, and each needs the bounds of its stack."""
    alone, alone_s = processor_s(lambda: plain(victim("meets"), threads))
    if alone.exit_code != 0:
        pytest.skip(f"this machine does not start {threads} threads")
    run, recorded_s = processor_s(
        lambda: preload(victim("meets"), threads, env={"OOMREC_MODE": mode})
    )
    assert (run.exit_code, run.stdout, run.stderr) == (0, "met\n", "")
    assert recorded_s < 3 * alone_s + 1 + threads * 1e-3, (alone_s, recorded_s)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coroutines", [4, 100, 2000])
def test_stacks_that_take_turns(oomrec, plain, preload, victim, coroutines, mode):
    """Each allocates a recorded block when its turn comes, and has its own stack in the bundle."""
    words = [victim("many_stacks"), coroutines, 20_000]
    _, alone_s = processor_s(lambda: plain(*words))
    run, recorded_s = processor_s(lambda: preload(*words, env={"OOMREC_MODE": mode}))
    assert (run.exit_code, run.stdout) == (0, "done\n"), str(run)
    assert recorded_s < 3 * alone_s + 2, (alone_s, recorded_s)
    request = oomrec.json("show", run.only_bundle())["request"]
    functions = [frame["function"] for frame in request["stack"]]
    assert functions[:2] == ["in_coroutine", "run"], functions
