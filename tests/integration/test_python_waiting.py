"""What a library's own threads allocate has the line of Python that waits for them, if it is certain which one that is.

So does what threads of Python allocate that run nothing but a package's code."""

import pytest
from conftest import distinct_versions
from pythons import PYTHON_VERSIONS

MIB = 1 << 20
PROGRAM = """
import ctypes, queue, sys, threading
library, running = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
def keep_frame():
    library.request(ctypes.c_size_t(40 << 20), 1)
def run_on():
    running.request(ctypes.c_size_t(40 << 20), 0)
    while not running.is_done(): pass
def beside(wait):
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
"""
WAITS = PROGRAM + "keep_frame()\n"
WAITS_BESIDE_A_QUEUE = PROGRAM + "beside(queue.Queue().get); keep_frame()\n"
RUNS = PROGRAM + "run_on()\n"
BESIDE_ANOTHER = (
    PROGRAM
    + """
def sleep_on():
    library.sleep_on({as_for_thread})
beside(sleep_on)
while not library.sleeps(): pass
keep_frame()
"""
)
BYSTANDER = (
    PROGRAM
    + """
import time
library.request_later(ctypes.c_size_t(40 << 20))
def keep_frame():
    while not library.has_worked(): time.sleep(0.5)
keep_frame()
"""
)


@pytest.fixture
def holder(oomrec, python, victim, tmp_path):
    """holder(PROGRAM, VERSION) is what has the 40 MiB: names of its functions, innermost first."""

    def run(text: str, version: str | None = None) -> list[str]:
        (tmp_path / "frames.py").write_text(text)
        done = oomrec(
            "run", "--dump-at-exit", "--",
            python(version), "frames.py", victim("threads_library.so"),
        )  # fmt: skip
        assert done.exit_code == 0, str(done)
        holders = oomrec.json("show", done.only_bundle())["holders"]
        (largest,) = [one for one in holders if one["bytes"] >= 40 * MIB]
        return [frame["function"] for frame in largest["stack"]]

    return run


def is_waited_for(functions: list[str]) -> bool:
    return "keep_frame" in functions


@pytest.mark.parametrize("version", PYTHON_VERSIONS)
def test_a_librarys_threads_have_the_line_that_waits(holder, version):
    functions = holder(WAITS, version)
    assert functions[0] == "work" and functions[-2:] == ["keep_frame", "<module>"], functions


def test_a_thread_that_waits_in_the_standard_library_does_not_count(holder):
    assert is_waited_for(holder(WAITS_BESIDE_A_QUEUE))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", None])
def test_a_line_that_runs_is_not_blamed(holder, version):
    functions = holder(RUNS, version)
    assert functions[0] == "work" and not {"run_on", "<module>"} & set(functions), functions


def test_with_two_lines_that_wait_it_is_not_certain_which(holder):
    functions = holder(BESIDE_ANOTHER.format(as_for_thread=1))
    assert functions[0] == "work" and not {"keep_frame", "<module>"} & set(functions), functions


@pytest.mark.parametrize("version", ["3.11", "3.13", None])
def test_a_thread_that_sleeps_is_a_bystander(holder, version):
    functions = holder(BYSTANDER, version)
    assert functions[0] == "work" and not is_waited_for(functions), functions


@pytest.mark.parametrize("version", ["3.11", "3.13", None])
def test_beside_a_thread_that_sleeps_it_is_certain_who_waits(holder, version):
    assert is_waited_for(holder(BESIDE_ANOTHER.format(as_for_thread=0), version))


PACKAGE = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
kept, wanted, done = [], threading.Event(), threading.Event()
def fill():
    kept.append(bytearray(b"x") * (40 << 20))
    done.set()
def fill_once_wanted():
    wanted.wait()
    fill()
def load():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fill).result()
def load_natively(library, size):
    library.request_later(size)
    while not library.has_worked(): done.wait(1)
asked = []
def ask():
    asked.append(True)
    done.wait()
def fill_once_asked(count):
    while len(asked) < count: time.sleep(0.001)
    fill()
def load_later():
    threading.Thread(target=fill_once_wanted).start()
def wait_on(library):
    library.sleep_on(1)
"""
CALLS = (
    PROGRAM
    + """
sys.path.insert(0, "site-packages")
import pooled
def keep_frame():
    pooled.load()
"""
)
CALLER = CALLS + "keep_frame()\n"
CALLER_BESIDE_ANOTHER = (
    CALLS
    + """
def wait_on():
    pooled.wait_on(library)
beside(wait_on)
while not library.sleeps(): pass
keep_frame()
"""
)
CALLERS = (
    CALLS
    + """
def keep_frame(is_other):
    if is_other: pooled.ask()
    else: pooled.ask()
def serve(is_other):
    keep_frame(is_other)
threading.Thread(target=pooled.fill_once_asked, args=(2,)).start()
threads = [threading.Thread(target=serve, args=(which,)) for which in {which}]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
)
NO_CALLER = (
    CALLS
    + """
pooled.load_later()
def keep_frame():
    pooled.wanted.set()
    pooled.done.wait()
keep_frame()
"""
)


@pytest.fixture
def package(tmp_path):
    (tmp_path / "site-packages/pooled").mkdir(parents=True)
    (tmp_path / "site-packages/pooled/__init__.py").write_text(PACKAGE)


@pytest.mark.parametrize("version", distinct_versions(PYTHON_VERSIONS))
def test_a_packages_pool_has_the_line_that_called_the_package(package, holder, version):
    functions = holder(CALLER, version)
    assert functions.index("fill") < functions.index("keep_frame") == len(functions) - 2, functions


@pytest.mark.parametrize("text", [CALLER_BESIDE_ANOTHER, NO_CALLER], ids=["two", "none"])
def test_otherwise_a_packages_pool_has_its_own_line(package, holder, text):
    functions = holder(text)
    assert "fill" in functions and not is_waited_for(functions), functions


@pytest.mark.parametrize("which", [[False, False], [False, True]], ids=["one line", "two lines"])
def test_of_two_callers_a_pool_has_the_lines_that_both_have(package, holder, which):
    functions = holder(CALLERS.replace("{which}", str(which)))
    assert "fill" in functions and "serve" in functions, functions
    assert is_waited_for(functions) == (which[0] == which[1]), functions


NATIVELY = (
    CALLS
    + """
import shutil
own = shutil.copy(sys.argv[1], "site-packages/pooled/native.so")
def keep_frame(path):
    pooled.load_natively(ctypes.CDLL(path), ctypes.c_size_t(40 << 20))
keep_frame({path})
"""
)


@pytest.mark.parametrize("version", ["3.11", "3.13", None])
def test_a_packages_native_thread_has_the_line_that_called_the_package(package, holder, version):
    """Also where the package waits for it in the standard library."""
    functions = holder(NATIVELY.replace("{path}", "own"), version)
    assert is_waited_for(functions) and "load_natively" not in functions[:1], functions


@pytest.mark.parametrize("version", ["3.11", "3.13", None])
def test_the_native_thread_of_another_library_has_not(package, holder, version):
    functions = holder(NATIVELY.replace("{path}", "sys.argv[1]"), version)
    assert not is_waited_for(functions), functions
