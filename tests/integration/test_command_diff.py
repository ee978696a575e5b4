"""oomrec diff: two bundles of a program, of an edited one, of a running process; exit codes for CI."""

import re
import sys

import pytest
from schemas import check

PROGRAM = """\
import sys
kept = []
def steady():
    return bytearray(4 << 20)
def grows(count):
    for _ in range(count):
        kept.append(bytearray(1 << 20))
def only_once():
    return bytearray(3 << 20)
kept.append(steady())
grows(int(sys.argv[1]))
if sys.argv[2] == "once":
    kept.append(only_once())
kept.append(bytearray(1 << 40))
"""


@pytest.fixture
def bundle_of(oomrec, tmp_path):
    """bundle_of("20", "once") is the bundle of a run with these arguments. `text`: another program."""

    def make(*arguments, text=PROGRAM):
        (tmp_path / "program.py").write_text(text)
        options = ["--mode", "exact", "--python-sampling", "0"]  # each figure is exact
        words = [*options, "--", sys.executable, "program.py", *arguments]
        run = oomrec("run", "--quiet", *words)
        assert "MemoryError" in run.stderr, str(run)
        return run.bundles()[-1]

    return make


def changes(result):
    return {
        row["function"]: (row["change"], row["growth_bytes"])
        for row in result["functions"]
        if row["function"] in ("steady", "grows", "only_once")
    }


def test_growth_is_listed_first(oomrec, bundle_of):
    first, second = bundle_of("5", "once"), bundle_of("25", "")

    result = oomrec.json("diff", first, second)

    check("diff", result)
    grown, gone = result["functions"][0], result["functions"][-1]
    assert (grown["function"], grown["change"]) == ("grows", "grown")
    assert grown["growth_bytes"] == pytest.approx(20 << 20, rel=0.01)
    assert (gone["function"], gone["change"], gone["after"]["bytes"]) == ("only_once", "gone", 0)
    assert "steady" not in changes(result)  # nothing has changed
    top = result["stacks"][0]
    assert top["match"] == "place" and top["after"]["count"] == 25 and top["before"]["count"] == 5
    assert any(frame["function"] == "grows" for frame in top["stack"])
    assert result["total"]["growth_bytes"] == pytest.approx(17 << 20, rel=0.05)
    assert result["spaces"]["heap"]["after"]["bytes"] > 0

    back = oomrec.json("diff", second, first)
    assert back["functions"][0]["change"] == "new" and back["functions"][-1]["function"] == "grows"

    page = oomrec("diff", first, second)
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 100
    lines = page.stdout.splitlines()
    assert lines[0].startswith("+") and "at the end" in lines[0]
    (grows,) = (line for line in lines if line.endswith("program.py:7 grows") and "▇" in line)
    assert re.match(r" *\+20\.[01] MiB ▇▇", grows)
    assert "░" in page.stdout and "program.py:9 only_once" in page.stdout


def test_an_edited_program_matches_by_its_functions(oomrec, bundle_of):
    first = bundle_of("5", "once")
    second = bundle_of("15", "once", text="# a line more\n" + PROGRAM)

    result = oomrec.json("diff", first, second)

    assert {name for name, row in changes(result).items() if row[0] != "same"} == {"grows"}
    top = result["stacks"][0]
    assert top["match"] == "symbol" and top["before"]["count"] == 5 and top["after"]["count"] == 15
    assert "were matched by their functions" in oomrec("diff", first, second).stdout


def test_exit_codes_for_ci(oomrec, bundle_of):
    first, second = bundle_of("5", ""), bundle_of("25", "")

    assert oomrec("diff", "--fail-above", "1M", first, first).exit_code == 0
    assert oomrec("diff", "--fail-above", "30M", first, second).exit_code == 0
    assert oomrec("diff", "--fail-above", "1M", second, first).exit_code == 0
    above = oomrec("diff", "--fail-above", "10M", first, second)
    assert above.exit_code == 1 and "more than --fail-above 10.0 MiB" in above.stderr
    same = oomrec.json("diff", first, first)
    assert same["changed_stacks"] == 0 and same["functions"] == [] and same["stacks"] == []


def test_cumulative_bytes_and_a_single_space(oomrec, bundle_of):
    first, second = bundle_of("5", ""), bundle_of("25", "")

    ever = oomrec.json("diff", "--at", "ever", "--space", "map", first, second)
    peak = oomrec.json("diff", "--at", "peak", first, second)

    check("diff", ever)
    assert ever["at"] == "ever" and {row["space"] for row in ever["stacks"]} <= {"map"}
    assert changes(peak)["grows"][0] == "grown"


RUNS = """\
import os, sys
kept = [bytearray(30 << 20)]
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_bundle_and_a_running_process(oomrec, bundle_of):
    first = bundle_of("5", "")
    process = oomrec.start("run", "--quiet", "--", sys.executable, "-c", RUNS, stdin=-1)
    pid = process.stdout.readline().decode().strip()

    result = oomrec.json("diff", first, pid)

    check("diff", result)
    assert result["after"]["pid"] == int(pid) and result["before"]["source"] == str(first)
    assert result["stacks"][0]["change"] == "new"
    assert result["stacks"][0]["growth_bytes"] == pytest.approx(30 << 20, rel=0.01)


FILLS = """\
import mmap, os, sys
def map_file():
    with open(sys.argv[1] + "/data.bin", "w+b") as file:
        file.truncate(96 << 20)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
def share():
    fd = os.memfd_create("frames")
    os.ftruncate(fd, 64 << 20)
    return mmap.mmap(fd, 64 << 20)
def reserve():
    return mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def untouched():
    return mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
data, frames, table, nothing = map_file(), share(), reserve(), untouched()
print(os.getpid(), flush=True)
sys.stdin.readline()
found = [data[at] for at in range(0, 96 << 20, 4096)]
for kept in (frames, table):
    for at in range(0, len(kept), 4096):
        kept[at] = 1
print("filled", flush=True)
sys.stdin.readline()
"""


def test_what_is_filled_between_two_bundles(oomrec, tmp_path, on_disk):
    """Nothing is requested meanwhile: resident memory grows by pages of a file, by shared memory and by an old mapping."""
    (tmp_path / "fills.py").write_text(FILLS)
    process = oomrec.start("run", "--quiet", "--", sys.executable, "fills.py", on_disk, stdin=-1)
    pid = process.stdout.readline().decode().strip()
    first = oomrec.json("dump", pid)["bundle"]
    process.tell("\n").once("filled")
    second = oomrec.json("dump", pid)["bundle"]

    for after in (second, pid):  # of a running process holders weigh what is resident
        result = oomrec.json("diff", first, after)
        check("diff", result)
        account = result["resident_memory"]
        grown = {kind: row["growth_bytes"] for kind, row in account["kinds"].items()}
        assert grown["file_pages"] == pytest.approx(96 << 20, abs=4 << 20), account
        assert grown["shared"] == pytest.approx(64 << 20, abs=1 << 20), account
        assert grown["held"] == pytest.approx(48 << 20, abs=2 << 20), account
        assert sum(grown.values()) == account["growth_bytes"]
        of = {row["function"]: row for row in result["functions"]}
        assert of["share"]["resident_growth_bytes"] == pytest.approx(64 << 20, abs=64 << 10), of
        reserve = of["reserve"]
        assert reserve["growth_bytes"] == 0
        assert reserve["resident_growth_bytes"] == pytest.approx(48 << 20, abs=64 << 10)
        # The mapping, and perhaps the small object of Python's that stands for it, if it was sampled.
        assert reserve["before"]["bytes"] == pytest.approx(48 << 20, abs=64 << 10)
        assert reserve["before"]["resident_bytes"] < 64 << 10
        assert reserve["change"] == "grown" and "untouched" not in of
        assert [row["function"] for row in result["functions"]][:2] == ["share", "reserve"]

        page = oomrec("diff", first, after).stdout
        assert max(map(len, page.splitlines())) <= 100
        assert re.search(
            r"  pages of files, reclaimable +[\d.]+ MiB +[\d.]+ MiB +\+9[\d.]+ MiB", page
        )
        assert "+48.0 MiB resident  map, grown: " in page
    same = oomrec.json("diff", second, second)
    assert same["changed_functions"] == 0 and same["resident_memory"]["growth_bytes"] == 0
    assert oomrec.json("diff", "--at", "ever", first, second)["resident_memory"] is None


def test_two_inputs_are_required(oomrec, bundle_of):
    alone = oomrec("diff", bundle_of("5", ""))
    assert alone.exit_code == 2 and "diff needs two recordings" in alone.stderr


SMALL = """\
import sys
def keep(count):
    return [str(n) * 8 for n in range(count)]
kept = keep(int(sys.argv[1]))
bytearray(1 << 46)
"""


def test_small_objects_of_python_alone(oomrec, tmp_path):
    """Their space has no totals of its own: those of its holders count. 180,000 texts of 80 to 97 bytes."""
    (tmp_path / "small.py").write_text(SMALL)
    bundles = [
        oomrec("run", "--quiet", "--", sys.executable, "small.py", count).bundles()[-1]
        for count in (20_000, 200_000)
    ]
    words = ["--space", "python", "--by-chance", "--top", "1000000", *bundles]
    result = oomrec.json("diff", *words)
    check("diff", result)
    total = result["total"]
    growth = sum(row["after"]["bytes"] - row["before"]["bytes"] for row in result["stacks"])
    assert total["after_bytes"] - total["before_bytes"] == growth  # of what changed
    assert total["before_bytes"] >= 20_000 * 80 * 0.6
    assert 0.7 < (total["after_bytes"] - total["before_bytes"]) / (180_000 * 92) < 1.4, total
    assert result["spaces"]["python"]["after"]["bytes"] == total["after_bytes"]
    grown = next(row for row in result["stacks"] if row["change"] == "grown")
    lines = [frame["function"] for frame in grown["stack"] if frame["kind"] == "python"]
    assert lines[0].startswith("keep")
    page = oomrec("diff", "--space", "python", *bundles).stdout
    assert "python, at the end" in page and "\n  python " in page
