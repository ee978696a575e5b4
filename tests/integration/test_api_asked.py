"""include/oomrec.h from version 3 on: what a program asks of the recorder, and tells it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

MIB = 1 << 20
SCRIPT = "python/asks_the_recorder.py"
WITH_ALL = {"OOMREC_MAX_DUMPS": 0}


@pytest.fixture
def ask(preload, victim):
    """What the victim's function answers under the recorder."""

    def answer(question: str, **env):
        run = preload(sys.executable, victim(SCRIPT), question, env={**WITH_ALL, **env})
        assert run.exit_code == 0, str(run)
        return json.loads(run.stdout)

    return answer


def read(bundle, name: str = "metadata.json"):
    return json.loads((Path(bundle) / name).read_text(encoding="utf-8"))


def holder_labels(oomrec, bundle) -> dict[int, list[str]]:
    """The labels of each large holder, outermost first, by its bytes."""
    shown = oomrec.json("show", bundle)
    return {
        holder["bytes"]: [
            frame["function"]
            for frame in reversed(holder["stack"])
            if (frame["function"] or "").startswith("[")
        ]
        for holder in shown["holders"]
        if holder["bytes"] > 2 * MIB
    }


def test_usage_says_what_is_held_and_what_is_left(ask):
    figures = ask("figures")
    assert 32 * MIB <= figures["grown"] < 34 * MIB
    assert figures["live"] == figures["spaces"]["heap"] + figures["spaces"].get("map", 0)
    assert figures["peak"] >= figures["live"] and figures["rss"] > 32 * MIB
    kind, limit, used, headroom = figures["limit"]
    assert (kind, limit) == ("soft", 256 * MIB)
    assert used + headroom == limit and abs(used - figures["live"]) < MIB
    assert figures["unlimited"] in ("", "cgroup") and figures["devices"] == 0


def test_a_caller_of_an_older_version_gets_what_its_struct_has_room_for(ask):
    assert ask("short_struct") == [1, 24, True, True, 7]


def test_the_newest_bundle_is_there_when_it_is_named(ask):
    found = ask("last_bundle")
    assert found["before"] == "" and found["there"]
    assert os.path.isabs(found["first"]) and read(found["first"])["context"] == "first"
    assert read(found["refused"])["reason"] == "allocation_failed"
    assert 0 < found["number"] < found["next"] and found["no room"] == 0


def test_an_exception_completes_the_bundle_of_its_refusal(ask, oomrec):
    told = ask("exception")
    assert told["told"] == [1, told["refused"]] == told["again"]
    metadata = read(told["refused"])
    assert metadata["reason"] == "allocation_failed" and metadata["request"]["size"] >= 1 << 46
    assert (
        metadata["exception_type"] == "MemoryError" and metadata["exception_module"] == "builtins"
    )
    assert metadata["exception_message"] == "once more"
    assert metadata["exception_traceback"].startswith("Traceback")
    assert metadata["custom_metadata"]["nested"] == {"repeats": [1, 2]}
    # Completed later, at the end of the process, and nothing of it is lost.
    assert metadata["outcome"] == "recovered" and metadata["custom_metadata"]["outcome"] == "mine"
    assert read(told["refused"], "objects.json") == [{"bytes": 1}]
    names = read(told["refused"], "manifest.json")["files"]
    assert sorted(names) == sorted(os.listdir(told["refused"]))
    assert oomrec.json("show", told["refused"])["outcome"] == "recovered"


def test_an_exception_of_another_threads_refusal(ask):
    """It is that refusal's if it is asked for, and the first."""
    told = ask("exception_of_another_thread")
    assert told["counted"] == 2 and told["own"] == [0, ""]
    assert told["asked"] == [1, told["refused"]]
    assert read(told["refused"])["reason"] == "allocation_failed"
    assert read(told["refused"])["exception_message"] == "asked"
    for other in ("since", "not asked", "again"):
        result, bundle = told[other]
        assert result == 1 and read(bundle)["reason"] == "exception"
        assert read(bundle)["exception_message"] == other


def test_an_exception_that_no_refusal_led_to_has_a_bundle_of_its_own(ask, oomrec):
    result, bundle = ask("exception_without_refusal")
    metadata = read(bundle)
    assert result == 1 and metadata["reason"] == "exception" and metadata["request"] is None
    assert metadata["verdict"]["code"] == "exception" and metadata["context"] == "epoch 7"
    assert metadata["exception_type"] == "MemoryError"
    shown = oomrec.json("show", bundle)
    assert shown["trigger"] == "exception" and shown["verdict"] == metadata["verdict"] | {
        "evidence": shown["verdict"]["evidence"]
    }


def test_texts_of_any_bytes_become_valid_json(ask):
    told = ask("hostile_texts")
    odd = read(told["odd"][1])
    assert told["odd"][0] == 1
    assert odd["exception_message"].startswith("\x01\x02") and "\ufffd" in odd["exception_message"]
    assert odd["exception_module"] == "" and odd["context"] == odd["exception_type"]
    assert odd["exception_traceback"] == "x" * 65536
    assert told["results"] == [2] * 7
    for _, bundle in (*told["bad"], told["deep"], told["large"]):
        assert read(bundle)["custom_metadata"] == {}
    assert told["deep"][0] == told["large"][0] == 2 and told["surrogate"][0] == 1
    assert read(told["surrogate"][1])["custom_metadata"] == {"a": "\ufffd", "b": "\U0001f600"}


def test_repeats_get_a_bundle_or_are_pointed_at_the_one_that_counts_them(ask):
    told = ask("repeated_refusals")
    assert all(path for _, path in told) and told[0][0] == 1
    for result, path in told:
        message = read(path)["exception_message"]
        assert (result == 1) == (message == f"number {told.index([result, path])}")


def test_a_bundle_by_hand_has_the_programs_metadata(ask):
    result, bundle = ask("dump_with")
    metadata = read(bundle)
    assert result == 1 and metadata["custom_metadata"] == {"step": 5}
    assert (metadata["reason"], metadata["context"]) == ("request", "by hand")


def test_labels_nest_and_are_those_of_threads_without_one(ask, oomrec):
    bundle = ask("labels")
    labels = holder_labels(oomrec, bundle)
    assert labels[8 * MIB + 2][-2:] == ["[epoch 3]", "[batch 7]"]
    assert labels[9 * MIB + 2][-1] == "[batch 7]"
    assert labels[7 * MIB + 2][-1] == "[epoch 3]"
    assert "[epoch 3]" not in labels[6 * MIB + 2] + labels[5 * MIB + 2]
    events = {event["size"]: event["context"] for event in read(bundle, "events.json")}
    assert events[8 * MIB + 2] == "batch 7" and events[6 * MIB + 2] is None
    refused = next(
        path for path in Path(bundle).parent.glob("oom_*") if read(path)["request"] is not None
    )
    assert read(refused)["context"] == "epoch 3"


def test_there_are_4096_labels_and_others(ask, oomrec):
    labels = holder_labels(oomrec, ask("many_labels"))
    assert labels[20 * MIB + 2][-1] == "[label 0]" and labels[21 * MIB + 2][-1] == "[label 4095]"
    assert labels[22 * MIB + 2][-1] == "[other]"


def test_a_forked_child_is_under_the_label_of_its_parent(preload, victim, oomrec):
    run = preload(sys.executable, victim(SCRIPT), "forked_labels", env=WITH_ALL)
    labels = holder_labels(oomrec, run.bundle_at("of the child"))
    assert labels[4 * MIB + 2][-3:] == ["[outer]", "[inner]", "[of the child]"]
    assert labels[3 * MIB + 2][-2:] == ["[outer]", "[inner]"]


def test_a_label_costs_less_than_a_microsecond(ask):
    assert min(ask("push_cost") for _ in range(3)) < 1000


def test_who_waits_is_woken_by_refusals_bundles_and_percentages(ask):
    news = ask("news")
    for name in ("refusal", "bundle", "passed"):
        woken, done = news[name]
        assert woken and done, name
    assert news["asked"] == 1 and news["far"] and news["once"]
    assert (
        news["room"] == [1] * 7 + [0] * 2 and news["back"] == [1, 1] and news["senseless"] == [0, 0]
    )


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_block_is_known_by_an_address_in_it(ask, mode):
    found = ask("blocks", OOMREC_MODE=mode)
    for name in ("begins", "inside"):
        inside, size, space, lately, stack = found[name]
        assert inside and size >= 3 * MIB and space == "heap" and lately
        assert "asks_the_recorder.py:" in stack and "make_batch" in stack
        lines = stack.splitlines()
        assert lines.index(next(line for line in lines if "make_batch" in line)) < len(lines) - 1
    assert found["nowhere"] == 0
    assert found["short"][0] == found["short"][1] < 40


LATE = (
    "allocations, their stacks and refusals: the library was loaded by the program, not before it; "
)


def recordings(runner) -> list[Path]:
    return [path for path in runner.session_dir.rglob("*") if path.is_file()]


def late(plain, library, victim, python, *modules, **env):
    environment = {"OOMREC_LATE": str(library), **WITH_ALL, **env}
    return plain(python, victim(SCRIPT), "loaded_later", *modules, env=environment)


def test_loaded_later_it_records_what_it_can(plain, library, victim, oomrec):
    run = late(plain, library, victim, sys.executable)
    assert run.exit_code == 0 and "oomrec: cannot" not in run.stderr, str(run)
    told = json.loads(run.stdout)
    assert told["before"][0] == 0 and told["before"][1].startswith("everything")
    assert told["started"] == told["active"] == 1 and told["missing"].startswith(LATE)
    assert told["rss"] > 64 * MIB
    assert told["device"] == ["cuda", "Fake", 8 << 30, 6 << 30]
    assert told["torch"]["torch"] == 1 << 30
    result, bundle = told["told"]
    assert result == 1 and read(bundle)["exception_type"] == "MemoryError"
    assert "allocations not observed" in oomrec("show", bundle).stdout
    assert "allocations not observed" in oomrec("stats", bundle).stdout
    assert recordings(plain) == []  # it ended by itself


def test_loaded_later_a_kill_leaves_the_recording(plain, library, victim, oomrec):
    run = late(plain, library, victim, sys.executable, OOMREC_TEST_KILL="1")
    assert run.exit_code == 137
    [session] = recordings(plain)
    timeline = oomrec.json("timeline", session)
    assert "half way" in json.dumps(timeline)


@pytest.mark.parametrize("modules", [(), ("numpy",), ("numpy", "torch")])
def test_loaded_after_others_there_is_room_for_its_threads_storage(plain, library, victim, modules):
    for module in modules:
        pytest.importorskip(module)
    script = "\n".join(
        [*(f"import {module}" for module in modules), "import ctypes, os, threading"]
        + ["library = ctypes.CDLL(os.environ['OOMREC_LATE'])"]
        + ["assert library.oomrec_start() == 1"]
        + ["thread = threading.Thread(target=library.oomrec_tick)", "thread.start()"]
        + ["thread.join()", "print('started')"]
    )
    run = plain(sys.executable, "-c", script, env={"OOMREC_LATE": str(library)})
    assert (run.stdout, run.exit_code) == ("started\n", 0), str(run)


def test_loaded_later_and_never_begun_it_does_nothing(plain, library):
    script = "import ctypes, os; library = ctypes.CDLL(os.environ['OOMREC_LATE']); \
print(library.oomrec_dump(b'now'), library.oomrec_is_active(), os.fork() >= 0)"
    run = plain(sys.executable, "-c", script, env={"OOMREC_LATE": str(library)})
    assert run.stdout == "0 0 True\n" * 2 and run.stderr == ""
    assert recordings(plain) == [] and not plain.dump_dir.exists()
