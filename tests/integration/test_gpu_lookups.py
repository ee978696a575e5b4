"""Lookups of a driver's functions return the driver's function, or our wrapper of it.

Each lookup runs with and without the recorder and must print the same, except that a function may
be found in our library instead of the driver's.
"""

from __future__ import annotations

import glob

import pytest

DRIVERS = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so.5"}
UNWRAPPED = ["not_loaded", "other_namespace", "other_names"]
WRAPPED = ["local", "global", "reopened", "threads", "in_signal", "resolver", "deepbind"]


@pytest.fixture(scope="session")
def fakes(build_dir):
    """The directory of the fake drivers."""
    return build_dir / "tests" / "fake_gpu"


@pytest.fixture
def look_up(plain, library, victim, fakes):
    """look_up("cuda", "local", preloads) is the program's output and its run."""

    def run(vendor, way, preloads="", **env):
        env = {"LD_LIBRARY_PATH": fakes, "LD_PRELOAD": preloads or None, **env}
        run = plain(victim("gpu_lookups"), vendor, way, env=env, exits=0)
        return as_soname(run.stdout), run

    return run


def as_soname(printed: str) -> str:
    """A library may have several names, and dladdr() gives the one by which it was opened."""
    return printed.replace("libamdhip64.so\n", "libamdhip64.so.5\n")


def as_driver(printed: str, vendor: str) -> str:
    return printed.replace("liboomrec.so", DRIVERS[vendor])


def driver_of(oomrec, run, vendor: str) -> dict:
    shown = oomrec.json("show", run.only_bundle())
    return next(row for row in shown["process"]["drivers"] if row["vendor"] == vendor)


@pytest.mark.parametrize("vendor", DRIVERS)
@pytest.mark.parametrize("way", WRAPPED + UNWRAPPED)
def test_lookups_give_the_same_result_recorded_and_unrecorded(look_up, library, vendor, way):
    without, _ = look_up(vendor, way)
    printed, run = look_up(vendor, way, library)
    assert as_driver(printed, vendor) == without, str(run)
    assert ("liboomrec.so" in printed) == (way in WRAPPED), str(run)
    if way in WRAPPED:
        assert f"library: in {DRIVERS[vendor]}" not in printed, str(run)


@pytest.mark.parametrize("vendor", DRIVERS)
@pytest.mark.parametrize("way", ["not_loaded", "local", "global", "resolver"])
def test_off_is_off(look_up, library, vendor, way):
    without, _ = look_up(vendor, way)
    printed, run = look_up(vendor, way, library, OOMREC_MODE="off")
    assert printed == without, str(run)


def test_a_driver_in_the_callers_local_scope(look_up, library, victim):
    env = {"LIBRARY": victim("gpu_plugin.so")}
    without, _ = look_up("cuda", "by_plugin", **env)
    assert without.splitlines()[0].endswith("libcuda.so.1")
    assert without.splitlines()[-1] == "RTLD_DEFAULT: nothing, and dlerror says it"
    printed, run = look_up("cuda", "by_plugin", library, **env)
    assert as_driver(printed, "cuda") == without, str(run)
    assert printed.count("liboomrec.so") == 2, str(run)


def test_the_lookups_of_a_deepbind_plugin_are_hooked(look_up, library, victim):
    """With RTLD_DEEPBIND the loader binds its dlsym past us; it is redirected once it is loaded."""
    env = {"LIBRARY": victim("gpu_plugin.so")}
    without, _ = look_up("cuda", "by_deep_plugin", **env)
    printed, run = look_up("cuda", "by_deep_plugin", library, **env)
    assert as_driver(printed, "cuda") == without, str(run)
    assert printed.splitlines()[:2] == [
        "plugin, RTLD_DEFAULT: in liboomrec.so",
        "plugin, its handle: in liboomrec.so",
    ], str(run)


@pytest.mark.parametrize("vendor", DRIVERS)
def test_a_driver_under_another_name(oomrec, look_up, library, fakes, tmp_path, vendor):
    """It is recognized by the functions that the program gets."""
    name = DRIVERS[vendor].encode()
    image = (fakes / DRIVERS[vendor]).read_bytes()
    assert image.count(name) >= 1
    other = tmp_path / "libfoo.so"
    other.write_bytes(image.replace(name, b"libno" + name[5:]))
    without, _ = look_up(vendor, "renamed", LIBRARY=other)
    printed, run = look_up(vendor, "renamed", library, LIBRARY=other)
    assert printed.replace("liboomrec.so", "libfoo.so") == without, str(run)
    assert "library: in liboomrec.so" in printed
    assert driver_of(oomrec, run, vendor)["path"] == str(other)
    spaces = oomrec.json("show", run.only_bundle())["spaces"]
    assert spaces[vendor]["live_count"] == 2, spaces


@pytest.mark.parametrize("vendor", DRIVERS)
def test_the_lookup_paths_are_reported(oomrec, look_up, library, vendor):
    _, run = look_up(vendor, "resolver", library)
    driver = driver_of(oomrec, run, vendor)
    resolver = "cuGetProcAddress" if vendor == "cuda" else "hipGetProcAddress"
    names = driver["by_dlsym"] + driver["by_resolver"]
    assert driver["hooks"] == f"hooked through dlsym and {resolver}; {names} names wrapped"
    assert driver["by_dlsym"] >= 1 and driver["by_resolver"] >= 2 and driver["linked"] == 0
    assert driver["wrapped"] > 50 and "fake_gpu/lib" in driver["path"]
    shown = oomrec("show", run.only_bundle()).stdout
    assert f"{vendor.upper():<9} {driver['hooks']}\n" in shown


def test_a_program_linked_against_the_driver(oomrec, plain, preload, victim):
    without = plain(victim("gpu_linked"))
    run = preload(victim("gpu_linked"))
    assert as_driver(run.stdout, "cuda") == without.stdout, str(run)
    driver = driver_of(oomrec, run, "cuda")
    assert driver["linked"] >= 2 and driver["hooks"].startswith("hooked through links")
    assert oomrec.json("show", run.only_bundle())["spaces"]["cuda"]["live_count"] == 5
    facts = {row["fact"]: row for row in oomrec.json("info", "--", victim("gpu_linked"))["facts"]}
    assert facts["cuda"]["active"] and "a driver is loaded" in facts["cuda"]["detail"]
    assert facts["hip"]["active"] is None and "no driver so far" in facts["hip"]["detail"]


def test_a_weak_reference_without_a_driver(plain, preload, victim):
    """CUDA_ERROR_NOT_INITIALIZED and hipErrorNoDevice. Without the recorder the symbol is null."""
    assert plain(victim("gpu_weak")).stdout == "-1 -1\n"
    assert preload(victim("gpu_weak")).stdout == "3 100\n"


@pytest.mark.parametrize("way", ["next", "handle"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ["gpu_interposer.so", "gpu_first_interposer.so"])
def test_beside_another_interposer_of_the_driver(
    oomrec, plain, library, victim, fakes, name, first, way
):
    """Both see every call once. The other finds the next function by RTLD_NEXT or in the library, and
    its constructor may come before ours."""
    other = victim(name)
    order = f"{library}:{other}" if first else f"{other}:{library}"
    env = {"LD_LIBRARY_PATH": fakes, "INTERPOSER": way}
    without = plain(victim("gpu_linked"), env={**env, "LD_PRELOAD": other})
    assert "the interposer saw 5\n" in without.stdout, str(without)
    run = plain(victim("gpu_linked"), env={**env, "LD_PRELOAD": order})
    ours = run.stdout.replace("liboomrec.so", name)
    assert (ours, run.exit_code) == (without.stdout, 0), str(run)
    assert oomrec.json("show", run.only_bundle())["spaces"]["cuda"]["live_count"] == 5


@pytest.mark.parametrize("first", [True, False])
def test_an_interposer_is_not_a_driver(look_up, library, victim, first):
    """Without a driver the interposer's own function is found, as without the recorder."""
    other = victim("gpu_interposer.so")
    without, _ = look_up("cuda", "not_loaded", other)
    assert "RTLD_DEFAULT: in gpu_interposer.so" in without
    order = f"{library}:{other}" if first else f"{other}:{library}"
    printed, run = look_up("cuda", "not_loaded", order)
    assert printed == without, str(run)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("way", ["local", "global", "resolver", "not_loaded"])
def test_beside_another_dlsym(look_up, library, victim, first, way):
    """Lookups pass through both, in either order."""
    other = victim("gpu_tail_dlsym.so")
    without, _ = look_up("cuda", way, other)
    order = f"{library}:{other}" if first else f"{other}:{library}"
    printed, run = look_up("cuda", way, order)
    assert as_driver(printed, "cuda") == without, str(run)
    assert ("liboomrec.so" in printed) == (way in WRAPPED), str(run)
    assert "the other dlsym saw look-ups: yes" in run.stderr, str(run)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("way", ["local", "global", "reopened", "threads"])
def test_beside_another_allocator(look_up, library, first, way):
    found = glob.glob("/usr/lib/*/libjemalloc.so.2")
    if not found:
        pytest.skip("not installed: libjemalloc.so.2")
    without, _ = look_up("cuda", way, found[0])
    order = f"{library}:{found[0]}" if first else f"{found[0]}:{library}"
    printed, run = look_up("cuda", way, order)
    assert as_driver(printed, "cuda") == without, str(run)
    assert "library: in liboomrec.so" in printed, str(run)


def test_a_runtime_that_resolves_every_name_through_the_driver(
    oomrec, plain, preload, victim, fakes
):
    """As libcudart does. Calls of these functions are recorded, for both kinds of default stream."""
    env = {"LD_LIBRARY_PATH": fakes}
    without = plain(victim("gpu_runtime"), env=env)
    assert without.stdout.startswith("0 0 0\nnames 3") and "missing 0\n" in without.stdout
    run = preload(victim("gpu_runtime"), env=env)
    assert (run.stdout, run.exit_code) == (without.stdout, 0), str(run)
    driver = driver_of(oomrec, run, "cuda")
    assert driver["by_dlsym"] == 1 and driver["linked"] == 0
    assert driver["by_resolver"] > 80, driver
    spaces = oomrec.json("show", run.only_bundle())["spaces"]
    assert spaces["cuda"]["live_bytes"] == 2 * (2 + 3 + 5) << 20, spaces["cuda"]
    assert spaces["cuda_host"]["live_bytes"] == 2 * 4 << 20, spaces["cuda_host"]
