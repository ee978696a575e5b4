"""Profilers of functions and blocks, of a GPU and of the host."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from framework_modules import MIB
from oomrec import gpumemprof
from oomrec._impl.thread import subscribe
from oomrec.gpumemprof import CPUMemoryProfiler, GPUMemoryProfiler, context_profiler
from oomrec.gpumemprof._periodic import PeriodicCall
from python_programs import in_a_child, programs
from watching import wait_for


def test_a_function_on_a_gpu(torch):
    profiler = GPUMemoryProfiler(device=0, collect_stack_traces=True)

    def step(size, *, factor):
        torch.state["allocated_bytes.all.peak"] = (
            torch.state["allocated_bytes.all.current"] + 2 * size
        )
        torch.state["allocated_bytes.all.current"] += size
        kept.append(torch.Tensor())
        return size * factor

    kept = []
    result = profiler.profile_function(step, 64 * MIB, factor=2)
    assert (result.function_name, result.call_count) == ("step", 1)
    assert (result.memory_allocated, result.memory_freed) == (64 * MIB, 0)
    assert result.memory_diff() == 64 * MIB
    assert result.peak_memory_usage() == result.memory_peak.allocated_memory == 428 * MIB
    assert (result.tensors_created, result.tensors_deleted) == (1, 0)
    assert result.memory_before.operation == "before_step"
    assert "test_a_function_on_a_gpu" in result.memory_before.stack_trace
    assert ("reset", 0) in torch.calls and ("synchronize", 0) in torch.calls
    assert set(result.to_dict()) >= {"memory_diff", "peak_memory_usage", "memory_before"}


def test_a_failing_function_still_has_a_result(torch):
    profiler = GPUMemoryProfiler(device="cuda:0")
    with pytest.raises(ZeroDivisionError):
        profiler.profile_function(lambda: 1 / 0)
    assert len(profiler.results) == 1


def test_a_summary_has_every_field(torch):
    profiler = GPUMemoryProfiler(device=0, track_tensors=False)
    for _ in range(2):
        with profiler.profile_context("block"):
            torch.state["allocated_bytes.all.current"] += 10 * MIB
    with profiler.profile_context("freeing"):
        torch.state["allocated_bytes.all.current"] -= 5 * MIB
    summary = profiler.get_summary()
    assert set(summary) == set(
        """device total_functions_profiled total_function_calls total_execution_time
        total_memory_allocated total_memory_freed net_memory_change peak_memory_usage
        current_memory_usage baseline_memory_usage memory_change_from_baseline function_summaries
        monitoring_active snapshots_collected""".split()
    )
    assert (summary["total_functions_profiled"], summary["total_function_calls"]) == (2, 3)
    assert summary["net_memory_change"] == summary["memory_change_from_baseline"] == 15 * MIB
    assert summary["total_memory_freed"] == 5 * MIB
    block = summary["function_summaries"]["block"]
    assert set(block) == set(
        "call_count total_time avg_time total_memory_allocated avg_memory_allocated peak_memory".split()
    )
    assert (block["call_count"], block["avg_memory_allocated"]) == (2, 10 * MIB)
    profiler.clear_results()
    assert profiler.get_summary()["total_function_calls"] == 0


def test_monitoring():
    profiler = GPUMemoryProfiler(device="cpu")
    profiler.start_monitoring(0.01)
    profiler.start_monitoring()
    assert profiler.get_summary()["monitoring_active"]
    wait_for(lambda: len(profiler.snapshots) >= 3)
    profiler.stop_monitoring()
    assert len(profiler.snapshots) >= 3
    first = profiler.snapshots[0]  # two readings, while other threads run
    assert (
        first.cpu_memory == pytest.approx(first.allocated_memory, abs=4 << 20)
        and first.cpu_memory > 4 << 20
    )
    assert not profiler.get_summary()["monitoring_active"]


class Crowded(list):
    """A list of results in which each result is followed by one of another thread."""

    def append(self, result):
        self += [result]

    def __iadd__(self, results):
        self.extend([*results, "another thread's"])
        return self


def test_a_stop_waits_for_the_call_in_progress():
    began, taken = threading.Event(), []

    def take():
        began.set()
        time.sleep(0.2)
        taken.append(time.monotonic())

    calls = PeriodicCall()
    calls.start(take, 0.01)
    assert began.wait(30)
    calls.stop()
    seen = len(taken)
    assert seen >= 1 and not calls.is_running
    time.sleep(0.3)
    assert len(taken) == seen


def test_a_call_may_stop_its_own_repetition():
    stopped = threading.Event()
    calls = PeriodicCall()

    def once():
        calls.stop()
        stopped.set()

    calls.start(once, 0.01)
    assert stopped.wait(30) and not calls.is_running


def test_a_first_call_before_start_returns_may_stop_its_repetition(monkeypatch):
    """A starved program: the package's thread calls while `start` has not gone on."""
    stopped, calls = threading.Event(), PeriodicCall()

    def starved(callback, interval_s):
        subscription = subscribe(callback, interval_s)
        time.sleep(0.3)
        return subscription

    monkeypatch.setattr("oomrec.gpumemprof._periodic.subscribe", starved)
    calls.start(lambda: (calls.stop(), stopped.set()), 0.01)
    assert stopped.wait(30) and not calls.is_running


@pytest.mark.parametrize("made", [lambda: GPUMemoryProfiler(device="cpu"), CPUMemoryProfiler])
def test_profiling_keeps_a_functions_result(made):
    profiler = made()
    profiler.results = Crowded()
    result = profiler.profile_function(lambda: None)
    assert profiler.results == [result, "another thread's"]


def test_as_a_context_manager_a_profiler_only_ends_its_monitoring():
    with GPUMemoryProfiler(device="cpu") as profiler:
        assert not profiler.get_summary()["monitoring_active"]
        profiler.start_monitoring(0.01)  # at the requested interval
        wait_for(lambda: len(profiler.snapshots) >= 5)
    assert not profiler.get_summary()["monitoring_active"]


@pytest.mark.parametrize("made", [lambda: GPUMemoryProfiler(device="cpu"), CPUMemoryProfiler])
def test_a_forked_child_is_not_monitored(made):
    """In the child of a program that uses a GPU, every GPU query would fail."""
    profiler = made()
    profiler.start_monitoring(0.001)

    def work():
        before = len(profiler.snapshots)
        other = CPUMemoryProfiler()
        other.start_monitoring(0.001)  # the thread restarts
        wait_for(lambda: len(other.snapshots) > 2)
        assert len(profiler.snapshots) == before
        profiler.start_monitoring(0.001)
        wait_for(lambda: len(profiler.snapshots) > before)

    assert in_a_child(work) == 0
    profiler.stop_monitoring()


@pytest.fixture
def no_profilers(monkeypatch):
    monkeypatch.setattr(context_profiler, "_profilers", {})


def test_the_summary_covers_the_named_device(no_profilers, torch):
    @gpumemprof.profile_function(device="cuda:1")
    def step():
        torch.state["allocated_bytes.all.current"] += 10 * MIB

    step()
    with gpumemprof.profile_context("block"):  # the current profiler, which is the same
        step()
    summary = context_profiler.get_summary()
    assert set(summary["function_summaries"]) == {"step", "block"}
    assert len(context_profiler.get_profile_results()) == 3
    context_profiler.clear_results()
    assert context_profiler.get_summary()["total_function_calls"] == 0


def test_the_summary_when_only_another_device_was_named(no_profilers, torch):
    with gpumemprof.profile_context("block", device=0):
        pass
    assert set(context_profiler.get_summary()["function_summaries"]) == {"block"}


def test_decorators_and_blocks_use_the_host_profiler(no_profilers):
    """As in programs that fall back to the host without a GPU."""
    profiler = CPUMemoryProfiler()

    @gpumemprof.profile_function(profiler=profiler)
    def step():
        return "result"

    assert step() == "result"
    with gpumemprof.profile_context("block", profiler=profiler):
        pass
    context_profiler.set_global_profiler(profiler)
    with gpumemprof.profile_context("global"):
        pass
    assert [each.name for each in profiler.results] == ["step", "block", "global"]
    assert context_profiler.get_profile_results() == profiler.results
    assert context_profiler.get_summary()["mode"] == "cpu"
    assert context_profiler.get_global_profiler("cpu") is not profiler


def test_decorators_and_blocks_share_a_profiler(no_frameworks):
    @gpumemprof.profile_function
    def plain(value):
        """A docstring to keep."""
        return value + 1

    @gpumemprof.profile_function(name="named", device="cpu")
    def other():
        return "result"

    context_profiler.clear_results()
    assert plain(1) == 2 and other() == "result"
    assert plain.__doc__ == "A docstring to keep." and plain.__name__ == "plain"
    with gpumemprof.profile_context("block") as profiler:
        assert profiler is context_profiler.get_global_profiler()
    names = [result.function_name for result in context_profiler.get_profile_results()]
    assert names == ["plain", "named", "block"]
    assert len(context_profiler.get_profile_results(limit=1)) == 1


@pytest.mark.parametrize(
    ("made", "peak"),
    [
        ("GPUMemoryProfiler(device='cpu')", "peak_memory_usage()"),
        ("CPUMemoryProfiler()", "peak_rss"),
    ],
)
def test_the_host_profiler_sees_a_peak_within_a_block(plain, build_dir, made, peak):
    """In a process that was never as large before, since the kernel's peak covers its whole life."""
    run = programs(plain, build_dir)(
        f"""
        from oomrec.gpumemprof import CPUMemoryProfiler, GPUMemoryProfiler

        profiler = {made}
        results = [profiler.profile_function(lambda: bytearray(b"x" * (200 << 20)) and None)]
        results.append(profiler.profile_function(lambda: None))
        print([result.memory_diff() < 50 << 20 for result in results])
        print([result.{peak} > 200 << 20 for result in results])
        """
    )
    assert run.stdout == "[True, True]\n[True, False]\n", str(run)


def test_the_host_profiler_sees_a_brief_peak():
    gc.collect()
    profiler = CPUMemoryProfiler()

    def moment():
        return len(bytearray(b"x" * (300 * MIB)))

    result = profiler.profile_function(moment)
    assert result.name == "moment" and result.duration > 0
    assert result.memory_diff() < 100 * MIB  # it was freed
    assert result.peak_rss >= result.snapshot_before.rss
    assert profiler.get_summary()["mode"] == "cpu"
    assert set(result.to_dict()) == {
        "name", "duration", "memory_diff", "peak_rss", "before", "after",
    }  # fmt: skip
    with pytest.raises(KeyError), profiler.profile_context("fails"):
        raise KeyError
    assert [each.name for each in profiler.results] == ["moment", "fails"]
    profiler.clear_results()
    assert profiler.results == []
