"""Memory limits of runtimes: V8, the JVM, PHP, and Python's MemoryError without a failed request.

Nothing that the recorder observes fails there: the runtime gives up by itself.
"""

import pytest
from conftest import distinct_versions, full, metadata, written

NODE_GROWS = "const a = []; for (;;) a.push(new Array(1000).fill(Math.random()).map(String))"
JAVA = """
import java.util.*;
public class Limit {
  public static void main(String[] words) throws Exception {
    if (words.length > 0 && words[0].equals("exit")) System.exit(3);
    if (words.length > 0) throw new IllegalStateException("nothing to do with memory");
    List<byte[]> kept = new ArrayList<>();
    for (;;) kept.add(new byte[1 << 16]);
  }
}
"""
PHP_GROWS = "$a = []; for (;;) $a[] = str_repeat('x', 10000);"


@pytest.fixture
def java(tmp_path):
    """java(OPTION…) is the command of a Java program: without words it fills the heap."""
    source = written(tmp_path / "Limit.java", JAVA)
    return lambda *options: ["java", "-Xmx20m", *options, str(source)]


def the_verdict(oomrec, run):
    return oomrec.json("show", run.only_bundle())["verdict"]


@pytest.mark.needs_program("node")
def test_the_heap_limit_of_v8(oomrec):
    run = oomrec("run", "--", "node", "--max-old-space-size=40", "-e", NODE_GROWS, exits=134)
    verdict = the_verdict(oomrec, run)
    assert (verdict["code"], verdict["certainty"]) == ("runtime_limit", "proven"), str(run)
    assert "node reached V8's heap limit (--max-old-space-size)" in verdict["summary"]
    assert "OOM" in verdict["evidence"][0] and "stack of its abort" in verdict["evidence"][0]
    shown = oomrec.json("show", run.only_bundle())
    assert shown["outcome"] == "signal 6"
    assert "oomrec: node reached V8's heap limit" in run.stderr


@pytest.mark.needs_program("java")
@pytest.mark.parametrize(
    "option, exit_code, certainty",
    [
        ("-XX:+ExitOnOutOfMemoryError", 3, "proven"),
        full("-XX:+CrashOnOutOfMemoryError", 134, "proven"),
        ("-XX:-ExitOnOutOfMemoryError", 1, "possible"),  # nobody says which exception it was
    ],
)
def test_the_heap_limit_of_the_jvm(oomrec, java, option, exit_code, certainty):
    run = oomrec("run", "--", *java(option), exits=exit_code)
    verdict = the_verdict(oomrec, run)
    assert (verdict["code"], verdict["certainty"]) == ("runtime_limit", certainty), str(run)
    assert "a memory limit of the JVM (-Xmx" in verdict["summary"]


PYPY_GROWS = """
held = []
while True:
    held.append(bytearray(1 << 20))
"""


@pytest.mark.needs_program("pypy3")
@pytest.mark.parametrize(
    "mode, limit",
    [
        ("exact", "--limit"),
        ("sampled", "--limit-as"),
        full("sampled", "--limit"),
        full("exact", "--limit-as"),
    ],
)
def test_pypy_is_recorded_without_lines(oomrec, limit, mode):
    size = "300M" if limit == "--limit" else "1G"
    run = oomrec("run", limit, size, "--mode", mode, "--", "pypy3", "-c", PYPY_GROWS)
    # It may also lack the memory for its own heap, and abort.
    aborted = run.exit_code == 134 and "couldn't allocate the next arena" in run.stderr
    raised = run.exit_code == 1 and run.stderr.rstrip().endswith("MemoryError")
    assert raised or aborted, str(run)
    shown = oomrec.json("show", run.bundles()[0])
    assert shown["verdict"]["code"] == {"--limit": "soft_limit"}.get(limit, "address_space_limit")
    assert any("PyPy's frames are not read" in note for note in shown["notes"])
    assert sum(holder["bytes"] for holder in shown["holders"]) > 150 << 20


@pytest.mark.needs_program("php")
def test_the_memory_limit_of_php(oomrec):
    run = oomrec("run", "--", "php", "-n", "-d", "memory_limit=8M", "-r", PHP_GROWS, exits=255)
    verdict = the_verdict(oomrec, run)
    assert (verdict["code"], verdict["certainty"]) == ("runtime_limit", "proven"), str(run)
    assert "Allowed memory size of 8388608 bytes exhausted" in verdict["evidence"][0]
    assert oomrec.json("show", run.only_bundle())["outcome"] == "exited 255"


@pytest.mark.parametrize(
    "command, exit_code",
    [
        pytest.param(
            ["node", "-e", "process.abort()"], 134, marks=pytest.mark.needs_program("node")
        ),
        pytest.param(
            ["node", "-e", "require('assert')(false)"], 1, marks=pytest.mark.needs_program("node")
        ),
        pytest.param(
            ["node", "-e", "throw new RangeError('x')"], 1, marks=pytest.mark.needs_program("node")
        ),
        pytest.param(
            ["php", "-n", "-r", "a parse error"], 255, marks=pytest.mark.needs_program("php")
        ),
        pytest.param(
            ["php", "-n", "-r", "throw new Error('x');"],
            255,
            marks=pytest.mark.needs_program("php"),
        ),
        pytest.param(
            ["php", "-n", "-r", "trigger_error('Allowed to fail', E_USER_ERROR);"],
            255,
            marks=pytest.mark.needs_program("php"),
        ),
        pytest.param(["ruby", "-e", "raise 'x'"], 1, marks=pytest.mark.needs_program("ruby")),
        pytest.param(["ruby", "-e", "exit 1"], 1, marks=pytest.mark.needs_program("ruby")),
    ],
)
def test_another_end_of_a_runtime_leaves_nothing(oomrec, command, exit_code):
    run = oomrec("run", "--", *command, exits=exit_code)
    assert run.bundles() == [], str(run)


@pytest.mark.needs_program("java")
@pytest.mark.parametrize("word, exit_code", [("throw", 1), ("exit", 3)])
def test_another_end_of_the_jvm_leaves_nothing(oomrec, java, word, exit_code):
    run = oomrec("run", "--", *java("-XX:+ExitOnOutOfMemoryError"), word, exits=exit_code)
    assert run.bundles() == [], str(run)


# --- Python --------------------------------------------------------------------------------------

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_uncaught_memory_error_without_a_failed_request(oomrec, preload, python, version):
    run = preload(python(version), "-c", "[0] * 2**61", exits=1)
    assert metadata(run.only_bundle())["reason"] == "exception"
    shown = oomrec.json("show", run.only_bundle())
    assert shown["verdict"]["code"] == "exception"
    assert metadata(run.only_bundle())["exception_type"] == "MemoryError"
    assert shown["outcome"] == "exited 1"


@pytest.mark.parametrize(
    "script",
    [
        "class Full(MemoryError): pass\nraise Full",
        "import sys\nsys.excepthook = lambda *what: None\nraise MemoryError",
    ],
)
def test_an_uncaught_memory_error_in_disguise(preload, python, script):
    run = preload(python(), "-c", script, exits=1)
    assert len(run.bundles_for("exception")) == 1, str(run)


POOLS = {
    "multiprocessing": "import multiprocessing\nmultiprocessing.Pool(1).map(work, [1])",
    "concurrent": "import concurrent.futures as f\nf.ProcessPoolExecutor(1).submit(work, 1).result()",
}


@pytest.mark.parametrize("version", distinct_versions(VERSIONS))
@pytest.mark.parametrize("pool", POOLS)
def test_a_memory_error_of_a_pools_worker(oomrec, preload, python, tmp_path, version, pool):
    """The pool sends it, and raises it again: the parent's bundle says whose it was, `show` opens the worker's."""
    script = tmp_path / "pool.py"
    script.write_text(
        "def work(n): bytearray(1 << 46)\nif __name__ == '__main__':\n    "
        + POOLS[pool].replace("\n", "\n    ")
    )
    run = preload(python(version), script, exits=1)
    (parent,) = run.bundles_for("exception")
    verdict = oomrec.json("show", parent)["verdict"]
    assert verdict["code"] == "exception"
    assert "that another process had raised, such as a worker of its pool" in verdict["summary"]
    assert oomrec.json("show")["verdict"]["code"] == "request_too_large"


@pytest.mark.parametrize("cause", ["ValueError('RemoteTraceback')", "MemoryError()", "None"])
def test_a_memory_error_with_another_cause(oomrec, preload, python, cause):
    run = preload(python(), "-c", f"raise MemoryError from {cause}")
    verdict = oomrec.json("show", run.only_bundle())["verdict"]
    assert verdict["summary"].endswith("for lack of memory; no request was refused"), verdict


@pytest.mark.parametrize("version", distinct_versions(VERSIONS))
@pytest.mark.parametrize(
    "script",
    [
        "int('x')",
        "raise KeyboardInterrupt",
        "try: [0] * 2**61\nexcept MemoryError: raise SystemExit(1)",
        "try: [0] * 2**61\nexcept MemoryError: raise ValueError from None",
        "import sys\ntry: [0] * 2**61\nexcept MemoryError: pass\nsys.last_type = 'MemoryError'",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)",
    ],
)
def test_another_end_of_python_leaves_nothing(preload, python, version, script):
    run = preload(python(version), "-c", script)
    assert run.bundles() == [], str(run)


def test_a_memory_error_after_a_failed_request_has_one_bundle(preload, python):
    run = preload(python(), "-c", "bytearray(1 << 46)", exits=1)
    assert metadata(run.only_bundle())["reason"] == "allocation_failed"


JAVA_KEEPS = """
import java.util.*;
public class Keeps {
  public static void main(String[] words) {
    List<byte[]> kept = new ArrayList<>();
    for (int i = 0; i < 60; ++i) { byte[] block = new byte[1 << 20]; Arrays.fill(block, (byte) i); kept.add(block); }
    Runtime.getRuntime().halt(kept.size() == 60 ? 0 : 1);
  }
}
"""


@pytest.mark.needs_program("java")
@pytest.mark.parametrize("collector", ["G1", *map(full, ["Serial", "Parallel", "Shenandoah", "Z"])])
def test_the_java_heap_is_one_holder(oomrec, tmp_path, collector):
    """Whichever functions of the collector have committed its parts."""
    source = written(tmp_path / "Keeps.java", JAVA_KEEPS)
    run = oomrec(
        "run", "--dump-at-exit", "--",
        "java", f"-XX:+Use{collector}GC", "-Xmx200m", str(source),
    )  # fmt: skip
    assert run.exit_code == 0, str(run)
    largest = oomrec.json("show", run.only_bundle())["holders"][0]
    (frame,) = largest["stack"]
    assert frame["function"] == "[the Java heap: objects of the program, or free]"
    assert largest["bytes"] > 60 << 20
