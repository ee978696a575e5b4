"""Callbacks near a limit, and the thread that calls them.

What is measured in time is tried again, on a machine that others use, until it holds once.
"""

from __future__ import annotations

from statistics import median

import pytest
from python_programs import programs
from watching import eventually


@pytest.fixture
def recorded(preload, build_dir):
    run = programs(preload, build_dir)
    return lambda text, *args, env=None, **options: run(
        text, *args, env={"OOMREC_LIMIT": "256M", **(env or {})}, **options
    )


@pytest.fixture
def unrecorded(plain, build_dir):
    return programs(plain, build_dir)


def test_a_callback_comes_at_once(recorded):
    @eventually
    def most_come_at_once():
        run = recorded(
            """
            import time, oomrec
            came = {}
            def watch(percent):
                def callback(usage):
                    came[percent] = time.monotonic(), usage.used_of_limit * 100 // usage.limit
                return oomrec.on_near_limit(callback, percent)
            percents = range(20, 90, 10)
            watches = [watch(percent) for percent in percents]
            time.sleep(0.1)
            held = [bytes((256 << 20) // 100 * 12)]  # unlike a bytearray it is calloc'ed
            for percent in percents:
                before = time.monotonic()
                held.append(bytes((256 << 20) // 10))
                while percent not in came and time.monotonic() < before + 30:
                    time.sleep(0.001)
                print((came[percent][0] - before) * 1000, percent <= came[percent][1] < percent + 10)
            """
        )
        lines = [line.split() for line in run.stdout.splitlines()]
        assert len(lines) == 7 and all(seen == "True" for _, seen in lines), str(run)
        # Woken by an event: by the clock alone it would check once a second. Not every callback is as
        # fast, because the machine may be busy.
        assert sorted(float(took_ms) for took_ms, _ in lines)[2] < 100, str(run)


def test_clearing_a_cache_in_time_saves_the_program(recorded):
    run = recorded(
        """
        import time, oomrec
        cache, cleared = [], []
        def shed(usage):
            cleared.append(len(cache))
            cache.clear()
        watch = oomrec.on_near_limit(shed, percent=85)
        for step in range(300):  # five times the limit in total
            cache.append(bytearray(4 << 20))
            until = time.monotonic() + 10
            while len(cache) >= 56 and time.monotonic() < until: time.sleep(0.001)
        print(len(cleared))
        """
    )
    assert run.exit_code == 0 and 4 <= int(run.stdout) <= 7, str(run)


def test_a_threshold_crossed_right_after_another_is_not_missed(recorded):
    @eventually
    def most_come_in_time():
        run = recorded(
            """
            import time, oomrec
            came = []
            for round in range(9):
                watch = oomrec.on_near_limit(lambda usage: came.append(time.monotonic()), percent=60)
                before = time.monotonic()
                held = bytes(200 << 20)
                while not came and time.monotonic() < before + 30:
                    time.sleep(0.001)
                print((came[0] - before) * 1000)
                watch.cancel()
                del held
                came.clear()
                time.sleep(0.05)
            """
        )
        took_ms = [float(line) for line in run.stdout.split()]
        assert len(took_ms) == 9 and median(took_ms) < 300, str(run)  # a second if it was missed


def test_a_callback_is_called_again_after_memory_fell(recorded):
    run = recorded(
        """
        import time, oomrec
        called = []
        watch = oomrec.on_near_limit(lambda usage: called.append(usage.limit_kind), percent=50)
        def hold(percent):
            return bytearray((256 << 20) * percent // 100)
        def wait_for(count, seconds=30):
            until = time.monotonic() + seconds
            while len(called) < count and time.monotonic() < until: time.sleep(0.01)
            return len(called)
        most = hold(45)
        for _ in range(5):  # back and forth around the threshold
            rest = hold(6); time.sleep(0.02); del rest; time.sleep(0.02)
        print(wait_for(1), end=" ")
        most = None
        for _ in range(10):  # after it noticed that memory fell
            time.sleep(1.1)
            most = hold(60)
            if wait_for(2, 1) == 2: break
            most = None
        print(len(called), end=" ")
        watch.cancel(); watch.cancel()
        del most
        time.sleep(1.2)
        most = hold(60); time.sleep(0.1)
        print(len(called), set(called))
        """
    )
    assert run.stdout == "1 2 2 {'soft'}\n", str(run)


def test_an_exception_in_a_callback_is_reported_once(recorded):
    run = recorded(
        """
        import sys, time, oomrec
        from oomrec._impl.thread import subscribe
        called = []
        def first():
            called.append("first")
            raise ValueError("the callback's own")
        def second():
            called.append("second")
            if called.count("second") == 2: sys.exit(7)
        one, two = subscribe(first, 0.01), subscribe(second, 0.01)
        until = time.monotonic() + 30
        while len(called) < 12 and time.monotonic() < until: time.sleep(0.01)
        one.cancel(); two.cancel()
        time.sleep(0.05)
        count = len(called)
        time.sleep(0.05)
        print(count >= 12, count == len(called))
        """
    )
    assert run.stdout == "True True\n" and run.exit_code == 0, str(run)
    assert run.stderr.count("ValueError: the callback's own") == 1
    assert run.stderr.count("oomrec: first, called by oomrec's thread, raised an exception") == 1
    assert run.stderr.count("SystemExit: 7") == 1


def test_a_short_interval_does_not_wait_for_a_long_one(recorded):
    @eventually
    def calls_are_on_time():
        run = recorded(
            """
            import time, oomrec
            from oomrec._impl.thread import subscribe
            long = subscribe(lambda: None, 3600)
            time.sleep(0.1)
            began = time.monotonic()
            came = []
            short = subscribe(lambda: came.append(time.monotonic() - began), 0.05)
            while len(came) < 24 and time.monotonic() < began + 30: time.sleep(0.05)
            short.cancel(); long.cancel()
            off = sorted(abs(moment - 0.05 * round(moment / 0.05)) for moment in came)
            print(len(came), (time.monotonic() - began) / 0.05, off[5] * 1000)
            """
        )
        count, steps, off_ms = map(float, run.stdout.split())
        # At most one call per step. Six of 24 are close to a step; one would be expected by chance.
        assert 24 <= count <= steps + 1 and off_ms < 3, str(run)


def test_sleeping_costs_nothing(recorded):
    """A callback ten times a second and one near the limit take less than 1 % of a core."""

    @eventually
    def takes_a_hundredth():
        run = recorded(
            """
            import time, oomrec
            from oomrec._impl.thread import subscribe
            subscribe(oomrec.usage, 0.1)
            oomrec.on_near_limit(print)
            time.sleep(0.2)
            before, began = time.process_time(), time.monotonic()
            time.sleep(2)
            print((time.process_time() - before) / (time.monotonic() - began) * 100)
            """
        )
        assert float(run.stdout) < 1, str(run)


def test_a_forked_child_gets_callbacks_once_it_uses_the_package(recorded):
    run = recorded(
        """
        import os, threading, time, oomrec
        called = []
        watch = oomrec.on_near_limit(lambda usage: called.append(os.getpid()), percent=50)
        def threads(): return [each.name for each in threading.enumerate()]
        child = os.fork()
        if child == 0:
            before = threads()
            oomrec.mark("in the child")
            held = bytearray(160 << 20)
            until = time.monotonic() + 30
            while not called and time.monotonic() < until: time.sleep(0.01)
            print(before, threads(), called == [os.getpid()], flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(threads(), called)
        """
    )
    assert run.stdout == (
        "['MainThread'] ['MainThread', 'oomrec'] True\n['MainThread', 'oomrec'] []\n"
    ), str(run)


def test_forks_while_subscriptions_come_and_go(recorded):
    """No child inherits a lock that is never released."""
    run = recorded(
        """
        import os, threading, oomrec
        from oomrec._impl.thread import subscribe
        oomrec.usage()  # import first: a fork during an import is out of scope
        stop = threading.Event()
        def churn():
            while not stop.is_set():
                subscribe(lambda: None, 0.001).cancel()
        churning = threading.Thread(target=churn)
        churning.start()
        for _ in range(50):
            child = os.fork()
            if child == 0:
                subscribe(lambda: None, 0.01).cancel()
                oomrec.usage()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        churning.join()
        print("done")
        """,
        timeout=300,
    )
    assert run.stdout == "done\n", str(run)


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.12", "3.13"])
def test_the_interpreter_ends_while_callbacks_run(recorded, python, version):
    run = recorded(
        """
        import oomrec, time
        from oomrec._impl.thread import subscribe
        for _ in range(20):
            subscribe(lambda: [oomrec.usage() for _ in range(5)], 0.001)
        oomrec.on_near_limit(print)
        time.sleep(0.05)
        print("end")
        """,
        python=python(version),
    )
    assert (run.stdout, run.stderr, run.exit_code) == ("end\n", "", 0), str(run)


def test_without_the_recorder_the_thread_polls(unrecorded):
    run = unrecorded(
        """
        import resource, time, oomrec
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, -1))
        called = []
        watch = oomrec.on_near_limit(lambda usage: called.append(usage.limit_kind), percent=70)
        time.sleep(0.3)
        held = bytearray(700 << 20)
        began = time.monotonic()
        while not called and time.monotonic() < began + 30: time.sleep(0.001)
        print(called)
        """
    )
    assert run.stdout == "['rlimit_as']\n", str(run)


def test_intervals_work_without_the_library(unrecorded):
    run = unrecorded(
        """
        import time, oomrec
        from oomrec._impl.thread import subscribe
        came = []
        watch = oomrec.on_near_limit(print)
        began = time.monotonic()
        ticks = subscribe(lambda: came.append(1), 0.02)
        while len(came) < 10 and time.monotonic() < began + 30: time.sleep(0.02)
        ticks.cancel(); watch.cancel()
        print(10 <= len(came) <= (time.monotonic() - began) / 0.02 + 1)
        """,
        env={"OOMREC_LIBRARY": "/nowhere/liboomrec.so"},
    )
    assert run.stdout == "True\n" and run.stderr == "", str(run)


def test_invalid_percentages(recorded):
    run = recorded(
        """
        import oomrec
        for percent in (0, 101, -5):
            try:
                oomrec.on_near_limit(print, percent)
            except ValueError as error:
                print(error)
        """
    )
    assert run.stdout.splitlines() == [
        f"percent is a number from 1 to 100, not {percent}" for percent in (0, 101, -5)
    ]
