"""include/oomrec.h from version 3 on: queries, exceptions, labels, and loading the library late."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from sizes import MOST_ROUNDED

MIB = 1 << 20
SCRIPT = "python/calls_c_api.py"
WITH_ALL = {"OOMREC_MAX_DUMPS": 0}


@pytest.fixture
def ask(preload, victim):
    """ask(NAME) runs that function of the victim under the recorder and returns its result."""

    def answer(question: str, **env):
        run = preload(sys.executable, victim(SCRIPT), question, env={**WITH_ALL, **env}, exits=0)
        return json.loads(run.stdout)

    return answer


def read(bundle, name: str = "metadata.json"):
    return json.loads((Path(bundle) / name).read_text(encoding="utf-8"))


def holder_labels(oomrec, bundle) -> dict[int, list[str]]:
    """The labels of each large holder of the script, outermost first, by the two bytes more than MiB
    that it asked for. What Python's own heap happens to keep free may weigh the same."""
    shown = oomrec.json("show", bundle)
    return {
        holder["bytes"] // MIB * MIB + 2: [
            frame["function"]
            for frame in reversed(holder["stack"])
            if (frame["function"] or "").startswith("[")
        ]
        for holder in shown["holders"]
        if holder["bytes"] > 2 * MIB
        and holder["bytes"] % MIB < MOST_ROUNDED
        and any((frame["file"] or "").endswith(SCRIPT) for frame in holder["stack"])
    }


def test_usage_has_live_bytes_and_headroom(ask):
    figures = ask("figures")
    assert 32 * MIB <= figures["grown"] < 34 * MIB
    assert figures["live"] == figures["spaces"]["heap"] + figures["spaces"].get("map", 0)
    assert figures["peak"] >= figures["live"] and figures["rss"] > 32 * MIB
    kind, limit, used, headroom = figures["limit"]
    assert (kind, limit) == ("soft", 256 * MIB)
    assert used + headroom == limit and abs(used - figures["live"]) < MIB
    assert figures["unlimited"] in ("", "cgroup") and figures["devices"] == 0


def test_an_older_caller_gets_the_fields_that_fit_its_struct(ask):
    assert ask("short_struct") == [1, 24, True, True, 7]


def test_the_last_bundle_exists_once_its_path_is_returned(ask):
    found = ask("last_bundle")
    assert found["before"] == "" and found["there"]
    assert os.path.isabs(found["first"]) and read(found["first"])["context"] == "first"
    assert read(found["refused"])["reason"] == "allocation_failed"
    assert 0 < found["number"] < found["next"] and found["no room"] == 0


def test_an_exception_completes_the_bundle_of_its_failure(ask, oomrec):
    answer = ask("exception")
    assert answer["reported"] == [1, answer["refused"]] == answer["again"]
    metadata = read(answer["refused"])
    assert metadata["reason"] == "allocation_failed" and metadata["request"]["size"] >= 1 << 46
    assert (
        metadata["exception_type"] == "MemoryError" and metadata["exception_module"] == "builtins"
    )
    assert metadata["exception_message"] == "once more"
    assert metadata["exception_traceback"].startswith("Traceback")
    assert metadata["custom_metadata"]["nested"] == {"repeats": [1, 2]}
    # The outcome is added at the end of the process; nothing else is lost.
    assert metadata["outcome"] == "recovered" and metadata["custom_metadata"]["outcome"] == "mine"
    assert read(answer["refused"], "objects.json") == [{"bytes": 1}]
    names = read(answer["refused"], "manifest.json")["files"]
    assert sorted(names) == sorted(os.listdir(answer["refused"]))
    assert oomrec.json("show", answer["refused"])["outcome"] == "recovered"


def test_an_exception_caused_by_another_threads_failure(ask):
    """It joins that failure's bundle if `any_thread` asks for it, and only the first time."""
    answer = ask("exception_of_another_thread")
    assert answer["counted"] == 2 and answer["own"] == [0, ""]
    assert answer["asked"] == [1, answer["refused"]]
    assert read(answer["refused"])["reason"] == "allocation_failed"
    assert read(answer["refused"])["exception_message"] == "asked"
    for other in ("since", "not asked", "again"):
        result, bundle = answer[other]
        assert result == 1 and read(bundle)["reason"] == "exception"
        assert read(bundle)["exception_message"] == other


def test_an_exception_without_a_failure_gets_a_separate_bundle(ask, oomrec):
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
    answer = ask("hostile_texts")
    odd = read(answer["odd"][1])
    assert answer["odd"][0] == 1
    assert odd["exception_message"].startswith("\x01\x02") and "\ufffd" in odd["exception_message"]
    assert odd["exception_module"] == "" and odd["context"] == odd["exception_type"]
    assert odd["exception_traceback"] == "x" * 65536
    assert answer["results"] == [2] * 7
    for _, bundle in (*answer["bad"], answer["deep"], answer["large"]):
        assert read(bundle)["custom_metadata"] == {}
    assert answer["deep"][0] == answer["large"][0] == 2 and answer["surrogate"][0] == 1
    assert read(answer["surrogate"][1])["custom_metadata"] == {"a": "\ufffd", "b": "\U0001f600"}


def test_repeated_failures_get_a_bundle_or_are_counted_in_one(ask):
    answer = ask("repeated_refusals")
    assert all(path for _, path in answer) and answer[0][0] == 1
    for result, path in answer:
        message = read(path)["exception_message"]
        assert (result == 1) == (message == f"number {answer.index([result, path])}")


def test_a_requested_bundle_has_the_programs_metadata(ask):
    result, bundle = ask("dump_with")
    metadata = read(bundle)
    assert result == 1 and metadata["custom_metadata"] == {"step": 5}
    assert (metadata["reason"], metadata["context"]) == ("request", "by hand")


def test_labels_nest_and_apply_to_threads_without_one(ask, oomrec):
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


def test_the_latest_label_is_right_however_many_there_were(ask, oomrec):
    labels = holder_labels(oomrec, ask("many_labels"))
    assert labels[20 * MIB + 2][-1] == "[label 0]" and labels[21 * MIB + 2][-1] == "[label 4095]"
    assert labels[22 * MIB + 2][-1] == "[label 4099]"


def test_a_forked_child_inherits_its_parents_label(preload, victim, oomrec):
    run = preload(sys.executable, victim(SCRIPT), "forked_labels", env=WITH_ALL)
    labels = holder_labels(oomrec, run.bundle_at("of the child"))
    assert labels[4 * MIB + 2][-3:] == ["[outer]", "[inner]", "[of the child]"]
    assert labels[3 * MIB + 2][-2:] == ["[outer]", "[inner]"]


def test_a_label_costs_less_than_a_microsecond(ask):
    assert min(ask("push_cost") for _ in range(3)) < 1000


def test_failures_bundles_and_percentages_wake_a_waiter(ask):
    news = ask("news")
    for name in ("refusal", "bundle", "passed"):
        woken, done = news[name]
        assert woken and done, name
    assert news["asked"] == 1 and news["far"] and news["once"]
    assert (
        news["room"] == [1] * 7 + [0] * 2 and news["back"] == [1, 1] and news["senseless"] == [0, 0]
    )


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_block_is_found_by_an_interior_address(ask, mode):
    found = ask("blocks", OOMREC_MODE=mode)
    for name in ("begins", "inside"):
        inside, size, space, lately, stack = found[name]
        assert inside and size >= 3 * MIB and space == "heap" and lately
        assert "calls_c_api.py:" in stack and "make_batch" in stack
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


def test_a_late_load_records_what_it_can(plain, library, victim, oomrec):
    run = late(plain, library, victim, sys.executable)
    assert run.exit_code == 0 and "oomrec: cannot" not in run.stderr, str(run)
    output = json.loads(run.stdout)
    assert output["before"][0] == 0 and output["before"][1].startswith("everything")
    assert output["started"] == output["active"] == 1 and output["missing"].startswith(LATE)
    assert output["rss"] > 64 * MIB
    assert output["device"] == ["cuda", "Fake", 8 << 30, 6 << 30]
    assert output["torch"]["torch"] == 1 << 30
    result, bundle = output["reported"]
    assert result == 1 and read(bundle)["exception_type"] == "MemoryError"
    assert "allocations not observed" in oomrec("show", bundle).stdout
    assert "allocations not observed" in oomrec("stats", bundle).stdout
    assert recordings(plain) == []  # it exited normally


def test_a_kill_after_a_late_load_leaves_the_recording(plain, library, victim, oomrec):
    run = late(plain, library, victim, sys.executable, OOMREC_TEST_KILL="1")
    assert run.exit_code == 137
    [session] = recordings(plain)
    timeline = oomrec.json("timeline", session)
    assert "half way" in json.dumps(timeline)


@pytest.mark.parametrize("modules", [(), ("numpy",), ("numpy", "torch")])
def test_static_tls_suffices_when_loaded_after_other_libraries(plain, library, victim, modules):
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


def test_a_late_load_that_never_starts_does_nothing(plain, library):
    script = "import ctypes, os; library = ctypes.CDLL(os.environ['OOMREC_LATE']); \
print(library.oomrec_dump(b'now'), library.oomrec_is_active(), os.fork() >= 0)"
    run = plain(sys.executable, "-c", script, env={"OOMREC_LATE": str(library)})
    assert run.stdout == "0 0 True\n" * 2 and run.stderr == ""
    assert recordings(plain) == [] and not plain.dump_dir.exists()
