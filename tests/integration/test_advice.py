"""Advice on real programs: for each rule one that makes the mistake, and one that looks alike."""

import glob
import re
import subprocess
import sys

import pytest
from conftest import written
from watching import eventually

TORCH = pytest.mark.needs_torch
PANDAS = pytest.mark.needs_module("pandas")
NODE_GROWS = "const a = []; for (;;) a.push(new Array(1000).fill(Math.random()).map(String))"
JAVA_GROWS = """
import java.util.*;
public class Grows {
  public static void main(String[] words) {
    List<byte[]> kept = new ArrayList<>();
    for (;;) { byte[] block = new byte[1 << 16]; Arrays.fill(block, (byte) 1); kept.add(block); }
  }
}
"""


@pytest.fixture
def advice(oomrec, victim):
    """advice(CASE) runs keeps.py to its limit: {rule: text}."""

    def run_to_limit(case, interpreter=sys.executable, limit="500M"):
        run = oomrec(
            "run", "--limit", limit, "--", interpreter, victim("python/keeps.py"), case, timeout=240
        )
        assert run.exit_code == 1, str(run)
        shown = oomrec.json("show", run.bundles()[-1])
        assert shown["verdict"]["code"] == "soft_limit", str(run)
        return {row["rule"]: row["text"] for row in shown["advice"]}

    return run_to_limit


@TORCH
def test_a_dataset_that_keeps_its_items(advice):
    found = advice("dataset_keeps_items")
    assert "Images.__getitem__ holds" in found["kept_items"]
    assert "data_loader" not in found and "kept_graph" not in found, found


@TORCH
def test_a_dataset_that_streams_its_items(advice):
    found = advice("dataset_streams_items")
    assert "Images.__getitem__ holds" in found["data_loader"] and "kept_items" not in found


@pytest.fixture
def python_with_symbols(python):
    """Its C functions have names that tell whether lru_cache calls one."""
    path = python("3.11")
    library = (
        "import sysconfig as s; print(*map(s.get_config_var, ('LIBDIR', 'LDLIBRARY')), sep='/')"
    )
    shared = subprocess.run([path, "-c", library], capture_output=True, text=True).stdout.strip()
    names = subprocess.run(["nm", path, shared], capture_output=True, text=True)
    if "bounded_lru_cache_wrapper" not in names.stdout:
        pytest.skip(f"{path} has no symbols")
    return path


@pytest.mark.needs_program("nm")
@pytest.mark.parametrize(
    "case, words",
    [
        ("cache_without_bound", "through functools.cache or lru_cache(maxsize=None)"),
        ("cache_of_many", "through functools.lru_cache, whose maxsize"),
    ],
)
def test_a_cache(advice, python_with_symbols, case, words):
    found = advice(case, python_with_symbols)
    assert "features holds" in found["cache"] and words in found["cache"]


@pytest.mark.needs_program("nm")
def test_a_cache_that_keeps_nothing(advice, python_with_symbols):
    """lru_cache(maxsize=0) calls the same function, whose results a list keeps."""
    assert "cache" not in advice("cache_that_keeps_nothing", python_with_symbols)


@PANDAS
@pytest.mark.parametrize(
    "case, call", [("table_is_copied", "copy()"), ("tables_are_concatenated", "concat()")]
)
def test_a_table_that_is_copied(advice, case, call):
    found = advice(case)
    assert f"pandas' {call}" in found["copied_table"], found


@PANDAS
def test_tables_that_are_made_are_no_copies(advice):
    assert "copied_table" not in advice("tables_are_made")


@TORCH
def test_losses_that_keep_their_graphs(advice):
    found = advice("losses_keep_their_graphs", limit="800M")
    assert "losses_keep_their_graphs holds" in found["kept_graph"], found
    assert "loss.detach()" in found["kept_graph"] and "growing" not in found


@TORCH
def test_outputs_that_are_kept_without_graphs(advice):
    @eventually  # a growth that others slow down is not steady
    def is_seen_to_grow():
        found = advice("outputs_are_kept_without_graphs", limit="800M")
        assert "outputs_are_kept_without_graphs holds" in found["growing"], found
        assert "If it keeps tensors that carry gradients" in found["growing"]
        assert "kept_graph" not in found


# --- Limits of runtimes --------------------------------------------------------------------------


def limit_advice(oomrec, bundle):
    return {row["rule"]: row["text"] for row in oomrec.json("show", bundle)["advice"]}["limit"]


@pytest.mark.needs_program("node")
def test_the_limit_of_v8_that_the_command_line_sets(oomrec):
    run = oomrec("run", "--", "node", "--max-old-space-size=40", "-e", NODE_GROWS)
    text = limit_advice(oomrec, run.only_bundle())
    assert "own limit (40.0 MiB, set by --max-old-space-size=40) was reached" in text
    assert int(text.split("NODE_OPTIONS=--max-old-space-size=")[1].split(".")[0]) > 40


@pytest.mark.needs_program("node")
def test_the_limit_of_v8_that_is_not_known(oomrec):
    """An option in the environment is not recorded: it may contain secrets."""
    run = oomrec(
        "run", "--", "node", "-e", NODE_GROWS, env={"NODE_OPTIONS": "--max-old-space-size=40"}
    )
    text = limit_advice(oomrec, run.only_bundle())
    assert "node's own limit was reached, not the machine's" in text and "set by" not in text


@pytest.mark.needs_program("php")
def test_the_limit_of_php(oomrec):
    grows = "$a = []; for (;;) $a[] = str_repeat('x', 10000);"
    run = oomrec("run", "--", "php", "-n", "-d", "memory_limit=8M", "-r", grows)
    assert "php's own limit (8.0 MiB, set by memory_limit=8M)" in limit_advice(
        oomrec, run.only_bundle()
    )


@pytest.mark.needs_program("java")
def test_the_limit_of_the_jvm(oomrec, tmp_path):
    source = written(tmp_path / "Grows.java", JAVA_GROWS)
    run = oomrec("run", "--", "java", "-Xmx30m", "-XX:+ExitOnOutOfMemoryError", source)
    text = limit_advice(oomrec, run.only_bundle())
    assert "java's own limit (30.0 MiB, set by -Xmx30m) was reached" in text and "-Xmx" in text


@pytest.mark.needs_program("java")
@pytest.mark.needs_cgroup_write
@pytest.mark.parametrize(
    "option, words",
    [
        ("-Xmx2g", "beyond the cgroup's 300.0 MiB: in this cgroup, -Xmx225m leaves a quarter"),
        ("-XX:+UseSerialGC", "set one, at most -Xmx225m in a cgroup of 300.0 MiB"),
    ],
)
def test_a_jvm_at_its_cgroups_limit(oomrec, tmp_path, option, words):
    source = written(tmp_path / "Grows.java", JAVA_GROWS)
    run = oomrec("run", "--cgroup", "300M", "--", "java", "-Xms1g", option, source)
    text = limit_advice(oomrec, run.bundles()[0])
    assert words in text


@pytest.mark.needs_cgroup_write
def test_a_program_without_such_a_heap_at_its_cgroups_limit(oomrec, victim):
    run = oomrec("run", "--cgroup", "150M", "--", sys.executable, victim("python/grow_objects.py"))
    assert "heap" not in limit_advice(oomrec, run.bundles()[0])


TCMALLOC = "libtcmalloc_minimal.so.4"


@pytest.mark.parametrize(
    "variables, named",
    [
        ({"TCMALLOC_HEAP_LIMIT_MB": "60", "MIMALLOC_LIMIT_OS_ALLOC": "1"}, True),
        ({"TCMALLOC_HEAP_LIMIT_MB": "0", "MIMALLOC_LIMIT_OS_ALLOC": "1"}, False),
    ],
    ids=["its own", "none"],
)
def test_the_limit_that_a_variable_sets_for_the_allocator(oomrec, variables, named):
    """Without a limit only the last request fails, by its size."""
    found = glob.glob(f"/usr/lib/*/{TCMALLOC}") or pytest.skip(f"no {TCMALLOC}")
    grows = "kept = [bytearray(1 << 20) for _ in range(100)]\nbytearray(1 << 62)"
    environment = {**variables, "LD_PRELOAD": found[0]}
    run = oomrec("run", "--", sys.executable, "-c", grows, env=environment)
    text = limit_advice(oomrec, run.bundles()[0])
    words = "TCMALLOC_HEAP_LIMIT_MB=60 in its environment limits the allocator"
    assert (words in text) == named and "MIMALLOC" not in text, text


RESIDENT = """\
import mmap
file = open("data", "rb")
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
touched = sum(data[at] for at in range(0, len(data), 4096))
kept = bytearray(40 << 20)
bytearray(30 << 20)
"""


def test_what_is_resident_is_no_need_of_a_soft_limit(oomrec, tmp_path):
    """A file of 200 MiB is resident, too, but --limit counts only what was requested."""
    (tmp_path / "data").write_bytes(bytes(200 << 20))
    run = oomrec("run", "--limit", "64M", "--", sys.executable, "-c", RESIDENT)
    text = " ".join(oomrec("show", run.only_bundle()).stdout.split())
    needed = re.search(r"It needed at least (\S+) MiB at once\. If .*?: set --limit (\d+)M", text)
    assert needed is not None and 70 <= float(needed[1]) < 85 and int(needed[2]) < 110, text
