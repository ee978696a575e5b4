"""`oomrec.objects()`: the largest arrays, their referrers, and no side effects."""

from __future__ import annotations

import json

import pytest
from conftest import SOURCE, full, written
from report_page import Page
from schemas import check

MIB = 1 << 20
PACKAGE = {"PYTHONPATH": SOURCE / "tools" / "python"}


def printed(run) -> dict:
    assert run.exit_code == 0, str(run)
    return json.loads(run.stdout.splitlines()[0])


@pytest.mark.needs_numpy
def test_every_referrer_of_an_array(plain, victim):
    script = victim("python/holds_arrays.py")
    found = printed(plain("python3", script, env=PACKAGE))
    by_size = {each["bytes"] / MIB: each for each in found["objects"]}
    assert [each["bytes"] for each in found["objects"]] == sorted(
        (each["bytes"] for each in found["objects"]), reverse=True
    )
    assert found["complete"] and found["count"] == len(by_size) == 12
    assert found["total_bytes"] == sum(each["bytes"] for each in found["objects"])

    def names(size):
        return [
            (each["kind"], each["name"], each["container"]) for each in by_size[size]["referrers"]
        ]

    def holder(size):
        ((kind, name, _),) = names(size)
        return kind, name

    # The program's `everything` refers to some of them, too.
    def named(size):
        return {name for _, name, _ in names(size) if not name.startswith("everything")}

    assert named(11) == {"model.weights"}
    assert holder(13) == ("global", "of_module")
    assert holder(14) == ("variable", "generator.gi_frame.f_locals['waiting']")
    assert holder(15) == ("closure", "function.__closure__[0].cell_contents")
    assert holder(16) == ("variable", "at_failure")
    assert named(17) == {"local", "view"} and by_size[17]["views"] >= 2
    assert named(18) == {"items[1]"}
    assert holder(19) == ("key", "nested['train'][('a', 1)]")
    assert named(20) == {"slotted.inner"}
    assert names(21)[0][0] == "item" and names(21)[0][2].startswith("list of ")
    assert named(9) == {"backwards"}
    assert holder(12) == ("attribute", "Cache.shared")

    frames = {size: each["referrers"][0]["where"] for size, each in by_size.items()}
    assert frames[17].startswith(f"{script}:") and frames[17].endswith(" main")
    assert frames[16].endswith(" caught, in the traceback")
    assert frames[13] == "module __main__"
    assert frames[12] == "class __main__.Cache"
    cycles = {size for size, each in by_size.items() if each["referrers"][0]["is_cycle"]}
    assert cycles == {11, 21}
    assert by_size[17]["shape"] == [17, 1024, 1024] and by_size[17]["dtype"] == "uint8"
    assert by_size[17]["device"] == "cpu" and by_size[17]["type"] == "numpy.ndarray"
    assert found["stacks"] == "the program does not run under the recorder"


@pytest.mark.needs_torch
def test_tensors_gradients_and_graphs(plain, victim):
    found = printed(plain("python3", victim("python/holds_tensors.py"), env=PACKAGE))
    names = {}
    for each in found["objects"]:
        for referrer in each["referrers"]:
            names.setdefault(referrer["name"], []).append((each, referrer))

    def one(name):
        ((each, referrer),) = names[name]
        return each, referrer["kind"]

    weight, kind = one("model._parameters['weight']")
    assert weight["type"] == "torch.nn.parameter.Parameter" and weight["bytes"] == 4 * MIB
    assert weight["dtype"] == "float32" and weight["shape"] == [1024, 1024] and kind == "key"
    gradient, _ = one("model._parameters['weight'].grad")
    assert gradient["address"] != weight["address"]
    shared, array = one("shared")[0], one("as_array")[0]
    assert shared == array and shared["views"] >= 2 and shared["bytes"] == 3 * MIB
    assert one("of_array")[0]["bytes"] == 5 * MIB
    saved, kind = one("losses[0] → ExpBackward0._saved_result")
    assert kind == "graph" and saved["bytes"] == 2 * MIB
    assert not any("hooked" in name for name in names)
    assert found["complete"]


def test_without_any_library(plain):
    """Libraries are not imported to search for their objects."""
    program = (
        "import sys, oomrec; found = oomrec.objects();"
        "print(len(found), found.complete, 'numpy' in sys.modules, 'torch' in sys.modules);"
        "from oomrec._impl.objects import objects_json; print(objects_json())"
    )
    run = plain("python3", "-c", program, env=PACKAGE)
    assert run.stdout.split() == ["0", "True", "False", "False", "None"], str(run)


IN_TIME = """
import json, sys, time
import torch
from oomrec._impl.objects import objects_json
held = [torch.ones(1 << 20), [[] for _ in range(int(sys.argv[1]))]]
took = []
for _ in range(5):
    begin = time.thread_time()
    text = objects_json()
    took.append(time.thread_time() - begin)
found = json.loads(text)
print(sorted(took)[2], found["complete"], found["objects"][0]["referrers"][0]["name"])
"""


@pytest.mark.needs_torch
@pytest.mark.parametrize("containers", [full(1000), 1_000_000])
def test_at_most_50_ms(plain, containers):
    """CPU time, because other processes may run. Nearby objects come first.

    The search has 95 % of the budget; making the text depends on the processor.
    """
    run = plain("python3", "-c", IN_TIME, str(containers), env=PACKAGE, exits=0)
    took, complete, name = run.stdout.split()
    assert float(took) < 0.06 and name == "held[0]"
    if containers > 1000:
        assert complete == "False"


IN_A_BUNDLE = """
import numpy as np
import oomrec

def make_batch():
    return np.ones(3 << 20, np.uint8)

def train():
    history = [make_batch() for _ in range(7)]
    with oomrec.capture_oom("train", objects=True):
        bytearray(1 << 40)
    return history

try:
    train()
except MemoryError:
    pass
"""


@pytest.mark.needs_numpy
def test_objects_of_a_bundle_with_the_stacks_that_made_them(oomrec, preload, tmp_path):
    script = written(tmp_path / "trains.py", IN_A_BUNDLE)
    run = preload("python3", script, env={**PACKAGE, "OOMREC_LIMIT": "1G"})
    bundle = run.only_bundle()
    stored = json.loads((bundle / "objects.json").read_text())
    check("objects", stored)
    assert stored["stacks"] == "" and stored["count"] == 7
    shown = oomrec.json("show", bundle)
    check("show", shown)
    del stored["schema_version"], stored["stacks"]
    assert shown["objects"] == stored
    assert Page(oomrec("report", "-o", "-", bundle).stdout).json["objects"] == stored
    for each in stored["objects"]:
        assert any("trains.py:6 make_batch" in line for line in each["stack"]), each["stack"]
    text = oomrec("show", bundle).stdout
    section = text[text.index("largest arrays and tensors") :]
    assert section.count("held by history[") == 5 and "7 in total hold 21.0 MiB" in section
    assert "trains.py:6 make_batch" in section


IN_NEED = """
import json
import resource
import numpy as np
from oomrec._impl.objects import objects_json

held = [np.ones(2 << 20, np.uint8) for _ in range(10)]
rest = []
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
size = 64 << 20
while size >= 512:
    try:
        rest.append(bytes(size))
    except MemoryError:
        size //= 2
text = objects_json(5)
del rest
found = json.loads(text) if text else None
print("nothing" if found is None else (len(found["objects"]), found["complete"]))
"""


@pytest.mark.needs_numpy
def test_partial_results_without_memory(plain):
    run = plain("python3", "-c", IN_NEED, env=PACKAGE, exits=0)
    said = run.stdout.strip()
    assert said in ("nothing", "(10, True)") or said.endswith(", False)"), said


FORGED = {
    "objects": [
        {"bytes": "many", "shape": [1, "x", -1], "referrers": [{"name": 7, "where": "\x1b[2J"}, 3]},
        "no object",
        {"bytes": 5, "type": "\x1b[31m", "stack": [1, "at"]},
    ],
    "count": -1,
    "complete": "yes",
}


@pytest.mark.needs_numpy
@pytest.mark.parametrize("text", [json.dumps(FORGED), "{", "[]", '{"objects": 3}'])
def test_a_forged_file_is_shown_up_to_the_error(oomrec, preload, text):
    run = preload("python3", "-c", "import oomrec; oomrec.dump('now')", env=PACKAGE)
    bundle = run.only_bundle()
    (bundle / "objects.json").write_text(text)
    shown = oomrec("show", bundle)
    assert shown.exit_code == 0 and "\x1b" not in shown.stdout
    assert oomrec("show", "--json", bundle).exit_code == 0
