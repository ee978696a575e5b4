"""Libraries whose calls the loader does not bind to us: RTLD_DEEPBIND, dlmopen, allocators of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from schemas import check
from sizes import take_up

MIB = 1 << 20
BINDINGS = [{}, {"BIND_NOW": 1}]
HOST, OF_CONSTRUCTOR = 20000023, 1000003
# The plugin's blocks that are live at the end, as often as they are allocated.
ALL = {
    "plugin_allocate": [5000011, 7000003],
    "plugin_allocate_by_address": [4000037],
    "plugin_map": [2 * MIB],
}
REQUESTED = [HOST, OF_CONSTRUCTOR, 2 * MIB, *(size for sizes in ALL.values() for size in sizes)]
REFUSED = "too much: refused, Cannot allocate memory\n"


@pytest.fixture
def opened(oomrec, plain, victim):
    """Runs a plugin that is opened in this way; returns its functions' holders, the page and the output."""

    def opened(way, plugin, program=None, **env):
        args = [program or victim("opens_plugin"), way, plugin if program else victim(plugin)]
        without = plain(*args, env=env, exits=0)
        run = oomrec("run", "--mode", "exact", "--dump-at-exit", "--", *args, env=env)
        assert (run.stdout, run.exit_code) == (without.stdout, 0), str(run)
        (bundle,) = run.bundles_for("request")
        shown = oomrec.json("show", "--top", "100", bundle)
        blocks = {}
        for holder in shown["holders"]:
            names = [frame["function"] for frame in holder["stack"] if frame["function"]]
            of_plugin = [name for name in names if name.startswith("plugin_") or name == "begin"]
            for name in of_plugin or ["main"]:
                held = holder["bytes"]
                requested = [size for size in REQUESTED if take_up(held, size)]
                blocks.setdefault(name, []).append(requested[0] if requested else held)
        assert HOST in blocks.pop("main"), shown["holders"]
        return {name: sorted(sizes) for name, sizes in blocks.items()}, shown, run

    return opened


@pytest.mark.parametrize("env", BINDINGS)
def test_a_deep_bound_plugin_has_holders(opened, env):
    """Each block once, also after it was opened again. What its constructor allocates has none."""
    blocks, _, run = opened("deep", "deep_plugin.so", **env)
    assert blocks == ALL
    assert run.stdout.endswith(REFUSED + "its own allocator: 0\n")
    assert run.bundles_for("allocation_failed"), "the refusal is seen, too"


@pytest.mark.parametrize("env", BINDINGS)
def test_the_same_plugin_opened_without_it_is_recorded_once(opened, env):
    blocks, _, _ = opened("plain", "deep_plugin.so", **env)
    assert blocks == {**ALL, "begin": [OF_CONSTRUCTOR]}


@pytest.mark.parametrize("env", BINDINGS)
@pytest.mark.parametrize("way", ["plain", "deep"])
def test_a_plugin_with_its_own_malloc_keeps_it(opened, way, env):
    """By -Bsymbolic: a block of another allocator would end the program in its free()."""
    blocks, _, run = opened(way, "deep_plugin_own_malloc.so", **env)
    assert blocks == {"plugin_map": [2 * MIB]}
    assert not run.stdout.endswith("its own allocator: 0\n")


@pytest.mark.parametrize("env", BINDINGS)
def test_a_deep_bound_plugin_keeps_the_malloc_of_its_dependency(opened, env):
    """Also that of words that are not bound yet when dlopen returns."""
    blocks, _, run = opened("deep", "deep_plugin_of_bump.so", **env)
    assert blocks == {"plugin_map": [2 * MIB]}
    assert not run.stdout.endswith("its own allocator: 0\n")


def test_the_loader_searches_a_deep_bound_plugin_where_the_caller_says(opened, victim, tmp_path):
    """By a run path: dlopen must see the program as its caller."""
    program = tmp_path / "opens_plugin"
    source = Path(__file__).parents[1] / "victims/opens_plugin.c"
    run_path = f"-Wl,-rpath,{Path(victim('deep_plugin.so')).parent}"
    subprocess.run(
        ["gcc", "-w", "-g", "-D_GNU_SOURCE", source, "-o", program, run_path, "-ldl"], check=True
    )  # fmt: skip
    blocks, _, _ = opened("deep", "deep_plugin.so", program)
    assert blocks == ALL


def test_a_library_in_another_namespace_is_named(opened):
    blocks, shown, run = opened("namespace", "deep_plugin.so")
    assert blocks == {}
    note = (
        "deep_plugin.so was loaded in a namespace of its own (dlmopen): its memory is not recorded"
    )
    assert note in shown["notes"] and f"oomrec: {note}\n" in run.stderr, str(run)


@pytest.mark.needs_cgroup_write
def test_the_line_on_the_terminal_names_it_after_a_kill(oomrec, victim):
    """Nothing that it allocates is recorded: without its name the line would name no holder."""
    run = oomrec(
        "run", "--cgroup", "100M", "--", victim("opens_plugin"), "namespace", victim("deep_plugin.so"),
        env={"GROWS": 1},
    )  # fmt: skip
    (killed,) = [line for line in run.stderr.splitlines() if " was killed by the kernel" in line]
    assert "deep_plugin.so was loaded in a namespace of its own (dlmopen)" in killed, str(run)


@pytest.mark.parametrize("way", ["plain", "deep"])
def test_no_library_is_named_for_dlopen(opened, way):
    _, shown, _ = opened(way, "deep_plugin.so")
    assert not [note for note in shown["notes"] if "namespace" in note], shown["notes"]


@pytest.mark.parametrize(
    "way, plugin, reasons",
    [
        ("plain", "deep_plugin.so", []),
        ("deep", "deep_plugin.so", []),
        ("plain", "deep_plugin_own_malloc.so", [("deep_plugin_own_malloc.so", "own_allocator")]),
        ("deep", "deep_plugin_own_malloc.so", [("deep_plugin_own_malloc.so", "own_allocator")]),
        ("deep", "deep_plugin_of_bump.so", [("libbump.so", "own_allocator")]),
        ("plain", "deep_plugin_of_bump.so", []),
        ("namespace", "deep_plugin.so", [("deep_plugin.so", "not_redirected")]),
    ],
)
def test_info_names_what_a_running_process_allocates_unseen(
    oomrec, preload, victim, way, plugin, reasons
):
    process = preload.start(victim("opens_plugin"), way, victim(plugin), "stay")
    while process.stdout.readline() != b"ready\n":
        pass
    document = oomrec.json("info", process.pid)
    check("info_process", document)
    assert document["recorded"] and not document["attached"]
    found = [(Path(row["module"]).name, row["why"]) for row in document["unobserved"]]
    assert found == reasons, document["unobserved"]
    assert ("(dlmopen)" in (document["heap_note"] or "")) == (way == "namespace")


def linked_allocator_notes(document) -> list[str]:
    return [note for note in document["notes"] if " linked in: " in note]


def test_a_linked_allocator_is_named_with_its_share(oomrec, preload, victim):
    run = oomrec("run", "--dump-at-exit", "--", victim("linked_allocator"))
    (note,) = linked_allocator_notes(oomrec.json("show", run.only_bundle()))
    assert note.startswith("linked_allocator has jemalloc linked in: single blocks of it"), note
    assert "40.0 MiB (100.0 %)" in note
    process = preload.start(victim("linked_allocator"), "stay").once("ready")
    document = oomrec.json("info", process.pid)
    check("info_process", document)
    assert [
        (Path(row["module"]).name, row["why"], row["allocators"]) for row in document["unobserved"]
    ] == [("linked_allocator", "linked_allocator", ["jemalloc"])]
    assert "has jemalloc linked in: single blocks are not" in oomrec("info", process.pid).stdout


def test_no_allocator_is_named_for_mappings_of_the_programs_own(oomrec, victim):
    """Its control: a program that maps as much, without an allocator."""
    run = oomrec("run", "--dump-at-exit", "--", victim("opens_plugin"), "plain", victim("deep_plugin.so"))  # fmt: skip
    (bundle,) = run.bundles_for("request")
    assert linked_allocator_notes(oomrec.json("show", bundle)) == []
