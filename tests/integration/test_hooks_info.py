"""The library's facts about itself at start (OOMREC_INFO), before the program's main."""

from __future__ import annotations

import glob
import json
import sys
from pathlib import Path

import pytest


def facts_of(run_with, tmp_path, *command, **env) -> dict:
    path = tmp_path / "facts"
    path.unlink(missing_ok=True)
    run = run_with(*command, env={"OOMREC_INFO": path, **env})
    assert run.exit_code == 0 and run.stdout == "", str(run)
    return {fact["fact"]: fact for fact in map(json.loads, path.read_text().splitlines())}


def test_a_plain_program_is_observed(preload, tmp_path):
    facts = facts_of(preload, tmp_path, "ls")
    assert facts["recorder"]["active"] and facts["heap"]["active"] and facts["mappings"]["active"]
    assert facts["allocator"]["detail"] == "libc.so.6"


def test_python_is_observed(preload, tmp_path):
    assert facts_of(preload, tmp_path, sys.executable, "-c", "pass")["heap"]["active"]


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so.[23]"])
def test_the_order_of_preloads_matters(plain, library, tmp_path, name):
    found = glob.glob(f"/usr/lib/*/{name}")
    if not found:
        pytest.skip(f"not installed: {name}")
    after = facts_of(plain, tmp_path, "ls", LD_PRELOAD=f"{library}:{found[0]}")
    assert after["heap"]["active"] and after["allocator"]["detail"] == Path(found[0]).name
    before = facts_of(plain, tmp_path, "ls", LD_PRELOAD=f"{found[0]}:{library}")
    assert not before["heap"]["active"]
    assert "put liboomrec.so first" in before["heap"]["detail"]


def test_the_programs_own_malloc_is_reported(preload, tmp_path, victim):
    facts = facts_of(preload, tmp_path, victim("own_malloc"))
    assert not facts["heap"]["active"] and "brings its own malloc" in facts["heap"]["detail"]


def test_off_is_off(preload, tmp_path):
    facts = facts_of(preload, tmp_path, "ls", OOMREC_MODE="off")
    assert not facts["recorder"]["active"] and facts["recorder"]["detail"] == "OOMREC_MODE=off"


def test_every_fact_has_its_line(preload, tmp_path):
    facts = facts_of(
        preload, tmp_path, "ls", OOMREC_LIMIT="64M", OOMREC_LIMIT_AS="2G", OOMREC_LIMIT_GPU="1G@1"
    )
    names = (
        "recorder heap allocator operator_new mappings processes threads python cuda hip"
        " session bundles"
        " soft_limit device_limit address_space_limit data_limit children library"
    )
    assert list(facts) == names.split()
    assert facts["soft_limit"] == {"fact": "soft_limit", "active": True, "detail": str(64 << 20)}
    assert facts["device_limit"] == {"fact": "device_limit", "active": True, "detail": "1G@1"}
    assert facts["address_space_limit"]["active"] and not facts["data_limit"]["active"]
    assert facts["session"]["active"]
    assert facts["session"]["detail"].startswith(f"{preload.session_dir}/oomrec-")
    assert facts["bundles"]["detail"] == str(preload.dump_dir)
    assert facts["python"]["active"] is None
    assert facts["cuda"]["active"] is None and facts["hip"]["active"] is None
    assert list(preload.session_dir.glob("*/*")) == [] and not preload.dump_dir.exists()


def test_limits_from_the_environment_are_listed(oomrec):
    env = {"OOMREC_LIMIT": "64M", "OOMREC_LIMIT_GPU": "1G,2G@0,3G@hip:1"}
    rows = {row["kind"]: row["bytes"] for row in oomrec.json("info", env=env)["limits"]}
    asked = {"soft": 64 << 20, "device": 1 << 30, "device 0": 2 << 30, "device hip:1": 3 << 30}
    assert asked.items() <= rows.items()
    printed = oomrec("info", "--", "true", env=env).stdout
    assert "\n  device hip:1   3.0 GiB\n" in printed
    assert "  device_limit         yes  1G,2G@0,3G@hip:1\n" in printed


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_the_interpreter_is_named(oomrec, preload, python, tmp_path, version):
    fact = facts_of(preload, tmp_path, python(version), "-c", "pass")["python"]
    assert fact["active"] and fact["detail"].startswith(f"{version}.")
    answer = oomrec.json("info", "--", python(version), "-c", "pass")
    assert answer["python"] == f"Python {fact['detail']}: its stacks are read"


def check_note(oomrec, run, words):
    """The same words in info, in show and in what the program prints at its end."""
    shown = oomrec("show", run.bundle_at("here"))
    assert words in " ".join(shown.stdout.split()), str(shown)
    assert words in run.stderr, str(run)


def test_an_unobserved_heap_is_reported_everywhere(oomrec, preload, victim):
    words = "heap not observed: the program brings its own malloc"
    check_note(oomrec, preload(victim("own_malloc")), words)
    limited = preload(victim("own_malloc"), env={"OOMREC_LIMIT": "1G"})
    note = f"oomrec: {words}; the limit covers mappings only\n"
    assert limited.stderr.startswith(note), str(limited)
    answer = oomrec.json("info", "--", victim("own_malloc"))
    assert {"fact": "heap", "active": False, "detail": words} in answer["facts"]


def test_an_allocator_loaded_first_is_reported_everywhere(oomrec, plain, library, victim):
    found = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if not found:
        pytest.skip("not installed: libjemalloc.so.2")
    env = {"LD_PRELOAD": f"{found[0]}:{library}"}
    words = "heap not observed: put liboomrec.so first in LD_PRELOAD, before libjemalloc.so.2"
    check_note(oomrec, plain(victim("marks_once"), env=env), words)
